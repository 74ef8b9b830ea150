"""The harness from a shell, with neither Django nor broker: for GPU hosts, and for studies of the harness itself.

    python -m campaigns.harness.cli evaluate PROBLEM FILE_OR_DIR [--incumbent FILE] [--mode full|visible|check] [--json]
    python -m campaigns.harness.cli aa PROBLEM --pairs 100 [--candidate FILE] [--incumbent FILE] [--workload NAME …]
    python -m campaigns.harness.cli peaks [--again]
    python -m campaigns.harness.cli sandbox

PROBLEM is a folder, or the name of a bundled problem. What was measured goes to stdout, progress to stderr.
"""

from __future__ import annotations

import argparse
import platform
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from . import kept_peaks
from . import report as reports
from .candidate import load_candidate
from .errors import CandidateError, Infrastructure, ProblemError
from .evaluator import close, evaluate, start_kernel
from .gpu import devices, peaks
from .gpu.bench import GpuBench, spares_of
from .problem import load_problem, read_folder
from .report import Report
from .request import EvaluationRequest

BUNDLED = Path(__file__).resolve().parents[1] / "problems"


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        return code
    except (ProblemError, CandidateError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except Infrastructure as error:
        print(f"error: could not measure: {error}", file=sys.stderr)
        return 1
    finally:
        close()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m campaigns.harness.cli", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    commands = found.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("evaluate", help="put one candidate through all stages and show the evidence")
    one.add_argument("problem")
    one.add_argument("candidate", metavar="FILE_OR_DIR")
    one.add_argument("--incumbent", metavar="FILE_OR_DIR", help="the problem's start kernel when left out")
    one.add_argument("--backend")
    one.add_argument("--baseline")
    one.add_argument("--mode", choices=("full", "visible", "check"), default="full")
    one.add_argument(
        "--times", type=int, default=1, help="evaluate so many times: the first one starts what later ones find warm"
    )
    one.add_argument("--json", action="store_true")
    one.set_defaults(run=run_evaluate)
    aa = commands.add_parser("aa", help="compare a kernel with itself, or with another of known gain, many times")
    aa.add_argument("problem")
    aa.add_argument("--pairs", type=int, default=100)
    aa.add_argument("--candidate", metavar="FILE")
    aa.add_argument("--incumbent", metavar="FILE", help="the candidate itself when left out")
    aa.add_argument("--workload", action="append")
    aa.add_argument("--pool", type=int, default=6, help="processes to choose from")
    aa.add_argument("--limit", type=float, default=3600.0, help="seconds for each workload, at most")
    aa.add_argument("--json", metavar="FILE", help="write every comparison there")
    aa.set_defaults(run=run_aa)
    ceiling = commands.add_parser("peaks", help="this GPU's measured ceilings")
    ceiling.add_argument("--again", action="store_true", help="measure, whatever is kept")
    ceiling.set_defaults(run=run_peaks)
    box = commands.add_parser("sandbox", help="what the sandboxes hold here, tried from inside")
    box.set_defaults(run=run_sandbox)
    return found


def folder(name: str) -> Path:
    for path in (Path(name), BUNDLED / name):
        if (path / "problem.toml").is_file():
            return path
    raise ProblemError(f"no problem {name!r}: neither a folder with problem.toml nor a bundled one")


def run_evaluate(options: argparse.Namespace) -> int:
    files = read_folder(folder(options.problem))
    problem = load_problem(files)
    request = EvaluationRequest(
        problem_name=problem.name,
        problem_files=files,
        candidate=load_candidate(options.candidate, options.backend),
        incumbent=load_candidate(options.incumbent, options.backend) if options.incumbent else None,
        baseline=options.baseline or problem.default_baseline(),
        mode=options.mode,
    )
    for _ in range(options.times):
        found = evaluate(request, progress=say)
        print(reports.encode(found).decode() if options.json else text(found), flush=True)
    return 1 if found.outcome == "infrastructure" else 0


def say(stage: str, detail: str) -> None:
    if detail:
        print(f"{stage}: {detail}", file=sys.stderr)


def text(found: Report) -> str:
    """The evidence for a person at a terminal. The verdict is ``campaigns.judge``'s."""
    lines = [f"{found.outcome}: {found.summary} ({found.seconds:.1f} s on {found.host.kind})"]
    for stage in found.stages:
        lines.append(f"  {stage.name:<13} {stage.status:<8} {stage.seconds:>6.2f} s  {stage.detail}")
    lines += [f"  {f.severity}: {f.rule}: {f.evidence}" for f in found.findings]
    for row in found.workloads:
        times = [
            f"{t:.2f}" if t is not None else "–" for t in (row.time_us, row.incumbent_us, row.baseline_us, row.floor_us)
        ]
        gain = f"{row.speedup.value:.3f}×" if row.speedup else "–"
        name = row.name + (" (hidden)" if row.hidden else "")
        lines.append(
            f"  {name:<24} {times[0]:>9} µs, incumbent {times[1]:>9}, baseline {times[2]:>9}, floor {times[3]:>8}  {gain:>8}"
            f"  {' '.join(row.labels)}"
        )
    if found.build_log and found.outcome == "build_failed":
        lines.append(found.build_log)
    return "\n".join(lines)


def run_aa(options: argparse.Namespace) -> int:
    from .gpu import study

    files = read_folder(folder(options.problem))
    problem = load_problem(files)
    candidate = load_candidate(options.candidate) if options.candidate else start_kernel(problem, "triton")
    if candidate is None:
        raise CandidateError("the problem has no Triton start kernel: name one by --candidate")
    incumbent = load_candidate(options.incumbent) if options.incumbent else candidate
    chosen = [
        w for w in problem.workloads_on("cuda") if w.timed and (not options.workload or w.name in options.workload)
    ]
    if not chosen:
        raise ProblemError("no such timed workload for a GPU in this problem")
    with devices.reserved(lambda: False, 600.0) as gpu:
        bench = GpuBench(problem, gpu, problem.default_baseline())
        bench.ready()
        found = study.Study(bench, candidate, incumbent, options.pool)
        try:
            found.warm(chosen)
            print(header(gpu, bench))
            rows = {w.name: found.run(w, options.pairs, lambda words: say("aa", words), options.limit) for w in chosen}
        finally:
            found.close()
            bench.close()
    sums = [study.summary(name, some) for name, some in rows.items() if some]
    print("\n".join(study.table(sums)))
    if options.json:
        Path(options.json).write_bytes(msgspec.json.encode({"summaries": sums, "rows": rows}))
    return 0


def header(gpu: devices.Gpu, bench: GpuBench) -> str:
    facts = bench.facts
    when = time.strftime("%Y-%m-%d", time.gmtime())
    return (
        f"{when}: {gpu.name}, driver {gpu.driver}, CUDA {facts.get('cuda')}, torch {facts.get('torch')}, "
        f"L2 {int(facts.get('l2_bytes') or 0) >> 20} MiB, Python {platform.python_version()}"
    )


def run_peaks(options: argparse.Namespace) -> int:
    with devices.reserved(lambda: False, 600.0) as gpu:
        spares = spares_of(gpu)
        if options.again:
            found = peaks.measure(gpu, spares)
            kept_peaks.keep(peaks.identity(gpu, peaks.torch_version()), found)
        else:
            found = peaks.of(gpu, spares)
    for name, value in found.items():
        unit, scale = ("TB/s", 1e12) if "bytes" in name else ("TFLOP/s", 1e12)
        print(f"{name:<28} {value / scale:>9.3f} {unit}")
    return 0


def run_sandbox(options: argparse.Namespace) -> int:
    from . import sandbox
    from .gpu.spares import spec

    kinds: dict[str, Callable[[], dict[str, bool]]] = {"cpu": sandbox.probe}
    for gpu in devices.visible()[:1]:
        kinds[gpu.name] = lambda gpu=gpu: sandbox.probe_of(spec(gpu))  # type: ignore[misc]
    missing = False
    for kind, look in kinds.items():
        for name, holds in look().items():
            missing |= not holds
            print(f"{kind:<16} {'holds' if holds else 'MISSING':<8} {name}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
