from __future__ import annotations

import random

from campaigns.policy import FIRST_TRIES, Arm, by_pay, in_turn


def test_ideas_take_turns_the_newest_first():
    assert in_turn([Arm(1, 2, 0), Arm(2, 1, 0), Arm(3, 1, 1)]) == 3
    assert in_turn([]) is None
    assert by_pay([]) is None


def test_every_idea_is_tried_before_they_are_compared():
    assert by_pay([Arm(1, 9, 9, 9.0), Arm(2, FIRST_TRIES - 1, 0)]) == 2


def test_an_idea_that_pays_gets_most_attempts_and_none_is_forgotten():
    rng = random.Random(1)
    chance = {1: 0.05, 2: 0.5, 3: 0.1}
    tries, kept = dict.fromkeys(chance, 0), dict.fromkeys(chance, 0)
    for _ in range(200):
        chosen = by_pay([Arm(i, tries[i], kept[i], 0.3 * kept[i]) for i in chance])
        tries[chosen] += 1
        kept[chosen] += rng.random() < chance[chosen]
    assert tries[2] > 120
    assert min(tries.values()) >= 8


def test_a_big_gain_counts_more_than_a_small_one():
    assert by_pay([Arm(1, 10, 2, 0.02), Arm(2, 10, 2, 2.0)]) == 2
