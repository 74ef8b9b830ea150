from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profiling import lanes

spans = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 80)), max_size=60)


def columns(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    start = np.array([p[0] for p in pairs], np.int64)
    end = start + np.array([p[1] for p in pairs], np.int64)
    order = np.lexsort((-end, start))
    return start[order], end[order]


@given(spans)
def test_no_two_intervals_on_one_sub_lane_overlap(pairs: list[tuple[int, int]]) -> None:
    start, end = columns(pairs)
    level = lanes.levels(start, end)
    for number in set(level.tolist()):
        here = level == number
        assert (start[here][1:] >= end[here][:-1]).all()


@given(spans)
def test_union_covers_exactly_what_the_intervals_cover(pairs: list[tuple[int, int]]) -> None:
    start, end = columns(pairs)
    covered = np.zeros(500, bool)
    for low, high in zip(start, end, strict=True):
        covered[low:high] = True
    begin, stop = lanes.union(start, end)
    assert int((stop - begin).sum()) == int(covered.sum())
    assert (begin[1:] > stop[:-1]).all()


@given(spans, st.integers(0, 400), st.integers(0, 400))
def test_overlap_with_a_window_is_exact(pairs: list[tuple[int, int]], a: int, b: int) -> None:
    lo, hi = min(a, b), max(a, b)
    begin, stop = lanes.union(*columns(pairs))
    expected = sum(max(0, min(int(e), hi) - max(int(s), lo)) for s, e in zip(begin, stop, strict=True))
    assert lanes.overlap_ns(begin, stop, np.array([lo]), np.array([hi])).tolist() == [expected]


def test_depth_and_parents_of_nested_ranges() -> None:
    start, end = np.array([0, 10, 12, 30, 100]), np.array([90, 25, 20, 80, 110])
    depth = lanes.nesting_depth(start, end)
    assert depth.tolist() == [0, 1, 2, 1, 0]
    assert lanes.parents(depth).tolist() == [-1, 0, 1, 0, -1]


def test_the_innermost_range_is_found_at_every_time() -> None:
    start, end = np.array([0, 10, 12, 30]), np.array([90, 25, 20, 80])
    parent = lanes.parents(lanes.nesting_depth(start, end))
    found = lanes.innermost(start, end, parent, np.array([-1, 5, 15, 22, 27, 30, 85, 90, 200]))
    assert found.tolist() == [-1, 0, 2, 1, 0, 3, 0, -1, -1]


def test_the_innermost_range_is_found_however_deep_they_nest() -> None:
    """Ranges that overlap a thousand deep, by the same rule as one that looks at each in turn."""
    random = np.random.default_rng(3)
    start = np.sort(random.integers(0, 4000, 3000))
    end = start + random.integers(1, 3000, 3000)
    parent = lanes.parents(lanes.nesting_depth(start, end))
    times = np.sort(random.integers(-5, 8000, 500))
    for time, found in zip(times.tolist(), lanes.innermost(start, end, parent, times).tolist(), strict=True):
        place = int(np.searchsorted(start, time, "right")) - 1
        while place >= 0 and end[place] <= time:
            place = int(parent[place])
        assert found == place
