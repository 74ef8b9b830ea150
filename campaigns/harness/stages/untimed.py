"""Stands where timing would, and says why there is none."""

from __future__ import annotations

from typing import Any

from .base import Evaluation, Skip


class Untimed:
    name = "timing"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        raise Skip(evaluation.untimed)
