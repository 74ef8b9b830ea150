from __future__ import annotations

import pytest

from campaigns.proposers import registry
from campaigns.proposers.base import ProposerError


def test_every_entry_can_be_made(tmp_path):
    for name in registry.names():
        assert callable(registry.make(name, {"directory": str(tmp_path)}).propose)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ProposerError, match=r"no proposer 'oracle'.*tuner, replay"):
        registry.make("oracle")
