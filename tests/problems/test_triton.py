from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from . import bench

pytest.importorskip("triton", reason="Triton is not installed")

SMALL = {
    "cross_entropy": {"rows": 3, "vocab": 1500},
    "fp8_quantize": {"rows": 3, "hidden": 384},
    "layernorm_residual": {"rows": 3, "hidden": 700},
    "lm_head": {"batch": 3, "hidden": 300, "vocab": 70},
    "matmul_bias_gelu": {"m": 40, "n": 50, "k": 70},
    "mla_decode": {"batch": 2, "heads": 5, "tokens": 150},
    "moe_grouped_gemm": {"tokens": 20, "experts": 3, "topk": 2, "d": 40, "f": 36},
    "moe_two_of_eight": {"batch": 3, "hidden": 150, "experts": 5, "inner": 52},
    "rmsnorm": {"rows": 3, "hidden": 700},
    "rope": {"tokens": 5, "heads": 3, "dim": 12},
    "softmax": {"rows": 3, "columns": 700},
    "sparse_mla_decode": {"batch": 2, "heads": 5, "tokens": 90, "topk": 37},
    "swiglu": {"rows": 3, "hidden": 130},
    "topk_indexer": {"batch": 2, "heads": 5, "tokens": 90, "dim": 24, "topk": 11},
}


@pytest.fixture(scope="module")
def told() -> dict[str, list[str]]:
    """What one process said of all of them: its start takes longer than most."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.problems.interpreted", json.dumps(SMALL), "float32"],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=bench.FOLDER.parents[1],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {name: [rest for of, _, rest in lines if of == name] for name in SMALL}


def test_every_problem_is_here():
    assert set(SMALL) == set(bench.NAMES)


LOST_CARRY = pytest.mark.xfail(reason="Triton's interpreter loses the carry when it rounds to FP8: 127.9 becomes 64")
CASES = [pytest.param(n, marks=LOST_CARRY if n == "fp8_quantize" else ()) for n in SMALL]


@pytest.mark.parametrize("name", CASES)
def test_triton_start_kernels_are_right_in_the_interpreter(told, name):
    lines = told[name]
    assert len(lines) >= 2, lines
    assert all(line.startswith("OK ") for line in lines), lines
