"""The whole conversation with a GPU's processes, on a CPU: nothing is captured or profiled, everything else is real."""

from __future__ import annotations

import pytest

from .conftest import HERE, needs_sandbox, rehearse

pytestmark = [needs_sandbox, pytest.mark.slow, pytest.mark.usefixtures("rehearsal")]


def test_an_output_that_computes_when_it_is_looked_at_is_no_output():
    text = (HERE / "candidates" / "lazy_subclass_torch.py").read_text()

    assert rehearse(text).outcome == "incorrect"
