"""Run as a program with TRITON_INTERPRET=1: a Triton start kernel on small CPU tensors, against the reference.

Prints one line a case, ``OK`` or ``WRONG``, and its error over the tolerance. Says nothing of speed.
"""

from __future__ import annotations

import json
import sys

import torch

from campaigns.harness.problem import Workload
from tests.problems import bench


def main(name: str, axes: str, dtype: str) -> None:
    torch.set_num_threads(1)
    workload = Workload(name="small", axes=json.loads(axes), dtype=dtype)
    run = bench.module(bench.FOLDER / name / "start/triton_kernel.py").run
    for case, inputs in {"draw": bench.draw(name, workload), **bench.edges(name, workload)}.items():
        outputs = bench.fresh_outputs(name, workload)
        run(*inputs.values(), *outputs)
        misfit = bench.misfit(name, workload, outputs, bench.reference(name, workload, inputs))
        print("OK" if misfit <= 1 else "WRONG", case, f"{misfit:.3g}")


if __name__ == "__main__":
    main(*sys.argv[1:])
