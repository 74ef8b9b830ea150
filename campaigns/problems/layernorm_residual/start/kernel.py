"""LayerNorm with residual in torch, block of rows by block of rows, with a temporary for every step."""

import torch

ROW_BLOCK = 64  # tunable: 16, 64, 256, 1024, 8192
WELFORD = 0  # tunable: 0, 1


def run(x, residual, weight, bias, y, total):
    blocks = zip(x.split(ROW_BLOCK), residual.split(ROW_BLOCK), y.split(ROW_BLOCK), total.split(ROW_BLOCK))
    for a, b, normed, added in blocks:
        wide = a.float() + b.float()
        if WELFORD:
            variance, mean = torch.var_mean(wide, -1, correction=0, keepdim=True)
            centred = wide - mean
        else:
            centred = wide - wide.mean(-1, keepdim=True)
            variance = (centred * centred).mean(-1, keepdim=True)
        normed.copy_(centred / torch.sqrt(variance + 1e-5) * weight.float() + bias.float())
        added.copy_(wide)
