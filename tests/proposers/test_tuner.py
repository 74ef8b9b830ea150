from __future__ import annotations

import dataclasses
import math

import pytest

from campaigns.harness.candidate import tunables, with_values
from campaigns.harness.request import CandidateSource
from campaigns.proposers.base import Exhausted, PastAttempt, Proposal, ProposerError, Task
from campaigns.proposers.registry import make

SOURCE = """// a kernel
constexpr int CHUNK = 1024;  // tunable: 128, 256, 512, 1024, 2048, 4096
constexpr int TILE = 4;  // tunable: 1, 2, 4, 8
constexpr int COPY = 1;  // tunable: 0, 1
extern "C" void run() {}
"""


def kernel(text: str = SOURCE) -> CandidateSource:
    return CandidateSource(backend="cpp", files={"kernel.cpp": text})


def task(*attempts: PastAttempt, incumbent: CandidateSource | None = None, number: int = 0) -> Task:
    return Task(
        problem="p",
        backend="cpp",
        incumbent=incumbent or kernel(),
        start=kernel(),
        attempts=attempts,
        number=number or len(attempts) + 1,
    )


def propose(given: Task) -> Proposal:
    return make("tuner").propose(given)


def judged(proposal: Proposal, number: int, speedup: float | None, verdict: str = "reverted") -> PastAttempt:
    return PastAttempt(
        number=number,
        verdict=verdict,
        speedup=speedup,
        candidate=proposal.candidate,
        parameters=proposal.parameters,
        title=proposal.title,
    )


def speed_of(proposal: Proposal) -> float:
    """A landscape with its top (1.6) at CHUNK 256, TILE 8, COPY 0."""
    values = {k: int(v) for k, v in proposal.parameters.items()}
    return (
        1.6 - 0.15 * abs(math.log2(values["CHUNK"] / 256)) - 0.1 * math.log2(8 / values["TILE"]) - 0.2 * values["COPY"]
    )


def test_it_changes_declared_values_and_nothing_else():
    proposal = propose(task())
    assert proposal.candidate != kernel()
    assert proposal.candidate == with_values(kernel(), proposal.parameters)
    assert {t.name: t.value for t in tunables(proposal.candidate)} == dict(proposal.parameters)


def test_the_title_says_what_changed_against_the_incumbent():
    proposal = propose(task())
    old = {t.name: t.value for t in tunables(kernel())}
    changes = [f"{n} {old[n]} → {v}" for n, v in proposal.parameters.items() if v != old[n]]
    assert proposal.title == ", ".join(changes)
    assert changes


def test_the_same_task_gives_the_same_proposal():
    assert propose(task()) == propose(task())


def test_it_walks_the_whole_grid_without_a_repeat_and_then_is_exhausted():
    attempts: list[PastAttempt] = []
    for number in range(1, 48):
        proposal = propose(task(*attempts))
        attempts.append(judged(proposal, number, speed_of(proposal)))
    assert len({a.candidate.files["kernel.cpp"] for a in attempts} | {SOURCE}) == 48
    with pytest.raises(Exhausted, match="all 48 combinations of CHUNK, TILE, COPY"):
        propose(task(*attempts))


def test_points_on_their_way_are_not_proposed_again():
    attempts: list[PastAttempt] = []
    for number in range(1, 20):
        attempts.append(judged(propose(task(*attempts)), number, None, verdict=""))
    assert len({a.candidate.files["kernel.cpp"] for a in attempts}) == 19


def test_it_finds_the_top_of_a_landscape_sooner_than_a_blind_walk():
    best = []
    for first in range(5):
        attempts: list[PastAttempt] = []
        for number in range(1, 16):
            proposal = propose(task(*attempts, number=1000 * first + number))
            attempts.append(judged(proposal, 1000 * first + number, speed_of(proposal)))
        best.append(max(a.speedup or 0 for a in attempts))
    assert sum(best) / len(best) > 1.55  # 15 of the 47 points drawn blindly reach 1.49 on average


def test_it_keeps_away_from_values_whose_kernels_are_wrong():
    attempts: list[PastAttempt] = []
    for number in range(1, 31):
        proposal = propose(task(*attempts))
        wrong = proposal.parameters["COPY"] == "0"
        past = judged(proposal, number, None if wrong else speed_of(proposal), "incorrect" if wrong else "reverted")
        attempts.append(past)
    later = [a.parameters["COPY"] for a in attempts[10:]]
    assert later.count("1") > later.count("0")


def test_a_kept_attempt_becomes_the_point_to_start_from():
    kept = propose(task())
    past = judged(kept, 1, 1.4, "kept")
    proposal = propose(task(dataclasses.replace(past, is_incumbent=True), incumbent=kept.candidate))
    assert proposal.candidate.files["kernel.cpp"] not in (SOURCE, kept.candidate.files["kernel.cpp"])


def test_attempts_at_another_kernel_do_not_count():
    other = kernel(SOURCE.replace("void run() {}", "void run() { int x = 0; (void)x; }"))
    attempts = [
        PastAttempt(number=n, verdict="kept", speedup=9.0, candidate=with_values(other, {"COPY": c}))
        for n, c in ((1, 0), (2, 1))
    ]
    assert "of 48 combinations" in propose(task(*attempts)).rationale
    assert "with 0 measured" in propose(task(*attempts)).rationale


def test_comments_and_white_space_do_not_make_another_kernel():
    proposal = propose(task())
    commented = kernel("// changed\n" + proposal.candidate.files["kernel.cpp"])
    past = PastAttempt(number=1, verdict="reverted", speedup=1.0, candidate=commented)
    assert "with 1 measured" in propose(task(past)).rationale


def test_a_very_large_grid_still_gives_an_untried_point():
    lines = [f"constexpr int P{i} = 1;  // tunable: {', '.join(str(c) for c in range(1, 9))}\n" for i in range(12)]
    big = kernel("".join(lines))
    assert propose(task(incumbent=big)).candidate != big


def test_a_source_without_tunables_exhausts_it_at_once():
    with pytest.raises(Exhausted, match="declares no tunable"):
        propose(task(incumbent=kernel("int main() {}")))


def test_a_wrong_declaration_is_named_with_its_line():
    bad = kernel("\nconstexpr int A = 3;  // tunable: 1, 2\n")
    with pytest.raises(ProposerError, match=r"kernel\.cpp:2: A = 3"):
        propose(task(incumbent=bad))
