"""The model with some of its operators swapped or left out, as what goes into a runner's sandbox."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from campaigns.harness import backends
from campaigns.harness.request import CandidateSource

from .request import StackKernel

MODEL = "model.py"


@dataclass(frozen=True)
class Variant:
    """One way to run the step. ``compiled``: what is not a kernel goes through torch.compile. ``pieces``: the cache is read in
    pieces of so many tokens, 0 for all at once."""

    who: str
    compiled: bool = False
    pieces: int = 0
    kernels: tuple[StackKernel, ...] = ()
    skipped: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict, repr=False)

    def source(self) -> CandidateSource:
        return CandidateSource(backend="torch", files={MODEL: self.files[MODEL]})

    def built(self) -> backends.Built:
        """Raises ``CandidateFailure`` where a kernel does not build."""
        laid = {MODEL: self.files[MODEL].encode()}
        swapped = {}
        for kernel in {kernel.operator: kernel for kernel in self.kernels}.values():  # the last one for an operator
            folder = f"kernels/{kernel.operator}"
            files, entry = built_kernel(kernel)
            laid |= {f"{folder}/{path}": data for path, data in files.items()}
            swapped[kernel.operator] = {"folder": folder, "entry": entry, "axes": kernel.axes}
        stack = {"compile": self.compiled, "pieces": self.pieces, "swapped": swapped, "skipped": list(self.skipped)}
        laid["stack.json"] = json.dumps(stack).encode()
        return backends.Built(laid, MODEL)


def built_kernel(kernel: StackKernel) -> tuple[dict[str, bytes], str]:
    """Files and entry of a kernel: a stack of four holds the first one four times."""
    made = backends.built(kernel.source)
    return made.files, made.entry
