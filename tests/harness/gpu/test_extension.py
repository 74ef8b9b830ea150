"""CUDA sources as people write them for torch: what is one, how it is bound, and in which way its function is called."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from campaigns.harness.backends import extension
from campaigns.harness.errors import CandidateFailure
from campaigns.harness.inside.gpu_extension import Caller
from campaigns.harness.request import CandidateSource

KERNEL = "__global__ void k(float* y) {}\n"
PLAIN = KERNEL + 'extern "C" void run(float* y, cudaStream_t s) { k<<<1, 1, 0, s>>>(y); }\n'
INLINE = (
    KERNEL
    + "void launch(int n) {}\nvoid scaled(torch::Tensor x, torch::Tensor y) { k<<<1, 1>>>(y.data_ptr<float>()); }\n"
)
WHOLE = '#include <torch/extension.h>\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("forward", &f); }\n'


def source(text: str) -> CandidateSource:
    return CandidateSource(backend="cuda", files={"kernel.cu": text})


def test_a_source_of_tensors_is_an_extension_and_one_of_pointers_is_not():
    assert [extension.is_extension(source(text)) for text in (PLAIN, INLINE, WHOLE)] == [False, True, True]


def test_a_source_without_a_binding_gets_one_and_no_line_moves():
    bound = extension.bound(source(INLINE), "kernel.cu").files["kernel.cu"]

    assert bound.startswith(INLINE)
    assert 'm.def("run", &scaled)' in bound
    assert extension.bound(source(WHOLE), "kernel.cu") == source(WHOLE)


def test_where_nobody_knows_which_function_it_says_so():
    with pytest.raises(CandidateFailure, match="PYBIND11_MODULE"):
        extension.bound(source("void f(at::Tensor x) {}\nvoid g(at::Tensor x) {}\n"), "kernel.cu")


def bound_like(arguments: int, function: Any) -> Any:
    """As a binding of pybind11 refuses other arguments."""

    def call(*given: Any) -> Any:
        if len(given) != arguments:
            raise TypeError("run(): incompatible function arguments. The following argument types are supported: …")
        return function(*given)

    return call


@pytest.mark.parametrize(
    ("arguments", "function"),
    [
        (2, lambda x, y: y.copy_(x * 2)),
        (1, lambda x: x * 2),
        (4, lambda x, y, rows, columns: y.copy_(x * columns)),
        (3, lambda x, rows, columns: (x * columns,)),
    ],
    ids=["writes", "returns", "writes, with axes", "returns, with axes"],
)
def test_it_is_called_in_the_way_that_its_binding_takes(arguments: int, function: Any):
    caller = Caller(bound_like(arguments, function))
    for _ in range(2):
        x, y = torch.randn(3, 2), torch.zeros(3, 2)
        caller((x,), (y,), [3, 2])
        assert torch.equal(y, x * 2)


def test_a_returned_tensor_of_another_shape_is_refused():
    with pytest.raises(RuntimeError, match="it returned"):
        Caller(bound_like(1, lambda x: x[:1]))((torch.zeros(3, 2),), (torch.zeros(3, 2),), [3, 2])


def test_an_error_of_its_own_is_not_taken_for_a_refusal():
    def fails(x: torch.Tensor, y: torch.Tensor) -> None:
        raise TypeError("expected float32")

    with pytest.raises(TypeError, match="expected float32"):
        Caller(fails)((torch.zeros(1),), (torch.zeros(1),), [])
