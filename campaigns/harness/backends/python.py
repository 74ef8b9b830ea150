"""Candidates that are Python files: what parses is built."""

from __future__ import annotations

from .. import candidate
from ..request import CandidateSource
from .base import Built
from .torch import parse


def build_python(source: CandidateSource) -> Built:
    """Nothing is built; what does not parse is a failed build."""
    for path, text in source.files.items():
        if path.endswith(".py"):
            parse(path, text)
    return Built({path: text.encode() for path, text in source.files.items()}, candidate.entry_path(source))
