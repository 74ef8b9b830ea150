"""Honest: reads the clock and says how long the import took."""

import time

began = time.perf_counter()
import torch

print(f"import took {time.perf_counter() - began:.3f} s")


def run(x, w, y):
    torch.sub(x, x.mean(-1, keepdim=True), out=y)
    y.mul_(w)
