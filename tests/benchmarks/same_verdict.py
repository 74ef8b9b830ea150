"""Whether an evaluation says the same twice: pairs of evaluations of candidates that are away from the threshold.

    python -m tests.benchmarks.same_verdict --pairs 100

A faster kernel, a slower one and a wrong one in turn, on a CPU. Prints every pair that differs, and how many agreed.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from campaigns import judge
from campaigns.harness import evaluator
from campaigns.harness.candidate import load_candidate
from campaigns.harness.problem import read_folder
from campaigns.harness.request import EvaluationRequest

HARNESS = Path(__file__).parents[1] / "harness"
NAMES = ("faster.cpp", "slower.cpp", "skips_tail.cpp")


def verdict(name: str) -> tuple[str, str]:
    files = read_folder(HARNESS / "data" / "centre")
    source = load_candidate(HARNESS / "candidates" / name)
    found = evaluator.evaluate(EvaluationRequest(problem_name="centre", problem_files=files, candidate=source))
    judged = judge.judge(found)
    return judged.verdict, judged.reason


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=3600, help="stop after so long")
    options = parser.parse_args()
    began, same, number = time.monotonic(), 0, 0
    tally: dict[str, dict[str, int]] = {name: {} for name in NAMES}
    for number in range(1, options.pairs + 1):
        name = NAMES[number % len(NAMES)]
        (first, one), (second, two) = verdict(name), verdict(name)
        same += first == second
        tally[name][first] = tally[name].get(first, 0) + 1
        if first != second:
            print(f"{name}: {first} ({one}) and then {second} ({two})", flush=True)
        if time.monotonic() - began > options.seconds:
            break
    evaluator.close()
    print(f"{same} of {number} pairs agree, in {time.monotonic() - began:.0f} s; first verdicts: {tally}")


if __name__ == "__main__":
    main()
