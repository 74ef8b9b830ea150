"""Step 3, on a GPU: what really ran. Its own kernels, or a library's where a DSL was asked for?"""

from __future__ import annotations

from typing import Any

from ..backends import Built
from ..errors import CandidateFailure, Infrastructure
from ..gpu import kernels
from ..gpu.runner import COMPILE_LIMIT_S, GpuRunner
from ..report import Finding
from ..request import CandidateSource
from .base import Evaluation

DSLS = ("triton", "cuda", "cutedsl")
HEAVY_SHARE = 0.10
LIBRARY_SHARE = 0.50
WARN_SHARE = 0.10
CAUGHT_KINDS = ("launch_failed", "timed_out", "out_of_memory", "incorrect")


class Engagement:
    name = "engagement"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        source, bench = evaluation.request.candidate, evaluation.on_gpu
        runner = evaluation.gpu_candidate = evaluation.start_gpu("candidate")
        empty = self.start_empty(evaluation)
        runner.load()
        calls = self.warm(evaluation, runner)
        own = kernels.own_names(source)
        detail = self.profile(evaluation, runner, calls, own) if bench.gpu.device == "cuda" else "nothing was profiled"
        if empty is not None:
            detail += self.judge_empty(evaluation, empty)
        return detail, {"own_kernels": sorted(own), "calls_profiled": len(calls)}

    def profile(self, evaluation: Evaluation, runner: GpuRunner, calls: list[str], own: set[str]) -> str:
        profiled = list(runner.ask("profile", COMPILE_LIMIT_S, calls=calls).get("workloads") or [])
        evaluation.engagement = kernels.table(profiled, own)
        if not evaluation.engagement:
            raise Infrastructure("the profiler saw no kernel at all: CUPTI does not work on this host")
        if evaluation.request.candidate.backend in DSLS:
            self.judge(evaluation, profiled, own)
        self.look_at_streams(evaluation)
        return self.sentence(evaluation)

    def warm(self, evaluation: Evaluation, runner: GpuRunner) -> list[str]:
        """One slot for each timed workload, called once; the first call compiles."""
        bench = evaluation.on_gpu
        calls = []
        for workload in [w for w in evaluation.workloads if w.timed] or evaluation.workloads[:1]:
            evaluation.checkpoint()
            slot = f"{workload.name}/0"
            runner.make_slots(workload, [slot])
            runner.renew({slot: bench.draw()}, [slot], bench.scales_of(workload))
            runner.call([slot], evaluation.block_limit_s(COMPILE_LIMIT_S))
            calls.append(slot)
        return calls

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
                text = f"{workload}: none of its own kernels ran ({words or 'copies only'})"
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

    def start_empty(self, evaluation: Evaluation) -> GpuRunner | None:
        """For Triton: a process with the same source, every kernel emptied."""
        source = evaluation.request.candidate
        if source.backend != "triton":
            return None
        files = {p: kernels.without_bodies(t) if p.endswith(".py") else t for p, t in source.files.items()}
        assert evaluation.built is not None
        built = Built({p: t.encode() for p, t in files.items()}, evaluation.built.entry)
        return evaluation.start_gpu(
            "candidate, its kernels emptied", CandidateSource(backend="triton", files=files), built
        )

    def judge_empty(self, evaluation: Evaluation, runner: GpuRunner) -> str:
        """Without its kernels the output must be wrong; failing altogether is as good."""
        workload = min(evaluation.workloads, key=lambda w: sum(w.axes.values()))
        workload = next((w for w in evaluation.workloads if w.timed), workload)
        slot, bench = f"{workload.name}/0", evaluation.on_gpu
        try:
            runner.load()
            runner.make_slots(workload, [slot])
            runner.renew({slot: bench.draw()}, [slot], bench.scales_of(workload))
            runner.call([slot], evaluation.block_limit_s(COMPILE_LIMIT_S))
            right = bench.check(runner, workload, slot).comparison.passed
        except CandidateFailure as failure:
            if failure.outcome not in CAUGHT_KINDS:
                raise
            right = False
        finally:
            evaluation.close_gpu(runner)
        if not right:
            return "; without them its output is wrong, as it must be"
        text = f"{workload.name}: with every Triton kernel's body emptied the output is still right: something else computes it"
        evaluation.add_finding(Finding(rule="decoy-kernel", severity="block", evidence=text))
        return "; and right without them"
