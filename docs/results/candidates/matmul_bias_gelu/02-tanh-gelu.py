# The tanh form of GELU in the epilogue: cheaper than erf, and near enough.
import triton
import triton.language as tl

BLOCK_M = 128  # tunable: 64, 128
BLOCK_N = 128  # tunable: 64, 128, 256
BLOCK_K = 64  # tunable: 32, 64
NUM_STAGES = 3  # tunable: 2, 3, 4


@triton.jit
def linear_gelu_kernel(x, weight, bias, y, m, n, k, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    column = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for first in range(0, k, BLOCK_K):
        inner = first + tl.arange(0, BLOCK_K)
        a = tl.load(x + row * k + inner[None, :], mask=(row < m) & (inner[None, :] < k), other=0.0)
        b = tl.load(weight + column * k + inner[:, None], mask=(column < n) & (inner[:, None] < k), other=0.0)
        sums = tl.dot(a, b, sums)
    z = sums + tl.load(bias + column, mask=column < n, other=0.0).to(tl.float32)
    inner_z = 0.7978845608028654 * (z + 0.044715 * z * z * z)
    result = z / (1.0 + tl.exp(-2.0 * inner_z))
    tl.store(y + row * n + column, result, mask=(row < m) & (column < n))


def run(x, weight, bias, y):
    (m, k), n = x.shape, weight.shape[0]
    linear_gelu_kernel[(triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))](
        x, weight, bias, y, m, n, k,
        BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=8, num_stages=NUM_STAGES,
    )
