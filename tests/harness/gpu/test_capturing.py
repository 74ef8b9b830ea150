"""Profiles taken on a GPU, and the same conversation rehearsed on a CPU, with a tool that stands where nsys does."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from campaigns.harness import capturing
from campaigns.harness.candidate import load_candidate
from campaigns.harness.inside.trace import MEASURED
from campaigns.harness.problem import read_folder
from campaigns.harness.request import EvaluationRequest
from profiling import capture
from profiling.compare import select
from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace

from ..test_capturing import holds_nothing_of_its_host
from .conftest import HERE, SCALE, needs_gpu, needs_sandbox, request_for

pytestmark = needs_sandbox
HONEST = "import torch\n\ndef run(x, s, y):\n    torch.mul(x, s[:, None], out=y)\n"
TOOL = """#!/bin/sh
# As nsys: options, then a program to run; what it leaves is a file beside --output.
for word in "$@"; do case "$word" in --output=*) out=${word#--output=}.sqlite;; -*|profile) ;; *) break;; esac; shift; done
"$@" || exit $?
cat "$(dirname "$0")/report" > "$out"
"""


def imported(trace: capturing.Trace, folder: Path) -> Trace:
    assert trace.problem == ""
    (folder / "file").write_bytes(trace.content)
    import_profile(folder / "file", folder / "store")
    return Trace(Store(folder / "store"))


def test_the_trace_of_a_rehearsal_holds_the_measured_calls(
    rehearsal: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capturing, "installed", dict)
    (found,) = capturing.capture(request_for(HONEST), [capturing.CANDIDATE])
    holds_nothing_of_its_host(found)
    assert select(imported(found, tmp_path), MEASURED).occurrences == capturing.MEASURED_CALLS


def test_a_tool_runs_the_same_calls_and_its_report_comes_back(
    rehearsal: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tool" / "nsys"
    tool.parent.mkdir()
    tool.write_text(TOOL)
    tool.chmod(0o755)
    sqlite3.connect(tool.parent / "report").execute("CREATE TABLE NVTX_EVENTS (start INT)").connection.commit()
    monkeypatch.setattr(capturing, "installed", lambda: {"nsys": str(tool)})
    torch, nsys = capturing.capture(request_for(HONEST), [capturing.CANDIDATE])
    assert torch.problem == ""
    assert nsys.problem == ""
    assert nsys.content.startswith(b"SQLite format 3")


@pytest.mark.gpu
@needs_gpu
@pytest.mark.parametrize("name", ["honest.cu", "small_gain_triton.py"])
def test_on_a_gpu_every_tool_that_is_installed_profiles_candidate_and_baseline(name: str, tmp_path: Path) -> None:
    """One command on a GPU host: pytest -m gpu tests/harness/gpu/test_capturing.py -rA"""
    candidate = load_candidate(HERE / "candidates" / name)
    request = EvaluationRequest(
        problem_name="scale", problem_files=read_folder(SCALE), candidate=candidate, device="cuda"
    )
    roles = [capturing.CANDIDATE, capturing.BASELINE]
    found = list(capturing.capture(request, roles))
    assert [(t.role, t.tool) for t in found] == [(r, tool) for tool in ("torch", *capture.installed()) for r in roles]
    for number, trace in enumerate(found):
        folder = tmp_path / str(number)
        folder.mkdir()
        print(trace.role, trace.tool, trace.problem or f"{len(trace.content):,} bytes")
        assert trace.problem == ""
        if trace.tool == "torch":
            holds_nothing_of_its_host(trace)
            assert len(select(imported(trace, folder), MEASURED).kernels) >= capturing.MEASURED_CALLS
        else:
            (folder / "file").write_bytes(trace.content)
            assert import_profile(folder / "file", folder / "store").report["kernels"] > 0
