# Gather the named rows straight into the pipeline, once for a block of heads; spread the tokens over the processors and merge the pieces at the end.
import torch
import triton
import triton.language as tl

FEW_WAY = 0  # tunable: 0, 1
FEW_T = 64  # tunable: 32, 64
FEW_H = 16  # tunable: 16, 32
FEW_WARPS = 4  # tunable: 4, 8
FEW_STAGES = 2  # tunable: 2, 3, 4, 5, 6
FEW_RESIDENT = 1  # tunable: 1, 2
MANY_T = 64  # tunable: 32, 64
MANY_STAGES = 2  # tunable: 2, 3, 4, 5, 6

PROCESSORS = 132
SCALE = 192**-0.5 * 1.4426950408889634


@triton.jit
def few_kernel(
    q, cache, indices, part, peaks, out, heads, tokens, topk, share, pieces, scale,
    BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr, WHOLE: tl.constexpr, NEAR: tl.constexpr, EARLY: tl.constexpr,
):
    """Up to 32 heads: scores [tokens, heads] and results [512, heads]; the tile is the first operand of both products."""
    sequence, block, piece = tl.program_id(2), tl.program_id(0), tl.program_id(1)
    head = block * BLOCK_H + tl.arange(0, BLOCK_H)
    q_row = (sequence * heads + head)[:, None] * 576
    q_latent = tl.load(q + q_row + tl.arange(0, 512)[None, :], mask=head[:, None] < heads, other=0.0)
    q_rope = tl.load(q + q_row + 512 + tl.arange(0, 64)[None, :], mask=head[:, None] < heads, other=0.0)
    best = tl.full([BLOCK_H], -1.0e30, tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    result = tl.zeros([512, BLOCK_H], tl.float32)
    end = tl.minimum((piece + 1) * share, topk)
    cache += sequence.to(tl.int64) * tokens * 576
    indices += sequence * topk
    for first in range(piece * share, end, BLOCK_T):
        place = first + tl.arange(0, BLOCK_T)
        if WHOLE:
            named = tl.load(indices + place)
        else:
            named = tl.load(indices + place, mask=place < end, other=0)
        if NEAR:
            at = cache + named[:, None] * 576
        else:
            at = cache + named[:, None].to(tl.int64) * 576
        latent = tl.load(at + tl.arange(0, 512)[None, :])
        rope = tl.load(at + 512 + tl.arange(0, 64)[None, :])
        scores = tl.dot(latent, tl.trans(q_latent))
        scores = tl.dot(rope, tl.trans(q_rope), scores) * scale
        if not WHOLE:
            scores = tl.where(place[:, None] < end, scores, float("-inf"))
        larger = tl.maximum(best, tl.max(scores, 0))
        weights = tl.exp2(scores - larger[None, :])
        rescale = tl.exp2(best - larger)
        total = total * rescale + tl.sum(weights, 0)
        result = tl.dot(tl.trans(latent), weights.to(latent.dtype), result * rescale[None, :])
        best = larger
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    result = tl.trans(result / total[None, :])
    latent_at = tl.arange(0, 512)[None, :]
    row = sequence * heads + head
    if pieces == 1:
        tl.store(out + row[:, None] * 512 + latent_at, result.to(out.dtype.element_ty), mask=head[:, None] < heads)
    else:
        slot = row.to(tl.int64) * pieces + piece
        tl.store(part + slot[:, None] * 512 + latent_at, result, mask=head[:, None] < heads)
        tl.store(peaks + slot, best + tl.log2(total), mask=head < heads)


@triton.jit
def many_kernel(
    q, cache, indices, part, peaks, out, heads, tokens, topk, share, pieces, scale,
    BLOCK_T: tl.constexpr, BLOCK_H: tl.constexpr, WHOLE: tl.constexpr, NEAR: tl.constexpr, EARLY: tl.constexpr,
):
    """Heads are the rows of both products: 64 at once, or few, which the smaller matrix instructions serve."""
    sequence, block, piece = tl.program_id(2), tl.program_id(0), tl.program_id(1)
    head = block * BLOCK_H + tl.arange(0, BLOCK_H)
    q_row = (sequence * heads + head)[:, None] * 576
    q_latent = tl.load(q + q_row + tl.arange(0, 512)[None, :], mask=head[:, None] < heads, other=0.0)
    q_rope = tl.load(q + q_row + 512 + tl.arange(0, 64)[None, :], mask=head[:, None] < heads, other=0.0)
    best = tl.full([BLOCK_H], -1.0e30, tl.float32)
    total = tl.zeros([BLOCK_H], tl.float32)
    result = tl.zeros([BLOCK_H, 512], tl.float32)
    end = tl.minimum((piece + 1) * share, topk)
    cache += sequence.to(tl.int64) * tokens * 576
    indices += sequence * topk
    for first in range(piece * share, end, BLOCK_T):
        place = first + tl.arange(0, BLOCK_T)
        if WHOLE:
            named = tl.load(indices + place)
        else:
            named = tl.load(indices + place, mask=place < end, other=0)
        if NEAR:
            at = cache + named[:, None] * 576
        else:
            at = cache + named[:, None].to(tl.int64) * 576
        latent = tl.load(at + tl.arange(0, 512)[None, :])
        rope = tl.load(at + 512 + tl.arange(0, 64)[None, :])
        scores = tl.dot(q_latent, tl.trans(latent))
        scores = tl.dot(q_rope, tl.trans(rope), scores) * scale
        if not WHOLE:
            scores = tl.where(place[None, :] < end, scores, float("-inf"))
        larger = tl.maximum(best, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        rescale = tl.exp2(best - larger)
        total = total * rescale + tl.sum(weights, 1)
        result = tl.dot(weights.to(latent.dtype), latent, result * rescale[:, None])
        best = larger
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    result = result / total[:, None]
    latent_at = tl.arange(0, 512)[None, :]
    row = sequence * heads + head
    if pieces == 1:
        tl.store(out + row[:, None] * 512 + latent_at, result.to(out.dtype.element_ty), mask=head[:, None] < heads)
    else:
        slot = row.to(tl.int64) * pieces + piece
        tl.store(part + slot[:, None] * 512 + latent_at, result, mask=head[:, None] < heads)
        tl.store(peaks + slot, best + tl.log2(total), mask=head < heads)


@triton.jit
def merge_kernel(
    part, peaks, out, pieces, PIECES: tl.constexpr, CHUNK: tl.constexpr, WIDTH: tl.constexpr, EARLY: tl.constexpr
):
    """The pieces of one head, WIDTH of its 512 values, many pieces at once."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * WIDTH + tl.arange(0, WIDTH)
    every = tl.arange(0, PIECES)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    peak = tl.load(peaks + row * pieces + every, mask=every < pieces, other=-1.0e30)
    largest = tl.max(peak, 0)
    total = tl.sum(tl.exp2(peak - largest), 0)
    result = tl.zeros([WIDTH], tl.float32)
    for first in tl.static_range(0, PIECES, CHUNK):
        some = first + tl.arange(0, CHUNK)
        weight = tl.exp2(tl.load(peaks + row * pieces + some, mask=some < pieces, other=-1.0e30) - largest)
        at = (row * pieces + some)[:, None] * 512 + column[None, :]
        values = tl.load(part + at, mask=some[:, None] < pieces, other=0.0).to(tl.float32)
        result += tl.sum(values * weight[:, None], 0)
    tl.store(out + row * 512 + column, (result / total).to(out.dtype.element_ty))


def run(q, cache, indices, out):
    (batch, heads, _), tokens, topk = q.shape, cache.shape[1], indices.shape[1]
    # 64 heads at once where that still gives work to the processors; else 16, so that the pieces need not be tiny.
    few = heads <= 32 or batch * triton.cdiv(heads, 64) * triton.cdiv(topk, 64) < PROCESSORS
    if few:
        high, block_t, resident = FEW_H if heads > 16 else 16, FEW_T, FEW_RESIDENT
    else:
        high, block_t, resident = 64, MANY_T, 1
    blocks = triton.cdiv(heads, high)
    tiles = triton.cdiv(topk, block_t)
    share = triton.cdiv(tiles, max(1, min(tiles, resident * PROCESSORS // (batch * blocks)))) * block_t
    pieces = triton.cdiv(topk, share)
    part, peaks = out, out
    if pieces > 1:
        part = torch.empty(batch * heads, pieces, 512, device=q.device)
        peaks = torch.empty(batch * heads, pieces, device=q.device)
    early = pieces > 1 and not few and q.device.type != "cpu"
    near = tokens * 576 < 1 << 31
    sizes = {"BLOCK_T": block_t, "BLOCK_H": high, "WHOLE": topk % block_t == 0, "NEAR": near, "EARLY": early}
    arguments = (q, cache, indices, part, peaks, out, heads, tokens, topk, share, pieces, SCALE)
    warps, stages = (FEW_WARPS, FEW_STAGES) if few else (8, MANY_STAGES)
    kernel = few_kernel if few and FEW_WAY == 0 else many_kernel
    kernel[(blocks, pieces, batch)](*arguments, **sizes, num_warps=warps, num_stages=stages)
    if pieces > 1:
        width = 64 if batch * heads <= 32 else 128 if batch * heads <= 512 else 512
        every = triton.next_power_of_2(pieces)
        launch = {"launch_pdl": True} if early else {}
        merge_kernel[(batch * heads, 512 // width)](
            part, peaks, out, pieces,
            PIECES=every, CHUNK=min(every, 8192 // width), WIDTH=width, EARLY=early, num_warps=4, **launch,
        )
