"""From a kernel's sources to something that can be called. C++ and CUDA are compiled at their first use, once."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

BUILD_LIMIT_S = 600
Run = Callable[[Sequence[Any], Sequence[Any], Sequence[int]], None]
"""Called with input tensors, output tensors and axes; writes the outputs."""


class CannotLoad(Exception):
    """The kernel cannot be built or loaded here; the message says why."""


def load(folder: Path, kernel: dict[str, Any]) -> Run:
    """The kernel in ``folder``, ready to be called. Raises ``CannotLoad``."""
    if kernel["build"]:
        return _compiled(folder, kernel)
    run = python_function(folder, kernel["entry"])
    return lambda inputs, outputs, axes: run(*inputs, *outputs)


def _compiled(folder: Path, kernel: dict[str, Any]) -> Run:
    command = [part.replace("{arch}", _architecture()) if "{arch}" in part else part for part in kernel["build"]]
    function = ctypes.CDLL(str(_built(folder, command, kernel["entry"]))).run
    function.restype = None
    with_stream = kernel["device"] == "cuda"

    def run(inputs: Sequence[Any], outputs: Sequence[Any], axes: Sequence[int]) -> None:
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, *outputs)]
        stream = [ctypes.c_void_p(_stream_of(inputs[0]))] if with_stream else []
        function(*pointers, *map(ctypes.c_int64, axes), *stream)

    return run


def _architecture() -> str:
    """As nvcc wants it: from Hopper on with the features of that chip alone (wgmma, setmaxnreg), which ``native`` leaves out."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return f"{major}{minor}{'a' if major >= 9 else ''}"


def _stream_of(tensor: Any) -> int:
    import torch

    return int(torch.cuda.current_stream(tensor.device).cuda_stream)


def _built(folder: Path, command: list[str], entry: str) -> Path:
    """The shared object, from the cache or made now. Sources, flags, compiler and processor are what its name is of."""
    compiler = shutil.which(command[0])
    if compiler is None:
        raise CannotLoad(f"{command[0]} is not on PATH; it is needed once, to build this kernel")
    product = cache_folder() / f"{_key(folder, [compiler, *command[1:]])}.so"
    if product.is_file():
        return product
    with tempfile.TemporaryDirectory(dir=product.parent) as scratch:
        made = Path(scratch) / "kernel.so"
        line = [compiler, *command[1:], "-o", str(made), entry]
        try:
            done = subprocess.run(line, cwd=folder, capture_output=True, text=True, timeout=BUILD_LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotLoad(f"{command[0]}: {error}") from error
        if done.returncode != 0 or not made.is_file():
            raise CannotLoad(f"{command[0]} ended with status {done.returncode}: {done.stderr[-2000:]}")
        os.replace(made, product)  # two processes may build at once: each leaves a whole file
    return product


def _key(folder: Path, command: list[str]) -> str:
    digest = hashlib.sha256()
    version = subprocess.run([command[0], "--version"], capture_output=True, check=False, timeout=60).stdout
    for part in (version, _processor(), "\0".join(command).encode()):
        digest.update(len(part).to_bytes(8, "little") + part)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:32]


def _processor() -> bytes:
    """What ``-march=native`` depends on: a home folder may be shared by machines of several kinds."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        return platform.processor().encode()
    return b"\n".join(sorted({line for line in lines if line.startswith((b"flags", b"Features", b"model name"))}))


def cache_folder() -> Path:
    """``$APPROVED_KERNELS_CACHE``, else below the user's cache folder. It must be theirs: code is run from it."""
    base = os.environ.get("APPROVED_KERNELS_CACHE")
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "approved_kernels"
    folder = Path(base) if base else default
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        about = folder.stat()
    except OSError as error:
        raise CannotLoad(f"{folder}: {error.strerror}. Set APPROVED_KERNELS_CACHE to a folder of your own.") from error
    if hasattr(os, "getuid") and (about.st_uid != os.getuid() or about.st_mode & 0o022):
        raise CannotLoad(f"{folder} is another user's, or others may write to it. Set APPROVED_KERNELS_CACHE.")
    return folder


def python_function(folder: Path, entry: str, name: str = "run") -> Callable[..., Any]:
    """A function of a Python file. Its neighbours can be imported while it loads, and are in nobody's way later."""
    path = folder / entry
    unique = f"_approved_kernel_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    spec = spec_from_file_location(unique, path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    before = dict(sys.modules)
    sys.modules[unique] = module
    sys.path.insert(0, str(folder))
    try:
        for neighbour in folder.glob("*.py"):
            sys.modules.pop(neighbour.stem, None)
        spec.loader.exec_module(module)
    except Exception as error:
        sys.modules.pop(unique, None)
        raise CannotLoad(f"{entry}: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(str(folder))
        for neighbour in folder.glob("*.py"):
            sys.modules.pop(neighbour.stem, None)
            if neighbour.stem in before:
                sys.modules[neighbour.stem] = before[neighbour.stem]
    function: Callable[..., Any] = getattr(module, name)
    return function
