"""What the first kernel that a process compiles would wait for, done while the process waits for its candidate.

Triton builds its line to the driver with the C compiler once a process, and loads its own passes at the first compilation:
1.2 s of the first call on a host with an H200. Nothing here touches the GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def nothing(x: tl.tensor) -> None:
    tl.store(x, 0.0)


def warm(capability: tuple[int, int]) -> None:
    from triton.backends.nvidia.driver import CudaUtils

    source = ASTSource(fn=nothing, signature={"x": "*fp32"}, constexprs={})
    triton.compile(source, target=GPUTarget("cuda", 10 * capability[0] + capability[1], 32))
    CudaUtils()
