"""Honest: keeps scratch memory by shape, and overwrites it in every call."""

import torch

scratch = {}


def run(x, w, y):
    if x.shape not in scratch:
        scratch[x.shape] = torch.empty(x.shape[0], 1)
    mean = torch.mean(x, -1, keepdim=True, out=scratch[x.shape])
    torch.sub(x, mean, out=y)
    y.mul_(w)
