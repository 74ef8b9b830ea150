"""Whether a problem is worth a campaign: what a lazy kernel could pass, and what would make verdicts worthless.

Inputs and reference run in the reference's sandbox (``inside.reference_host``), candidates and baselines in theirs; this
side compares bytes. Everything runs on the CPU: workloads for a GPU are drawn there too where they are small enough.
"""

from __future__ import annotations

from .check import check_problem
from .findings import ProblemReport, Reason

__all__ = ["ProblemReport", "Reason", "check_problem"]
