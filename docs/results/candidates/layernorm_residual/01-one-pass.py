# Add, take mean and variance, and scale while the row is in registers: two reads and two writes, nothing twice.
import triton
import triton.language as tl

FEW_WARPS = 4  # tunable: 4, 8, 16
ROW_WARPS = 16  # tunable: 4, 8, 16
ROW_PROGRAMS = 0  # tunable: 0, 1, 2, 4
STAGES = 2  # tunable: 1, 2, 3
EARLY = 1  # tunable: 0, 1

WALKED = 32768  # longer rows do not fit in registers
PROCESSORS = 132


@triton.jit
def read(at, columns, hidden, EXACT: tl.constexpr):
    if EXACT:
        return tl.load(at + columns).to(tl.float32)
    else:
        return tl.load(at + columns, mask=columns < hidden, other=0.0).to(tl.float32)


@triton.jit
def write(at, columns, hidden, values, EXACT: tl.constexpr):
    if EXACT:
        tl.store(at + columns, values)
    else:
        tl.store(at + columns, values, mask=columns < hidden)


@triton.jit
def one_row(
    x, residual, y, total, start, hidden, head, tail, w_head, c_head, w_tail, c_tail,
    TAIL: tl.constexpr, EXACT: tl.constexpr,
):
    a = read(x + start, head, hidden, EXACT) + read(residual + start, head, hidden, EXACT)
    sums = tl.sum(a, 0)
    if TAIL > 0:
        b = read(x + start, tail, hidden, False) + read(residual + start, tail, hidden, False)
        sums += tl.sum(b, 0)
    write(total + start, head, hidden, a, EXACT)
    mean = sums / hidden
    a -= mean
    squares = tl.sum(a * a, 0) if EXACT else tl.sum(tl.where(head < hidden, a * a, 0.0), 0)
    if TAIL > 0:
        write(total + start, tail, hidden, b, False)
        b -= mean
        squares += tl.sum(tl.where(tail < hidden, b * b, 0.0), 0)
    scale = tl.rsqrt(squares / hidden + 1e-5)
    write(y + start, head, hidden, a * scale * w_head + c_head, EXACT)
    if TAIL > 0:
        write(y + start, tail, hidden, b * scale * w_tail + c_tail, False)


@triton.jit
def rows_kernel(
    x, residual, weight, bias, y, total, rows, hidden,
    HEAD: tl.constexpr, TAIL: tl.constexpr, EXACT: tl.constexpr, LOOP: tl.constexpr, STAGES: tl.constexpr,
    EARLY: tl.constexpr,
):
    """HEAD columns, the largest power of two in a row, and a tail; a program takes one row, or walks many. With EARLY it is in
    place before the kernel before it has ended."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    head = tl.arange(0, HEAD)
    tail = HEAD + tl.arange(0, TAIL if TAIL > 0 else 1)
    w_head, c_head = read(weight, head, hidden, EXACT), read(bias, head, hidden, EXACT)
    w_tail, c_tail = w_head, c_head
    if TAIL > 0:
        w_tail, c_tail = read(weight, tail, hidden, False), read(bias, tail, hidden, False)
    if LOOP:
        for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
            start = (tl.full([], 0, tl.int64) + row) * hidden
            one_row(x, residual, y, total, start, hidden, head, tail, w_head, c_head, w_tail, c_tail, TAIL, EXACT)
    else:
        start = tl.program_id(0).to(tl.int64) * hidden
        one_row(x, residual, y, total, start, hidden, head, tail, w_head, c_head, w_tail, c_tail, TAIL, EXACT)


@triton.jit
def walk_kernel(x, residual, weight, bias, y, total, hidden, BLOCK: tl.constexpr):
    """Very long rows: three walks, of which two find the row in the second-level cache."""
    start = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        at = first + columns
        a = read(x + start, at, hidden, False) + read(residual + start, at, hidden, False)
        write(total + start, at, hidden, a, False)
        sums += a
    mean = tl.sum(sums, 0) / hidden
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        at = first + columns
        a = read(x + start, at, hidden, False) + read(residual + start, at, hidden, False)
        a = tl.where(at < hidden, a - mean, 0.0)
        squares += a * a
    scale = tl.rsqrt(tl.sum(squares, 0) / hidden + 1e-5)
    for first in range(0, hidden, BLOCK):
        at = first + columns
        a = read(x + start, at, hidden, False) + read(residual + start, at, hidden, False)
        w, c = read(weight, at, hidden, False), read(bias, at, hidden, False)
        write(y + start, at, hidden, (a - mean) * scale * w + c, False)


def blocks(hidden):
    """The largest power of two in a row, and a power of two for what is left."""
    head = max(128, 1 << (hidden.bit_length() - 1))
    left = hidden - head
    return head, triton.next_power_of_2(left) if left > 0 else 0, hidden >= head


def run(x, residual, weight, bias, y, total):
    rows, hidden = x.shape
    if hidden > WALKED:
        walk_kernel[(rows,)](x, residual, weight, bias, y, total, hidden, BLOCK=4096, num_warps=8)
        return
    head, tail, exact = blocks(hidden)
    few = rows <= 2 * PROCESSORS
    programs = 0 if few else ROW_PROGRAMS
    warps = max(FEW_WARPS if few else ROW_WARPS, hidden // 4096)
    grid = (min(rows, programs * PROCESSORS) if programs else rows,)
    early = EARLY == 1 and x.device.type != "cpu"
    launch = {"launch_pdl": True} if early else {}
    rows_kernel[grid](
        x, residual, weight, bias, y, total, rows, hidden,
        HEAD=head, TAIL=tail, EXACT=exact, LOOP=programs > 0, STAGES=STAGES, EARLY=early,
        num_warps=triton.next_power_of_2(warps), **launch,
    )
