"""The problems that there are: the bundled ones, and a team's own under ``$AUTORESEARCH_HOME/problems``."""

from __future__ import annotations

import os
from pathlib import Path

from campaigns.harness.errors import ProblemError

BUNDLED = Path(__file__).resolve().parent / "problems"


class UnknownProblem(ProblemError):
    """No problem of that name. The message lists those that there are."""


def folders() -> list[Path]:
    """Where problems are looked for; a team's own of the same name comes before a bundled one."""
    home = os.environ.get("AUTORESEARCH_HOME")
    return ([Path(home) / "problems"] if home else []) + [BUNDLED]


def all() -> list[str]:
    """The names of all problems, in alphabetical order."""
    found = {toml.parent.name for folder in folders() for toml in folder.glob("*/problem.toml")}
    return sorted(found)


def find(name: str) -> Path:
    """The folder of a problem by its name, or by a path to it. Raises ``UnknownProblem``."""
    if name in all():
        return next(folder / name for folder in folders() if (folder / name / "problem.toml").is_file())
    if os.sep in name and (Path(name) / "problem.toml").is_file():
        return Path(name)
    raise UnknownProblem(
        f"No problem {name!r}. There are: {', '.join(all())}. A folder with a problem.toml will do, too."
    )
