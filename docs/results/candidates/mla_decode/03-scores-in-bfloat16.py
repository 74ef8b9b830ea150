# Scores rounded to bfloat16, as the library's products give them: half the registers for the softmax.
import torch
import triton
import triton.language as tl

SPLITS = 32  # tunable: 1, 4, 8, 16, 32, 64, 128
BLOCK_T = 32  # tunable: 16, 32, 64
BLOCK_H = 16  # tunable: 16, 32, 64
NUM_WARPS = 4  # tunable: 4, 8
NUM_STAGES = 2  # tunable: 1, 2, 3


@triton.jit
def split_kernel(q, cache, part, best_part, total_part, heads, tokens, share, scale,
                 SPLITS: tl.constexpr, BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr):
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    split = tl.program_id(2)
    latent = tl.arange(0, 512)
    rope = 512 + tl.arange(0, 64)
    q_row = (sequence * heads + head[:, None]) * 576
    q_latent = tl.load(q + q_row + latent[None, :], mask=head[:, None] < heads, other=0.0)
    q_rope = tl.load(q + q_row + rope[None, :], mask=head[:, None] < heads, other=0.0)
    best = tl.full([BLOCK_H], -1.0e30, tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    result = tl.zeros([BLOCK_H, 512], tl.float32)
    end = tl.minimum((split + 1) * share, tokens)
    for first in range(split * share, end, BLOCK_T):
        token = first + tl.arange(0, BLOCK_T)
        row = (sequence * tokens + token[:, None]) * 576
        inside = token[:, None] < end
        k_latent = tl.load(cache + row + latent[None, :], mask=inside, other=0.0)
        k_rope = tl.load(cache + row + rope[None, :], mask=inside, other=0.0)
        scores = tl.dot(q_latent, tl.trans(k_latent), input_precision="ieee")
        scores += tl.dot(q_rope, tl.trans(k_rope), input_precision="ieee")
        scores = (scores * scale).to(tl.bfloat16).to(tl.float32)
        scores = tl.where(token[None, :] < end, scores, float("-inf"))
        largest = tl.maximum(best, tl.max(scores, 1))
        weights = tl.exp(scores - largest[:, None])
        rescale = tl.exp(best - largest)
        total = total * rescale + tl.sum(weights, 1)
        result = result * rescale[:, None] + tl.dot(weights.to(k_latent.dtype), k_latent, input_precision="ieee")
        best = largest
    slot = (sequence * heads + head) * SPLITS + split
    tl.store(part + slot[:, None] * 512 + latent[None, :], result, mask=head[:, None] < heads)
    tl.store(best_part + slot, best, mask=head < heads)
    tl.store(total_part + slot, total, mask=head < heads)


@triton.jit
def merge_kernel(part, best_part, total_part, out, SPLITS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    latent = tl.arange(0, 512)
    best = tl.full([], -1.0e30, tl.float32)
    total = tl.zeros([], tl.float32)
    result = tl.zeros([512], tl.float32)
    for split in range(SPLITS):
        slot = row * SPLITS + split
        other = tl.load(best_part + slot)
        largest = tl.maximum(best, other)
        old, new = tl.exp(best - largest), tl.exp(other - largest)
        total = total * old + tl.load(total_part + slot) * new
        result = result * old + tl.load(part + slot * 512 + latent) * new
        best = largest
    tl.store(out + row * 512 + latent, result / total)


def run(q, cache, out):
    (batch, heads, _), tokens = q.shape, cache.shape[1]
    rows = batch * heads
    part = torch.empty(rows, SPLITS, 512, device=q.device)
    best, total = torch.empty(2, rows, SPLITS, device=q.device)
    share = triton.cdiv(triton.cdiv(tokens, SPLITS), BLOCK_T) * BLOCK_T
    split_kernel[(batch, triton.cdiv(heads, BLOCK_H), SPLITS)](
        q, cache, part, best, total, heads, tokens, share, 192**-0.5,
        SPLITS=SPLITS, BLOCK_T=BLOCK_T, BLOCK_H=BLOCK_H, num_warps=NUM_WARPS, num_stages=NUM_STAGES,
    )
    merge_kernel[(rows,)](part, best, total, out, SPLITS=SPLITS)
