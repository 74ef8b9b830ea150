import torch


def make_inputs(axes, generator, device, dtype):
    rows, width = axes["rows"], axes["width"]
    options = {"generator": generator, "device": device}
    x = torch.randn(rows, width, **options)
    s = torch.exp2(torch.rand(rows, **options) * 2 - 1)
    return {"x": x.to(dtype), "s": s.to(dtype)}


def edge_inputs(axes, generator, device, dtype):
    base = make_inputs(axes, generator, device, dtype)
    return {"zeros": {**base, "x": torch.zeros_like(base["x"])}, "large": {**base, "x": base["x"] * 1e6}}
