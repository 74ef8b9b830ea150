"""Cross-entropy by the library, on float32 logits as training code does it."""

import torch.nn.functional as F


def run(logits, target, loss):
    loss.copy_(F.cross_entropy(logits.float(), target, reduction="none"))
