"""Which call launched a GPU event, and in which NVTX range that call stood."""

from __future__ import annotations

import numpy as np

from profiling import lanes
from profiling.events import Capture, Column, Table
from profiling.orders import by_keys, codes


def launches(capture: Capture, gpu: Table, api: Table) -> Column:
    """Index into ``api`` of the call that launched each GPU event, -1 where none is recorded.

    A correlation id is unique within its process only. One cudaGraphLaunch launches thousands of kernels. Where several
    calls carry the id, the one that launches is taken.
    """
    result = np.full(len(gpu["start"]), -1, np.int64)
    if not len(gpu["start"]) or not len(api["start"]):
        return result
    owner = process_of_threads(capture, api["thread"])
    processes = np.union1d(codes(owner)[0], codes(gpu["process"])[0])
    keys = correlation_keys(processes, owner, api["correlation"])
    wanted = correlation_keys(processes, gpu["process"], gpu["correlation"])
    launching = np.array(["aunch" in t or "emcpy" in t or "emset" in t for t in capture.names.texts] or [False])
    launches_it = launching[api["name"]]
    left = np.flatnonzero(gpu["correlation"] >= 0)
    for calls in (np.flatnonzero(launches_it), np.flatnonzero(~launches_it)):
        if not len(calls) or not len(left):
            continue
        calls = calls[by_keys(keys[calls], api["start"][calls])]
        known = keys[calls]
        place = np.minimum(np.searchsorted(known, wanted[left]), len(calls) - 1)
        hit = known[place] == wanted[left]
        result[left[hit]] = calls[place[hit]]
        left = left[~hit]
    return result


def process_of_threads(capture: Capture, threads: Column) -> Column:
    values, inverse = codes(threads)
    owners = np.array([capture.thread_process.get(t, t) for t in values.tolist()], np.int64)
    return owners[inverse]


def correlation_keys(processes: Column, process: Column, correlation: Column) -> Column:
    return (np.searchsorted(processes, process) << 32) | (correlation & 0xFFFFFFFF)


def ranges_of(times: Column, threads: Column, nvtx: Table) -> Column:
    """Index into ``nvtx`` of the innermost range open on the thread at each time, -1 where none is.

    Ranges nest per thread and domain; of several domains the range that began last is taken. ``nvtx`` needs
    ``lane_first`` (its lanes' first rows), ``nested`` and ``parent``.
    """
    result = np.full(len(times), -1, np.int64)
    begun = np.full(len(times), np.iinfo(np.int64).min)
    bounds = np.append(nvtx["lane_first"], len(nvtx["start"]))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        here = np.flatnonzero(threads == nvtx["thread"][low])
        if not len(here) or not nvtx["nested"][low]:
            continue
        parent = np.where(nvtx["parent"][low:high] >= 0, nvtx["parent"][low:high] - low, -1)
        found = lanes.innermost(nvtx["start"][low:high], nvtx["end"][low:high], parent, times[here])
        later = (found >= 0) & (nvtx["start"][low:high][np.maximum(found, 0)] >= begun[here])
        result[here[later]] = found[later] + low
        begun[here[later]] = nvtx["start"][low:high][found[later]]
    return result
