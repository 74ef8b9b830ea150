import torch
from task import input_t, output_t


def custom_kernel(data: input_t) -> output_t:
    x, weight, out = data
    torch.cumsum(x, -1, out=out)
    return out
