"""A linear layer and GELU in Triton: one small tile a program, no grouping of tiles for the cache."""

import triton
import triton.language as tl

BLOCK_M = 32  # tunable: 16, 32, 64, 128
BLOCK_N = 32  # tunable: 32, 64, 128, 256
BLOCK_K = 32  # tunable: 32, 64, 128
NUM_WARPS = 4  # tunable: 2, 4, 8
NUM_STAGES = 2  # tunable: 2, 3, 4, 5


@triton.jit
def linear_gelu_kernel(x, weight, bias, y, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for first in range(0, k, BLOCK_K):
        inner = first + tl.arange(0, BLOCK_K)
        a = tl.load(x + row * k + inner[None, :], mask=(row < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(weight + column * k + inner[:, None], mask=(column < n) & (inner[:, None] < k), other=0.0)
        sums = tl.dot(a, b, sums, input_precision="ieee")
    z = sums + tl.load(bias + column, mask=column < n, other=0.0).to(tl.float32)
    result = 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))
    tl.store(y + row * n + column, result, mask=(row < m) & (column < n))


def run(x, weight, bias, y):
    (m, k), n = x.shape, weight.shape[0]
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))
    linear_gelu_kernel[grid](
        x, weight, bias, y, m, n, k,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=NUM_WARPS, num_stages=NUM_STAGES,
    )
