"""Honest: two programs add to the same sum, atomically, after the output was cleared by torch."""

import triton
import triton.language as tl


@triton.jit
def sum_kernel(x, y, rows, width, BLOCK: tl.constexpr):
    row = (tl.program_id(0) % rows).to(tl.int64)
    half = tl.program_id(0) // rows
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(half * (width // 2), width // 2 + half * (width - width // 2), BLOCK):
        inside = first + columns < width // 2 + half * (width - width // 2)
        sums += tl.load(x + row * width + first + columns, mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(y + row, tl.sum(sums, 0))


def run(x, y):
    rows, width = x.shape
    y.zero_()
    sum_kernel[(2 * rows,)](x, y, rows, width, BLOCK=1024)
