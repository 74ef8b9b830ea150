"""The same through torch.compile: one shape-generic build on a CPU, one build a shape on a GPU."""

import torch

torch._dynamo.config.recompile_limit = 64


def rope(x, cos, sin, y):
    half = x.shape[-1] // 2
    low, high = x[..., :half].float(), x[..., half:].float()
    c, s = cos[:, None, :], sin[:, None, :]
    y.copy_(torch.cat((low * c - high * s, high * c + low * s), dim=-1))


generic = torch.compile(rope, dynamic=True)
special = torch.compile(rope, dynamic=False)


def run(x, cos, sin, y):
    (special if x.is_cuda else generic)(x, cos, sin, y)
