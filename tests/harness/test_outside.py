"""What runners do while the clock does not run; and that nobody gains by what an empty block costs."""

from __future__ import annotations

import math
import types

import pytest

from campaigns.harness.channel import Took
from campaigns.harness.outside import finding_for
from campaigns.harness.session import Session

QUIET = [40e3, 55e3, 38e3, 61e3, 47e3, 52e3]
BURST = [2e6, 39e3, 3e6, 58e3, 47e3, 1e6]


def used(candidate: list[float], other: list[float] = QUIET) -> dict[str, dict[str, list[float]]]:
    return {"w": {"baseline": other, "incumbent": other[::-1], "candidate": candidate}}


@pytest.mark.parametrize("mine", [QUIET, BURST, [math.nan, *BURST[1:]], [80e3] * 6])
def test_what_a_busy_host_does_to_a_kernel_is_no_work_outside_the_clock(mine: list[float]):
    assert finding_for("candidate", used(mine)) is None


def test_work_before_go_is_found_and_names_the_workload():
    finding = finding_for("candidate", used([400e3, 420e3, 2e6, 390e3, 410e3, 405e3]))

    assert finding is not None
    assert finding.rule == "works-outside-the-clock"
    assert finding.evidence.startswith("w: ")


def test_a_candidate_whose_empty_block_is_dear_gains_nothing():
    session = types.SimpleNamespace(
        empty={
            "baseline": Took(9, 10),
            "incumbent": Took(10, 12),
            "incumbent again": Took(9, 11),
            "candidate": Took(900, 990),
        }
    )

    assert Session.empty_block(session) == Took(9, 11, 0)  # type: ignore[arg-type]
