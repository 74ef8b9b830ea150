"""CUDA C++ through nvcc: ``extern "C" void run(inputs…, outputs…, axes…, cudaStream_t)``, or a torch extension."""

from __future__ import annotations

import os

from .. import candidate, sandbox
from ..gpu import devices
from ..request import CandidateSource
from . import extension
from .base import Built
from .cpp import compile_shared

FLAGS = ["-std=c++20", "-O3", "--shared", "-Xcompiler", "-fPIC", "-lineinfo"]
BUILD_LIMIT_S = 300.0
LIMITS = sandbox.Limits(
    memory_bytes=8192 * sandbox.MIB, processes=64, file_bytes=256 * sandbox.MIB, tmp_bytes=512 * sandbox.MIB, cpu_s=300
)
CHECK_FILE = "autoresearch_check.cpp"
"""For the host alone: nvcc takes more than a second for a file of its own language with nothing for the device in it."""
CHECK = """#include <cuda_runtime.h>
// The runtime is linked statically: only code in the same object sees the error of a launch made here.
extern "C" const char* autoresearch_last_error() {
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}
"""


class Cuda:
    name = "cuda"
    devices = ("cuda",)

    def missing(self) -> str | None:
        if not devices.visible():
            return "no NVIDIA GPU is visible here"
        if devices.nvcc() is None:
            return "nvcc is neither on PATH nor below CUDA_HOME or /usr/local/cuda: install the CUDA toolkit"
        return None

    def build(self, source: CandidateSource) -> Built:
        entry = candidate.entry_path(source)
        compiler = devices.nvcc()
        gpus = devices.visible()
        assert compiler is not None
        assert gpus
        arch = gpus[0].architecture
        command = [compiler, *FLAGS, f"-gencode=arch=compute_{arch},code=sm_{arch}", "-I/candidate"]
        command += ["-o", "/tmp/kernel.so", f"./{entry}", CHECK_FILE]
        binds: tuple[str, ...] = (os.path.dirname(os.path.dirname(compiler)),)
        name = "kernel.so"
        if extension.is_extension(source):
            source, name = extension.bound(source, entry), f"{extension.NAME}.so"
            command += extension.options()
            binds += extension.binds()
        checked = CandidateSource(backend="cuda", files={**source.files, CHECK_FILE: CHECK})
        product, log = compile_shared(command, checked, limits=LIMITS, limit_s=BUILD_LIMIT_S, binds=binds)
        return Built({name: product}, name, log)

    def spec(self, built: Built, limits: sandbox.Limits, cores: tuple[int, ...]) -> sandbox.Spec:
        raise NotImplementedError("a CUDA candidate runs in a waiting process on the GPU")
