"""Rotary embedding in torch, block of tokens by block of tokens, through a rotated copy."""

import torch

TOKEN_BLOCK = 64  # tunable: 16, 64, 256, 1024, 8192
COPY = 1  # tunable: 0, 1


def run(x, cos, sin, y):
    half = x.shape[-1] // 2
    blocks = zip(x.split(TOKEN_BLOCK), cos.split(TOKEN_BLOCK), sin.split(TOKEN_BLOCK), y.split(TOKEN_BLOCK))
    for tokens, c, s, out in blocks:
        wide = tokens.float()
        c, s = c[:, None, :], s[:, None, :]
        if COPY:
            rotated = torch.cat((-wide[..., half:], wide[..., :half]), dim=-1)
            out.copy_(wide * torch.cat((c, c), -1) + rotated * torch.cat((s, s), -1))
        else:
            out[..., :half] = wide[..., :half] * c - wide[..., half:] * s
            out[..., half:] = wide[..., half:] * c + wide[..., :half] * s
