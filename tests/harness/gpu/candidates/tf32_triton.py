"""Rounds the operands to TF32."""

import triton
import triton.language as tl

BLOCK = 64
STEP = 32
NUM_WARPS = 4


@triton.jit
def product_kernel(a, b, y, m, n, k, BLOCK: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros([BLOCK, BLOCK], tl.float32)
    for first in range(0, k, STEP):
        inner = first + tl.arange(0, STEP)
        left = tl.load(a + row * k + inner[None, :], mask=(row < m) & (inner[None, :] < k), other=0.0)
        right = tl.load(b + inner[:, None] * n + column, mask=(inner[:, None] < k) & (column < n), other=0.0)
        sums = tl.dot(left, right, sums, input_precision="tf32")
    tl.store(y + row * n + column, sums, mask=(row < m) & (column < n))


def run(a, b, y):
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
    product_kernel[grid](a, b, y, m, n, k, BLOCK=BLOCK, STEP=STEP, num_warps=NUM_WARPS)
