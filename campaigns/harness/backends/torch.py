"""Python with torch: one thread on CPU tensors, or on GPU tensors. Baselines run through it as well."""

from __future__ import annotations

import ast

from .. import candidate, sandbox
from ..errors import CandidateFailure
from ..request import CandidateSource
from .base import Built


class Torch:
    name = "torch"
    devices = ("cpu", "cuda")

    def missing(self) -> str | None:
        return None

    def build(self, source: CandidateSource) -> Built:
        """Nothing is built; what does not parse is a failed build."""
        for path, text in source.files.items():
            if path.endswith(".py"):
                parse(path, text)
        files = {path: text.encode() for path, text in source.files.items()}
        return Built(files, candidate.entry_path(source))

    def spec(self, built: Built, limits: sandbox.Limits, cores: tuple[int, ...]) -> sandbox.Spec:
        return sandbox.Spec(role="run_torch", limits=limits, files=built.files, packages=True, cores=cores)


def parse(path: str, text: str) -> ast.Module:
    try:
        return ast.parse(text, path)
    except SyntaxError as error:
        raise CandidateFailure("build_failed", f"{path}:{error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise CandidateFailure("build_failed", f"{path}: cannot be parsed: {error}") from None
