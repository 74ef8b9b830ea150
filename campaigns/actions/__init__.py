"""What people do, one verb a function: check, execute, write the event. A refusal is an ``ActionError`` with a hint."""

from .control import add_idea, pause, resume, start, steer, stop, strike_idea
from .create import NewCampaign, create
from .decide import approve, decide_flag, reject
from .errors import ActionError

__all__ = [
    "ActionError",
    "NewCampaign",
    "add_idea",
    "approve",
    "create",
    "decide_flag",
    "pause",
    "reject",
    "resume",
    "start",
    "steer",
    "stop",
    "strike_idea",
]
