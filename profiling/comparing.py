"""Comparisons of stored profiles, kept for a while: a page and its table ask for the same one."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from profiling.compare import Side, compare, select
from profiling.compare.selection import outer_families
from profiling.models import Profile
from profiling.opened import store_of
from profiling.store import Store
from profiling.trace import Trace

KEPT = 32


def compared(a: Profile, b: Profile, range_a: str, range_b: str) -> dict[str, Any]:
    """``profiling.compare.compare`` of two ready profiles; ``range_*`` as ``select`` takes them.

    :raises NoSuchRange: where a text names nothing in its capture.
    :raises Gone: where a store is no longer on disk.
    """
    for profile in (a, b):
        store_of(profile)
    return _compared(*(of for p in (a, b) for of in (p.store_path, p.name, p.sha256)), range_a.strip(), range_b.strip())


@lru_cache(maxsize=KEPT)
def _compared(
    path_a: Path, name_a: str, key_a: str, path_b: Path, name_b: str, key_b: str, range_a: str, range_b: str
) -> dict[str, Any]:
    one = Trace(Store(path_a))
    other = one if path_a == path_b else Trace(Store(path_b))
    a = Side("A", select(one, range_a), name_a, key_a)
    return compare(a, Side("B", select(other, range_b), name_b, key_b))


def choices(profile: Profile) -> list[tuple[str, str]]:
    """What a person may compare of a profile, as (text for ``select``, words): all, outermost ranges, marked regions."""
    trace = Trace(store_of(profile))
    found = [("", "the whole capture")]
    for name in range_names(trace):
        found.append((name, name))
    for region in profile.regions.all():
        found.append((f"ns:{region.start_ns}-{region.end_ns}", f"marked: {region}"))
    return found


def range_names(trace: Trace, limit: int = 30) -> list[str]:
    """Names of outermost ranges with work in them; those that differ in a number too often only by their common part."""
    nvtx = trace.nvtx
    roots = np.flatnonzero((nvtx["parent"] < 0) & nvtx["nested"] & (trace.nvtx_totals["events"] > 0))
    names = [trace.store.name(int(i)) for i in np.unique(nvtx["name"][roots])[: 10 * limit]]
    common = [template.split("#")[0].strip(" _-:=") for template, number, _ in outer_families(trace) if number > 1]
    return list(dict.fromkeys([*(c for c in common if len(c) > 1), *sorted(names)]))[:limit]
