"""Fails with text that cannot be stored: half of a surrogate pair, a NUL, and words for whoever shows it."""


def run(x, w, y):
    raise RuntimeError("\ud800 \x00 \x1b[31m <script>alert(1)</script>")
