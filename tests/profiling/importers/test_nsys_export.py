from __future__ import annotations

from pathlib import Path

import pytest

from profiling import child
from profiling.importers import Refused
from tests.profiling.captures import Export

HEADER = b"NVIDIA Tegra Profiler Report 36398880.\n"
TOOL = """#!/bin/sh
# What nsys does as far as an import sees it: its command line, its file, its failures. The "report" is a header and SQLite.
[ "$1 $2 $3" = "export --type sqlite" ] || {{ echo "unknown arguments: $*"; exit 2; }}
while [ $# -gt 1 ]; do [ "$1" = --output ] && out=$2; shift; done
{body}
"""
STRIP = f'tail -c +{len(HEADER) + 1} "$1" > "$out"'


def nsys(folder: Path, body: str = STRIP) -> str:
    path = folder / "tool" / "nsys"
    path.parent.mkdir()
    path.write_text(TOOL.format(body=body))
    path.chmod(0o755)
    return str(path)


def report(folder: Path) -> Path:
    export = Export().kernel("matmul", 1000, 5000).write(folder / "made.sqlite").read_bytes()
    path = folder / "run.nsys-rep"
    path.write_bytes(HEADER + export)
    return path


def imported(folder: Path, tool: str) -> dict[str, object]:
    store = folder / "store"
    return child.run_import(report(folder), store, "run.nsys-rep", 60, 0, lambda percent, phase: True, tool, True)


def test_a_configured_nsys_exports_a_report_and_its_export_is_imported_and_deleted(tmp_path: Path) -> None:
    found = imported(tmp_path, nsys(tmp_path))
    assert found["kernels"] == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made.sqlite", "run.nsys-rep", "store", "tool"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo 'The report was made by a newer version'; exit 1", "made by a newer version"),
        ("exit 0", "it said nothing"),
        ("cat /proc/self/fd/99 2>/dev/null; kill -9 $$", "exit code -9"),
    ],
)
def test_a_report_that_it_cannot_export_waits_with_the_command(body: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        imported(tmp_path, nsys(tmp_path, body))
    assert refused.value.needs_export
    assert why in refused.value.error or "exit code 137" in refused.value.error
    assert "nsys export --type sqlite --output run.sqlite run.nsys-rep" in refused.value.hint
    assert not (tmp_path / "store").exists()


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="no program on this machine"):
        imported(tmp_path, str(tmp_path / "absent"))


def test_the_tool_reaches_nothing_but_the_report(tmp_path: Path) -> None:
    """In a sandbox, where one can be had: neither the folders beside the report nor the network."""
    from profiling.importers.nsys_export import sandboxed

    if sandboxed("/bin/true", tmp_path, tmp_path, []) is None:
        pytest.skip("no sandbox can be had here")
    secret = tmp_path / "secret"
    secret.write_text("must-not-be-kept")
    body = f"cat {secret} && exit 3; tail -n +3 /proc/net/dev | grep -v lo: && exit 4; {STRIP}"
    assert imported(tmp_path, nsys(tmp_path, body))["kernels"] == 1
