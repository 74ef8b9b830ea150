"""Honest."""

import torch


def run(x, w, y):
    torch.sub(x, x.mean(-1, keepdim=True), out=y)
    y.mul_(w)
