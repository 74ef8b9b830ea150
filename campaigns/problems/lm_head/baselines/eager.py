"""The library's product."""


def run(x, head, logits):
    logits.copy_(x @ head.T)
