# The same two kernels with tiles of 64, for the tensor cores.
import torch
import triton
import triton.language as tl

BLOCK_M = 64  # tunable: 16, 32, 64, 128
BLOCK_N = 64  # tunable: 32, 64, 128
BLOCK_K = 64  # tunable: 32, 64, 128
NUM_WARPS = 4  # tunable: 2, 4, 8


@triton.jit
def gate_up_kernel(x, w13, order, starts, middle, topk, d, f, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    expert = tl.program_id(0).to(tl.int64)
    first, last = tl.load(starts + expert), tl.load(starts + expert + 1)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    for block in range(first, last, BLOCK_M):
        row = block + tl.arange(0, BLOCK_M)
        token = tl.load(order + row, mask=row < last, other=0) // topk
        gate = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        up = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for k in range(0, d, BLOCK_K):
            inner = k + tl.arange(0, BLOCK_K)
            a = tl.load(x + token[:, None] * d + inner[None, :], mask=(row[:, None] < last) & (inner[None, :] < d), other=0.0)
            at = w13 + (expert * 2 * f + column[None, :]) * d + inner[:, None]
            inside = (column[None, :] < f) & (inner[:, None] < d)
            gate = tl.dot(a, tl.load(at, mask=inside, other=0.0), gate, input_precision="ieee")
            up = tl.dot(a, tl.load(at + f * d, mask=inside, other=0.0), up, input_precision="ieee")
        value = gate * tl.sigmoid(gate) * up
        tl.store(middle + row[:, None] * f + column[None, :], value, mask=(row[:, None] < last) & (column[None, :] < f))


@triton.jit
def down_kernel(middle, w2, order, starts, weights, each, d, f, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    expert = tl.program_id(0).to(tl.int64)
    first, last = tl.load(starts + expert), tl.load(starts + expert + 1)
    column = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    for block in range(first, last, BLOCK_M):
        row = block + tl.arange(0, BLOCK_M)
        place = tl.load(order + row, mask=row < last, other=0)
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for k in range(0, f, BLOCK_K):
            inner = k + tl.arange(0, BLOCK_K)
            a = tl.load(middle + row[:, None] * f + inner[None, :], mask=(row[:, None] < last) & (inner[None, :] < f), other=0.0)
            at = w2 + (expert * d + column[None, :]) * f + inner[:, None]
            sums = tl.dot(a, tl.load(at, mask=(column[None, :] < d) & (inner[:, None] < f), other=0.0), sums, input_precision="ieee")
        weight = tl.load(weights + place, mask=row < last, other=0.0)
        tl.store(each + place[:, None] * d + column[None, :], sums * weight[:, None], mask=(row[:, None] < last) & (column[None, :] < d))


def run(x, w13, w2, chosen, weights, y):
    (tokens, topk), (experts, d, f) = chosen.shape, w2.shape
    flat = chosen.reshape(-1).long()
    order = flat.argsort()
    starts = torch.searchsorted(flat[order], torch.arange(experts + 1, device=x.device))
    middle = torch.empty(tokens * topk, f, device=x.device, dtype=x.dtype)
    each = torch.empty(tokens * topk, d, device=x.device)
    sizes = {"BLOCK_M": BLOCK_M, "BLOCK_N": BLOCK_N, "BLOCK_K": BLOCK_K, "num_warps": NUM_WARPS}
    gate_up_kernel[(experts, triton.cdiv(f, BLOCK_N))](x, w13, order, starts, middle, topk, d, f, **sizes)
    down_kernel[(experts, triton.cdiv(d, BLOCK_N))](middle, w2, order, starts, weights, each, d, f, **sizes)
    y.copy_(each.view(tokens, topk, d).sum(1))
