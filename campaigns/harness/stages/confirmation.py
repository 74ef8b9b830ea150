"""Step 8: a would-be keep is judged again, in fresh processes with new seeds. Both must hold."""

from __future__ import annotations

from typing import Any

from ..errors import CandidateFailure
from ..gate import clears
from ..report import Confirmation
from ..session import Session
from .base import Evaluation, Skip
from .range import asked_of


class ConfirmationStage:
    name = "confirmation"

    def run(self, evaluation: Evaluation) -> tuple[str, dict[str, Any]]:
        if evaluation.range is None and not clears(evaluation.over_incumbent, evaluation.noise):
            raise Skip("only a candidate that beat the incumbent beyond the noise is confirmed")
        if any(f.severity == "block" for f in evaluation.findings):
            raise Skip("a blocking finding comes first")
        assert evaluation.bench is not None
        if evaluation.candidate_runner is not None:
            evaluation.close_runner(evaluation.candidate_runner)
        try:
            session = Session(evaluation, evaluation.bench, None, self.name)
            evaluation.candidate_runner = session.candidate
            outcome = session.run(asked_of(evaluation))
        except CandidateFailure as failure:
            evaluation.confirmation = Confirmation(
                speedup=None, over_incumbent=None, noise=None, correct=False, detail=failure.message
            )
            raise
        held = clears(outcome.over_incumbent, outcome.noise)
        text = f"{'held' if held else 'did not hold'} in fresh processes: {session.sentence(outcome)}"
        evaluation.confirmation = Confirmation(
            speedup=outcome.speedup,
            over_incumbent=outcome.over_incumbent,
            noise=outcome.noise,
            correct=True,
            detail=text,
        )
        return text, {"rounds": outcome.rounds, "held": held}
