from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from campaigns.harness import evaluator, sandbox
from campaigns.harness.backends import get
from campaigns.harness.channel import Channel
from campaigns.harness.errors import CandidateFailure, SandboxError, Stopped
from campaigns.harness.inside.probe import TESTS
from campaigns.harness.request import CandidateSource
from campaigns.harness.sandbox import Spec

from .conftest import named, needs_sandbox, request_for


@needs_sandbox
@pytest.mark.parametrize("protection", list(TESTS))
def test_a_protection_holds(protection: str):
    assert sandbox.probe()[protection]


@needs_sandbox
def test_the_host_says_so():
    report = evaluator.evaluate(request_for(named("does_not_build.cpp"), "check"))

    assert report.host.sandbox == "bubblewrap"
    assert report.host.sandbox_missing == []


def test_without_a_sandbox_nothing_runs(monkeypatch):
    monkeypatch.setattr(sandbox, "available", lambda: False)
    monkeypatch.delenv("AUTORESEARCH_ALLOW_NO_SANDBOX", raising=False)

    with pytest.raises(SandboxError, match="AUTORESEARCH_ALLOW_NO_SANDBOX"):
        sandbox.start(Spec(role="run_cpp"), "hello")
    report = evaluator.evaluate(request_for(named("faster.cpp"), "check"))
    assert report.outcome == "infrastructure"
    assert report.host.sandbox == "none"
    assert report.host.sandbox_missing


def test_by_leave_of_a_setting_it_runs_without_and_says_so(monkeypatch):
    evaluator.close()
    monkeypatch.setattr(sandbox, "available", lambda: False)
    monkeypatch.setenv("AUTORESEARCH_ALLOW_NO_SANDBOX", "1")
    try:
        report = evaluator.evaluate(request_for(named("faster.cpp"), "check"))
    finally:
        evaluator.close()

    assert report.outcome == "measured", report.summary
    assert report.host.sandbox == "none"


@needs_sandbox
def test_a_build_sees_none_of_our_files(tmp_path):
    secret = tmp_path / "secret.h"
    secret.write_text("int secret;")
    source = CandidateSource(backend="cpp", files={"kernel.cpp": f'#include "{secret}"\n'})

    with pytest.raises(CandidateFailure, match="No such file"):
        get("cpp").build(source)


@needs_sandbox
def test_a_build_cannot_include_what_assembly_names(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("planted")
    source = CandidateSource(backend="cpp", files={"kernel.cpp": f'asm(".incbin \\"{secret}\\"");\n'})

    with pytest.raises(CandidateFailure) as failure:
        get("cpp").build(source)

    assert failure.value.outcome == "build_failed"


def wait_gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while time.monotonic() < until:
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.02)
    return False


@needs_sandbox
def test_closing_kills_everything_in_it():
    channel = Channel(Spec(role="run_cpp"))
    channel.wait_ready(20)
    pid = channel.pid

    channel.close()

    assert wait_gone(pid)


@needs_sandbox
def test_a_killed_evaluator_leaves_no_sandbox():
    code = (
        "import time\nfrom campaigns.harness.channel import Channel\nfrom campaigns.harness.sandbox import Spec\n"
        "c = Channel(Spec(role='run_cpp')); c.wait_ready(20); print(c.pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)

    assert wait_gone(pid)


@needs_sandbox
def test_stop_ends_a_running_evaluation_at_once():
    began = time.monotonic()

    with pytest.raises(Stopped):
        evaluator.evaluate(request_for(named("loops.cpp"), "check"), should_stop=lambda: time.monotonic() > began + 3)

    assert time.monotonic() < began + 60
