"""An exported package on this machine's GPU, without this product: right over its range, and by the fallback elsewhere.

    python3 docs/results/h200/package_check.py WHEEL [--seconds 60]

Needs torch, and Triton or nvcc where the kernels do. For every operator of the package: the workloads of its problem, then
shapes drawn at random between their smallest and largest axes, then one above. The reference is the problem's, in float64;
an error is max |out − ref| ÷ (RMS(ref) + |ref|) over the problem's tolerance, right up to 1.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

PROBLEMS = Path(__file__).resolve().parents[3] / "campaigns" / "problems"
LARGEST_VALUES = 1 << 28
"""Of a drawn shape's inputs and outputs together: the reference wants eight bytes for each, several times."""
DRAWN = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:  # in a process that sees the package, torch and nothing of this project
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(options.wheel).extractall(folder)
            env = {**os.environ, "PYTHONPATH": folder}
            command = [sys.executable, "-P", __file__, str(options.wheel.resolve()), "--inside"]
            command += ["--seconds", str(options.seconds), "--device", options.device]
            done = subprocess.run(command, env=env, cwd=folder)
        sys.exit(done.returncode)
    sys.exit(1 if look(time.monotonic() + options.seconds, options.device) else 0)


def look(until: float, device: str) -> int:
    import approved_kernels

    wrong = 0
    print(f"{'operator':<20} {'shapes':>6} {'kernel':>7} {'fallback':>9} {'worst ÷ tolerance':>18}")
    for name, operator in approved_kernels.operators.items():
        try:
            found = Looked(name, operator, until, device)
            found.all()
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {error}")
            wrong += 1
            continue
        wrong += found.wrong
        print(
            f"{name:<20} {found.shapes:>6} {found.by_kernel:>7} {found.by_fallback:>9} {found.worst:>18.3f}", flush=True
        )
        print("\n".join(f"    {line}" for line in found.lines))
    return wrong


class Looked:
    def __init__(self, name: str, operator: Any, until: float, device: str) -> None:
        self.name, self.operator, self.until, self.device = name, operator, until, device
        folder = PROBLEMS / name
        self.problem = tomllib.loads((folder / "problem.toml").read_text())
        self.reference = module(folder / "reference.py").reference
        self.make_inputs = module(folder / "inputs.py").make_inputs
        self.shapes = self.by_kernel = self.by_fallback = self.wrong = 0
        self.worst = 0.0
        self.lines: list[str] = []

    def all(self) -> None:
        rows = [w for w in self.problem["workloads"] if w["device"] == self.device]
        axes = self.problem["axes"]
        dtypes = sorted({w.get("dtype") or self.problem["dtype"] for w in rows})
        for row in rows:
            self.one(row["axes"], row.get("dtype") or self.problem["dtype"], row["name"])
        draw = random.Random(7)
        bounds = {axis: (min(w["axes"][axis] for w in rows), max(w["axes"][axis] for w in rows)) for axis in axes}
        for _ in range(DRAWN):
            base = draw.choice(rows)["axes"]
            changed = {axis: draw.randint(*bounds[axis]) for axis in draw.sample(axes, 1)}
            self.one({**base, **changed}, draw.choice(dtypes), "drawn")
        for axis in axes:
            smallest = {a: low for a, (low, _) in bounds.items()}
            self.one({**smallest, axis: bounds[axis][1] + 1}, dtypes[0], f"{axis} above")

    def one(self, axes: dict[str, int], dtype: str, what: str) -> None:
        import torch

        if time.monotonic() > self.until or self.values(axes) > LARGEST_VALUES:
            return
        generator = torch.Generator(device=self.device).manual_seed(self.shapes)
        try:
            inputs = self.make_inputs(axes, generator, self.device, getattr(torch, dtype))
            expected = self.reference(inputs, axes)
        except (RuntimeError, ValueError, AssertionError):
            return  # a drawn shape that the problem does not have
        why = self.operator.explain(*inputs.values(), **self.untold(axes))
        outputs = self.operator(*inputs.values(), **self.untold(axes))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        tolerance = self.problem["tolerance"].get(dtype)
        worst = 0.0
        for out, ref in zip(outputs, expected.values(), strict=True):
            ref = ref.double()
            error = (out.double() - ref).abs() / (ref.abs() + ref.square().mean().sqrt() + 1e-300)
            worst = max(worst, float(error.nan_to_num(float("inf")).max()) / tolerance)
        self.shapes += 1
        self.by_kernel += why.startswith("kernel")
        self.by_fallback += why.startswith("fallback")
        self.worst = max(self.worst, worst)
        self.wrong += worst > 1
        if worst > 1 or why.startswith("fallback"):
            self.lines.append(f"{what} {axes} {dtype}: {worst:.3f}; {why}")

    def values(self, axes: dict[str, int]) -> int:
        total = 0
        for tensor in (*self.problem["inputs"], *self.problem["outputs"]):
            count = 1
            for entry in tensor["shape"]:
                count *= entry if isinstance(entry, int) else int(eval(entry, {"min": min, "max": max}, dict(axes)))
            total += count
        return total

    def untold(self, axes: dict[str, int]) -> dict[str, int]:
        """Axes that no input's shape names: the operator wants them by name."""
        told = {entry for tensor in self.problem["inputs"] for entry in tensor["shape"]}
        return {axis: value for axis, value in axes.items() if axis not in told}


def module(path: Path) -> Any:
    spec = spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    loaded = module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


if __name__ == "__main__":
    main()
