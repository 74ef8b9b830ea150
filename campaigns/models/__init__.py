"""The nouns of the research. One file each; the questions that one asks of a noun are its methods."""

from .api_token import ApiToken, Scope
from .attempt import Attempt, Phase, Verdict
from .campaign import Campaign, Gate, State
from .event import Event
from .flag import Flag, FlagState
from .idea import Idea, Steering
from .measurement import Measurement
from .review import Decision, RejectKind, Review

__all__ = [
    "ApiToken",
    "Attempt",
    "Campaign",
    "Decision",
    "Event",
    "Flag",
    "FlagState",
    "Gate",
    "Idea",
    "Measurement",
    "Phase",
    "RejectKind",
    "Review",
    "Scope",
    "State",
    "Steering",
    "Verdict",
]
