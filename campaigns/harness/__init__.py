"""The evaluator: one candidate in, evidence out. It knows neither Django nor the database. See ``docs/harness.md``."""

from __future__ import annotations

HARNESS_VERSION = "1"
"""Part of what an approval names: raised when the same candidate could be judged differently."""
