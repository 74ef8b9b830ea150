"""The same model code through torch.compile: one shape-generic build on a CPU, one build a shape on a GPU."""

import torch

torch._dynamo.config.recompile_limit = 64


def rmsnorm(x, weight, y):
    wide = x.float()
    variance = wide.pow(2).mean(-1, keepdim=True)
    y.copy_(wide * torch.rsqrt(variance + 1e-6) * weight)


generic = torch.compile(rmsnorm, dynamic=True)
special = torch.compile(rmsnorm, dynamic=False)


def run(x, weight, y):
    (special if x.is_cuda else generic)(x, weight, y)
