"""Rotary embedding as model code writes it: rotate_half, two products, one sum."""

import torch


def run(x, cos, sin, y):
    half = x.shape[-1] // 2
    wide = x.float()
    rotated = torch.cat((-wide[..., half:], wide[..., :half]), dim=-1)
    c, s = torch.cat((cos, cos), -1)[:, None, :], torch.cat((sin, sin), -1)[:, None, :]
    y.copy_(wide * c + rotated * s)
