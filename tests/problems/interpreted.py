"""Run as a program with TRITON_INTERPRET=1: Triton start kernels on small CPU tensors, against the reference.

Given ``{problem: axes}`` and a type. Prints one line a case, the problem before it, ``OK``, ``WRONG`` or ``FAILED``, and its error
over the tolerance. Says nothing of speed.
"""

from __future__ import annotations

import json
import sys
import traceback

import torch

from campaigns.harness.problem import Workload
from tests.problems import bench


def main(names: str, dtype: str) -> None:
    torch.set_num_threads(1)
    for name, axes in json.loads(names).items():
        try:
            tried(name, Workload(name="small", axes=axes, dtype=dtype))
        except Exception:
            print(name, "FAILED", json.dumps(traceback.format_exc()[-2000:]))


def tried(name: str, workload: Workload) -> None:
    run = bench.module(bench.FOLDER / name / "start/triton_kernel.py").run
    for case, inputs in {"draw": bench.draw(name, workload), **bench.edges(name, workload)}.items():
        outputs = bench.fresh_outputs(name, workload)
        run(*inputs.values(), *outputs)
        misfit = bench.misfit(name, workload, outputs, bench.reference(name, workload, inputs))
        print(name, "OK" if misfit <= 1 else "WRONG", case, f"{misfit:.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
