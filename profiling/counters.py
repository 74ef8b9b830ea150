"""Counters over time (GPU metrics, queue lengths): samples that hold until the next one, and their mean per pixel."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from profiling.events import Column, Counter
from profiling.orders import by_keys
from profiling.words import count

MAX_TRACKS = 512
NOTHING, LOWEST, LEVELS = 0, 1, 254
"""In a window: 0 where nothing was sampled, then 1 for the lowest value of the scale to 255 for the highest."""


@dataclass(frozen=True)
class Track:
    """A counter in a store: samples ``first`` to ``last`` (exclusive), drawn on a scale from ``low`` to ``high``."""

    label: str
    unit: str
    device: int
    first: int
    last: int
    low: float
    high: float


def usable(counters: list[Counter], notes: list[str]) -> list[Counter]:
    """In order of time, without those that say nothing; notes what is left out."""
    moving = [c for c in counters if len(c.time) > 1 and np.any(c.value != 0)]
    if len(moving) < len(counters):
        still = count(len(counters) - len(moving), "counter")
        notes.append(f"{still} {'is' if still.startswith('1 ') else 'are'} 0 throughout: not shown")
    if len(moving) > MAX_TRACKS:
        notes.append(f"{len(moving):,} counters: the first {MAX_TRACKS} are shown")
    result = []
    for counter in moving[:MAX_TRACKS]:
        order = by_keys(counter.time)
        result.append(Counter(counter.label, counter.unit, counter.device, counter.time[order], counter.value[order]))
    return result


def columns(counters: list[Counter]) -> tuple[list[Track], dict[str, Column]]:
    """The tracks, and three columns of all their samples: time (ns), value, and the area under the samples before."""
    tracks: list[Track] = []
    areas: list[Column] = []
    first = 0
    for counter in counters:
        percent = counter.unit == "%"
        low, high = min(0.0, float(counter.value.min())), float(counter.value.max())
        last = first + len(counter.time)
        tracks.append(
            Track(counter.label, counter.unit, counter.device, first, last, low, max(high, 100.0) if percent else high)
        )
        areas.append(np.concatenate([[0.0], np.cumsum(counter.value[:-1] * np.diff(counter.time))]))
        first = last
    return tracks, {
        "counter_time": np.concatenate([np.empty(0, np.int64), *(c.time for c in counters)]),
        "counter_value": np.concatenate([np.empty(0), *(c.value for c in counters)]),
        "counter_area": np.concatenate([np.empty(0), *areas]),
    }


def window(track: Track, time: Column, value: Column, area: Column, edges: Column) -> dict[str, Any] | None:
    """Mean value between the edges (ns), as base64 of bytes on the track's scale; None where nothing was sampled.

    :param time: the track's own samples, as are ``value`` and ``area``.
    """
    at = np.clip(edges, time[0], time[-1])
    place = np.searchsorted(time, at, "right") - 1
    under = area[place] + value[place] * (at - time[place])
    length = np.diff(at)
    if not length.any():
        return None
    mean = np.diff(under) / np.maximum(length, 1)
    share = np.clip((mean - track.low) / max(track.high - track.low, 1e-300), 0, 1)
    levels = np.where(length > 0, LOWEST + np.rint(LEVELS * share), NOTHING).astype(np.uint8)
    return {"count": int(place[-1] - place[0]), "level": base64.b64encode(levels.tobytes()).decode()}
