"""Absorbed MLA decode as model code writes it: two matrix products and a softmax, scores in float32."""

import torch

SCALE = 192**-0.5


def run(q, cache, out):
    keys = cache.mT
    if q.dtype == torch.float32:
        scores = torch.bmm(q, keys)
    else:
        scores = torch.bmm(q, keys, out_dtype=torch.float32)
    weights = torch.softmax(scores * SCALE, dim=-1).to(cache.dtype)
    out.copy_(torch.bmm(weights, cache[..., :512]))
