import torch
from task import input_t, output_t
from utils import make_match_reference


def ref_kernel(data: input_t) -> output_t:
    """Each row's running maximum plus its running mean, written into what is given for it."""
    x, weight, out = data
    steps = torch.arange(1, x.shape[-1] + 1, device=x.device)
    out[...] = (torch.cummax(x, -1).values + torch.cumsum(x, -1) / steps) * weight
    return out


def generate_input(rows: int, width: int, spread: float, seed: int) -> input_t:
    generator = torch.Generator(device="cuda")
    generator.manual_seed(seed)
    x = torch.randn(rows, width, device="cuda", dtype=torch.float32, generator=generator) * spread
    weight = torch.rand(width, device="cuda", dtype=torch.float32, generator=generator) + 0.5
    return x, weight, torch.empty(rows, width, device="cuda", dtype=torch.float32)


check_implementation = make_match_reference(ref_kernel, rtol=1e-4, atol=1e-4)
