"""Honest: a higher precision than was asked for."""


def run(x, w, y):
    wide = x.double()
    y.copy_((wide - wide.mean(-1, keepdim=True)) * w)
