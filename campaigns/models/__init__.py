"""The nouns of the research. One file each; the questions that one asks of a noun are its methods."""

from .api_token import ApiToken, Scope
from .attempt import Attempt, Phase, Verdict
from .attempt_profile import AttemptProfile
from .campaign import Campaign, Gate, Policy, State
from .context import CardHead, CardVersion
from .evaluator_host import EvaluatorHost
from .event import Event
from .flag import Flag, FlagState
from .idea import Idea, Steering
from .idea_draft import DraftState, IdeaDraft
from .kernel import Kernel, KernelExport
from .lesson import Lesson, LessonKind
from .measurement import Measurement
from .model_call import ModelCall
from .problem_import import ImportState, ProblemImport
from .remeasurement import Cause, Remeasurement, RemeasureState
from .review import UNDECIDED, Decision, RejectKind, Review
from .stack import StackMeasurement, StackState

__all__ = [
    "UNDECIDED",
    "ApiToken",
    "Attempt",
    "AttemptProfile",
    "Campaign",
    "CardHead",
    "CardVersion",
    "Cause",
    "Decision",
    "DraftState",
    "EvaluatorHost",
    "Event",
    "Flag",
    "FlagState",
    "Gate",
    "Idea",
    "IdeaDraft",
    "ImportState",
    "Kernel",
    "KernelExport",
    "Lesson",
    "LessonKind",
    "Measurement",
    "ModelCall",
    "Phase",
    "Policy",
    "ProblemImport",
    "RejectKind",
    "RemeasureState",
    "Remeasurement",
    "Review",
    "Scope",
    "StackMeasurement",
    "StackState",
    "State",
    "Steering",
    "Verdict",
]
