"""Honest: two ways, by the shape, with an assertion and a fallback that are both right."""

import torch


def run(x, w, y):
    try:
        assert x.shape[-1] % 16 == 0
        mean = x.view(x.shape[0], -1, 16).sum(1).sum(-1, keepdim=True) / x.shape[-1]
    except AssertionError:
        mean = torch.mean(x, -1, keepdim=True)
    y.copy_((x - mean) * w)
