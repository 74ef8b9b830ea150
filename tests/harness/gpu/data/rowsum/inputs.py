import torch


def make_inputs(axes, generator, device, dtype):
    return {"x": torch.randn(axes["rows"], axes["width"], generator=generator, device=device, dtype=dtype)}


def edge_inputs(axes, generator, device, dtype):
    x = make_inputs(axes, generator, device, dtype)["x"]
    return {"zeros": {"x": torch.zeros_like(x)}, "large": {"x": x * 1e4}}
