"""Run as a program with TRITON_INTERPRET=1: GPU candidates on small CPU tensors, against their problem's reference.

``python -m tests.harness.gpu.interpreted CANDIDATE PROBLEM …`` prints a line for each: ``OK`` or ``WRONG``, and its name.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from campaigns.harness.accuracy import compare
from campaigns.harness.problem import Workload, load_problem, read_folder
from tests.problems.bench import module

HERE = Path(__file__).parent
SMALL = {
    "damp": {"rows": 17, "width": 33},
    "rowsum": {"rows": 5, "width": 1000},
    "product": {"m": 65, "n": 100, "k": 129},
}


def is_right(name: str, problem: str) -> bool:
    folder = HERE / "data" / problem
    told = load_problem(read_folder(folder))
    workload = Workload(name="small", axes=SMALL[problem], dtype="float32")
    run = module(HERE / "candidates" / name).run
    right = True
    for seed in range(2):
        generator = torch.Generator().manual_seed(seed)
        inputs = module(folder / "inputs.py").make_inputs(workload.axes, generator, "cpu", torch.float32)
        outputs = [torch.full(told.shape(o, workload), 7.0) for o in told.outputs]
        run(*inputs.values(), *outputs)
        expected = module(folder / "reference.py").reference(inputs, workload.axes)
        for spec, out in zip(told.outputs, outputs, strict=True):
            t = told.tolerance["float32"]
            right &= compare(out.double().numpy(), expected[spec.name].double().numpy(), t).passed
    return right


def main() -> None:
    torch.set_num_threads(1)
    for name, problem in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        try:
            print("OK" if is_right(name, problem) else "WRONG", name, flush=True)
        except Exception as error:
            print("WRONG", name, repr(error)[:300], flush=True)


if __name__ == "__main__":
    main()
