"""Approved kernels: what is on the shelf, and how it leaves the house. ``docs/library.md``."""

from .export import Export, ExportError, export
from .shelf import collect, kernels, withdraw

__all__ = ["Export", "ExportError", "collect", "export", "kernels", "withdraw"]
