"""Sparse MLA decode as model code writes it: gather, two matrix products and a softmax, scores in float32."""

import torch

SCALE = 192**-0.5


def run(q, cache, indices, out):
    batch, topk = indices.shape
    picked = cache.gather(1, indices.long()[..., None].expand(batch, topk, 576))
    if q.dtype == torch.float32:
        scores = torch.bmm(q, picked.mT)
    else:
        scores = torch.bmm(q, picked.mT, out_dtype=torch.float32)
    weights = torch.softmax(scores * SCALE, dim=-1).to(cache.dtype)
    out.copy_(torch.bmm(weights, picked[..., :512]))
