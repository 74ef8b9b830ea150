"""One proposal by a model, in as many turns as it needs: ask, run the tools that it calls, until it hands one in.

Whatever goes wrong ends in one of three ways that the campaign knows: a proposal, ``Exhausted`` (nothing more to offer,
budget spent), or ``ProposerError`` (another try may help, or not).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .base import Call, Desk, OnText, Proposal, ProposerError, ShouldStop, Task, Usage
from .conversation_courier import Courier, Stopped
from .conversation_purse import Purse, price
from .conversation_types import Dialogue, Meter, Model, RequestFailed, ToolResult, Turn
from .endpoints import Endpoint, slot
from .prompt import first, stable
from .tools import Box, ToolBox, ToolFault

LONGEST_BACKOFF_S = 30.0
MAX_FAULTS = 4
"""Wrong calls, or answers that hand nothing in, in a row before the proposal is given up."""


@dataclass(frozen=True)
class Settings:
    """How patient we are; the administrator's, from the environment."""

    slots: Path
    requests_at_once: int = 8
    retries: int = 6
    backoff_s: float = 1.0
    time_limit_s: float = 1800.0
    max_tokens: int = 32_000
    max_turns: int = 30


@dataclass
class Conversation:
    """``connect`` makes the vendor's client inside the courier's event loop."""

    endpoint: Endpoint
    model_name: str
    connect: Callable[[], Model]
    settings: Settings
    use_tools: bool = True
    calls: list[Call] = field(default_factory=list)

    def propose(self, task: Task, desk: Desk, on_text: OnText, should_stop: ShouldStop) -> Proposal:
        box = ToolBox(task, desk, should_stop)
        self.hold(stable(task, desk), first(task), box, desk, on_text, should_stop)
        assert box.proposal is not None
        return self._with_usage(box.proposal)

    def hold(
        self, stable_part: str, first_part: str, box: Box, desk: Desk, on_text: OnText, should_stop: ShouldStop
    ) -> None:
        """Talk until ``box`` is done. Raises what ``propose`` of a proposer may raise."""
        self.box, self.desk, self.on_text, self.should_stop = box, desk, on_text, should_stop
        self.purse = Purse(self.endpoint, self.model_name, desk.tokens_left, desk.usd_left)
        self.dialogue = Dialogue(stable_part, first_part, box.specs if self.use_tools else [])
        self.deadline = time.monotonic() + self.settings.time_limit_s
        if not self.use_tools:
            self.dialogue.first += "\n\n" + box.without_tools
        with Courier() as courier:
            self.courier = courier
            try:
                self.model = courier.run(self._connected, within_s=30)
                self._until_done()
            except Stopped:
                raise ProposerError("Stopped: nobody waits for this proposal any more.", retryable=True) from None
            finally:
                if hasattr(self, "model"):
                    courier.run(lambda say: self.model.close(), within_s=1)

    async def _connected(self, say: OnText) -> Model:
        return self.connect()

    def _until_done(self) -> None:
        faults = 0
        for _ in range(self.settings.max_turns):
            turn = self._ask()
            self.dialogue.turns.append(turn)
            if turn.stop == "refusal":
                said = " ".join(turn.text.split())[:300]
                raise ProposerError(
                    f"{self.model_name} refused to answer{f': {said}' if said else ''}.", retryable=True
                )
            if turn.stop == "pause":
                continue
            faults = 0 if self._answer(turn) else faults + 1
            if self.box.done:
                return
            if faults >= MAX_FAULTS:
                raise ProposerError(
                    f"{self.model_name}: {faults} wrong calls or empty answers in a row; the last: {self.last_fault}",
                    retryable=True,
                )
        raise ProposerError(
            f"{self.model_name} handed nothing in within {self.settings.max_turns} turns.", retryable=True
        )

    def _answer(self, turn: Turn) -> bool:
        """Run what the model called, or read what it wrote. False: there was nothing right in it."""
        if not turn.calls:
            return self._read_text(turn)
        results, right = [], False
        for call in turn.calls:
            try:
                if self.box.done:
                    raise ToolFault("It has been handed in already; nothing after it counts.")
                results.append(self.box.run(call))
                right = True
            except ToolFault as fault:
                cut = " Your answer was cut off at its longest; write less at once." if turn.stop == "length" else ""
                self.last_fault = str(fault)
                results.append(ToolResult(call, f"{fault}{cut}", is_error=True))
        self.dialogue.turns.append(results)
        return right

    def _read_text(self, turn: Turn) -> bool:
        """A model without tools hands in by what it writes. One that only talks is told what to do."""
        if turn.stop == "length":
            self.last_fault = "the answer was cut off at its longest"
            self.dialogue.turns.append("Your answer was cut off. Think less at length, and hand in.")
            return False
        try:
            if self.box.take_text(turn.text):
                return True
            self.last_fault = "it handed nothing in"
            how = self.box.with_tools if self.dialogue.tools else self.box.without_tools
            self.dialogue.turns.append(f"Nothing was handed in. {how}")
        except ToolFault as fault:
            self.last_fault = str(fault)
            self.dialogue.turns.append(str(fault))
        return False

    def _ask(self) -> Turn:
        """The next answer; asks again, later and later, while the fault is not ours."""
        for tries in range(self.settings.retries + 1):
            allowed = self.purse.allow(self._new_bytes(), self.settings.max_tokens)
            try:
                turn = self._request(allowed)
                self.answered = len(self.dialogue.turns) + 1
                return turn
            except RequestFailed as failed:
                if failed.no_tools and self.dialogue.tools:
                    self.dialogue.tools = []
                    self.dialogue.turns.append(self.box.without_tools)
                    continue
                if not failed.transient:
                    raise ProposerError(f"{failed}.") from None
                if tries == self.settings.retries:
                    raise ProposerError(f"{failed}, {tries + 1} times in a row.", retryable=True) from None
                self._wait(failed, tries)
        raise ProposerError(f"{self.endpoint.host} gave no answer.", retryable=True)

    def _new_bytes(self) -> int:
        """Bytes of the dialogue that the server has not counted yet."""
        if not hasattr(self, "answered"):
            specs = sum(len(str(spec.schema)) + len(spec.description) for spec in self.dialogue.tools)
            return len(self.dialogue.stable.encode()) + len(self.dialogue.first.encode()) + specs
        return self.dialogue.bytes_since(self.answered)

    def _request(self, max_tokens: int) -> Turn:
        meter, began, outcome = Meter(model=self.model_name), time.monotonic(), "failed"
        here = self.settings
        try:
            with slot(here.slots, self.endpoint.host, here.requests_at_once, self.should_stop) as free:
                if not free:
                    raise Stopped
                began = time.monotonic()
                turn = self.courier.run(
                    lambda say: self.model.turn(self.dialogue, max_tokens=max_tokens, meter=meter, say=say),
                    self.on_text,
                    self.should_stop,
                    max(1.0, self.deadline - time.monotonic()),
                )
            outcome = "refused" if turn.stop == "refusal" else "answered"
            return turn
        except Stopped:
            outcome = "stopped"
            raise
        except TimeoutError:
            outcome = "cut"
            raise ProposerError(f"No proposal within {here.time_limit_s:.0f} s.", retryable=True) from None
        except RequestFailed:
            outcome = "cut" if meter.request_id else "failed"
            raise
        finally:
            if outcome != "failed" or meter.input_tokens is not None:
                self._note(meter, outcome, time.monotonic() - began)

    def _note(self, meter: Meter, outcome: str, seconds: float) -> None:
        call = Call(
            model=meter.model,
            outcome=outcome,
            input_tokens=meter.input_tokens,
            cached_input_tokens=meter.cached_input_tokens,
            cache_write_tokens=meter.cache_write_tokens,
            output_tokens=meter.output_tokens,
            price_usd=price(self.endpoint, meter),
            seconds=seconds,
            request_id=meter.request_id,
        )
        self.calls.append(call)
        self.desk.note_call(call)
        self.purse.pay(call)

    def _wait(self, failed: RequestFailed, tries: int) -> None:
        """What the server asks for, else twice as long each time, of which a random part (full jitter)."""
        longest = min(LONGEST_BACKOFF_S, self.settings.backoff_s * 2**tries)
        pause_s = failed.wait_s if failed.wait_s is not None else random.uniform(longest / 4, longest)
        self.on_text(f"\n[{failed}; asking again in {pause_s:.1f} s]\n")
        end = time.monotonic() + pause_s
        while (left := end - time.monotonic()) > 0:
            if time.monotonic() > self.deadline:
                raise ProposerError(f"{failed}, and the time for this proposal is over.", retryable=True)
            if self.should_stop():
                raise Stopped
            time.sleep(min(0.4, left))

    def _with_usage(self, proposal: Proposal) -> Proposal:
        prices = [call.price_usd for call in self.calls]
        usage = Usage(
            model=self.calls[-1].model,
            input_tokens=sum(call.input_tokens or 0 for call in self.calls),
            cached_input_tokens=sum(call.cached_input_tokens or 0 for call in self.calls),
            cache_write_tokens=sum(call.cache_write_tokens or 0 for call in self.calls),
            output_tokens=sum(call.output_tokens or 0 for call in self.calls),
            cost_usd=None if None in prices else float(sum(p for p in prices if p is not None)),
            requests=len(self.calls),
        )
        return Proposal(
            candidate=proposal.candidate,
            title=proposal.title,
            rationale=proposal.rationale,
            parameters=proposal.parameters,
            usage=usage,
        )
