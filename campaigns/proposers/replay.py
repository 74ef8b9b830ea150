"""A folder of candidates, offered in the order of their names: no thinking, the same every time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from campaigns.harness.candidate import load_candidate
from campaigns.harness.errors import CandidateError
from campaigns.harness.request import CandidateSource

from .base import Exhausted, OnText, Proposal, ProposerError, ShouldStop, Task

ENTRY_SUFFIXES = {".cpp", ".cu", ".py"}
TITLE_LENGTH = 200
_COMMENT = re.compile(r"\A\s*(?://|/\*|#(?!\s*include|\s*pragma|\s*define|!)|\"\"\")[ \t*]*(?P<text>[^\n]*)")


class Replay:
    """Option ``directory``: the folder. A file or a sub-folder with sources in it is one candidate.

    ``parameters["entry"]`` of each proposal is its name in the folder, by which the next call knows what was offered.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        if not options.get("directory"):
            raise ProposerError("The replay proposer wants the option `directory`: a folder of candidates.")
        self.directory = Path(str(options["directory"]))

    def propose(self, task: Task, *, on_text: OnText | None = None, should_stop: ShouldStop | None = None) -> Proposal:
        entries = self.entries()
        if not task.attempts:
            for entry in entries:  # what cannot be read is told before any time is spent on the others
                read(entry)
        offered = {attempt.parameters.get("entry") for attempt in task.attempts}
        for entry in entries:
            if entry.name not in offered:
                candidate = read(entry)
                return Proposal(
                    candidate=candidate, title=title(candidate) or entry.name, parameters={"entry": entry.name}
                )
        raise Exhausted(f"all {len(entries)} candidates of the folder have been offered")

    def entries(self) -> list[Path]:
        """The candidates in natural order: ``2.cpp`` before ``10.cpp``. Hidden and other files are passed over."""
        try:
            found = [p for p in self.directory.iterdir() if not p.name.startswith((".", "__")) and is_entry(p)]
        except OSError as error:
            raise ProposerError(
                f"{self.directory}: {error.strerror}. The replay folder must exist and be readable."
            ) from None
        if not found:
            raise ProposerError(
                f"{self.directory}: no candidate in it, neither a .cpp, .cu or .py file nor a sub-folder."
            )
        return sorted(found, key=natural)


def is_entry(path: Path) -> bool:
    return path.suffix in ENTRY_SUFFIXES if not path.is_dir() else True


def natural(path: Path) -> list[tuple[int, int, str]]:
    parts = re.findall(r"\d+|\D+", path.name)
    return [(0, int(part), part) if part.isdecimal() else (1, 0, part) for part in parts]


def read(entry: Path) -> CandidateSource:
    if not entry.resolve().is_relative_to(entry.parent.resolve()):
        raise ProposerError(f"{entry}: a link out of the replay folder. Copy the candidate into it.")
    try:
        return load_candidate(entry)
    except (CandidateError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ProposerError(f"Replay entry {entry.name} cannot be read: {reason}. Repair or remove it.") from None


def title(candidate: CandidateSource) -> str:
    """The comment with which the source begins, its first line; empty when it begins otherwise."""
    for path in sorted(candidate.files, key=lambda p: Path(p).stem != "kernel"):
        if match := _COMMENT.match(candidate.files[path]):
            text = match["text"].removesuffix('"""').removesuffix("*/").strip()
            return "".join(c for c in text if c.isprintable())[:TITLE_LENGTH]
    return ""
