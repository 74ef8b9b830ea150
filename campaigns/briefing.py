"""What a proposer is told about a campaign, gathered from where it lies. Nothing hidden is in it."""

from __future__ import annotations

from campaigns.context import library
from campaigns.context.cards import Card, as_context
from campaigns.harness.candidate import ENTRY
from campaigns.harness.problem import Problem, TensorSpec
from campaigns.models import Campaign

C_TYPES = {"float32": "float", "float64": "double", "int64": "int64_t", "int32": "int32_t", "bool": "bool"}


def context(cards: list[Card]) -> str:
    return as_context(cards)


def default_rules() -> str:
    """The rules of a campaign that has none of its own."""
    card = library.current()[0].get("rules/default")
    return card.body if card else ""


def further_cards(chosen: list[Card]) -> dict[str, str]:
    """The cards that are not in the context but may be asked for."""
    given = {card.name for card in chosen}
    return {
        name: card.body for name, card in library.current()[0].items() if name not in given and card.kind != "rules"
    }


def interface(problem: Problem, campaign: Campaign) -> str:
    """Entry point, tensors, tolerances, the visible workloads and the floor's formulas, as Markdown."""
    device = "cpu" if campaign.hardware == "cpu" else "cuda"
    lines = [
        f"Entry file `{ENTRY.get(campaign.backend, 'kernel')}`: `{signature(problem, campaign.backend)}`.",
        "It writes its outputs in place and returns nothing.",
        "",
        *(f"- input {tensor(spec)}" for spec in problem.inputs),
        *(f"- output {tensor(spec)}" for spec in problem.outputs),
        f"- `dtype` is {problem.dtype} unless a workload says otherwise",
        "- |out - ref| <= t*RMS(ref) + t*|ref| with t: "
        + ", ".join(f"{dtype} {t:g}" for dtype, t in problem.tolerance.items()),
        f"- least bytes of a call: `{problem.floor.bytes}`; operations: `{problem.floor.flop}`",
        f"- the baseline is {problem.baselines[campaign.baseline].title or campaign.baseline}",
        "",
        "Visible workloads (hidden ones are other sizes, longer ones among them):",
        *(
            f"- {w.name}: {', '.join(f'{axis}={value}' for axis, value in w.axes.items())}, {w.dtype}"
            for w in problem.workloads
            if not w.hidden and w.device == device
        ),
    ]
    return "\n".join(lines)


def tensor(spec: TensorSpec) -> str:
    return f"`{spec.name}` [{', '.join(map(str, spec.shape))}] {spec.dtype}"


def signature(problem: Problem, backend: str) -> str:
    names = [t.name for t in problem.inputs + problem.outputs]
    if backend not in ("cpp", "cuda"):
        return f"def run({', '.join(names)})"
    of = {
        t.name: C_TYPES.get(problem.dtype if t.dtype == "dtype" else t.dtype, "void")
        for t in problem.inputs + problem.outputs
    }
    arguments = [f"const {of[t.name]}* {t.name}" for t in problem.inputs]
    arguments += [f"{of[t.name]}* {t.name}" for t in problem.outputs]
    arguments += [f"int64_t {axis}" for axis in problem.axes]
    arguments += ["cudaStream_t stream"] if backend == "cuda" else []
    return f'extern "C" void run({", ".join(arguments)})'
