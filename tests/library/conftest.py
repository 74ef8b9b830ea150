from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from campaigns import catalog, library
from campaigns.harness import candidate, problem
from tests.archive import samples


def approved(operator, backend="cpp", *, range_=None, speedup=2.0, number=1, values=None):
    """An approved kernel of an operator, from its start kernel with other tunables."""
    made = samples.campaign(operator)
    told = problem.load_problem(made.problem_files)
    entry = {"cpp": "kernel.cpp", "torch": "kernel.py"}[backend]
    text = made.problem_files[told.start[backend]]
    source = candidate.with_values(candidate.CandidateSource(backend=backend, files={entry: text}), values or {})
    attempt = samples.judged(made, source, number=number, speedup=speedup)
    return samples.approve(attempt, samples.person("grace"), range_)


SERVER = """
import json, os, sys, torch
torch.set_num_threads(1)
for line in sys.stdin:
    script, environment = json.loads(line)
    if not os.fork():
        os.environ.update(environment)
        exec(script, {"__name__": "__main__"})
        os._exit(0)
    print("END", os.wait()[1], flush=True)
"""
"""Importing torch takes seconds: each script runs in a fork of a process that has done it, and nothing else."""


@dataclass
class Fresh:
    """An environment with the exported package and torch, and without this product."""

    python: Path
    home: Path
    process: subprocess.Popen | None = None

    def run(self, script, **environment):
        """What the script prints last, as JSON."""
        if self.process is None:
            env = {
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "APPROVED_KERNELS_CACHE": str(self.home / "cache"),
            }
            line = [str(self.python), "-I", "-u", "-c", SERVER]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(line, stdin=pipe, stdout=pipe, text=True, env=env, cwd=self.home)
            atexit.register(self.process.kill)
        self.process.stdin.write(json.dumps([script, environment]) + "\n")
        self.process.stdin.flush()
        said = []
        while not (line := self.process.stdout.readline()).startswith("END"):
            said.append(line)
        assert line == "END 0\n", "the script failed; see above"
        return json.loads(said[-1])


def environment(folder, wheel):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv" / "bin" / "python"
    line = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", wheel]
    subprocess.run(line, check=True)
    site = next((folder / "venv").glob("lib/python*/site-packages"))
    (site / "torch_of_the_tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return Fresh(python, folder)


_made: list[Fresh] = []


@pytest.fixture
def fresh(db, tmp_path_factory):
    """rmsnorm in C++ for 2 to 512 rows, softmax in torch, installed once for all tests."""
    if not _made:
        approved(
            "rmsnorm", range_={"axis": "rows", "lo": 2, "hi": 512}, values={"LANES": 16, "ROW_BLOCK": 1, "FUSE": 1}
        )
        approved("softmax", "torch")
        folder = tmp_path_factory.mktemp("fresh")
        made = library.export("package", None)
        wheel = folder / made.filename
        wheel.write_bytes(made.data)
        _made.append(environment(folder, wheel))
    return _made[0]


def reference(operator):
    """The float64 reference and the draws of a problem, as text for a script."""
    folder = catalog.find(operator)
    return f"""
def reference_and_inputs():
    import importlib.util
    found = []
    for name in ("reference", "inputs"):
        spec = importlib.util.spec_from_file_location(name, {str(folder)!r} + "/" + name + ".py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(module)
    return found[0].reference, found[1].make_inputs
"""
