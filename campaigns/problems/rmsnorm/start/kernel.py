"""RMSNorm in torch, block of rows by block of rows, with a temporary for every step."""

import torch

ROW_BLOCK = 64  # tunable: 16, 64, 256, 1024, 8192
FUSED_NORM = 0  # tunable: 0, 1


def run(x, weight, y):
    for rows_in, rows_out in zip(x.split(ROW_BLOCK), y.split(ROW_BLOCK)):
        wide = rows_in.float()
        if FUSED_NORM:
            length = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)
            mean_square = length * length / x.shape[-1]
        else:
            mean_square = (wide * wide).mean(-1, keepdim=True)
        normed = wide / torch.sqrt(mean_square + 1e-6)
        rows_out.copy_(normed * weight.float())
