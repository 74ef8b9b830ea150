import torch


def reference(inputs, axes):
    return {"y": torch.cat([piece.double().sum(1) for piece in inputs["x"].split(1 << 16)])}
