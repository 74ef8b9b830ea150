"""Rows for every page of the product: run beside the server, in the process that may change its rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from django.utils import timezone

from campaigns import actions, hosts, library
from campaigns.harness.hosts import this_host
from campaigns.harness.report import Finding
from campaigns.models import (
    ApiToken,
    Campaign,
    Idea,
    IdeaDraft,
    Lesson,
    ModelCall,
    ProblemImport,
    Remeasurement,
    StackMeasurement,
    Steering,
)
from campaigns.scenarios.request import encode
from profiling import importing, uploads
from profiling.models import Profile, Region
from tests.factories import make_attempt, make_campaign, make_report, person
from tests.library.conftest import approved
from tests.scenarios.test_stacking import a_report

ROOT = Path(__file__).resolve().parents[2]
PEAKS = {"copy_bytes_per_s": 2.1e10, "read_bytes_per_s": 1.4e10, "float32_flop_per_s": 9e10}


def fill() -> dict[str, Any]:
    """Something for each page, and the names by which the pages' addresses call it."""
    shelf()
    return {**campaign(), **profiles(), **the_rest()}


def shelf() -> None:
    approved("mla_decode")
    approved("rmsnorm", range_={"axis": "rows", "lo": 2, "hi": 512})
    library.export("package", None)
    library.withdraw(library.kernels(["mla_decode"])[0], None, "wrong for one token")
    report = encode(a_report()).decode()
    StackMeasurement.objects.create(scenario="tiny", hardware="cpu", ticket="a", state="done", report=report)


def campaign() -> dict[str, Any]:
    ada, grace = person("ada"), person("grace")
    made = make_campaign(region_context="61 % in copies")
    for verdict in ("reverted", "incorrect", "build_failed", "stacked", "no_measurement"):
        make_attempt(made, verdict)
    precedent = make_attempt(made, "flagged").flags.get()
    actions.decide_flag(precedent, grace, state="dismissed", reason="A cache that the problem allows.")
    flagged = make_attempt(made, "flagged")
    note = Finding(rule="allocates", severity="warning", evidence="16 kB a call", path="kernel.cpp", line=4)
    report = make_report(made, "kept", [note])
    report = msgspec.structs.replace(report, host=msgspec.structs.replace(report.host, peaks=PEAKS))
    first = make_attempt(made, "kept", findings=[note], report=report)
    usage = {"cost_usd": 0.12, "input_tokens": 8000, "output_tokens": 900}
    second = make_attempt(made, "kept", title="a second one", usage=usage)
    rejected = make_attempt(made, "kept", title="a rejected one")
    actions.reject(rejected, ada, seen=0, kind="fragile", reason="It depends on the order of threads.")
    make_attempt(made)
    Steering.objects.create(campaign=made, text="Leave the block sizes alone.", author=grace)
    Idea.objects.create(campaign=made, text="struck", struck_at=timezone.now())
    ModelCall.objects.create(
        campaign=made, attempt=second, person=ada, agent="anthropic", model="m", backend="cpp", outcome="answered",
        input_tokens=8000, output_tokens=900, price_usd="0.12",
    )  # fmt: skip
    Remeasurement.objects.create(
        attempt=first, cause="person", ticket="x", state="done", holds=False, reason="slower than it was",
        speedup=1.1, speedup_lo=1.0, speedup_hi=1.2, by=ada, ended_at=timezone.now(),
    )  # fmt: skip
    return {
        "campaign": made.pk,
        "kept": first.pk,
        "kept_n": first.number,
        "flagged_n": flagged.number,
        "rejected": rejected.pk,
    }


def imported(path: Path) -> Profile:
    digest = uploads.digest(uploads.file_chunks(path))
    return importing.import_file(path, path.name, digest, lambda percent, phase: True)


def profiles() -> dict[str, Any]:
    ada = person("ada")
    capture = imported(ROOT / "profiling" / "demo" / "decode_h200.sqlite")
    ncu = imported(ROOT / "tests" / "data" / "profiles" / "triton_default.ncu-rep")
    region = Region(profile=capture, start_ns=0, end_ns=1_000_000, note="This is dumb.", author=ada)
    region.measure()
    region.save()
    failed = Profile.objects.create(
        name="broken.sqlite", sha256="0" * 64, size_bytes=10, state="failed", error="no table", hint="Export it again."
    )
    IdeaDraft.objects.create(profile=capture, text="Read it once.", why="32 copies", model="m", asked_by=ada)
    return {"capture": str(capture.pk), "ncu": str(ncu.pk), "failed": str(failed.pk), "region": region.pk}


def the_rest() -> dict[str, Any]:
    ada, now = person("ada"), timezone.now()
    draft = make_campaign(title="A draft", state="draft")
    origin = {"file": "x.zip", "sha256": "ab" * 32, "by": "ada", "at": "2026-11-30"}
    read_only = make_campaign(title="An import", state="finished", ended_at=now, imported_from=origin)
    Lesson.objects.create(problem="rmsnorm", hardware="cpu", key="k", kind="person", text="Rows are short.", author=ada)
    ApiToken.issue("agent of mine", ["read", "submit"], ada)
    job = ProblemImport.objects.create(
        given={}, by=ada, state="refused", error="It has no sizes.", format="KernelBench", name="x", title="X"
    )
    about = msgspec.to_builtins(this_host("cpu", peaks=PEAKS))
    for versions in (about["versions"], {"torch": "9.9", "triton": "4.0"}):
        hosts.note({"queue": "gpu.cpu", "about": {**about, "versions": versions}, "gpu": {}})
    return {"draft": draft.pk, "imported": read_only.pk, "job": str(job.pk)}


def ten_to_review() -> list[int]:
    """Ten kept kernels of one campaign: one with a blocking flag that has a precedent, one with a warning."""
    Campaign.objects.all().delete()
    made = make_campaign(title="Ten to review")
    block = Finding(
        rule="output-cache", severity="block", evidence="Old result for new values.", path="kernel.cpp", line=3
    )
    note = Finding(rule="allocates", severity="warning", evidence="16 kB a call", path="kernel.cpp", line=4)
    precedent = make_attempt(made, "flagged", findings=[block]).flags.get()
    actions.decide_flag(precedent, person("grace"), state="dismissed", reason="The problem allows a cache.")
    findings = {3: [block], 5: [note]}
    return [make_attempt(made, "kept", title=f"kernel {i}", findings=findings.get(i, [])).pk for i in range(10)]
