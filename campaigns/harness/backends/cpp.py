"""C++ through g++ -shared and ctypes: 0.06 s for a small kernel, where torch's load_inline takes 21–25 s."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from typing import NoReturn

from .. import candidate, sandbox
from ..channel import Channel
from ..errors import CandidateFailure, SandboxError
from ..request import CandidateSource
from .base import Built

FLAGS = ["-std=c++20", "-O3", "-march=native", "-fopenmp-simd", "-fno-math-errno", "-fPIC", "-shared"]
BUILD_LIMIT_S = 60.0
LIMITS = sandbox.Limits(memory_bytes=2048 * sandbox.MIB, processes=64, tmp_bytes=256 * sandbox.MIB, cpu_s=60)


_ERROR = re.compile(r"\berror\s*:|undefined reference|\bfatal\s*:")


class Cpp:
    name = "cpp"
    devices = ("cpu",)

    def missing(self) -> str | None:
        return None if shutil.which("g++") else "g++ is not on PATH: install it (Debian: apt-get install g++)"

    def build(self, source: CandidateSource) -> Built:
        entry = candidate.entry_path(source)
        product, log = compile_shared(["g++", *FLAGS, "-o", "/tmp/kernel.so", f"./{entry}"], source)
        return Built({"kernel.so": product}, "kernel.so", log)

    def spec(self, built: Built, limits: sandbox.Limits, cores: tuple[int, ...]) -> sandbox.Spec:
        return sandbox.Spec(role="run_cpp", limits=limits, files=built.files, cores=cores)


def compile_shared(
    command: list[str],
    source: CandidateSource,
    should_stop: Callable[[], bool] | None = None,
    limits: sandbox.Limits = LIMITS,
    limit_s: float = BUILD_LIMIT_S,
    binds: tuple[str, ...] = (),
) -> tuple[bytes, str]:
    """Run a compiler in a sandbox that holds the sources and nothing else of ours; its product and its log."""
    out = os.memfd_create("product")
    files = {path: text.encode() for path, text in source.files.items()}
    config = {"command": command, "folder": "/candidate", "product": "/tmp/kernel.so", "product_fd": out}
    spec = sandbox.Spec(role="build", limits=limits, files=files, compiler=True, config=config, binds=binds)
    try:
        channel = Channel(spec, should_stop, (out,))
        try:
            status = channel.wait_end(limit_s)
        finally:
            channel.close()
        log = channel.output.text()
        if status is None:
            raise CandidateFailure("build_failed", f"the build took more than {limit_s:.0f} s: ended", log)
        if status != 0:
            _failed(status, log)
        size = os.fstat(out).st_size
        return os.pread(out, size, 0), log
    finally:
        os.close(out)


def _failed(status: int, log: str) -> NoReturn:
    if "bootstrap" in log or "bwrap:" in log:
        raise SandboxError(f"the build sandbox did not start: {log[-500:]}")
    errors = [line for line in log.splitlines() if _ERROR.search(line)]
    first = errors[0].strip() if errors else f"the compiler ended with status {status}"
    raise CandidateFailure("build_failed", first[:500], log)
