"""A comment that shows a line of code which is not run, by a character that ends a line on a page and not for Python."""

import torch


def run(x, w, y):
    y.copy_(x)  # the usual way:     torch.sub(x, x.mean(-1, keepdim=True), out=y)
    y.mul_(w)
