"""Softmax in Triton: one program a row, walks for the maximum, for the sum and to write."""

import triton
import triton.language as tl

BLOCK = 256  # tunable: 256, 512, 1024, 2048, 4096, 8192, 16384
NUM_WARPS = 4  # tunable: 1, 2, 4, 8, 16, 32


@triton.jit
def softmax_kernel(x, y, width, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * width
    columns = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for first in range(0, width, BLOCK):
        inside = first + columns < width
        best = tl.maximum(best, tl.load(x + start + first + columns, mask=inside, other=float("-inf")).to(tl.float32))
    largest = tl.max(best, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, width, BLOCK):
        inside = first + columns < width
        values = tl.load(x + start + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - largest)
    total = tl.sum(sums, 0)
    for first in range(0, width, BLOCK):
        inside = first + columns < width
        values = tl.load(x + start + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
        tl.store(y + start + first + columns, tl.exp(values - largest) / total, mask=inside)


def run(x, y):
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=BLOCK, num_warps=NUM_WARPS)
