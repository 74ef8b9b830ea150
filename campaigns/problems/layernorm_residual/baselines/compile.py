"""The same through torch.compile: one shape-generic build on a CPU, one build a shape on a GPU."""

import torch
import torch.nn.functional as F

torch._dynamo.config.recompile_limit = 64


def layernorm_residual(x, residual, weight, bias, y, total):
    added = x + residual
    y.copy_(F.layer_norm(added.float(), (x.shape[-1],), weight.float(), bias.float(), 1e-5))
    total.copy_(added)


generic = torch.compile(layernorm_residual, dynamic=True)
special = torch.compile(layernorm_residual, dynamic=False)


def run(x, residual, weight, bias, y, total):
    (special if x.is_cuda else generic)(x, residual, weight, bias, y, total)
