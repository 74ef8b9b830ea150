"""Leaves by SystemExit."""


def run(x, w, y):
    raise SystemExit(0)
