from __future__ import annotations

import pytest

from campaigns.proposers import registry
from campaigns.proposers.base import ProposerError


def test_every_entry_can_be_made(tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    for name in registry.names():
        options = {"model": "m"} if name in registry.MODELS else {"directory": str(tmp_path)}
        assert callable(registry.make(name, options).propose)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ProposerError, match=r"no proposer 'oracle'.*tuner, replay"):
        registry.make("oracle")
