# Read a row once and keep it in registers; where rows are many, a few programs a processor walk them and fetch the next one meanwhile.
import triton
import triton.language as tl

FEW_WARPS = 8  # tunable: 4, 8, 16
ROW_WARPS = 8  # tunable: 2, 4, 8, 16
ROW_PROGRAMS = 0  # tunable: 0, 2, 4, 8
WIDE_WARPS = 8  # tunable: 4, 8, 16, 32
WIDE_PROGRAMS = 0  # tunable: 0, 1, 2, 4
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
def rows_kernel(
    x, weight, y, rows, hidden, HEAD: tl.constexpr, TAIL: tl.constexpr, EXACT: tl.constexpr, STAGES: tl.constexpr
):
    """HEAD columns, the largest power of two in a row, and a tail."""
    head = tl.arange(0, HEAD)
    w_head = read(weight, head, hidden, EXACT)
    if TAIL > 0:
        tail = HEAD + tl.arange(0, TAIL)
        w_tail = read(weight, tail, hidden, False)
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        start = (tl.full([], 0, tl.int64) + row) * hidden
        a = read(x + start, head, hidden, EXACT)
        squares = tl.sum(a * a, 0)
        if TAIL > 0:
            b = read(x + start, tail, hidden, False)
            squares += tl.sum(b * b, 0)
        scale = tl.rsqrt(squares / hidden + 1e-6)
        write(y + start, head, hidden, a * scale * w_head, EXACT)
        if TAIL > 0:
            write(y + start, tail, hidden, b * scale * w_tail, False)


@triton.jit
def row_kernel(
    x, weight, y, hidden, HEAD: tl.constexpr, TAIL: tl.constexpr, EXACT: tl.constexpr, EARLY: tl.constexpr
):
    """One row a program: the same without a loop. With EARLY it is in place before the kernel before it has ended."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    head = tl.arange(0, HEAD)
    start = tl.program_id(0).to(tl.int64) * hidden
    a = read(x + start, head, hidden, EXACT)
    w_head = read(weight, head, hidden, EXACT)
    squares = tl.sum(a * a, 0)
    if TAIL > 0:
        tail = HEAD + tl.arange(0, TAIL)
        b = read(x + start, tail, hidden, False)
        w_tail = read(weight, tail, hidden, False)
        squares += tl.sum(b * b, 0)
    scale = tl.rsqrt(squares / hidden + 1e-6)
    write(y + start, head, hidden, a * scale * w_head, EXACT)
    if TAIL > 0:
        write(y + start, tail, hidden, b * scale * w_tail, False)


@triton.jit
def walk_kernel(x, weight, y, hidden, BLOCK: tl.constexpr):
    """Very long rows: two walks, the second of which finds the row in the second-level cache."""
    start = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        a = read(x + start, first + columns, hidden, False)
        squares += a * a
    scale = tl.rsqrt(tl.sum(squares, 0) / hidden + 1e-6)
    for first in range(0, hidden, BLOCK):
        a = read(x + start, first + columns, hidden, False)
        w = read(weight, first + columns, hidden, False)
        write(y + start, first + columns, hidden, a * scale * w, False)


def blocks(hidden):
    """The largest power of two in a row, and a power of two for what is left."""
    head = max(128, 1 << (hidden.bit_length() - 1))
    left = hidden - head
    return head, triton.next_power_of_2(left) if left > 0 else 0, hidden >= head


def run(x, weight, y):
    rows, hidden = x.shape
    if hidden > WALKED:
        walk_kernel[(rows,)](x, weight, y, hidden, BLOCK=8192, num_warps=16)
        return
    head, tail, exact = blocks(hidden)
    sizes = {"HEAD": head, "TAIL": tail, "EXACT": exact}
    if rows <= 2 * PROCESSORS:
        warps, programs = triton.next_power_of_2(max(FEW_WARPS, hidden // 2048)), 0
    elif head <= 8192:
        warps, programs = ROW_WARPS, ROW_PROGRAMS
    else:
        warps, programs = WIDE_WARPS, WIDE_PROGRAMS
    if programs == 0:
        early = EARLY == 1 and x.device.type != "cpu"
        launch = {"launch_pdl": True} if early else {}
        row_kernel[(rows,)](x, weight, y, hidden, **sizes, EARLY=early, num_warps=warps, **launch)
    else:
        grid = (min(rows, programs * PROCESSORS),)
        rows_kernel[grid](x, weight, y, rows, hidden, **sizes, STAGES=STAGES, num_warps=warps)
