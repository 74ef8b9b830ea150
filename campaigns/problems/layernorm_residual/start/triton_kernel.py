"""LayerNorm with residual in Triton: one program a row, three walks, the sum read back from memory."""

import triton
import triton.language as tl

BLOCK = 256  # tunable: 256, 512, 1024, 2048, 4096
NUM_WARPS = 4  # tunable: 1, 2, 4, 8, 16


@triton.jit
def layernorm_kernel(x, residual, weight, bias, y, total, hidden, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * hidden
    columns = tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        inside = first + columns < hidden
        a = tl.load(x + row + first + columns, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + first + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(total + row + first + columns, a + b, mask=inside)
        sums += a + b
    mean = tl.sum(sums, 0) / hidden
    squares = tl.zeros([BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        inside = first + columns < hidden
        a = tl.load(x + row + first + columns, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + first + columns, mask=inside, other=0.0).to(tl.float32)
        centred = tl.where(inside, a + b - mean, 0.0)
        squares += centred * centred
    scale = 1.0 / tl.sqrt(tl.sum(squares, 0) / hidden + 1e-5)
    for first in range(0, hidden, BLOCK):
        inside = first + columns < hidden
        a = tl.load(x + row + first + columns, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(residual + row + first + columns, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(weight + first + columns, mask=inside, other=0.0).to(tl.float32)
        c = tl.load(bias + first + columns, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row + first + columns, (a + b - mean) * scale * w + c, mask=inside)


def run(x, residual, weight, bias, y, total):
    layernorm_kernel[(x.shape[0],)](
        x, residual, weight, bias, y, total, x.shape[1], BLOCK=BLOCK, num_warps=NUM_WARPS
    )
