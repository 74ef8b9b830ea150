"""The word for one kernel in a capture without counters: what holds it up, as far as a timeline can tell."""

from __future__ import annotations

import numpy as np

from profiling.events import Column
from profiling.findings.finding import Facts
from profiling.words import duration

CAUSES = {
    "launch-bound": ("launch", "host"),
    "sync-bound": ("sync",),
}


def label(facts: Facts, rows: Column) -> tuple[str, str]:
    """Label and reason of the kernels ``rows`` of ``Trace.gpu``, all of one name.

    A kernel is held up where the GPU stands idle before it longer than it runs; otherwise it keeps the GPU busy, and
    only counters can split compute from memory.
    """
    gpu = facts.trace.gpu
    if facts.trace.communication[rows].all():
        return "communication-bound", "a kernel of a collective library: it moves data between GPUs and waits for them"
    ran = int((gpu["end"][rows] - gpu["start"][rows]).sum())
    if (gpu["graph_node"][rows] <= 0).all() and (gpu["launch"][rows] < 0).all():
        return "not enough data", "no launch of it is recorded, so nobody can say what it waits for"
    before = np.isin(facts.gaps.next, rows)
    waited = {name: int(sum(facts.gaps.causes[c][before].sum() for c in parts)) for name, parts in CAUSES.items()}
    name = max(waited, key=lambda n: waited[n])
    each = len(rows)
    if waited[name] > ran:
        return (
            name,
            f"the GPU stands idle {duration(waited[name] / each)} before each on average and then runs "
            f"{duration(ran / each)}",
        )
    return (
        "GPU-busy",
        "it runs longer than the GPU waits for it: Nsight Compute is needed to tell compute-bound from memory-bound",
    )
