"""Honest: an import that may fail, and words in a string: eval(), open(), subprocess."""

try:
    import triton
except ImportError:
    triton = None

time = 0


def run(x, w, y):
    y.copy_((x - x.mean(-1, keepdim=True)) * w)
