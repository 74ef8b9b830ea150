"""Who gains from values that it has seen: the rule on made-up times, with the noise that a GPU and a busy host have."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from campaigns.harness.gpu.lane import Lane
from campaigns.harness.gpu.recall import MORE, REPEATS, Recall, chosen
from campaigns.harness.problem import Workload
from campaigns.harness.session import CANDIDATE, INCUMBENT, SECOND


def workload(name: str) -> Workload:
    return Workload(name=name, axes={"n": 1}, device="cuda")


def flagged(random: np.random.Generator, sd: float, gain: float = 0.0, common: float = 0.0, wild: float = 0.05) -> bool:
    """One look: ``gain`` is the candidate's own, ``common`` what every runner has; some times are wildly off."""
    recall = Recall()

    def noise() -> float:
        return float(random.standard_normal() * sd + (random.exponential(0.5) if random.random() < wild else 0.0))

    def repeat() -> None:
        seen = {who: 1e6 * np.exp(noise()) for who in (INCUMBENT, SECOND, CANDIDATE)}
        own = {INCUMBENT: common, SECOND: common, CANDIDATE: common + gain}
        recall.add({who: 1e6 * np.exp(own[who] + noise()) for who in seen}, seen)

    for _ in range(REPEATS):
        repeat()
    if not recall.suspicious():
        return False
    for _ in range(MORE):
        repeat()
    return recall.certain(REPEATS)


@pytest.mark.parametrize(("sd", "common"), [(0.01, 0.0), (0.03, 0.3), (0.1, 0.0), (0.3, 0.2)])
def test_an_honest_kernel_is_not_flagged_however_noisy_and_whatever_all_runners_gain(sd: float, common: float):
    random = np.random.default_rng(3)
    assert sum(flagged(random, sd, common=common) for _ in range(4000)) <= 1


@pytest.mark.parametrize(("sd", "gain"), [(0.01, 0.12), (0.03, 0.25), (0.05, 0.5)])
def test_a_memory_of_answers_is_flagged(sd: float, gain: float):
    random = np.random.default_rng(4)
    assert sum(flagged(random, sd, gain, wild=0.0) for _ in range(400)) >= 390


def test_without_a_second_process_the_baseline_is_the_control():
    recall = Recall()
    for _ in range(8):
        recall.add({"baseline": 1.3e6, CANDIDATE: 1.3e6}, {"baseline": 1.0e6, CANDIDATE: 1.0e6})
    assert not recall.suspicious()
    assert recall.controls == ["baseline"]


@pytest.mark.parametrize(("faster", "looked_at"), [(True, 3), (False, 2)])
def test_where_it_is_faster_beyond_doubt_is_looked_at_and_one_more_by_lot(faster: bool, looked_at: int):
    random = np.random.default_rng(5)
    lanes = [Lane(workload(name), [], True) for name in ("fast", "alike", "alike too", "slow")]
    for lane, gain in zip(lanes, (0.1, 0.004, 0.004, -0.2), strict=True):
        for who, log in ((INCUMBENT, 0.0), (SECOND, 0.0), (CANDIDATE, -gain)):
            lane.times[who] = list(1e4 * np.exp(log + 0.02 * random.standard_normal(8)))
    session = SimpleNamespace(lanes=lanes, runners={CANDIDATE: None}, incumbents=[INCUMBENT, SECOND], random=Random(1))

    found = [lane.workload.name for lane in chosen(session, faster)]

    assert found[0] == "fast"
    assert len(found) == looked_at
    assert "slow" not in found
