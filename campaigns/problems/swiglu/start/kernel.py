"""SwiGLU in torch, block of rows by block of rows, sigmoid spelled out with a temporary for every step."""

import torch

ROW_BLOCK = 64  # tunable: 8, 64, 512, 8192
IN_PLACE = 0  # tunable: 0, 1


def run(gate, up, y):
    for g, u, out in zip(gate.split(ROW_BLOCK), up.split(ROW_BLOCK), y.split(ROW_BLOCK)):
        wide = g.float()
        if IN_PLACE:
            out.copy_(torch.sigmoid(wide).mul_(wide).mul_(u.float()))
        else:
            out.copy_(wide / (1.0 + torch.exp(-wide)) * u.float())
