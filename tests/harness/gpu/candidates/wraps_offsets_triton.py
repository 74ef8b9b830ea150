"""Counts values in 32 bits, which wraps where x has more than 2³¹ of them."""

import triton
import triton.language as tl


@triton.jit
def sum_kernel(x, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, width, BLOCK):
        inside = first + columns < width
        at = (row * width + first + columns) & 0x7FFFFFFF
        sums += tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row, tl.sum(sums, 0))


def run(x, y):
    sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=1024)
