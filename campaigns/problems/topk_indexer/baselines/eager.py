"""The indexer as model code writes it: a product for each head, relu, a weighted sum, topk, sort."""

import torch


def run(q, keys, weights, indices):
    products = torch.relu(q.float() @ keys.float().mT)
    scores = (weights[:, None, :] @ products)[:, 0]
    indices.copy_(scores.topk(indices.shape[1], sorted=False).indices.sort().values)
