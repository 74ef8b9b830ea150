"""An LM head in torch, block of the vocabulary by block, products and sums apart."""

VOCAB_BLOCK = 256  # tunable: 64, 256, 1024, 4096
AS_PRODUCT = 0  # tunable: 0, 1


def run(x, head, logits):
    for weight, out in zip(head.split(VOCAB_BLOCK), logits.split(VOCAB_BLOCK, dim=1)):
        if AS_PRODUCT:
            out.copy_(x.float() @ weight.float().T)
        else:
            out.copy_((x.float()[:, None] * weight.float()).sum(-1))
