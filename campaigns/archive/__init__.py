"""A campaign in one file: exported, sent to a colleague, imported and read there. ``docs/archive.md``."""

from .collect import export
from .errors import ArchiveError, KnownError
from .restore import restore

__all__ = ["ArchiveError", "KnownError", "export", "restore"]
