"""The same through torch.compile: one shape-generic build on a CPU, one build a shape on a GPU."""

import torch

torch._dynamo.config.recompile_limit = 64


def topk_indexer(q, keys, weights, indices):
    products = torch.relu(torch.einsum("bhd,btd->bht", q.float(), keys.float()))
    scores = torch.einsum("bht,bh->bt", products, weights)
    indices.copy_(scores.topk(indices.shape[1], sorted=False).indices.sort().values)


generic = torch.compile(topk_indexer, dynamic=True)
special = torch.compile(topk_indexer, dynamic=False)


def run(q, keys, weights, indices):
    (special if q.is_cuda else generic)(q, keys, weights, indices)
