"""RMSNorm in Triton: one program a row, one walk for the squares and one to write."""

import triton
import triton.language as tl

BLOCK = 256  # tunable: 256, 512, 1024, 2048, 4096, 8192
NUM_WARPS = 4  # tunable: 1, 2, 4, 8, 16


@triton.jit
def rmsnorm_kernel(x, weight, y, hidden, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        values = tl.load(x + start + first + columns, mask=first + columns < hidden, other=0.0).to(tl.float32)
        squares += values * values
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / hidden + 1e-6)
    for first in range(0, hidden, BLOCK):
        inside = first + columns < hidden
        values = tl.load(x + start + first + columns, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + first + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + start + first + columns, values * scale * w, mask=inside)


def run(x, weight, y):
    rmsnorm_kernel[(x.shape[0],)](x, weight, y, x.shape[1], BLOCK=BLOCK, num_warps=NUM_WARPS)
