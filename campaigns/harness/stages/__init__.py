"""The stages in their order. Each runs only when all before it passed."""

from __future__ import annotations

from .base import Evaluation, Skip, Stage

__all__ = ["Evaluation", "Skip", "Stage", "in_order"]


def in_order() -> list[Stage]:
    from .build import Build
    from .confirmation import ConfirmationStage
    from .correctness import Correctness
    from .floor import Floor
    from .scan import Scan
    from .timing import Timing

    return [Scan(), Build(), Correctness(), Timing(), Floor(), ConfirmationStage()]
