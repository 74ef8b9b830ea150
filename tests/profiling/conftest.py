from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace
from tests.profiling.captures import Export

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "profiling" / "demo" / "decode_h200.sqlite"
SHARED = ROOT.parent / "shared" / "profiles"


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "store"


@pytest.fixture(scope="session")
def demo(demo_folder: Path) -> dict[str, Any]:
    """The report of the demo's capture: four decode steps and three graph replays on an H200."""
    return import_profile(DEMO, demo_folder).report


@pytest.fixture
def demo_trace(demo: dict[str, Any], demo_folder: Path) -> Trace:
    return Trace(Store(demo_folder))


@pytest.fixture
def export() -> Export:
    return Export()


@pytest.fixture
def imported(tmp_path: Path) -> Callable[[Export], tuple[dict[str, Any], Trace]]:
    """Import an export made in the test: its report, and the trace to look into."""

    def run(export: Export) -> tuple[dict[str, Any], Trace]:
        file = export.write(tmp_path / "made.sqlite")
        report = import_profile(file, tmp_path / "store").report
        return report, Trace(Store(tmp_path / "store"))

    return run


@pytest.fixture
def media(tmp_path: Path, settings: Any) -> Path:
    """A data folder of this test's own."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def no_broker(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was sent to the queue, in place of a broker; ``importing.run`` is then called by the test."""
    from profiling import tasks

    sent: list[str] = []
    monkeypatch.setattr(tasks.import_profile, "apply_async", lambda args, **_: sent.append(args[0]))
    return sent
