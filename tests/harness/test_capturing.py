"""Profiles of what was kept: taken in real sandboxes, imported by the real importer."""

from __future__ import annotations

import getpass
import gzip
import json
import os
from pathlib import Path

from campaigns.harness import capturing
from campaigns.harness.inside.trace import MEASURED, WARM_UP
from campaigns.harness.request import CandidateSource
from profiling.compare import select
from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace

from .conftest import named, needs_sandbox, request_for

pytestmark = needs_sandbox


def imported(trace: capturing.Trace, folder: Path) -> Trace:
    assert trace.problem == ""
    (folder / trace.role).write_bytes(trace.content)
    import_profile(folder / trace.role, folder / f"store-{trace.role}")
    return Trace(Store(folder / f"store-{trace.role}"))


def holds_nothing_of_its_host(trace: capturing.Trace) -> None:
    """An archive carries the trace: no environment, account, home or name of the machine may be in it."""
    text = gzip.decompress(trace.content).decode()
    assert json.loads(text).get("host_name", "sandbox") == "sandbox"  # which older torch leaves out
    own = [getpass.getuser(), str(Path.home()), str(Path.cwd()), *os.environ, *os.environ.values()]
    words = {
        word for each in own for word in each.split(os.pathsep) if len(word) > 7 and word not in ("/usr/bin", "C.UTF-8")
    }
    assert not [word for word in words if word in text]


def test_candidate_and_baseline_are_profiled_with_the_harness_s_phases(tmp_path: Path) -> None:
    """A candidate of C++, which sees torch here only, and the baseline in torch."""
    found = list(capturing.capture(request_for(named("faster.cpp")), [capturing.CANDIDATE, capturing.BASELINE]))
    assert [(t.role, t.tool) for t in found] == [("candidate", "torch"), ("baseline", "torch")]
    assert found[0].workload == found[1].workload != ""
    for trace in found:
        holds_nothing_of_its_host(trace)
        profile = imported(trace, tmp_path)
        assert select(profile, WARM_UP).occurrences == capturing.WARM_CALLS
        assert select(profile, MEASURED).occurrences == capturing.MEASURED_CALLS


def test_what_fails_is_said_and_raises_nothing() -> None:
    broken = CandidateSource(backend="torch", files={"kernel.py": "def run(*tensors):\n    raise ValueError('no')\n"})
    (found,) = capturing.capture(request_for(broken), [capturing.CANDIDATE])
    assert "ValueError: no" in found.problem
    assert found.content == b""


def test_a_problem_that_cannot_be_read_is_said_too() -> None:
    request = request_for(named("faster.cpp"))
    (found,) = capturing.capture(
        type(request)(problem_name="x", problem_files={}, candidate=request.candidate), [capturing.CANDIDATE]
    )
    assert found.problem
