"""A campaign with something in every table, as a finished one has."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta

from django.contrib.auth import get_user_model
from django.utils import timezone

from campaigns import actions, captures, catalog
from campaigns.context.cards import Card
from campaigns.harness import candidate, problem, report
from campaigns.harness.capturing import Trace
from campaigns.harness.inside.trace import MEASURED
from campaigns.models import Attempt, Campaign, CardVersion, Event, Flag, Idea, Measurement, Phase, State, Steering


def person(name="ada"):
    return get_user_model().objects.get_or_create(username=name)[0]


def ratio(value):
    return report.Ratio(value=value, lo=value * 0.98, hi=value * 1.02)


def some_report(campaign, source, speedup=2.0, kind="cpu", hidden_too=True):
    """What an evaluation of a right and faster kernel leaves, for each workload of the device."""
    told = problem.load_problem(campaign.problem_files)
    device = "cpu" if kind == "cpu" else "cuda"
    rows = [
        report.WorkloadResult(
            name=w.name,
            hidden=w.hidden,
            axes=w.axes,
            correct=True,
            error=1e-6,
            tolerance=1e-4,
            time_us=10.0 / speedup,
            baseline_us=10.0,
            incumbent_us=8.0,
            speedup=ratio(speedup),
            over_incumbent=ratio(speedup * 0.8),
            noise=ratio(1.0),
            floor_us=1.0,
        )
        for w in told.workloads
        if w.device == device
    ]
    return report.Report(
        outcome="measured",
        summary="Right, and faster.",
        problem=told.name,
        problem_sha256=campaign.problem_sha256,
        candidate_sha256=candidate.sha256(source),
        incumbent_sha256=None,
        baseline="eager",
        backend=source.backend,
        mode="full",
        harness_version="1",
        host=report.Host(name="box", kind=kind, processor="x", versions={"torch": "2"}, sandbox="bubblewrap"),
        stages=[report.StageResult(name="scan", status="passed", detail="clean", seconds=0.01)],
        workloads=rows,
        speedup=ratio(speedup),
        over_incumbent=ratio(speedup * 0.8),
        noise=ratio(1.0),
        output="said “hé” \ufffd",
    )


def campaign(operator="rmsnorm", owner=None):
    files = problem.read_folder(catalog.find(operator))
    start = problem.load_problem(files).start["cpp"]
    return Campaign.objects.create(
        title=f"Faster {operator} — für alle",
        problem=operator,
        problem_files=files,
        problem_sha256=problem.files_sha256(files),
        backend="cpp",
        start_files={"kernel.cpp": files[start]},
        baseline="eager",
        hardware="cpu",
        agent="tuner",
        agent_options={"directory": "/home/ada/x", "n": 3},
        state=State.FINISHED,
        created_by=owner,
        ended_at=timezone.now(),
        ran_s=12.25,
        budget_seconds=60,
    )


def judged(campaign, source, *, number, speedup=2.0, kind="cpu", **fields):
    """A kept attempt with its measurements."""
    told = some_report(campaign, source, speedup, kind)
    attempt = Attempt.objects.create(
        campaign=campaign,
        number=number,
        phase=Phase.JUDGED,
        verdict="kept",
        backend=source.backend,
        files=source.files,
        report=report.encode(told).decode(),
        source_sha256=candidate.sha256(source),
        speedup=speedup,
        speedup_lo=speedup * 0.98,
        speedup_hi=speedup * 1.02,
        judged_at=timezone.now(),
        title=f"attempt {number}",
        **fields,
    )
    for row in told.workloads:
        Measurement.objects.create(
            attempt=attempt,
            workload=row.name,
            hidden=row.hidden,
            axes=row.axes,
            correct=True,
            error=1e-6,
            time_us=row.time_us,
            baseline_us=row.baseline_us,
            speedup=speedup,
            speedup_lo=speedup * 0.98,
            speedup_hi=speedup * 1.02,
        )
    Campaign.objects.filter(pk=campaign.pk).update(attempt_seq=number)
    return attempt


def trace_bytes(at=0):
    """A trace of torch.profiler as far as an importer looks: five measured calls, names planted."""
    calls = [
        {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 7, "ts": at + n * 10, "dur": dur, "args": args}
        for n in range(5)
        for cat, name, pid, dur, args in (
            ("user_annotation", MEASURED, 1, 5, {}),
            ("user_annotation", "<script>alert(1)</script>", 1, 4, {}),
            ("kernel", '" onfocus="alert', 0, 3, {"device": 0, "stream": 7}),
        )
    ]
    return gzip.compress(json.dumps({"schemaVersion": 1, "traceEvents": calls}).encode(), mtime=0)


def profiled(attempt, host="box"):
    """The profiles that a host takes of a kept attempt, as they come in."""
    row = attempt.measurements.first()
    for at, role in enumerate(("candidate", "baseline")):
        trace = Trace(role=role, tool="torch", workload=row.workload, host=host, content=trace_bytes(at))
        captures.attach_one(attempt, trace)
    captures.note(attempt, "candidate", "ncu: no <permission> to read counters", "ncu")


def approve(attempt, who=None, range_=None):
    seq = attempt.decision_seq
    return actions.approve(attempt, who or person(), seen=seq, sha256=attempt.signed_sha256(range_), range_=range_)


def rich():
    ada, bob = person("ada"), person("bob")
    made = campaign(owner=ada)
    first = Idea.objects.create(campaign=made, text="Read each row once.\nThen scale.", author=ada)
    Idea.objects.create(campaign=made, text="<script>alert(1)</script>", struck_at=timezone.now())
    Idea.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(days=3, microseconds=7))
    Steering.objects.create(campaign=made, text="No block sizes.", author=bob)
    Event.record(made.pk, "campaign.created")
    Event.record(made.pk, "idea.added", idea=first.pk, by="ada")
    source = made.start_candidate()
    odd = {"kernel.cpp": source.files["kernel.cpp"], "../up.h": "// ü\r\n", "a b/%2E.h": "", "..": "x", "a//c": "y"}
    one = judged(made, source, number=1, idea=first, usage={"cost": 0.1, "tokens": 12}, parameters={"LANES": "8"})
    two = judged(
        made, candidate.CandidateSource(backend="cpp", files=odd), number=2, parent=one, noise_lo=0.99, noise_hi=1.01
    )
    card = Card(name="hardware/h200", text="---\ntitle: H200\n---\n4.8 TB/s\n")
    one.cards.add(CardVersion.objects.create(name=card.name, text=card.text, sha256=card.sha256, origin="team"))
    Attempt.objects.create(campaign=made, number=3, phase=Phase.DROPPED, reason="the campaign ended")
    Flag.objects.create(
        attempt=two,
        rule="decoy",
        severity="warning",
        evidence="line 3",
        line=3,
        data={"lines": [3]},
        state="dismissed",
        decided_by=bob,
        decided_at=timezone.now(),
        decision_reason="seen",
    )
    approve(one, bob, {"axis": "rows", "lo": 1, "hi": 512})
    actions.reject(two, ada, seen=0, kind="fragile", reason="too odd")
    Campaign.objects.filter(pk=made.pk).update(incumbent=one, attempt_seq=3)
    made.refresh_from_db()
    return made
