"""Softmax by the library operator, statistics in float32."""

import torch


def run(x, y):
    y.copy_(torch.softmax(x, dim=-1))
