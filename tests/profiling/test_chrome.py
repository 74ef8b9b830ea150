from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiling import chrome
from profiling.importers import import_profile
from profiling.trace import Trace
from tests.profiling.captures import Export

Imported = Callable[[Export], tuple[dict[str, Any], Trace]]


def test_every_event_is_exported_with_exact_times(demo_trace: Trace) -> None:
    document = json.loads("".join(chrome.export(demo_trace.store)))
    events = [e for e in document["traceEvents"] if e["ph"] == "X"]
    assert len(events) == len(demo_trace.store.column("start"))
    assert sum(round(e["dur"] * 1000) for e in events if e["cat"] == "kernel") == sum(
        demo_trace.gpu["end"][demo_trace.is_kernel] - demo_trace.gpu["start"][demo_trace.is_kernel]
    )


def test_overlapping_kernels_are_on_threads_of_their_own(export: Export, imported: Imported) -> None:
    _, trace = imported(export.kernel("a", 1000, 5000).kernel("b", 2000, 6000))
    events = [e for e in json.loads("".join(chrome.export(trace.store)))["traceEvents"] if e["ph"] == "X"]
    assert len({e["tid"] for e in events}) == 2


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0.000"), (1, "0.001"), (-1500, "-1.500"), (10**15 + 7, "1000000000000.007")]
)
def test_times_lose_no_digit(ns: int, text: str) -> None:
    assert chrome.micros(ns) == text


def test_the_export_can_be_imported_again(demo_trace: Trace, tmp_path: Path) -> None:
    file = tmp_path / "again.json"
    file.write_text("".join(chrome.export(demo_trace.store)))
    assert import_profile(file, tmp_path / "again").report["kernels"] == 7842
