"""Every cheat is caught and every honest twin passes clean; and the cheats are worth something in a plain harness."""

from __future__ import annotations

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from campaigns import redteam
from campaigns.harness import sandbox
from campaigns.harness.scan import scan
from campaigns.redteam import Entry

from .conftest import CANDIDATES, CENTRE, HERE, needs_sandbox

ENTRIES = redteam.entries()
CHEATS = [e for e in ENTRIES if not e.honest]
TIMED = [e for e in CHEATS if e.asked_mode != "check"]
"""These are caught by their times, so nothing else may be timed meanwhile: ``tests/conftest.py`` knows them by the test's name."""
HONEST = [e for e in ENTRIES if e.honest]
FOOLING = [e for e in CHEATS if e.fools and e.needs == "cpu" and Path(e.folder) == HERE]


def name_of(entry: Entry) -> str:
    return entry.name


def row_of(entry: Entry) -> redteam.Row:
    if why := entry.lacks():
        pytest.skip(why)
    return redteam.run_one(entry)


@needs_sandbox
@pytest.mark.parametrize("entry", [e for e in CHEATS if e not in TIMED], ids=name_of)
def test_a_cheat_is_flagged_or_judged_incorrect(entry: Entry):
    row = row_of(entry)

    assert row.caught, f"{row.verdict}: {row.reason}"
    assert row.by


@needs_sandbox
@pytest.mark.parametrize("entry", TIMED, ids=name_of)
def test_a_timed_cheat_is_flagged_or_judged_incorrect(entry: Entry):
    row = row_of(entry)

    assert row.caught, f"{row.verdict}: {row.reason}"
    assert row.by


@needs_sandbox
@pytest.mark.parametrize("entry", HONEST, ids=name_of)
def test_an_honest_twin_passes_clean(entry: Entry):
    row = row_of(entry)

    assert row.clean, f"{row.verdict}: {row.reason}"


@pytest.fixture(scope="module")
def fooled() -> set[str]:
    """The paths that a plain harness lets pass. In a bubble only so that they leave no files behind."""
    bubble = [sandbox.bubblewrap(), "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    bubble += [
        word for path in (HERE, sys.prefix, sys.base_prefix) for word in ("--ro-bind", path, path)
    ]  # were they in /tmp
    command = [*bubble, "--die-with-parent", sys.executable, HERE / "naive.py", CENTRE, *[e.path for e in FOOLING]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    return set(done.stdout.splitlines())


@needs_sandbox
@pytest.mark.parametrize("entry", FOOLING, ids=name_of)
def test_a_plain_harness_is_fooled(entry: Entry, fooled: set[str]):
    assert str(entry.path) in fooled


def test_every_kind_has_honest_twins_and_every_file_is_there():
    assert all(e.path.exists() for e in ENTRIES)
    assert len({e.name for e in ENTRIES}) == len(ENTRIES)
    assert len(HONEST) >= 15


def test_no_honest_one_is_blocked_by_its_words():
    for entry in HONEST:
        findings = scan(redteam.load_candidate(entry.path, entry.backend))
        assert [f for f in findings if f.severity == "block"] == []


@needs_sandbox
def test_the_command_prints_a_row_for_each():
    out = StringIO()
    call_command("redteam", "zeros", "nan", "--json", stdout=out, stderr=StringIO())

    document = json.loads(out.getvalue())
    assert [(row["name"], row["verdict"], row["caught"]) for row in document["cheats"]] == [
        ("zeros", "incorrect", True),
        ("nan", "incorrect", True),
    ]
    assert (document["honest"], document["skipped"]) == ([], [])


def test_an_unknown_name_is_refused():
    with pytest.raises(CommandError, match="nobody"):
        call_command("redteam", "nobody", stdout=StringIO(), stderr=StringIO())


def test_one_that_needs_a_gpu_is_skipped_with_its_reason_where_there_is_none(monkeypatch):
    monkeypatch.setattr(redteam.devices, "visible", lambda: [])
    entry = Entry(file="a.py", kind="a side stream", needs="gpu", folder=str(CANDIDATES))

    assert redteam.document([], [entry])["skipped"] == [
        {"name": "a", "kind": "a side stream", "needs": "gpu", "honest": False, "reason": "needs an NVIDIA GPU"}
    ]
