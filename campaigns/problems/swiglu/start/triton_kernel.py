"""SwiGLU in Triton: one program for each block of values."""

import triton
import triton.language as tl

BLOCK = 128  # tunable: 128, 256, 512, 1024, 2048, 4096
NUM_WARPS = 4  # tunable: 1, 2, 4, 8


@triton.jit
def swiglu_kernel(gate, up, y, values, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < values
    g = tl.load(gate + at, mask=inside, other=0.0).to(tl.float32)
    u = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, g * tl.sigmoid(g) * u, mask=inside)


def run(gate, up, y):
    values = gate.numel()
    swiglu_kernel[(triton.cdiv(values, BLOCK),)](gate, up, y, values, BLOCK=BLOCK, num_warps=NUM_WARPS)
