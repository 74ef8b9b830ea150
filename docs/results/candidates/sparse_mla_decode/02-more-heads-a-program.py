# 64 heads and 64 tokens a program, so that a row fetched serves four times as many heads.
import triton
import triton.language as tl

BLOCK_T = 64  # tunable: 16, 32, 64
BLOCK_H = 64  # tunable: 16, 32, 64
NUM_WARPS = 8  # tunable: 4, 8
NUM_STAGES = 2  # tunable: 1, 2, 3


@triton.jit
def sparse_mla_kernel(q, cache, indices, out, heads, tokens, topk, scale, BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    latent = tl.arange(0, 512)
    rope = 512 + tl.arange(0, 64)
    q_row = (sequence * heads + head[:, None]) * 576
    q_latent = tl.load(q + q_row + latent[None, :], mask=head[:, None] < heads, other=0.0)
    q_rope = tl.load(q + q_row + rope[None, :], mask=head[:, None] < heads, other=0.0)
    best = tl.full([BLOCK_H], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    result = tl.zeros([BLOCK_H, 512], tl.float32)
    for first in range(0, topk, BLOCK_T):
        place = first + tl.arange(0, BLOCK_T)
        named = tl.load(indices + sequence * topk + place, mask=place < topk, other=0).to(tl.int64)
        row = (sequence * tokens + named[:, None]) * 576
        inside = place[:, None] < topk
        k_latent = tl.load(cache + row + latent[None, :], mask=inside, other=0.0)
        k_rope = tl.load(cache + row + rope[None, :], mask=inside, other=0.0)
        scores = tl.dot(q_latent, tl.trans(k_latent))
        scores += tl.dot(q_rope, tl.trans(k_rope))
        scores = tl.where(place[None, :] < topk, scores * scale, float("-inf"))
        largest = tl.maximum(best, tl.max(scores, 1))
        weights = tl.exp(scores - largest[:, None])
        rescale = tl.exp(best - largest)
        total = total * rescale + tl.sum(weights, 1)
        result = result * rescale[:, None] + tl.dot(weights.to(k_latent.dtype), k_latent)
        best = largest
    at = (sequence * heads + head[:, None]) * 512 + latent[None, :]
    tl.store(out + at, result / total[:, None], mask=head[:, None] < heads)


def run(q, cache, indices, out):
    batch, heads, _ = q.shape
    grid = (batch, triton.cdiv(heads, BLOCK_H))
    sparse_mla_kernel[grid](
        q, cache, indices, out, heads, cache.shape[1], indices.shape[1], 192**-0.5,
        BLOCK_T=BLOCK_T, BLOCK_H=BLOCK_H, num_warps=NUM_WARPS, num_stages=NUM_STAGES,
    )
