import torch


def make_inputs(axes, generator, device, dtype):
    def values(rows, columns):
        return torch.randn(axes[rows], axes[columns], generator=generator, device=device, dtype=dtype)

    return {"a": values("m", "k"), "b": values("k", "n")}


def edge_inputs(axes, generator, device, dtype):
    base = make_inputs(axes, generator, device, dtype)
    return {"zeros": {**base, "a": torch.zeros_like(base["a"])}, "large": {**base, "a": base["a"] * 1e4}}
