"""A mixture of experts in torch: token by token in small blocks, the weights of their experts gathered for each."""

import torch
import torch.nn.functional as F

TOKEN_BLOCK = 4  # tunable: 1, 2, 4, 8, 16, 32
BY_EXPERT = 0  # tunable: 0, 1


def run(x, w13, w2, chosen, weights, y):
    if BY_EXPERT:
        y.zero_()
        for expert in range(w13.shape[0]):
            token, place = torch.where(chosen == expert)
            for part, spot in zip(token.split(TOKEN_BLOCK), place.split(TOKEN_BLOCK)):
                gate, up = F.linear(x[part], w13[expert]).chunk(2, dim=-1)
                out = F.linear(F.silu(gate) * up, w2[expert])
                y.index_add_(0, part, (out * weights[part, spot, None]).to(y.dtype))
        return
    blocks = zip(x.split(TOKEN_BLOCK), chosen.split(TOKEN_BLOCK), weights.split(TOKEN_BLOCK), y.split(TOKEN_BLOCK))
    for tokens, experts, weight, out in blocks:
        picked = experts.long()
        both = (w13[picked] @ tokens[:, None, :, None])[..., 0]
        gate, up = both.chunk(2, dim=-1)
        each = (w2[picked] @ (F.silu(gate) * up)[..., None])[..., 0]
        out.copy_((each.float() * weight[..., None]).sum(1))
