"""Makes the output half as wide."""


def run(x, w, y):
    y.data = ((x - x.mean(-1, keepdim=True)) * w).half()
