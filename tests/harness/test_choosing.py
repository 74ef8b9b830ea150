"""Who sleeps at the end of slow blocks is told from who was disturbed."""

from __future__ import annotations

import random

from campaigns.harness.choosing import chooses

WHO = ("baseline", "incumbent", "incumbent again", "candidate")


def session(mine: float, others: float, rounds: int, seed: int) -> dict[str, list[bool]]:
    rng = random.Random(seed)
    return {who: [rng.random() < (mine if who == "candidate" else others) for _ in range(rounds)] for who in WHO}


def test_a_candidate_that_is_singled_out_chooses_its_blocks() -> None:
    assert all(chooses(session(0.85, 0.05, 18, seed), "candidate", 1.0) for seed in range(20))
    assert not any(chooses(session(0.85, 0.05, 9, seed), "candidate", 1.0) for seed in range(20))


def test_one_that_a_busy_machine_disturbs_like_the_others_does_not_nor_one_whose_blocks_are_longer() -> None:
    for share in (0.1, 0.3, 0.5, 0.7):
        assert not any(chooses(session(share, share, 18, seed), "candidate", 1.0) for seed in range(500))
    assert not chooses(session(0.9, 0.05, 18, 0), "candidate", 20.0)


def test_rounds_in_which_it_was_looked_at_do_not_count() -> None:
    found: dict[str, list[bool | None]] = {who: [*tries] for who, tries in session(0.05, 0.05, 40, 0).items()}
    found["candidate"][:24] = [True] * 24
    assert chooses(found, "candidate", 1.0)
    found["candidate"][:24] = [None] * 24
    assert not chooses(found, "candidate", 1.0)
