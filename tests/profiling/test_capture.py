from __future__ import annotations

from pathlib import Path

from profiling import capture

PROGRAM = ["python", "run.py"]


def test_clocks_are_left_alone_and_only_the_phase_is_looked_at() -> None:
    command = capture.command("ncu", "/opt/ncu", PROGRAM, Path("r.ncu-rep"), "harness: measured")
    assert command[0] == "/opt/ncu"
    assert command[command.index("--clock-control") + 1] == "none"
    assert command[command.index("--nvtx-include") + 1] == "harness: measured/"
    assert command[-2:] == PROGRAM


def test_graphs_are_traced_node_by_node_and_exported() -> None:
    command = capture.command("nsys", "nsys", PROGRAM, Path("out/r.sqlite"), "harness: measured")
    assert {"--cuda-graph-trace=node", "--export=sqlite", "--output=out/r"} <= set(command)
    assert command[-2:] == PROGRAM
