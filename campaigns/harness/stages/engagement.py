"""Step 3, on a GPU: what really ran. Its own kernels, or a library's where a DSL was asked for?"""

from __future__ import annotations

from typing import Any

from ..errors import Infrastructure
from ..gpu import kernels
from ..gpu.engaged import Engaged
from ..report import Finding
from .base import Evaluation

DSLS = ("triton", "cuda", "cutedsl")
HEAVY_SHARE = 0.10
LIBRARY_SHARE = 0.50
WARN_SHARE = 0.10


class Engagement:
    """Its processes were started with the candidate's (``Evaluation.start_warming``): profiling takes seconds to begin."""

    name = "engagement"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        source, engaged = evaluation.request.candidate, evaluation.engaged
        assert engaged is not None
        engaged.wait()
        own = kernels.own_names(source)
        detail = self.profiled(evaluation, engaged.profiled, own)
        if engaged.twins:
            detail += self.judge_twins(evaluation, engaged)
        engaged.close()
        return detail, {"own_kernels": sorted(own), "calls_profiled": len(engaged.profiled)}

    def profiled(self, evaluation: Evaluation, profiled: list[dict[str, Any]], own: set[str]) -> str:
        if evaluation.on_gpu.gpu.device != "cuda":
            return "nothing was profiled"
        evaluation.engagement = kernels.table(profiled, own)
        if not evaluation.engagement:
            raise Infrastructure("the profiler saw no kernel at all: CUPTI does not work on this host")
        if evaluation.request.candidate.backend in DSLS:
            self.judge(evaluation, profiled, own)
        self.look_at_streams(evaluation)
        return self.sentence(evaluation)

    def judge(self, evaluation: Evaluation, profiled: list[dict[str, Any]], own: set[str]) -> None:
        """Per call: a library may clear a buffer, it may not do the work."""
        backend = evaluation.request.candidate.backend
        for call in profiled:
            shares = kernels.shares(call, own)
            library = {n: s for n, s in shares.items() if n not in ("own", "transfer", "unknown")}
            heavy = {n: s for n, s in library.items() if n in kernels.HEAVY}
            workload = str(call["slot"]).rpartition("/")[0]
            words = ", ".join(f"{name} {share:.0%}" for name, share in sorted(library.items(), key=lambda i: -i[1]))
            if sum(heavy.values()) >= HEAVY_SHARE or sum(library.values()) >= LIBRARY_SHARE:
                text = f"{workload}: {words} of the device time, where {backend} was asked for"
                self.add(evaluation, "library-kernels", "block", text, shares)
            elif shares.get("own", 0.0) == 0.0 and "unknown" not in shares:
                what = words or ("copies only" if shares else "nothing ran on the device at all")
                text = f"{workload}: none of its own kernels ran ({what})"
                self.add(evaluation, "decoy-kernel", "block", text, shares)
            elif sum(library.values()) >= WARN_SHARE:
                self.add(evaluation, "library-kernels", "warning", f"{workload}: {words} of the device time", shares)

    def add(self, evaluation: Evaluation, rule: str, severity: Any, evidence: str, shares: dict[str, float]) -> None:
        if not any(f.rule == rule and f.severity == severity for f in evaluation.findings):
            data = {"shares": {name: round(share, 4) for name, share in shares.items()}}
            evaluation.add_finding(Finding(rule=rule, severity=severity, evidence=evidence, data=data))

    def look_at_streams(self, evaluation: Evaluation) -> None:
        streams = sorted({s for row in evaluation.engagement for s in row["streams"]})
        if len(streams) > 1:
            text = (
                f"works on {len(streams)} streams: what is not joined to the caller's stream is not in its CUDA graph"
            )
            evaluation.add_finding(Finding(rule="streams", severity="note", evidence=text, data={"streams": streams}))

    def sentence(self, evaluation: Evaluation) -> str:
        own = sum(row["share"] for row in evaluation.engagement if row["own"])
        top = evaluation.engagement[0]
        return f"{own:.0%} of the device time in its own kernels; most in {top['kernel'][:60]} ({top['share']:.0%})"

    def judge_twins(self, evaluation: Evaluation, engaged: Engaged) -> str:
        """With its kernels emptied, or failing, the output must be wrong; failing altogether is as good."""
        right = []
        for name, runner in engaged.twins.items():
            if name not in engaged.ran:
                continue
            if evaluation.on_gpu.check(runner, engaged.workload, engaged.slot).comparison.passed:
                right.append(name)
                evaluation.add_finding(right_without(name, engaged.workload.name))
        return (
            f"; and right with them {' or '.join(right)}"
            if right
            else "; without them its output is wrong, as it must be"
        )


def right_without(twin: str, workload: str) -> Finding:
    """The output was right although the kernels could not have made it."""
    if twin == "failing":
        text = f"{workload}: with kernels that fail the output is still right: something else computes it then"
        return Finding(rule="fallback", severity="block", evidence=text)
    text = f"{workload}: with every kernel's body emptied the output is still right: something else computes it"
    return Finding(rule="decoy-kernel", severity="block", evidence=text)
