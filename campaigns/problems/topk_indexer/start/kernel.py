"""The indexer in torch: chunk by chunk of tokens, a full sort for the choice."""

import torch

CHUNK = 1024  # tunable: 256, 1024, 4096, 16384, 65536
FULL_SORT = 1  # tunable: 0, 1


def run(q, keys, weights, indices):
    topk = indices.shape[1]
    parts = []
    for piece in keys.split(CHUNK, dim=1):
        products = torch.relu(torch.bmm(q.float(), piece.float().mT))
        parts.append((products * weights[..., None]).sum(1))
    scores = torch.cat(parts, dim=1)
    if FULL_SORT:
        chosen = scores.argsort(dim=-1, descending=True)[:, :topk]
    else:
        chosen = scores.topk(topk, sorted=False).indices
    indices.copy_(chosen.sort(dim=-1).values)
