"""The bundled model by itself: what its draws promise, and its ways to run."""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import msgspec
import torch

from campaigns.scenarios import catalogue
from campaigns.scenarios.parity import drift, parity, rms_allowed
from campaigns.scenarios.request import Parity

FOLDER = Path(catalogue.__file__).parent / "toy_deepseek"
AXES = {
    "steps": 3, "batch": 2, "layers": 2, "hidden": 64, "heads": 2, "tokens": 300, "experts": 8, "inner": 32, "vocab": 500,
}  # fmt: skip


def loaded(path: Path) -> ModuleType:
    spec = spec_from_file_location(f"toy_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def drawn(seed: int, dtype: torch.dtype = torch.bfloat16) -> dict[str, torch.Tensor]:
    made: dict[str, torch.Tensor] = loaded(FOLDER / "inputs.py").make_inputs(
        AXES, torch.Generator().manual_seed(seed), "cpu", dtype
    )
    return made


def test_no_rounding_changes_the_experts_of_a_token_that_is_drawn():
    """In bfloat16 a flip costs more than all rounding of the step, and says nothing of a kernel."""
    for seed in range(20):
        inputs = drawn(seed)
        start, router = inputs["embed"][inputs["token"]], inputs["router"]
        for layer in range(AXES["layers"]):
            rounded = (start @ router[layer].T).topk(2, dim=-1).indices
            exact = (start.double() @ router[layer].double().T).topk(2, dim=-1).indices
            assert torch.equal(rounded, exact)


def test_the_cache_in_pieces_gives_what_it_gives_at_once(tmp_path):
    found = {}
    inputs = drawn(1, torch.float32)
    for pieces in (0, 128):
        folder = tmp_path / str(pieces)
        folder.mkdir()
        (folder / "model.py").write_text((FOLDER / "model.py").read_text())
        (folder / "stack.json").write_text(json.dumps({"pieces": pieces}))
        found[pieces] = torch.empty(AXES["steps"], AXES["batch"], AXES["vocab"])
        loaded(folder / "model.py").run(*inputs.values(), found[pieces])
    expected = loaded(FOLDER / "reference.py").reference(inputs, AXES)["logits"]
    for out in found.values():
        seen = parity(out.numpy(), expected.numpy(), 2e-4)
        assert seen.passed, seen.detail
        assert seen.rms_error < 1e-5


def test_a_drift_that_no_single_logit_shows_is_named_where_rounding_made_the_tolerance_wide():
    rounded = Parity(steps=4, agreed=4, ties=0, error=0.09, tolerance=0.2, passed=True, rms_error=0.014)
    most = rms_allowed(rounded)
    assert drift(msgspec.structs.replace(rounded, rms_error=0.0205), most) == ""
    assert "off by 0.022" in drift(msgspec.structs.replace(rounded, rms_error=0.022), most)
    exact = msgspec.structs.replace(rounded, tolerance=2e-4, rms_error=1e-6)
    assert drift(msgspec.structs.replace(exact, rms_error=1e-4), rms_allowed(exact)) == ""
