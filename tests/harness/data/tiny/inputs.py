import torch


def make_inputs(axes, generator, device, dtype):
    x = torch.randn(axes["rows"], axes["columns"], generator=generator, device=device)
    x = x + torch.randn(axes["rows"], 1, generator=generator, device=device)
    w = torch.rand(axes["columns"], generator=generator, device=device) + 0.5
    return {"x": x.to(dtype), "w": w.to(dtype)}


def edge_inputs(axes, generator, device, dtype):
    made = make_inputs(axes, generator, device, dtype)
    return {
        "zeros": {"x": torch.zeros_like(made["x"]), "w": made["w"]},
        "large": {"x": made["x"] * 1e10, "w": made["w"]},
    }
