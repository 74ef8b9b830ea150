"""A model drafts ideas from a profile's findings, when a person tells it to. Nothing starts from a draft by itself."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from campaigns import dispatch
from campaigns.actions.errors import ActionError
from campaigns.models import DraftState, IdeaDraft, ModelCall
from campaigns.proposers import registry
from campaigns.proposers.base import Call, Desk, Exhausted, ProposerError
from campaigns.proposers.conversation_types import ToolCall, ToolResult, ToolSpec
from campaigns.proposers.prompt import FENCE_RULE, fence
from campaigns.proposers.tools import ToolFault, an_object
from profiling.models import Profile

MOST = 8
ROLE = """\
You read what a profile of a GPU program shows and draft ideas for a kernel engineer: what is done foolishly, and what to
do instead. An idea is one or two sentences in plain words that name the kernels or the gap, the figure that shows the waste,
and the other way to do it (fuse, read once, pipeline, do it every 32k …), not block sizes. Say nothing that the figures do
not show. A person takes, edits or strikes each; you start nothing."""
SPEC = ToolSpec(
    "draft_ideas",
    f"Hand in 1 to {MOST} ideas, the most promising first.",
    an_object(
        ("ideas",),
        ideas={
            "type": "array",
            "items": an_object(("text", "why"), text={"type": "string"}, why={"type": "string"}),
            "description": "text: the idea. why: the figures that it rests on.",
        },
    ),
)


class DraftBox:
    """One tool: hand the ideas in."""

    with_tools = "Call `draft_ideas` with the ideas."
    without_tools = 'There are no tools here. Answer with nothing but JSON: {"ideas": [{"text": "…", "why": "…"}]}.'

    def __init__(self) -> None:
        self.ideas: list[tuple[str, str]] = []

    @property
    def specs(self) -> list[ToolSpec]:
        return [SPEC]

    @property
    def done(self) -> bool:
        return bool(self.ideas)

    def run(self, call: ToolCall) -> ToolResult:
        if call.name != SPEC.name:
            raise ToolFault(f"There is no tool {call.name[:80]!r}; there is {SPEC.name}.")
        self.take(call.arguments)
        return ToolResult(call, "Handed in.")

    def take_text(self, text: str) -> bool:
        begin, end = text.find("{"), text.rfind("}")
        if begin < 0 or end < begin:
            return False
        self.take(text[begin : end + 1])
        return True

    def take(self, arguments: str) -> None:
        try:
            rows = json.loads(arguments)["ideas"]
            found = [(one_paragraph(row["text"]), one_paragraph(row.get("why", ""))) for row in rows[:MOST]]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ToolFault(f"The ideas cannot be read ({type(error).__name__}): {self.without_tools}") from None
        self.ideas = [(text, why) for text, why in found if text]
        if not self.ideas:
            raise ToolFault("There is no idea in it.")


def one_paragraph(text: Any) -> str:
    return " ".join(str(text).replace("\x00", "").split())[:2_000]


def ask(profile: Profile, agent: str, options: dict[str, Any], person: User | None) -> IdeaDraft:
    """Send the question on its way. Raises ``ActionError`` for a model that cannot be asked; a model is not asked here."""
    if agent not in registry.MODELS:
        raise ActionError(f"Only a model drafts ideas: {', '.join(registry.MODELS)}.")
    try:
        proposer: Any = registry.make(agent, options)
    except ProposerError as error:
        raise ActionError(str(error)) from error
    with transaction.atomic():
        asked = IdeaDraft.objects.create(
            profile=profile, state=DraftState.ASKED, model=proposer.options.model, asked_by=person
        )
        transaction.on_commit(lambda: dispatch.draft(asked.pk, agent, options))
    return asked


def draft(asked_id: int, agent: str, options: dict[str, Any]) -> None:
    """Ask the model, and keep what it drafts or why nothing came. Asked a second time for the same row: nothing."""
    asked = IdeaDraft.objects.filter(pk=asked_id, state=DraftState.ASKED).select_related("profile").first()
    if asked is None:
        return
    try:
        ideas = drafted(asked, agent, options)
    except (ProposerError, Exhausted) as error:
        IdeaDraft.objects.filter(pk=asked_id, state=DraftState.ASKED).update(state=DraftState.FAILED, text=str(error))
        return
    with transaction.atomic():
        text, why = ideas[0]
        mine = IdeaDraft.objects.filter(pk=asked_id, state=DraftState.ASKED)
        if mine.update(state=DraftState.OPEN, text=text, why=why):
            IdeaDraft.objects.bulk_create(
                IdeaDraft(profile=asked.profile, text=text, why=why, model=asked.model, asked_by_id=asked.asked_by_id)
                for text, why in ideas[1:]
            )


def drafted(asked: IdeaDraft, agent: str, options: dict[str, Any]) -> list[tuple[str, str]]:
    proposer: Any = registry.make(agent, options)
    box = DraftBox()

    def nobody_waits() -> bool:
        return not IdeaDraft.objects.filter(pk=asked.pk, state=DraftState.ASKED).exists()

    desk = Desk(note_call=partial(note, agent, asked.asked_by_id))
    stable = f"{ROLE}\n\n{FENCE_RULE}"
    proposer.conversation().hold(stable, what_it_shows(asked.profile), box, desk, lambda text: None, nobody_waits)
    return box.ideas


def decide(found: IdeaDraft, verb: str, text: str, person: User | None) -> None:
    """``take`` (perhaps edited) or ``strike``. Neither starts anything."""
    states = {"take": DraftState.TAKEN, "strike": DraftState.STRUCK}
    if verb not in states:
        raise ActionError("A draft is taken or struck.")
    fields: dict[str, Any] = {"state": states[verb], "decided_by": person}
    if verb == "take" and text.strip():
        fields["text"] = text.strip()[:20_000]
    open_ones = IdeaDraft.objects.filter(pk=found.pk).exclude(state__in=(DraftState.TAKEN, DraftState.STRUCK))
    if not open_ones.update(**fields):
        raise ActionError("Somebody was first: the draft has been decided already.")


def note(agent: str, person_id: int | None, call: Call) -> None:
    ModelCall.objects.create(
        person_id=person_id,
        agent=agent,
        model=call.model[:200],
        outcome=call.outcome,
        input_tokens=call.input_tokens,
        cached_input_tokens=call.cached_input_tokens,
        cache_write_tokens=call.cache_write_tokens,
        output_tokens=call.output_tokens,
        price_usd=call.price_usd,
        seconds=call.seconds,
        request_id=call.request_id[:200],
    )


def bare(kernel: dict[str, Any]) -> dict[str, Any]:
    """Without its signature, which may be longer than all the rest."""
    return {key: value for key, value in kernel.items() if key != "full_name"}


def what_it_shows(profile: Profile) -> str:
    """Label, findings and top kernels. Every name in it is from the capture, and so is fenced."""
    findings = "\n".join(f"{n}. {f['title']}: {f['evidence']}" for n, f in enumerate(profile.findings, 1))
    kernels = json.dumps([bare(kernel) for kernel in profile.summary.get("top_kernels", [])[:20]], default=str)
    text = f"GPU: {', '.join(profile.gpus) or 'unknown'}\nLabel: {profile.label} ({profile.label_reason})\n"
    shown = fence("profile", text + (findings or "no findings"), 20_000)
    return f"# What the profile shows\n{shown}\n{fence('top kernels', kernels, 20_000)}"
