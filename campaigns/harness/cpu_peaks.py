"""The measured ceilings of one core of this host, kept by its identity: measured once, and again when that changes."""

from __future__ import annotations

import os

from . import backends, cores, kept_peaks, sandbox
from .backends.cpp import compile_shared
from .channel import Channel
from .errors import CandidateFailure, Infrastructure
from .hosts import host_name, processor, versions
from .request import CandidateSource

MEASURE_LIMIT_S = 60.0
START_LIMIT_S = 60.0
PROBE = """#include <cstddef>
#include <cstring>
#include <vector>
static std::vector<float> from, to;
extern "C" void prepare(std::size_t bytes) {
    from.assign(bytes / sizeof(float), 1.0f);
    to.assign(bytes / sizeof(float), 0.0f);
}
extern "C" void copy(std::size_t bytes, int times) {
    for (int t = 0; t < times; ++t) {
        std::memcpy(to.data(), from.data(), bytes);
        asm volatile("" ::: "memory");
    }
}
extern "C" float read(std::size_t bytes, int times) {
    constexpr int LANES = 128;
    float sums[LANES] = {};
    for (int t = 0; t < times; ++t) {
        const float* in = from.data();
        for (std::size_t i = 0; i < bytes / sizeof(float); i += LANES)
            for (int l = 0; l < LANES; ++l) sums[l] += in[i + l];
        asm volatile("" ::: "memory");
    }
    float sum = 0;
    for (float each : sums) sum += each;
    return sum;
}
typedef float wide __attribute__((vector_size(64)));
extern "C" float fma(int steps) {
    wide sums[16] = {}, a, b;
    for (int l = 0; l < 16; ++l) { a[l] = 0.999f; b[l] = 1e-3f * l; }
    for (int s = 0; s < steps; ++s) {
        for (int k = 0; k < 16; ++k) sums[k] = sums[k] * a + b;
        asm volatile("" : "+x"(a), "+x"(b));
    }
    float sum = 0;
    for (int k = 0; k < 16; ++k)
        for (int l = 0; l < 16; ++l) sum += sums[k][l];
    return sum;
}
"""


def identity() -> str:
    """What the figures belong to: this host's processor, its number of cores, kernel and compiler."""
    told = versions()
    return f"{host_name()} {processor()} × {os.cpu_count()} kernel {told['kernel']} g++ {told.get('g++', 'none')}"


def of() -> dict[str, float]:
    """Kept, or measured and kept. Nothing where there is no compiler: no peaks are invented."""
    if backends.BACKENDS["cpp"].missing():
        return {}
    found = kept_peaks.kept(identity())
    if found is None:
        found = measure()
        kept_peaks.keep(identity(), found)
    return found


def measure() -> dict[str, float]:
    """Measure now, on a core that no evaluation times meanwhile: about half a second and a compilation."""
    try:
        source = CandidateSource(backend="cpp", files={"probe.cpp": PROBE})
        flags = ["-std=c++20", "-O3", "-march=native", "-ffast-math", "-fPIC", "-shared"]
        library, _ = compile_shared(["g++", *flags, "-o", "/tmp/kernel.so", "probe.cpp"], source)
        with cores.reserved(lambda: False, cores.WAIT_S) as core:
            return _ask(library, core)
    except CandidateFailure as failure:
        raise Infrastructure(f"the peaks of this host could not be measured: {failure.message}") from failure


def _ask(library: bytes, core: int) -> dict[str, float]:
    limits = sandbox.Limits(memory_bytes=1024 * sandbox.MIB)
    spec = sandbox.Spec("cpu_peaks", limits, {"probe.so": library}, cores=(core,))
    spec.config = {"path": "/candidate/probe.so"}
    channel = Channel(spec)
    try:
        channel.wait_ready(START_LIMIT_S)
        answer = channel.ask("measure", MEASURE_LIMIT_S)
        return {str(name): float(value) for name, value in answer["peaks"].items()}
    finally:
        channel.close()
