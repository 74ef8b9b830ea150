"""One kernel of a capture in plain words: what a model reads before it changes that kernel.

Of an Nsight Compute report its counters; of a timeline its launches. Names are from the capture: whoever shows the text to
a model fences it as data.
"""

from __future__ import annotations

import numpy as np

from profiling import details, summary
from profiling.models import Profile
from profiling.ncu import groups, page
from profiling.ncu.metrics import Metrics
from profiling.ncu.store import Launches
from profiling.opened import store_of
from profiling.store import Store
from profiling.trace import Trace
from profiling.words import count, duration, percent

MAX_KERNELS, MAX_METRICS, MAX_LINES = 3, 60, 5


class NoSuchKernel(Exception):
    """No kernel's name holds the text; the message names those that are there."""


def describe(profile: Profile, kernel: str, metrics: str = "") -> str:
    """The kernels whose name holds ``kernel`` (any case), those of most time first.

    :param metrics: of an Nsight Compute report also every collected metric whose name holds all of these words.
    Raises ``NoSuchKernel``, or ``opened.Gone`` where the columns are missing.
    """
    store = store_of(profile)
    if Launches.exist(profile.store_path):
        return counters(Launches(profile.store_path), kernel, metrics)
    return launches(Trace(store), store, kernel)


def counters(report: Launches, kernel: str, metrics: str) -> str:
    everything = groups.groups(report.launches)
    found = [group for group in everything if kernel.lower() in group.name.lower()]
    if not found:
        raise NoSuchKernel(f"No kernel is named so. There are: {', '.join(dict.fromkeys(g.name for g in everything))}.")
    texts = []
    for group in found[:MAX_KERNELS]:
        shown = page.kernel(group.typical, group, report.launches[group.typical], report.details(group.typical))
        texts.append("\n".join([*head(group), *counted(shown), *asked(shown.metrics, metrics)]))
    return "\n\n".join(texts + left_out(len(found)))


def head(group: groups.Group) -> list[str]:
    shape = f"grid {'×'.join(map(str, group.grid))}, block {'×'.join(map(str, group.block))}"
    took = "" if group.mean_ns is None else f", {duration(group.mean_ns)} each"
    share = "" if group.share is None else f", {percent(group.share)} of the report's time"
    return [f"{group.name}: {count(len(group.launches), 'launch', 'launches')}, {shape}{took}{share}"]


def counted(kernel: page.Kernel) -> list[str]:
    """Counters of a typical launch; what was not collected is said with how to collect it."""
    lines = [f"label: {kernel.label.name}: {kernel.label.reason}"]
    lines += [f"{name}: {value}" for name, value in page.figures(kernel) if value is not None]
    lines += [f"{bar.name}: {bar.percent:.1f} % of peak" for bar in kernel.bars if bar.percent is not None]
    if kernel.roofline:
        lines += [
            f"roofline {point.name}: {point.intensity:.3g} FLOP/byte, {point.flops / 1e12:.3g} TFLOP/s"
            for point in kernel.roofline.points
        ]
    lines.append(f"occupancy: {kernel.occupancy.sentence}")
    lines += [f"stall {s.reason}: {percent(s.share)} {s.words}" for s in kernel.stalls[:MAX_LINES]]
    lines += [f"{remark.title}. {remark.evidence}" for remark in kernel.remarks]
    lines += [f"source {line['place']}: {percent(line['share'])} of samples" for line in kernel.lines[:MAX_LINES]]
    lines += [missing.sentence for part, missing in kernel.missing.items() if part != "occupancy"]
    return lines


def asked(metrics: Metrics, words: str) -> list[str]:
    if not words.strip():
        return []
    rows = page.rows(metrics, words)
    lines = [f"{name} = {value} {unit}".rstrip() for name, value, unit in rows[:MAX_METRICS]]
    if len(rows) > MAX_METRICS:
        lines.append(f"{len(rows) - MAX_METRICS} more metrics match: ask for fewer")
    return lines or [f"No metric's name holds all of: {words}"]


def launches(trace: Trace, store: Store, kernel: str) -> str:
    top = summary.top_kernels(trace, limit=10_000)
    found = [row for row in top if kernel.lower() in row["name"].lower()]
    if not found:
        there = ", ".join(row["name"] for row in top[: summary.TOP]) or "none at all"
        raise NoSuchKernel(f"No kernel is named so. Those of most time are: {there}.")
    texts = []
    for row in found[:MAX_KERNELS]:
        lines = [
            f"{row['name']}: {count(row['calls'], 'call')}, {duration(row['total_ns'])} in all, "
            f"{duration(row['mean_ns'])} each, {percent(row['share'])} of kernel time",
            "a launch of median length:",
        ]
        lines += [f"  {what}: {value}" for what, value in details.describe(store, typical(trace, row["name"]))["facts"]]
        texts.append("\n".join(lines))
    return "\n\n".join(texts + left_out(len(found)))


def typical(trace: Trace, name: str) -> int:
    """The event of median length among the kernels of that name."""
    rows = np.flatnonzero(trace.is_kernel)
    ids, inverse = np.unique(trace.gpu["name"][rows], return_inverse=True)
    same = rows[np.isin(inverse, [i for i, name_id in enumerate(ids.tolist()) if trace.store.name(name_id) == name])]
    length = trace.gpu["end"][same] - trace.gpu["start"][same]
    return int(trace.gpu["event"][same[np.argsort(length, kind="stable")[len(same) // 2]]])


def left_out(found: int) -> list[str]:
    return [f"{found - MAX_KERNELS} more kernels match: name one of them more fully."] if found > MAX_KERNELS else []
