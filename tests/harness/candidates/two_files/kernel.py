"""Honest: in two files."""

from centring import centred


def run(x, w, y):
    y.copy_(centred(x) * w)
