"""Group-wise FP8 quantisation as model code writes it."""

import torch


def run(x, y, scale):
    groups = x.float().view(x.shape[0], -1, 128)
    largest = groups.abs().amax(-1).clamp_min(1e-4)
    scale.copy_(largest / 448.0)
    y.copy_((groups * (448.0 / largest)[..., None]).view(x.shape).to(torch.float8_e4m3fn))
