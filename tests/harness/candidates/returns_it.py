"""Returns a result and writes none."""


def run(x, w, y):
    return (x - x.mean(-1, keepdim=True)) * w
