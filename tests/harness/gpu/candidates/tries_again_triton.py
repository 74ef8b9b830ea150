"""Honest: a launch that is tried with fewer stages where the GPU has not the shared memory, and an import that may fail."""

import triton
import triton.language as tl

try:
    from triton.runtime.errors import OutOfResources
except ImportError:
    OutOfResources = RuntimeError


@triton.jit
def scale_kernel(x, s, y, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    values = tl.load(x + row * width + columns, mask=inside).to(tl.float32) * tl.load(s + row).to(tl.float32)
    tl.store(y + row * width + columns, values, mask=inside)


def run(x, s, y):
    rows, width = x.shape
    block = triton.next_power_of_2(width)
    try:
        scale_kernel[(rows,)](x, s, y, width, BLOCK=block, num_stages=4)
    except OutOfResources:
        scale_kernel[(rows,)](x, s, y, width, BLOCK=block, num_stages=1)
