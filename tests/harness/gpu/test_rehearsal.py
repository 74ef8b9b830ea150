"""What runs on a GPU, on a CPU: kernels interpreted; the whole conversation, where nothing is captured or profiled."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import msgspec
import pytest

from campaigns import redteam
from campaigns.harness import evaluator
from campaigns.harness.errors import Stopped
from campaigns.harness.gpu.spares import Spares
from campaigns.harness.stages import gpu_correctness

from .conftest import HERE, REHEARSAL, SCALE, needs_sandbox, rehearse, request_for

pytestmark = [pytest.mark.slow]
WRONG = """
import os

import torch

print("process", os.urandom(8).hex(), flush=True)


def run(x, s, y):
    torch.mul(x, s[:, None], out=y)
    y.add_(1)
"""
HONEST = [e for e in redteam.entries() if e.honest and e.folder == str(HERE) and e.file.endswith("_triton.py")]


def test_the_honest_triton_kernels_of_the_red_team_are_right_in_the_interpreter():
    pytest.importorskip("triton", reason="Triton is not installed")
    names = [word for entry in HONEST for word in (entry.file, entry.problem)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.harness.gpu.interpreted", *names],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.stdout.splitlines() == [f"OK {entry.file}" for entry in HONEST], done.stderr[-2000:]


@needs_sandbox
@pytest.mark.usefixtures("rehearsal")
def test_an_output_that_computes_when_it_is_looked_at_is_no_output():
    text = (HERE / "candidates" / "lazy_subclass_torch.py").read_text()

    assert rehearse(text).outcome == "incorrect"


@needs_sandbox
@pytest.mark.usefixtures("rehearsal")
def test_requests_of_any_length_reach_the_runner():
    request = request_for((SCALE / "start" / "kernel.py").read_text(), mode="check")
    files = request.problem_files
    long_names = files["problem.toml"].replace('name = "us', 'name = "' + "of a name that is long, " * 3000 + "us")
    found = evaluator.evaluate(msgspec.structs.replace(request, problem_files={**files, "problem.toml": long_names}))

    assert found.outcome == "measured", found.summary


@needs_sandbox
@pytest.mark.usefixtures("rehearsal")
def test_workloads_are_checked_in_two_processes_and_the_first_that_fails_is_told(monkeypatch):
    monkeypatch.setattr(gpu_correctness, "processes", lambda: 2)

    found = rehearse(WRONG)

    assert found.outcome == "incorrect"
    assert found.summary.startswith("us5: ")
    assert len(set(re.findall("process [0-9a-f]{16}", found.output))) == 2


@needs_sandbox
@pytest.mark.usefixtures("rehearsal")
def test_neither_a_stopped_evaluation_nor_one_that_is_over_leaves_anything_behind(monkeypatch):
    evaluator.close()
    taken = []

    def take(self, *arguments, real=Spares.take):
        taken.append(self)
        if len(taken) == 2:
            raise Stopped
        return real(self, *arguments)

    monkeypatch.setattr(Spares, "take", take)
    honest = (SCALE / "start" / "kernel.py").read_text()
    with pytest.raises(Stopped):
        rehearse(honest)

    assert rehearse(honest).outcome == "measured"
    (bench,) = evaluator._benches.values()
    assert list(bench.areas.values()) == [bench.expected_area]


@needs_sandbox
def test_a_waiting_process_that_has_ended_is_nobodys_failure_and_gives_its_descriptors_back():
    spares = Spares(REHEARSAL, count=1)
    spares.fill()
    (dead,) = spares.waiting
    dead.started.process.kill()
    dead.started.process.wait()

    with spares.still():
        pass
    spares.take(lambda: False).close()
    spares.close()

    assert dead.closed
