"""LayerNorm with residual as model code writes it: an addition and the library's LayerNorm."""

import torch.nn.functional as F


def run(x, residual, weight, bias, y, total):
    added = x + residual
    y.copy_(F.layer_norm(added, (x.shape[-1],), weight, bias, 1e-5))
    total.copy_(added)
