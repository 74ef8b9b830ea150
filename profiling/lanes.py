"""Intervals on a lane: sub-lanes for what overlaps, nesting depth, parents, unions. Pure functions over sorted arrays.

Every function takes ``start`` sorted ascending with longer intervals first among equal starts; times in ns.
"""

from __future__ import annotations

import heapq

import numpy as np

from profiling.events import Column
from profiling.orders import by_small

MAX_LEVELS = 64


def levels(start: Column, end: Column, depth: Column | None = None) -> Column:
    """The sub-lane (0 is the outermost) of each interval, so that no two on one sub-lane overlap and none is dropped.

    Nested intervals get their depth, by counting: the number of intervals that are open. Where intervals overlap
    without nesting (PDL, side-by-side kernels on one stream) the lowest free sub-lane is taken instead.

    :param depth: ``nesting_depth`` of the same intervals, where it is known already.
    """
    depth = nesting_depth(start, end) if depth is None else depth
    order = by_small(depth)
    same = depth[order][1:] == depth[order][:-1]
    stops = np.maximum(end, start + 1)[order]
    if np.any(same & (start[order][1:] < stops[:-1])):
        return lowest_free(start, end)
    return depth


def nesting_depth(start: Column, end: Column) -> Column:
    """How many earlier intervals are still open where each one starts. Instants count as 1 ns long."""
    stops = np.sort(np.maximum(end, start + 1))
    return np.arange(len(start)) - np.searchsorted(stops, start, "right")


def lowest_free(start: Column, end: Column) -> Column:
    """Greedy interval partitioning: each interval takes the lowest sub-lane that is free."""
    result = np.zeros(len(start), np.int64)
    free: list[int] = []
    running: list[tuple[int, int]] = []
    used = 0
    for index, (begin, stop) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        while running and running[0][0] <= begin:
            heapq.heappush(free, heapq.heappop(running)[1])
        if free:
            level = heapq.heappop(free)
        else:
            level, used = used, used + 1
        result[index] = level
        heapq.heappush(running, (max(stop, begin + 1), level))
    return result


def parents(depth: Column) -> Column:
    """Index of each nested interval's parent: the last one before it that is one level up, or -1."""
    result = np.full(len(depth), -1, np.int64)
    by_depth = by_small(depth)
    bounds = np.searchsorted(depth[by_depth], np.arange(int(depth.max(initial=-1)) + 2))
    for level in range(1, len(bounds) - 1):
        above = by_depth[bounds[level - 1] : bounds[level]]
        here = by_depth[bounds[level] : bounds[level + 1]]
        place = np.searchsorted(above, here) - 1
        result[here] = np.where(place >= 0, above[np.maximum(place, 0)], -1) if len(above) else -1
    return result


def innermost(start: Column, end: Column, parent: Column, times: Column) -> Column:
    """Index of the innermost nested interval that contains each time, or -1."""
    found = np.searchsorted(start, times, "right") - 1
    over = np.flatnonzero(found >= 0)
    for _ in range(MAX_LEVELS):
        if not len(over := over[end[found[over]] <= times[over]]):
            return found
        found[over] = parent[found[over]]
        over = over[found[over] >= 0]
    found[over] = first_open(end, parent, found[over], times[over])
    return found


def first_open(end: Column, parent: Column, place: Column, times: Column) -> Column:
    """The nearest of each interval and those around it that ends after its time, or -1: by jumps over 2ᵏ intervals at once,
    since broken captures nest as deep as they have ranges."""
    most = np.iinfo(np.int64).max
    jumps, reach = [parent], [np.where(parent >= 0, end[np.maximum(parent, 0)], most)]
    while (jumps[-1] >= 0).any():  # reach: the last end among the intervals that a jump passes, and the one it comes to
        jump, at = jumps[-1], np.maximum(jumps[-1], 0)
        reach.append(np.where(jump >= 0, np.maximum(reach[-1], reach[-1][at]), most))
        jumps.append(np.where(jump >= 0, jump[at], -1))
    over = np.flatnonzero(end[place] <= times)
    for jump, last in zip(reversed(jumps), reversed(reach), strict=True):
        on = over[last[place[over]] <= times[over]]
        place[on] = jump[place[on]]
    place[over] = parent[place[over]]
    return place


def union(start: Column, end: Column) -> tuple[Column, Column]:
    """The intervals merged where they overlap or touch."""
    if not len(start):
        return start, end
    reach = np.maximum.accumulate(end)
    first = np.flatnonzero(np.concatenate([[True], start[1:] > reach[:-1]]))
    return start[first], reach[np.append(first[1:] - 1, len(start) - 1)]


def covered(start: Column, end: Column, cumulative: Column, times: Column) -> Column:
    """How much of (-inf, t] disjoint intervals cover, for each t.

    :param cumulative: total length of the intervals before each one, length n + 1.
    """
    if not len(start):
        return np.zeros(len(times), np.int64)
    place = np.searchsorted(start, times, "right") - 1
    at = np.maximum(place, 0)
    inside = np.minimum(times, end[at]) - start[at]
    return np.where(place >= 0, cumulative[at] - cumulative[0] + inside, 0)


def overlap_ns(start: Column, end: Column, lo: Column, hi: Column) -> Column:
    """How much of each window (lo, hi) the disjoint, sorted intervals cover."""
    cumulative = np.concatenate([[0], np.cumsum(end - start)])
    return covered(start, end, cumulative, hi) - covered(start, end, cumulative, lo)
