"""Every text that comes from outside, made hostile: markup, scripts, templates, formulas, letters that turn the line around,
and words without end. Run beside the server, after ``everything.fill``."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from django.apps import apps
from django.db import models

from campaigns.harness import report as reports
from campaigns.models import Attempt, EvaluatorHost, ProblemImport
from profiling import importing, uploads
from profiling.models import Profile

MARKUP = (
    "=1+1<img src=/HIT onerror=alert(1)>\"onload='alert(2)'</script></textarea></title></style>--><svg onload=alert(3)> "
    "\u202eHIT{{ 7*7 }}{% now %}\u200b\u2066&lt;\u0301 "
)
WORD = "W" * 10_000
FREE: dict[str, list[str]] = {
    "Profile": ["name", "error", "hint", "producer", "schema", "label_title", "label_reason", "phase"],
    "Region": ["note"],
    "Campaign": ["title", "rules", "region_context", "state_reason", "exhausted"],
    "ApiToken": ["name"],
    "Idea": ["text", "spent"],
    "Steering": ["text"],
    "Attempt": ["title", "rationale", "proposer", "host", "reason"],
    "AttemptProfile": ["workload", "host", "problem"],
    "CardVersion": ["note"],
    "EvaluatorHost": ["name", "checked", "versions_before"],
    "Flag": ["rule", "evidence", "path", "decision_reason"],
    "IdeaDraft": ["text", "why", "model"],
    "Review": ["reason"],
    "Kernel": ["withdrawn_reason"],
    "Lesson": ["text"],
    "Measurement": ["workload", "detail"],
    "ModelCall": ["agent", "model", "request_id"],
    "ProblemImport": ["wish", "step", "format", "name", "title", "error"],
    "Remeasurement": ["versions", "reason"],
    "StackMeasurement": ["error"],
    "User": ["first_name", "last_name"],
}
LEAVES: list[tuple[type[models.Model], str]] = [
    (Profile, "gpus"), (Attempt, "usage"), (EvaluatorHost, "about"), (EvaluatorHost, "gpu"), (ProblemImport, "notes"),
]  # fmt: skip
KEPT_KEYS = {"sha256", "kind", "queue", "name", "path", "harness_version"}


def spoil() -> dict[str, Any]:
    """Hostile words into every free text of every row; a profile whose kernels and ranges are called so, besides."""
    for model in apps.get_models():
        for row in model._default_manager.all() if model.__name__ in FREE else ():
            spoil_row(row, FREE[model.__name__])
    for model, field in LEAVES:
        for row in model._default_manager.all():
            setattr(row, field, in_leaves(getattr(row, field)))
            row.save(update_fields=[field])
    for attempt in Attempt.objects.exclude(report="").exclude(verdict="no_measurement"):
        spoil_attempt(attempt)
    return {"hostile": str(hostile_profile().pk)}


def spoil_row(row: models.Model, names: list[str]) -> None:
    for name in names:
        limit = getattr(row._meta.get_field(name), "max_length", None)
        text = f"={row.pk}{MARKUP}{WORD}"
        setattr(row, name, text[:limit] if limit else text)
    row.save(update_fields=names)


def in_leaves(value: Any) -> Any:
    """The same structure with a hostile text in each leaf that holds a text and means nothing to us."""
    if isinstance(value, dict):
        return {key: item if key in KEPT_KEYS else in_leaves(item) for key, item in value.items()}
    if isinstance(value, list):
        return [in_leaves(item) for item in value]
    return MARKUP + WORD[:2000] if isinstance(value, str) else value


def spoil_attempt(attempt: Attempt) -> None:
    said = MARKUP + WORD
    report = reports.decode(attempt.report.encode())
    host = msgspec.structs.replace(
        report.host, name=said, processor=said, versions={said: said}, sandbox_missing=[said]
    )
    stages = [msgspec.structs.replace(stage, detail=said, evidence={said: said}) for stage in report.stages]
    workloads = [msgspec.structs.replace(w, detail=said, labels=[said], name=w.name + said) for w in report.workloads]
    report = msgspec.structs.replace(
        report, host=host, stages=stages, workloads=workloads, summary=said, build_log=said, output=said,
        engagement=[{"kernel": said, "calls": 1, "total_us": 1.0, "share": 1.0, "own": True}],
    )  # fmt: skip
    attempt.report = reports.encode(report).decode()
    attempt.files = {**attempt.files, "<img src=x onerror=alert(1)>.h": f"// {said}\n{said}\n"}
    attempt.parameters = {said: said}
    attempt.save(update_fields=["report", "files", "parameters"])


def hostile_profile() -> Profile:
    """A Chrome trace: kernels, ranges, threads, counters and arguments with names of that kind."""
    said = MARKUP + WORD[:5000]
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": said}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": said}},
    ]
    for n in range(40):
        place = {"device": 0, "stream": 7, "context": 1, "correlation": n, said: said}
        on_host = {"ph": "X", "pid": 1, "tid": 1, "ts": 10 * n}
        kernel = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 7, "ts": 10 * n + 5, "dur": 4, "args": place}
        call = {**on_host, "cat": "cuda_runtime", "dur": 2, "args": {"correlation": n, said: said}}
        range_ = {**on_host, "cat": "user_annotation", "dur": 9, "args": {}}
        named = [(kernel, f"{said}{n % 3}"), (call, "cudaLaunchKernel"), (range_, f"{said}{n % 2}")]
        events += [{**event, "name": name} for event, name in named]
    made = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": said}], "traceEvents": events}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "hostile.json"
        path.write_text(json.dumps(made), encoding="utf-8")
        digest = uploads.digest(uploads.file_chunks(path))
        return importing.import_file(path, f"{MARKUP}.json"[:200], digest, lambda percent, phase: True)
