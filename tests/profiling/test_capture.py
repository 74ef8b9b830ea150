from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from profiling import capture
from profiling.compare import select
from profiling.importers import import_profile
from profiling.store import Store
from profiling.trace import Trace

torch = pytest.importorskip("torch")


def matmul() -> None:
    torch.mm(torch.ones(64, 64), torch.ones(64, 64))


def test_a_capture_holds_the_harness_s_phases_and_the_candidate(tmp_path: Path) -> None:
    file = capture.torch_trace(matmul, tmp_path / "candidate.json.gz", warm_up=2, measured=4)
    names = [e.get("name") for e in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]]
    assert names.count(capture.WARM_UP) == 2
    assert names.count(capture.MEASURED) == 4
    assert "aten::mm" in names


def test_a_capture_imports_and_its_measured_calls_can_be_selected(tmp_path: Path) -> None:
    file = capture.torch_trace(matmul, tmp_path / "candidate.json.gz", measured=4)
    import_profile(file, tmp_path / "store")
    assert select(Trace(Store(tmp_path / "store")), capture.MEASURED).occurrences == 4


def test_a_candidate_that_fails_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        capture.torch_trace(lambda: 1 / 0, tmp_path / "candidate.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "measured"), [("a.txt", 1), ("a.json", 0)])
def test_what_cannot_be_written_is_refused_before_anything_runs(name: str, measured: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"json|at least 1"):
        capture.torch_trace(lambda: pytest.fail("it ran"), tmp_path / name, measured=measured)


def test_clocks_are_left_alone() -> None:
    command = capture.ncu_command(["python", "run.py"], Path("r.ncu-rep"))
    assert command[command.index("--clock-control") + 1] == "none"
    assert command[-2:] == ["python", "run.py"]


def test_graphs_are_traced_node_by_node_and_exported() -> None:
    command = capture.nsys_command(["python", "run.py"], Path("out/r.nsys-rep"))
    assert {"--cuda-graph-trace=node", "--export=sqlite", "--output=out/r"} <= set(command)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_kernels_of_the_gpu_are_in_the_capture(tmp_path: Path) -> None:
    a, b, out = (torch.ones(256, 256, device="cuda") for _ in range(3))
    file = capture.torch_trace(lambda: torch.mm(a, b, out=out), tmp_path / "c.json.gz", measured=4)
    import_profile(file, tmp_path / "store")
    assert len(select(Trace(Store(tmp_path / "store")), capture.MEASURED).kernels) == 4
