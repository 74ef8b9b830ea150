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
    """The code under test failed: ``outcome`` says how, the message is a sentence for a person."""

    def __init__(self, outcome: Outcome, message: str, log: str = "") -> None:
        super().__init__(message)
        self.outcome: Outcome = outcome
        self.message = message
        self.log = log
