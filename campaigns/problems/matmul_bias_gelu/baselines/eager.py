"""A linear layer and GELU by the library."""

import torch.nn.functional as F


def run(x, weight, bias, y):
    y.copy_(F.gelu(F.linear(x, weight, bias)))
