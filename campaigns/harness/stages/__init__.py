"""The stages in their order. Each runs only when all before it passed."""

from __future__ import annotations

from .base import Evaluation, Skip, Stage

__all__ = ["Evaluation", "Skip", "Stage", "in_order"]


def in_order(evaluation: Evaluation) -> list[Stage]:
    """Cheap ones first, by what the evaluation runs on."""
    from .build import Build
    from .confirmation import ConfirmationStage
    from .correctness import Correctness
    from .engagement import Engagement
    from .floor import Floor
    from .gpu_correctness import GpuCorrectness
    from .gpu_timing import GpuConfirmation, GpuTiming
    from .graph import Graph
    from .interpreted import InterpretedEngagement
    from .range import RangeStage
    from .scan import Scan
    from .timing import Timing
    from .untimed import Untimed

    first: list[Stage] = [Scan(), Build()]
    if evaluation.device == "cuda":
        return [*first, GpuCorrectness(), Graph(), Engagement(), GpuTiming(), Floor(), RangeStage(), GpuConfirmation()]
    if evaluation.untimed:
        return [*first, Correctness(), InterpretedEngagement(), Untimed()]
    return [*first, Correctness(), Timing(), Floor(), RangeStage(), ConfirmationStage()]
