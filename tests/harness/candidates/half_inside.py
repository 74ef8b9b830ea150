"""Computes in half precision."""

import torch


def run(x, w, y):
    narrow = x.to(torch.bfloat16)
    y.copy_((narrow - narrow.mean(-1, keepdim=True)) * w.to(torch.bfloat16))
