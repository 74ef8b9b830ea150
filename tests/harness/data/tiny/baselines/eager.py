def run(x, w, y):
    y.copy_((x - x.mean(-1, keepdim=True)) * w)
