"""CUDA sources as people write them for torch: functions of ``torch::Tensor``, with PYBIND11_MODULE or as for load_inline."""

from __future__ import annotations

import importlib.util
import os
import re
import sysconfig

from ..cpp_tokens import Token, tokens
from ..errors import CandidateFailure
from ..request import CandidateSource

NAME = "kernel_ext"
FLAGS = [
    f"-DTORCH_EXTENSION_NAME={NAME}",
    "-DTORCH_API_INCLUDE_EXTENSION_H",
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
    "-diag-suppress=3189",
]
"""Those of torch.utils.cpp_extension: what builds there builds here. 3189: its headers call a variable ``module``."""
LIBRARIES = ("c10", "c10_cuda", "torch_cpu", "torch_cuda", "torch", "torch_python")
ENTRIES = ("run", "forward")
_TENSOR = re.compile(r"\b(?:torch|at)::Tensor\b|\btorch/(?:extension|types|torch|all)\.h\b|\bPYBIND11_MODULE\b")


def is_extension(source: CandidateSource) -> bool:
    return any(_TENSOR.search(text) for path, text in source.files.items() if not path.endswith(".py"))


def torch_folder() -> str:
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations
    return next(iter(spec.submodule_search_locations))


def options() -> list[str]:
    """What nvcc needs beyond its usual options: headers, macros, and the libraries that the runner has loaded already."""
    torch = torch_folder()
    folders = [f"{torch}/include", f"{torch}/include/torch/csrc/api/include", python_headers()]
    there = [name for name in LIBRARIES if os.path.exists(f"{torch}/lib/lib{name}.so")]
    return [*FLAGS, *(f"-I{folder}" for folder in folders), f"-L{torch}/lib", *(f"-l{name}" for name in there)]


def binds() -> tuple[str, ...]:
    """What of the host the build has to see for that."""
    return (torch_folder(), python_headers())


def python_headers() -> str:
    return sysconfig.get_paths()["include"]


def bound(source: CandidateSource, entry: str) -> CandidateSource:
    """The same with a binding where it has none, as load_inline writes one. No line of it moves."""
    texts = [text for path, text in source.files.items() if not path.endswith(".py")]
    names = [t.text for text in texts for t in tokens(text) if t.kind == "name"]
    if "PYBIND11_MODULE" in names:
        return source
    function = entry_function(list(tokens(source.files[entry])))
    if function is None:
        raise CandidateFailure(
            "build_failed",
            f"{entry}: a torch extension needs PYBIND11_MODULE, or one function of torch::Tensor named run",
        )
    text = f"{source.files[entry]}\n#include <torch/extension.h>\n"
    text += f'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("run", &{function}); }}\n'
    return CandidateSource(backend=source.backend, files={**source.files, entry: text})


def entry_function(code: list[Token]) -> str | None:
    """``run`` or ``forward``, or the only function that takes tensors."""
    found: list[str] = []
    for i, token in enumerate(code[:-1]):
        if token.kind != "name" or code[i + 1].text != "(" or (i and code[i - 1].text in ("::", ".", "->", "return")):
            continue
        end = _closing(code, i + 1)
        inner = [t.text for t in code[i + 2 : end]]
        if "Tensor" in inner and end + 1 < len(code) and code[end + 1].text == "{":
            found.append(token.text)
    named = next((name for name in ENTRIES if name in found), None)
    return named or (found[0] if len(set(found)) == 1 else None)


def _closing(code: list[Token], i: int) -> int:
    depth = 0
    for j in range(i, len(code)):
        depth += {"(": 1, ")": -1}.get(code[j].text, 0)
        if depth == 0:
            return j
    return len(code)
