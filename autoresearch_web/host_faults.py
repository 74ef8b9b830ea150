"""What a full or read-only disk, or a database that somebody else holds, does to a command: a sentence and not a traceback."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator

PLACES = {
    errno.ENOSPC: ("the disk is full", "make room there, or set AUTORESEARCH_HOME to a folder on another disk"),
    errno.EDQUOT: ("the disk quota is spent", "make room there, or set AUTORESEARCH_HOME to a folder on another disk"),
    errno.EROFS: ("the file system is read-only", "set AUTORESEARCH_HOME to a folder that you may write to"),
    errno.EACCES: ("access is denied", "set AUTORESEARCH_HOME to a folder that you may write to"),
}
DATABASE = {
    "database or disk is full": PLACES[errno.ENOSPC],
    "disk i/o error": ("the database cannot be read or written: the disk may be full", PLACES[errno.ENOSPC][1]),
    "attempt to write a readonly database": PLACES[errno.EROFS],
    "unable to open database file": ("the database cannot be opened", PLACES[errno.EROFS][1]),
    "database is locked": ("another process holds the database", "try again; `manage.py doctor` tells what runs"),
}


def explained(error: BaseException) -> dict[str, str] | None:
    """``{"error", "hint"}`` where the host is at fault, here or in what this came from; None for all else."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in PLACES:
            what, hint = PLACES[cause.errno]
            return {"error": f"{cause.filename}: {what}" if cause.filename else what, "hint": hint}
        if isinstance(cause, sqlite3.OperationalError):
            found = next((words for text, words in DATABASE.items() if text in str(cause).lower()), None)
            if found is not None:
                return {"error": found[0], "hint": found[1]}
    return None


def causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__cause__ or following.__context__
