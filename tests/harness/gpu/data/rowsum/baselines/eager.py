import torch


def run(x, y):
    torch.sum(x, 1, dtype=torch.float32, out=y)
