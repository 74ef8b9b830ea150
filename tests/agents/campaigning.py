"""What tests of models' campaigns share: a campaign, one more proposal in it, an attempt that was judged already."""

from __future__ import annotations

from campaigns import progress, proposing
from campaigns.harness.candidate import tunables, with_values
from campaigns.harness.request import CandidateSource
from campaigns.memory import canonical_sha256, structure_sha256
from campaigns.models import Attempt, Campaign
from tests.factories import make_attempt, make_campaign


def variant(campaign: Campaign, change: str = "", **values: object) -> dict[str, str]:
    source = with_values(campaign.start_candidate(), values) if values else campaign.start_candidate()
    return {path: text + change for path, text in source.files.items()}


def model_campaign(vendor: str, **fields) -> Campaign:
    return make_campaign(agent=vendor, agent_options={"model": "m", **fields.pop("options", {})}, **fields)


def proposed(campaign: Campaign) -> Attempt:
    """One more proposal, as the worker makes it."""
    campaign.refresh_from_db()
    attempt = progress.begin_attempt(campaign)
    proposing.propose(attempt.pk)
    attempt.refresh_from_db()
    return attempt


def judged(campaign: Campaign, files: dict[str, str], verdict: str, **fields) -> Attempt:
    source = CandidateSource(backend="cpp", files=files)
    return make_attempt(
        campaign,
        verdict,
        files=files,
        canonical_sha256=canonical_sha256(source),
        structure_sha256=structure_sha256(source),
        **fields,
    )


def tunables_of(campaign):
    return tunables(campaign.start_candidate())
