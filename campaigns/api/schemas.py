"""What goes in, checked before anything is done; the OpenAPI page is made from it."""

from __future__ import annotations

from typing import Annotated, Any

from ninja import Schema
from pydantic import ConfigDict, Field

TEXT = 20_000

# The same for REST and MCP.
IdeaText = Annotated[str, Field(min_length=1, max_length=TEXT, description="what to do instead, in a sentence")]
Hardware = Annotated[str, Field(max_length=50, pattern=r"^[A-Za-z0-9_.\-]+$")]
CampaignTitle = Annotated[str, Field(max_length=200)]
BudgetAttempts = Annotated[int, Field(ge=1, le=100_000)]
BudgetSeconds = Annotated[int, Field(ge=1, le=10**8)]
TargetSpeedup = Annotated[float, Field(gt=0, lt=1e6)]
RegionId = Annotated[int, Field(ge=1, lt=2**63, description="a marked region of a profile, from its findings")]


class Strict(Schema):
    """A key that is not known is a mistake, and said."""

    model_config = ConfigDict(extra="forbid")


class UsageIn(Strict):
    """What the agent says that its model cost for this candidate."""

    model: str = Field(max_length=100)
    input_tokens: int = Field(ge=0, lt=10**12, description="the whole prompt, cached part included")
    output_tokens: int = Field(ge=0, lt=10**12)
    cached_input_tokens: int = Field(0, ge=0, lt=10**12)
    cache_write_tokens: int = Field(0, ge=0, lt=10**12)
    cost_usd: float | None = Field(None, ge=0, lt=1e6, description="leave out what is not known")
    requests: int = Field(1, ge=0, lt=10**6)


class CandidateIn(Strict):
    files: dict[str, str] = Field(description="relative path → source text; at most 64 files and 1 MiB in all")
    title: str = Field(min_length=1, max_length=300, description="one line: what was tried")
    rationale: str = Field("", max_length=TEXT)
    backend: str = Field("", max_length=20, description="empty: the campaign's")
    idea: int | None = Field(None, description="which idea it serves; left out: the one whose turn it is")
    usage: UsageIn | None = None


class CampaignIn(Strict):
    problem: str = Field(max_length=100)
    idea: IdeaText
    agent: str = Field("external", max_length=50)
    agent_options: dict[str, Any] = {}
    backend: str | None = Field(None, max_length=20)
    baseline: str | None = Field(None, max_length=50)
    hardware: Hardware = "cpu"
    title: CampaignTitle = ""
    rules: str = Field("", max_length=TEXT)
    gate: str = Field("auto", pattern="^(auto|person)$")
    budget_attempts: BudgetAttempts = 40
    budget_seconds: BudgetSeconds | None = None
    budget_tokens: int | None = Field(None, ge=1, le=10**13, description="of the agent's model, as it reports them")
    budget_usd: float | None = Field(None, gt=0, lt=1e7)
    target_speedup: TargetSpeedup | None = None
    parallel: int = Field(1, ge=1, le=64, description="evaluations at once")
    region: RegionId | None = None
    start: bool = True


class ReasonIn(Strict):
    reason: str = Field(min_length=1, max_length=500)


class ErrorOut(Schema):
    """Every answer that is no result."""

    error: str
    hint: str
