"""Sparse MLA decode in torch: the named tokens in pieces, each gathered into a float32 copy, then merged."""

import torch

CHUNK = 256  # tunable: 64, 128, 256, 512, 1024, 2048
WIDE_GATHER = 1  # tunable: 0, 1
SCALE = 192**-0.5


def run(q, cache, indices, out):
    batch, heads, _ = q.shape
    wide_q = q.float() * SCALE
    sequence = torch.arange(batch, device=q.device)[:, None]
    best = torch.full((batch, heads, 1), -torch.inf, device=q.device)
    total = torch.zeros(batch, heads, 1, device=q.device)
    result = torch.zeros(batch, heads, 512, device=q.device)
    for part in indices.split(CHUNK, dim=1):
        if WIDE_GATHER:
            piece = cache[sequence, part.long()].float()
        else:
            piece = torch.stack([c.index_select(0, i) for c, i in zip(cache, part)]).float()
        scores = torch.bmm(wide_q, piece.mT)
        new_best = torch.maximum(best, scores.amax(-1, keepdim=True))
        weights = torch.exp(scores - new_best)
        rescale = torch.exp(best - new_best)
        total = total * rescale + weights.sum(-1, keepdim=True)
        result = result * rescale + torch.bmm(weights, piece[..., :512])
        best = new_best
    out.copy_(result / total)
