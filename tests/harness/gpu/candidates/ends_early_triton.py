"""Honest: looks first, and where a row's factor is zero it reads nothing more."""

import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, s, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    by = tl.load(s + row).to(tl.float32)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    if by != 0:
        values = tl.load(x + row * width + columns, mask=inside).to(tl.float32) * by
        tl.store(y + row * width + columns, values, mask=inside)
    else:
        tl.store(y + row * width + columns, tl.zeros([BLOCK], tl.float32), mask=inside)


def run(x, s, y):
    scale_kernel[(x.shape[0],)](x, s, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]), num_warps=8)
