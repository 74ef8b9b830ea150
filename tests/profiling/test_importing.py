from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from profiling import child, importing, uploads
from profiling.importers import Refused
from profiling.models import Profile, State
from tests.profiling.conftest import DEMO, ROOT

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media", "no_broker")]
TOKEN = b"must-not-be-kept"


def uploaded(content: bytes | None = None, name: str = "run.sqlite") -> Profile:
    profile, _ = uploads.take(SimpleUploadedFile(name, DEMO.read_bytes() if content is None else content), None)
    return profile


def test_an_upload_becomes_a_ready_profile() -> None:
    profile = uploaded()
    assert importing.run(str(profile.pk))
    profile.refresh_from_db()
    assert profile.state == State.READY
    assert profile.kernel_count == 7842
    assert profile.title() == "Launch-bound: the GPU is busy 7.8 % of the time"


def test_the_planted_token_stays_nowhere_after_an_import(media: Path, caplog: pytest.LogCaptureFixture) -> None:
    profile = uploaded()
    assert TOKEN in profile.upload_path.read_bytes()
    importing.run(str(profile.pk))
    profile.refresh_from_db()
    for path in media.rglob("*"):
        assert not path.is_file() or TOKEN not in path.read_bytes(), path
    row = repr([getattr(profile, f.name) for f in Profile._meta.fields])
    assert TOKEN.decode() not in row
    assert "EXAMPLE_API_TOKEN" not in row + caplog.text


def test_a_second_run_changes_nothing() -> None:
    profile = uploaded()
    importing.run(str(profile.pk))
    before = Profile.objects.values().get(pk=profile.pk)
    assert importing.run(str(profile.pk))
    assert Profile.objects.values().get(pk=profile.pk) == before


def test_a_failed_import_keeps_the_upload_and_says_why() -> None:
    profile = uploaded(DEMO.read_bytes()[:700_000])
    importing.run(str(profile.pk))
    profile.refresh_from_db()
    assert profile.state == State.FAILED
    assert "a cut SQLite file" in profile.error
    assert profile.hint
    assert profile.upload_path.stat().st_size == 700_000


def test_an_nsys_rep_waits_for_its_export() -> None:
    profile = uploaded(b"NVIDIA Tegra Profiler Report 36398880.\n", "run.nsys-rep")
    importing.run(str(profile.pk))
    profile.refresh_from_db()
    assert profile.state == State.NEEDS_EXPORT
    assert "nsys export --type sqlite --output run.sqlite run.nsys-rep" in profile.hint


def test_only_one_of_two_runs_may_import() -> None:
    profile = uploaded()
    assert profile.claim(uuid.uuid4())
    assert not profile.claim(uuid.uuid4())
    assert importing.run(str(profile.pk)) is False


def test_an_import_that_fell_silent_is_taken_over(settings: object) -> None:
    profile = uploaded()
    first = uuid.uuid4()
    profile.claim(first)
    Profile.objects.filter(pk=profile.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    assert importing.run(str(profile.pk))
    profile.refresh_from_db()
    assert profile.is_ready()
    assert not profile.fail(first, State.FAILED, "late", "")


def test_what_fell_silent_is_sent_again(no_broker: list[str]) -> None:
    profile = uploaded()
    profile.claim(uuid.uuid4())
    no_broker.clear()
    importing.watch()
    assert no_broker == []
    Profile.objects.filter(pk=profile.pk).update(heartbeat_at=timezone.now() - timedelta(hours=1))
    importing.watch()
    assert no_broker == [str(profile.pk)]


def test_an_import_that_dies_each_time_is_given_up(settings: object) -> None:
    profile = uploaded()
    Profile.objects.filter(pk=profile.pk).update(attempts=importing.MAX_ATTEMPTS)
    importing.run(str(profile.pk))
    profile.refresh_from_db()
    assert profile.state == State.FAILED
    assert "killed 3 times" in profile.error
    assert profile.has_upload()
    assert profile.ask_again()
    importing.run(str(profile.pk))
    profile.refresh_from_db()
    assert profile.is_ready()


def test_a_profile_deleted_meanwhile_stops_its_import() -> None:
    profile = uploaded()
    token = uuid.uuid4()
    profile.claim(token)
    Profile.objects.filter(pk=profile.pk).delete()
    importing.import_claimed(profile, token)
    assert not profile.folder.exists()


def test_the_memory_limit_holds(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        child.run_import(DEMO, tmp_path / "store", "x", 60, 60 << 20, lambda percent, phase: True)
    assert "memory" in caught.value.error or "ended unexpectedly" in caught.value.error
    assert not (tmp_path / "store").exists()


def test_a_capture_may_be_larger_than_the_memory_limit(tmp_path: Path) -> None:
    """It is mapped, once for each table: 2 GB failed with the default limit of 4 GiB."""
    large = tmp_path / "large.sqlite"
    large.write_bytes(DEMO.read_bytes())
    os.truncate(large, 5 << 30)  # sparse
    report = child.run_import(large, tmp_path / "store", "x", 60, 1 << 30, lambda percent, phase: True)
    assert report["kernels"] == 7842


def test_a_killed_child_is_told_apart_from_a_bad_file(tmp_path: Path) -> None:
    pids: list[int] = []
    real = subprocess.Popen

    def note(*args: object, **kwargs: object) -> subprocess.Popen[bytes]:
        process = real(*args, **kwargs)  # type: ignore[call-overload]
        pids.append(process.pid)
        threading.Timer(0.05, os.kill, (process.pid, signal.SIGKILL)).start()
        return process  # type: ignore[no-any-return]

    child.subprocess.Popen = note  # type: ignore[assignment,misc]
    try:
        with pytest.raises(Refused, match="signal SIGKILL"):
            child.run_import(DEMO, tmp_path / "store", "x", 60, 0, lambda percent, phase: True)
    finally:
        child.subprocess.Popen = real  # type: ignore[misc]
    assert not (tmp_path / "store").exists()


def test_the_child_ends_with_its_parent(tmp_path: Path) -> None:
    """A worker that is killed with SIGKILL leaves no import behind."""
    fifo = tmp_path / "never-ends"
    os.mkfifo(fifo)
    script = (
        "import sys; from pathlib import Path; from profiling import child;"
        f"child.run_import(Path({str(fifo)!r}), Path({str(tmp_path / 'store')!r}), 'x', 60, 0,"
        "lambda percent, phase: print(percent, flush=True) or True)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    parent.stdout.readline()
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert len(children) == 1
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and is_running(children[0]):
        time.sleep(0.05)
    assert not is_running(children[0])


def is_running(pid: str) -> bool:
    """False for one that is gone or waits to be collected; a process on its way out may be looked at in any state."""
    try:
        return "zombie" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_child_gets_no_secret_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-test")
    seen: list[dict[str, str]] = []
    real = subprocess.Popen
    monkeypatch.setattr(child.subprocess, "Popen", lambda *a, **k: seen.append(k["env"]) or real(*a, **k))
    child.run_import(DEMO, tmp_path / "store", "x", 60, 0, lambda percent, phase: True)
    assert set(seen[0]) == {"PATH", "LANG", "OPENBLAS_NUM_THREADS"}
