"""A scenario's step with candidates in the place of approved kernels: what a stack would give. No verdict, nothing approved.

    python3 docs/results/h200/stack_scout.py --seconds 120 --out OUT mla=mla_decode/06-chained-kernels.cu moe=… lm_head=…

The measurement is the product's own (``manage.py measure_stack``); only the kernels come from files, relative to
docs/results/candidates.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kernels", nargs="+", metavar="OPERATOR=FILE")
    parser.add_argument("--scenario", default="toy_deepseek")
    parser.add_argument("--base", action="append", default=[], help="eager, compile; both when left out")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "stack-out"))
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "autoresearch_web.settings")
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    import msgspec

    from campaigns.harness.candidate import load_candidate
    from campaigns.harness.problem import load_problem, read_folder
    from campaigns.management.commands.measure_stack import table
    from campaigns.scenarios import catalogue
    from campaigns.scenarios.measure import measure
    from campaigns.scenarios.request import StackKernel, StackRequest

    scenario = catalogue.find(options.scenario)
    kernels = []
    for operator, _, file in (word.partition("=") for word in options.kernels):
        path = HERE.parent / "candidates" / file
        axes, problem = (
            scenario.axes_of(operator),
            load_problem(read_folder(ROOT / "campaigns" / "problems" / scenario.operators[operator].problem)),
        )
        kernels.append(
            StackKernel(
                id=file, operator=operator, label=path.stem, source=load_candidate(path),
                axes=[axes[name] for name in problem.axes],
            )
        )  # fmt: skip
    bases = tuple(options.base) or ("eager", "compile")
    request = StackRequest(
        scenario=scenario.name, files=scenario.problem.files, kernels=kernels, bases=bases, time_limit_s=options.seconds
    )
    began = time.monotonic()

    def said(stage: str, detail: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {stage}: {detail}", flush=True)

    report = measure(request, said)
    print("\n" + table(report, []))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "stack.json").write_bytes(msgspec.json.encode(report))


if __name__ == "__main__":
    main()
