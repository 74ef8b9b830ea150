"""The same through torch.compile: one shape-generic build on a CPU, one build a shape on a GPU."""

import torch

SCALE = 192**-0.5
torch._dynamo.config.recompile_limit = 64


def sparse_mla_decode(q, cache, indices, out):
    batch, topk = indices.shape
    picked = cache.gather(1, indices.long()[..., None].expand(batch, topk, 576))
    if q.dtype == torch.float32:
        scores = torch.bmm(q, picked.mT)
    else:
        scores = torch.bmm(q, picked.mT, out_dtype=torch.float32)
    weights = torch.softmax(scores * SCALE, dim=-1).to(cache.dtype)
    out.copy_(torch.bmm(weights, picked[..., :512]))


generic = torch.compile(sparse_mla_decode, dynamic=True)
special = torch.compile(sparse_mla_decode, dynamic=False)


def run(q, cache, indices, out):
    (special if q.is_cuda else generic)(q, cache, indices, out)
