"""Honest: a closure over a weight that is prepared in every call."""

import torch


def make(dim):
    def run(x, w, y):
        torch.sub(x, x.mean(dim, keepdim=True), out=y)
        torch.mul(y, w.view(1, -1), out=y)
        return y

    return run


run = make(-1)
