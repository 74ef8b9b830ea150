"""What a model reads of a kernel: counters of a real Nsight Compute report, launches of a real timeline."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from campaigns.desks import read_kernel
from campaigns.proposers.base import Desk
from campaigns.proposers.conversation_types import ToolCall
from campaigns.proposers.tools import ToolBox, ToolFault
from profiling.kernel_text import describe
from profiling.models import Profile
from tests.agents.conftest import make_task
from tests.profiling.test_ncu_reader import OWN
from tests.profiling.views.conftest import owner, profile, ready

__all__ = ["owner", "profile"]


@pytest.fixture
def report(media: Path, owner: Any) -> Profile:
    return ready(OWN, "triton_default.ncu-rep", owner, "c" * 64)


def test_counters_are_told_with_what_was_not_collected(report: Profile) -> None:
    text = describe(report, "MATMUL")
    assert "matmul_kernel: 1 launch, grid 32×16×1" in text
    assert "of peak" in text
    assert "occupancy: " in text
    assert "stall reasons not collected: rerun with `ncu --section WarpStateStats" in text


def test_metrics_are_found_by_words(report: Profile) -> None:
    assert "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed = 3.98667 %" in describe(
        report, "matmul", "dram pct"
    )
    assert "No metric's name holds all of: nothing_like_it" in describe(report, "matmul", "nothing_like_it")


def test_launches_of_a_timeline_are_told(profile: Profile) -> None:
    text = describe(profile, "softmax")
    assert re.search(r"^softmax_warp_forward: 32 calls, 33.3 µs in all, 1.04 µs each", text)
    assert re.search(r"^  full name: .*softmax_warp_forward", text, re.MULTILINE)
    assert "grid: " in text
    assert "registers: " in text
    assert "NVTX: " in text


def box(profile: Profile | None) -> ToolBox:
    reads = partial(read_kernel, profile) if profile else None
    return ToolBox(make_task(), Desk(read_kernel=reads), lambda: False)


def test_a_model_reads_a_kernel_as_data_and_is_told_what_there_is(report: Profile) -> None:
    def call(**arguments: Any) -> ToolCall:
        return ToolCall("1", "read_kernel", json.dumps(arguments))

    answer = box(report).run(call(name="tiny")).text
    assert answer.startswith("<<<data ")
    assert "tiny_add_kernel: 3 launches" in answer
    with pytest.raises(ToolFault, match=r"(?s)<<<data .*No kernel is named so. There are: .*matmul_kernel"):
        box(report).run(call(name="flash"))


def test_without_a_capture_there_is_no_such_tool() -> None:
    assert "read_kernel" not in [spec.name for spec in box(None).specs]
