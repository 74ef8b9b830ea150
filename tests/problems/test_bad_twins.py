"""Kernels with one mistake that people and models make: a draw or an edge case of the problem must show each of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from . import bench

Outputs = Callable[..., Tensor]


def rounded(t: Tensor) -> Tensor:
    """To the 10 bits that a TF32 product reads of a float32."""
    return (t.view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32)


def without_last(t: Tensor) -> Tensor:
    """The last eighth of each row left out, as by a loop without a tail."""
    return torch.cat([t[..., : -max(1, t.shape[-1] // 8)], torch.zeros_like(t[..., : max(1, t.shape[-1] // 8)])], -1)


def experts_of(x: Tensor, expert: Tensor, up: Tensor, down: Tensor, act: Outputs = F.silu) -> Tensor:
    """What each of a token's experts says: batch × 2 × hidden."""
    gate, value = (up[expert] @ x[:, None, :, None]).squeeze(-1).chunk(2, dim=-1)
    return (down[expert] @ (act(gate) * value)[..., None]).squeeze(-1)


LM_HEAD: dict[str, Outputs] = {
    "products in TF32": lambda x, head: rounded(x) @ rounded(head).T,
    "the weight in bfloat16": lambda x, head: x @ head.bfloat16().float().T,
    "no tail of the sum": lambda x, head: without_last(x) @ head.T,
    "no tail of the vocabulary": lambda x, head: without_last(x @ head.T),
    "every sequence gets the first one's logits": lambda x, head: (x[:1] @ head.T).expand(len(x), -1),
    "half precision overflows": lambda x, head: (x.half() @ head.half().T).float(),
}
MOE: dict[str, Outputs] = {
    "shares of the other expert": lambda x, e, s, up, down: (experts_of(x, e, up, down) * s.flip(1)[..., None]).sum(1),
    "shares taken as halves": lambda x, e, s, up, down: experts_of(x, e, up, down).mean(1),
    "the better expert alone": lambda x, e, s, up, down: experts_of(x, e[:, :1], up, down)[:, 0],
    "gate and value exchanged": lambda x, e, s, up, down: (
        experts_of(x, e, up.roll(up.shape[1] // 2, 1), down) * s[..., None]
    ).sum(1),
    "GELU in the place of SiLU": lambda x, e, s, up, down: (experts_of(x, e, up, down, F.gelu) * s[..., None]).sum(1),
    "the first token's experts for all": lambda x, e, s, up, down: (
        experts_of(x, e[:1].expand_as(e), up, down) * s[..., None]
    ).sum(1),
    "the values between in bfloat16": lambda x, e, s, up, down: (
        experts_of(x, e, up, down, lambda gate: F.silu(gate).bfloat16().float()) * s[..., None]
    ).sum(1),
    "no tail of the inner sum": lambda x, e, s, up, down: (experts_of(x, e, up, without_last(down)) * s[..., None]).sum(
        1
    ),
}
TWINS = [("lm_head", name) for name in LM_HEAD] + [("moe_two_of_eight", name) for name in MOE]
OF = {"lm_head": LM_HEAD, "moe_two_of_eight": MOE}


def worst_misfit(problem: str, workload_name: str, twin: Outputs) -> float:
    workload = next(w for w in bench.problem(problem).workloads if w.name == workload_name)
    cases = [bench.draw(problem, workload), *bench.edges(problem, workload).values()]
    found = [bench.misfit(problem, workload, [twin(*c.values())], bench.reference(problem, workload, c)) for c in cases]
    return max(found)


@pytest.mark.parametrize(("problem", "mistake"), TWINS)
def test_a_bad_twin_is_incorrect(problem: str, mistake: str) -> None:
    names = [w.name for w in bench.small_workloads(problem) if w.axes["batch"] > 1]
    assert max(worst_misfit(problem, name, OF[problem][mistake]) for name in names) > 2
