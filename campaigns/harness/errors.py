"""What can go wrong in an evaluation, by whose fault it is."""

from __future__ import annotations

from .report import Outcome


class ProblemError(ValueError):
    """The problem folder is wrong. The message names the file, the key and what to do."""


class CandidateError(ValueError):
    """The candidate's files cannot be read as a candidate at all."""


class Infrastructure(Exception):
    """The harness could not measure: never a number, and never the candidate's fault."""


class SandboxError(Infrastructure):
    """No sandbox could be had, or one did not start."""


class Stopped(Exception):
    """``should_stop`` said so: a person stopped the campaign, or the evaluation was cancelled."""


class CandidateFailure(Exception):
    """The code under test failed: ``outcome`` says how, the message is a sentence for a person.

    ``rule`` names the blocking finding that a ``flagged`` one becomes.
    """

    def __init__(self, outcome: Outcome, message: str, log: str = "", rule: str = "threads") -> None:
        super().__init__(message)
        self.rule = rule
        self.outcome: Outcome = outcome
        self.message = message
        self.log = log


def forged(message: str) -> CandidateFailure:
    """It answered for the harness. Nobody does that by accident: the words it must give back are told just before."""
    return CandidateFailure("flagged", f"{message}: a forged reply", rule="forged-reply")
