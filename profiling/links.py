"""Which call launched a GPU event, and in which NVTX range that call stood."""

from __future__ import annotations

import numpy as np

from profiling import lanes
from profiling.events import Capture, Column, Table


def launches(capture: Capture, gpu: Table, api: Table) -> Column:
    """Index into ``api`` of the call that launched each GPU event, -1 where none is recorded.

    A correlation id is unique within its process only. One cudaGraphLaunch launches thousands of kernels. Where several
    calls carry the id, the one that launches is taken.
    """
    result = np.full(len(gpu["start"]), -1, np.int64)
    if not len(gpu["start"]) or not len(api["start"]):
        return result
    owner = process_of_threads(capture, api["thread"])
    processes = np.unique(np.concatenate([owner, gpu["process"]]))
    keys = correlation_keys(processes, owner, api["correlation"])
    launching = np.array(["aunch" in t or "emcpy" in t or "emset" in t for t in capture.names.texts] or [False])
    order = np.lexsort((api["start"], ~launching[api["name"]], keys))
    wanted = correlation_keys(processes, gpu["process"], gpu["correlation"])
    place = np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)
    hit = (keys[order][place] == wanted) & (gpu["correlation"] >= 0)
    result[hit] = order[place[hit]]
    return result


def process_of_threads(capture: Capture, threads: Column) -> Column:
    values, inverse = np.unique(threads, return_inverse=True)
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
