from __future__ import annotations

from pathlib import Path

import pytest
import torch

from campaigns.harness.candidate import load_candidate, tunables

from . import bench

CASES = [pytest.param(n, w, id=f"{n}-{w.name}") for n in bench.NAMES for w in bench.small_workloads(n)]
KERNELS = [(n, file) for n in bench.NAMES for kind, file in bench.problem(n).start.items() if kind in ("torch", "cpp")]
KERNELS += [(n, "baselines/eager.py") for n in bench.NAMES]
KERNELS += [(p.parts[-3], f"examples/{p.name}") for p in sorted(bench.FOLDER.glob("*/examples/*.*"))]

LARGEST = {"fp8_quantize": 0.95}
"""How much of the tolerance an honest kernel may need: half, but one rounding to FP8 takes nearly all."""


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("build")


def runner(name, file, workload, build):
    path = bench.FOLDER / name / file
    return bench.compiled(path, build, workload) if path.suffix == ".cpp" else bench.module(path).run


@pytest.mark.parametrize("name", bench.NAMES)
def test_it_has_visible_and_hidden_workloads_on_both_devices(name):
    loaded = bench.problem(name)
    assert loaded.name == name
    for device in ("cpu", "cuda"):
        assert {w.hidden for w in loaded.workloads_on(device)} == {True, False}
        assert any(w.timed for w in loaded.workloads_on(device) if w.hidden)
    assert "README.md" in loaded.files


@pytest.mark.parametrize(("name", "workload"), CASES)
def test_a_seed_gives_the_same_draw_and_another_seed_another(name, workload):
    one, same, other = (bench.draw(name, workload, seed) for seed in (1, 1, 2))
    assert list(one) == [s.name for s in bench.problem(name).inputs]
    assert all(torch.equal(one[k], same[k]) for k in one)
    assert not all(torch.equal(one[k], other[k]) for k in one)


@pytest.mark.parametrize(("name", "workload"), CASES)
def test_inputs_have_the_shapes_and_types_that_the_problem_declares(name, workload):
    loaded = bench.problem(name)
    for inputs in [bench.draw(name, workload), *bench.edges(name, workload).values()]:
        for spec in loaded.inputs:
            tensor = inputs[spec.name]
            assert tuple(tensor.shape) == loaded.shape(spec, workload)
            assert str(tensor.dtype) == f"torch.{loaded.tensor_dtype(spec, workload)}"
            assert tensor.is_contiguous()


@pytest.mark.parametrize(("name", "workload"), CASES)
def test_zeros_and_the_mean_do_not_pass(name, workload):
    expected = bench.reference(name, workload, bench.draw(name, workload))
    zeros = [torch.zeros_like(r) for r in expected.values()]
    means = [torch.full_like(r, r.double().mean().item()) for r in expected.values()]
    assert bench.misfit(name, workload, zeros, expected) > 5
    if max(r.numel() for r in expected.values()) > 1:
        assert bench.misfit(name, workload, means, expected) > 5


@pytest.mark.parametrize(("name", "workload"), CASES)
def test_a_refresh_makes_every_output_that_was_right_wrong(name, workload):
    inputs = bench.draw(name, workload)
    before = bench.reference(name, workload, inputs)
    changed = bench.inputs_of(name).refresh(inputs, workload.axes, torch.Generator().manual_seed(3))
    after = bench.reference(name, workload, inputs)
    assert set(changed) <= set(inputs)
    assert all(inputs[k].isfinite().all() for k in inputs if inputs[k].is_floating_point())
    assert bench.misfit(name, workload, list(before.values()), after) > 5
    for key in after:
        if after[key].numel() >= 64:
            assert (before[key] != after[key]).double().mean() > 0.9


@pytest.mark.parametrize(("name", "workload"), CASES)
def test_a_hundred_refreshes_do_not_wear_a_draw_out(name, workload):
    inputs = bench.draw(name, workload)
    fresh = bench.reference(name, workload, inputs)
    generator = torch.Generator().manual_seed(4)
    for _ in range(20 if max(t.numel() for t in inputs.values()) > 100_000 else 100):
        bench.inputs_of(name).refresh(inputs, workload.axes, generator)
    worn = bench.reference(name, workload, inputs)
    for key in fresh:
        if fresh[key].numel() >= 1000 and fresh[key].is_floating_point():
            ratio = worn[key].square().mean().sqrt() / fresh[key].square().mean().sqrt()
            assert 0.1 < ratio < 10


@pytest.mark.parametrize(("name", "file"), KERNELS, ids=lambda v: v)
def test_start_kernels_and_the_eager_baseline_are_right_on_draws_and_edges(name, file, build):
    for workload in bench.small_workloads(name):
        call = runner(name, file, workload, build)
        for case, inputs in {"draw": bench.draw(name, workload), **bench.edges(name, workload)}.items():
            expected = bench.reference(name, workload, inputs)
            assert all(r.isfinite().all() for r in expected.values()), (workload.name, case)
            kept = {k: v.clone() for k, v in inputs.items()}
            outputs = bench.fresh_outputs(name, workload)
            call(*inputs.values(), *outputs)
            assert bench.misfit(name, workload, outputs, expected) <= LARGEST.get(name, 0.5), (workload.name, case)
            assert all(torch.equal(kept[k], inputs[k]) for k in kept), (workload.name, case)


@pytest.mark.parametrize("name", bench.NAMES)
def test_the_compiled_baseline_is_right(name):
    for workload in bench.small_workloads(name)[:1]:
        inputs = bench.draw(name, workload)
        outputs = bench.fresh_outputs(name, workload)
        bench.module(bench.FOLDER / name / "baselines/compile.py").run(*inputs.values(), *outputs)
        assert bench.misfit(name, workload, outputs, bench.reference(name, workload, inputs)) <= LARGEST.get(name, 0.5)


@pytest.mark.parametrize(("name", "file"), [k for k in KERNELS if k[1].startswith("start/")], ids=lambda v: v)
def test_start_kernels_declare_tunables(name, file):
    declared = tunables(load_candidate(bench.FOLDER / name / file))
    assert len(declared) >= 2
    assert all(len(t.choices) >= 2 for t in declared)
