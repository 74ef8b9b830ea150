# Hold the whole row on the chip: one read, one write. Long rows are walked by a few programs a processor, which fetch the next row meanwhile.
import torch
import triton
import triton.language as tl

NARROW_WARPS = 1  # tunable: 1, 2, 4
ROW_WARPS = 8  # tunable: 4, 8, 16
LONG_WARPS = 32  # tunable: 8, 16, 32
LONG_PROGRAMS = 1  # tunable: 0, 1, 2
STAGES = 3  # tunable: 1, 2, 3

HELD = 65536  # longer rows do not fit in registers
PIECE = 16384  # of a row too long, by one program
PROCESSORS = 132


@triton.jit
def read(at, columns, width, EXACT: tl.constexpr):
    if EXACT:
        return tl.load(at + columns).to(tl.float32)
    else:
        return tl.load(at + columns, mask=columns < width, other=float("-inf")).to(tl.float32)


@triton.jit
def write(at, columns, width, values, EXACT: tl.constexpr):
    if EXACT:
        tl.store(at + columns, values)
    else:
        tl.store(at + columns, values, mask=columns < width)


@triton.jit
def one_row(x, y, start, width, head, tail, TAIL: tl.constexpr, EXACT: tl.constexpr):
    a = read(x + start, head, width, EXACT)
    largest = tl.max(a, 0)
    if TAIL > 0:
        b = read(x + start, tail, width, False)
        largest = tl.maximum(largest, tl.max(b, 0))
    a = tl.exp(a - largest)
    total = tl.sum(a, 0)
    if TAIL > 0:
        b = tl.exp(b - largest)
        total += tl.sum(b, 0)
    scale = 1.0 / total
    write(y + start, head, width, a * scale, EXACT)
    if TAIL > 0:
        write(y + start, tail, width, b * scale, False)


@triton.jit
def rows_kernel(
    x, y, rows, width,
    HEAD: tl.constexpr, TAIL: tl.constexpr, EXACT: tl.constexpr, LOOP: tl.constexpr, STAGES: tl.constexpr,
):
    """HEAD columns, the largest power of two in a row, and a tail; a program takes one row, or walks many."""
    head = tl.arange(0, HEAD)
    tail = HEAD + tl.arange(0, TAIL if TAIL > 0 else 1)
    if LOOP:
        for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
            one_row(x, y, (tl.full([], 0, tl.int64) + row) * width, width, head, tail, TAIL, EXACT)
    else:
        one_row(x, y, tl.program_id(0).to(tl.int64) * width, width, head, tail, TAIL, EXACT)


@triton.jit
def piece_kernel(x, best, total, width, PIECE: tl.constexpr):
    """A row of a million columns by many programs: maximum and sum of a piece."""
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    columns = piece * PIECE + tl.arange(0, PIECE)
    a = read(x + row * width, columns, width, False)
    largest = tl.maximum(tl.max(a, 0), -1.0e30)
    at = row * tl.num_programs(1) + piece
    tl.store(best + at, largest)
    tl.store(total + at, tl.sum(tl.exp(a - largest), 0))


@triton.jit
def spread_kernel(x, y, best, total, width, pieces, PIECE: tl.constexpr, PIECES: tl.constexpr):
    """The pieces' maxima and sums put together, and a piece written; it is in the second-level cache still."""
    row, piece = tl.program_id(0).to(tl.int64), tl.program_id(1)
    at = tl.arange(0, PIECES)
    maxima = tl.load(best + row * pieces + at, mask=at < pieces, other=-1.0e30)
    sums = tl.load(total + row * pieces + at, mask=at < pieces, other=0.0)
    largest = tl.max(maxima, 0)
    scale = 1.0 / tl.sum(sums * tl.exp(maxima - largest), 0)
    columns = piece * PIECE + tl.arange(0, PIECE)
    a = read(x + row * width, columns, width, False)
    write(y + row * width, columns, width, tl.exp(a - largest) * scale, False)


def blocks(width):
    """The largest power of two in a row, and a power of two for what is left."""
    head = max(64, 1 << (width.bit_length() - 1))
    left = width - head
    return head, triton.next_power_of_2(left) if left > 0 else 0, width >= head


def run(x, y):
    rows, width = x.shape
    if width >= HELD:
        pieces = triton.cdiv(width, PIECE)
        best, total = torch.empty(2, rows, pieces, device=x.device)
        piece_kernel[(rows, pieces)](x, best, total, width, PIECE=PIECE, num_warps=8)
        spread_kernel[(rows, pieces)](
            x, y, best, total, width, pieces, PIECE=PIECE, PIECES=triton.next_power_of_2(pieces), num_warps=8
        )
        return
    head, tail, exact = blocks(width)
    if width <= 2048:
        warps, programs = NARROW_WARPS, 0
    elif width <= 16384:
        warps, programs = ROW_WARPS, 0
    else:
        warps, programs = LONG_WARPS, LONG_PROGRAMS
    grid = (min(rows, programs * PROCESSORS) if programs else rows,)
    rows_kernel[grid](
        x, y, rows, width, HEAD=head, TAIL=tail, EXACT=exact, LOOP=programs > 0, STAGES=STAGES, num_warps=warps
    )
