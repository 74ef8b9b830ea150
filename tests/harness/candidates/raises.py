"""Raises."""


def run(x, w, y):
    raise ValueError("no such luck")
