"""Problems from what people have: KernelBench, FlashInfer-Bench, GPU MODE, or a folder of our own. ``docs/problem-intake.md``."""

from __future__ import annotations

from .convert import FORMATS, Draft, convert, sniff
from .errors import IntakeError
from .shelf import save
from .upload import read_upload

__all__ = ["FORMATS", "Draft", "IntakeError", "convert", "read_upload", "save", "sniff"]
