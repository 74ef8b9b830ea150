import torch


def run(x, s, y):
    big = torch.empty(1 << 38, dtype=torch.float32, device=x.device)
    torch.mul(x, s[:, None], out=y)
    big[0] = 1.0
