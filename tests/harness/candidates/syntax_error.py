"""Does not parse."""

def run(x, w, y)
    pass
