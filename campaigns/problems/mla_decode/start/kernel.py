"""Absorbed MLA decode in torch: the cache in pieces of 1,024 tokens, each copied first, then merged."""

import torch

CHUNK = 1024  # tunable: 256, 512, 1024, 2048, 4096, 16384, 65536
COPY = 1  # tunable: 0, 1
SCALE = 192**-0.5


def run(q, cache, out):
    batch, heads, _ = q.shape
    wide_q = q.float() * SCALE
    best = torch.full((batch, heads, 1), -torch.inf, device=q.device)
    total = torch.zeros(batch, heads, 1, device=q.device)
    result = torch.zeros(batch, heads, 512, device=q.device)
    for piece in cache.split(CHUNK, dim=1):
        piece = (piece.clone() if COPY else piece).float()
        scores = torch.bmm(wide_q, piece.mT)
        new_best = torch.maximum(best, scores.amax(-1, keepdim=True))
        weights = torch.exp(scores - new_best)
        rescale = torch.exp(best - new_best)
        total = total * rescale + weights.sum(-1, keepdim=True)
        result = result * rescale + torch.bmm(weights, piece[..., :512])
        best = new_best
    out.copy_(result / total)
