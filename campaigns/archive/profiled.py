"""The profiles of an attempt: a record of each, and with it the trace where it is kept. An importer takes it in later."""

from __future__ import annotations

import hashlib
from typing import Any

from campaigns import captures, traces
from campaigns.harness.capturing import BASELINE, CANDIDATE
from campaigns.models import Attempt, AttemptProfile
from profiling.capture import PRODUCTS

from .container import Archive
from .errors import ArchiveError
from .records import from_record, insert, to_record

ROLES, TOOLS = (CANDIDATE, BASELINE), (traces.TOOL, *PRODUCTS)
WITH_TRACE = {"part", "name", "sha256"}
"""Keys of a record whose trace is in the archive: where, what the profile is called, and what the trace is."""


def records_of(attempt: Attempt, folder: str) -> tuple[list[dict[str, Any]], dict[str, bytes]]:
    """The records in a fixed order, and the kept traces by their parts."""
    records, parts = [], {}
    for row in attempt.profiles.order_by("role", "tool"):
        record = to_record(row)
        content = traces.read(row.trace_sha256) if row.trace_sha256 else None
        if content is not None:
            part = part_of(folder, row.role, row.tool)
            name = captures.name_of(attempt, row.role, row.tool)
            record |= {"part": part, "name": name, "sha256": row.trace_sha256}
            parts[part] = content
        records.append(record)
    return records, parts


def part_of(folder: str, role: str, tool: str) -> str:
    return f"{folder}/profiles/{role}-{tool}.json.gz"


def restore(archive: Archive, attempt: Attempt, value: Any, where: str) -> list[str]:
    """Write the rows and keep the traces. Returns the traces' sha256, so that a refusal can remove them again.

    What is in a trace is looked at by nobody here: that is the importer's part, after the commit.
    """
    if not isinstance(value, list) or len(value) > len(ROLES) * len(TOOLS):
        raise ArchiveError(f"{where}: not a list of at most {len(ROLES) * len(TOOLS)} records.")
    rows, contents = [], []
    for number, record in enumerate(value, 1):
        here = f"{where}: {number}"
        values = from_record(AttemptProfile, record, here, WITH_TRACE)
        if values.get("role") not in ROLES or values.get("tool") not in TOOLS:
            raise ArchiveError(f"{here}: a profile is of {' or '.join(ROLES)}, by {', '.join(TOOLS)}.")
        if WITH_TRACE & set(record):
            content = _trace(archive, record, here)
            contents.append(content)
            values["trace_sha256"] = hashlib.sha256(content).hexdigest()
        rows.append({**values, "attempt": attempt})
    insert(AttemptProfile, rows)
    try:
        return [traces.keep(content) for content in contents]
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{where}: a trace could not be kept: {error}") from None


def _trace(archive: Archive, record: dict[str, Any], where: str) -> bytes:
    """Where it lies, its name and its sha256 are compared with all else before the commit."""
    if not set(record) >= WITH_TRACE or record["tool"] != traces.TOOL:
        raise ArchiveError(f"{where}: a profile by {traces.TOOL} has a part, a name and a sha256, or none of them.")
    if not isinstance(record["part"], str):
        raise ArchiveError(f"{where}: part: not a path.")
    return archive.read(record["part"])
