"""The indexer with its scores in Triton; the choice is left to the library's topk and sort."""

import torch
import triton
import triton.language as tl

BLOCK_T = 32  # tunable: 16, 32, 64, 128
BLOCK_H = 16  # tunable: 16, 32, 64
NUM_WARPS = 4  # tunable: 2, 4, 8


@triton.jit
def scores_kernel(q, keys, weights, scores, heads, tokens, dim, DIM: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    token = tl.program_id(1).to(tl.int64) * BLOCK_T + tl.arange(0, BLOCK_T)
    inner = tl.arange(0, DIM)
    key = tl.load(
        keys + (sequence * tokens + token[:, None]) * dim + inner[None, :],
        mask=(token[:, None] < tokens) & (inner[None, :] < dim), other=0.0,
    )
    sums = tl.zeros([BLOCK_T], tl.float32)
    for first in range(0, heads, BLOCK_H):
        head = first + tl.arange(0, BLOCK_H)
        query = tl.load(
            q + (sequence * heads + head[:, None]) * dim + inner[None, :],
            mask=(head[:, None] < heads) & (inner[None, :] < dim), other=0.0,
        )
        weight = tl.load(weights + sequence * heads + head, mask=head < heads, other=0.0)
        products = tl.dot(key, tl.trans(query), input_precision="ieee")
        sums += tl.sum(tl.maximum(products, 0.0) * weight[None, :], 1)
    tl.store(scores + sequence * tokens + token, sums, mask=token < tokens)


def run(q, keys, weights, indices):
    batch, heads, dim = q.shape
    tokens = keys.shape[1]
    scores = torch.empty(batch, tokens, device=q.device)
    scores_kernel[(batch, triton.cdiv(tokens, BLOCK_T))](
        q, keys, weights, scores, heads, tokens, dim,
        DIM=max(16, triton.next_power_of_2(dim)), BLOCK_T=BLOCK_T, BLOCK_H=BLOCK_H, num_warps=NUM_WARPS,
    )
    indices.copy_(scores.topk(indices.shape[1], sorted=False).indices.sort().values)
