"""Where a team's own problems lie: ``$AUTORESEARCH_HOME/problems/NAME``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path

from campaigns import catalog

from .draft import Draft
from .errors import IntakeError


def folder() -> Path:
    home = os.environ.get("AUTORESEARCH_HOME")
    if not home:
        raise IntakeError("AUTORESEARCH_HOME is not set: there is no place for problems of one's own.")
    return Path(home) / "problems"


def free_name(wish: str) -> str:
    """The wish, or with a number where a problem of that name is there, bundled or one's own."""
    taken = set(catalog.all())
    name, count = wish, 2
    while name in taken:
        name, count = f"{wish}_{count}", count + 1
    return name


def save(draft: Draft) -> Path:
    """Write the folder, all of it or nothing. Raises ``IntakeError`` where the name is taken or no name."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", draft.name):
        raise IntakeError(
            f"name {draft.name!r}: letters, digits and underscores, at most 64, not starting with a digit."
        )
    target = folder() / draft.name
    if draft.name in catalog.all() or target.exists():
        raise IntakeError(f"there is a problem named {draft.name} already: choose another name.")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".incoming-", dir=target.parent.parent))
    try:
        for path, text in draft.files.items():
            file = scratch / path
            if not file.resolve().is_relative_to(scratch.resolve()):
                raise IntakeError(f"{path!r}: a path that leaves its folder.")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        scratch.chmod(0o755)
        with contextlib.suppress(FileExistsError):
            os.rename(scratch, target)
            return target
        raise IntakeError(f"there is a problem named {draft.name} already: choose another name.")
    except OSError as error:
        raise IntakeError(f"it could not be written to {target.parent.name}: {error.strerror}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
