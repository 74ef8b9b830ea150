from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from campaigns.harness.accuracy import agrees, compare
from campaigns.harness.bench import Stand
from campaigns.harness.comparing import against
from campaigns.harness.memory import Area, as_float64, layout
from campaigns.harness.problem import load_problem, read_folder
from campaigns.harness.runner import OutputSlot

BUNDLED = Path(__file__).parents[2] / "campaigns" / "problems"
REFERENCE = np.array([[1.0, -2.0], [3.0, 0.0]])


def test_within_tolerance_passes():
    found = compare(REFERENCE + 1e-6, REFERENCE, 1e-5)

    assert found.passed
    assert 0 < found.error < 1e-6


def test_one_wrong_value_is_named_by_its_place():
    out = REFERENCE.copy()
    out[1, 0] = 4.0

    found = compare(out, REFERENCE, 1e-5)

    assert not found.passed
    assert "1 of 4 values are wrong; the first at [1, 0]: 4, expected 3" in found.detail


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_never_passes_where_the_reference_is(bad: float):
    out = REFERENCE.copy()
    out[0, 0] = bad

    assert not compare(out, REFERENCE, 0.5).passed


def test_infinity_passes_where_the_reference_has_the_same():
    reference = np.array([np.inf, -np.inf, 1.0])

    assert compare(reference.copy(), reference, 1e-6).passed
    assert not compare(-reference, reference, 1e-6).passed


def test_one_large_value_does_not_excuse_the_others():
    reference = np.ones(10_000)
    reference[0] = 1e6
    out = reference.copy()
    out[1:] *= 1.5

    # A floor tied to the largest value would allow an error of 10 here.
    assert not compare(out, reference, 1e-5).passed


def test_zeros_must_be_zeros():
    assert compare(np.zeros(4), np.zeros(4), 1e-5).passed
    assert not compare(np.full(4, 1e-20), np.zeros(4), 1e-5).passed


def test_the_quick_comparison_says_no_to_nan_and_to_one_wrong_value():
    values = np.random.default_rng(1).standard_normal(100_000).astype(np.float32)
    one = values.copy()
    one[99_999] += 0.01
    nan = values.copy()
    nan[5] = np.nan

    assert agrees(values, values, 1e-5)
    assert not agrees(one, values, 1e-5)
    assert not agrees(nan, values, 1e-5)
    assert not agrees(values, nan, 1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2])
def test_types_that_numpy_lacks_are_read_as_torch_reads_them(dtype: torch.dtype):
    storage = torch.int16 if dtype.itemsize == 2 else torch.uint8
    bits = torch.arange(256 if dtype.itemsize == 1 else 65536).to(torch.int32).to(storage)
    expected = bits.view(dtype).double().numpy()

    name = str(dtype).removeprefix("torch.")
    found = as_float64(bits.numpy().view(np.uint16 if dtype.itemsize == 2 else np.uint8), name)

    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("wrong", [0, 1])
def test_each_of_several_outputs_is_checked_and_not_only_the_last(wrong: int):
    problem = load_problem(read_folder(BUNDLED / "layernorm_residual"))
    stand = Stand(problem.workloads_on("cpu")[0], 0)
    places, size = layout(problem, problem.outputs, stand.workload)
    assert len(places) == 2
    outputs = OutputSlot(Area(size), places)
    expected = {place.name: np.ones(place.shape) for place in places}
    for place in places:
        outputs.tensor(place)[...] = 1

    assert against(problem, stand, outputs, expected).passed
    outputs.tensor(places[wrong])[0] = 2
    assert f"output {places[wrong].name}" in against(problem, stand, outputs, expected).detail
