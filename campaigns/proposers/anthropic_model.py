"""Anthropic's Messages API: streaming, tools, prompt caching. https://docs.anthropic.com/en/api/messages-streaming"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anthropic

from .conversation_types import Dialogue, Meter, RequestFailed, Say, Stop, ToolCall, ToolResult, Turn, as_object
from .endpoints import Endpoint
from .vendor_errors import failed_status, other_failure, pause_before_retry

STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tools",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
    "pause_turn": "pause",
}
CACHED = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel:
    """One conversation with one model. ``extra`` goes into the body of each request (thinking, temperature)."""

    def __init__(self, endpoint: Endpoint, model: str, extra: Mapping[str, Any], timeout_s: float) -> None:
        self.endpoint, self.model, self.extra = endpoint, model, dict(extra)
        self.client = anthropic.AsyncAnthropic(
            api_key=endpoint.key or "none", base_url=endpoint.url, max_retries=0, timeout=timeout_s
        )

    async def close(self) -> None:
        await self.client.close()

    async def turn(self, dialogue: Dialogue, *, max_tokens: int, meter: Meter, say: Say) -> Turn:
        meter.model = self.model
        try:
            stream: Any = await self.client.messages.create(
                model=self.model,
                max_tokens=max_tokens,
                system=[{"type": "text", "text": dialogue.stable, **CACHED}],  # type: ignore[typeddict-item]
                messages=messages(dialogue),
                stream=True,
                extra_body={**({"tools": tools(dialogue)} if dialogue.tools else {}), **self.extra},
            )
            answer = Answer(meter, say)
            async with stream:
                async for event in stream:
                    answer.take(event)
            return answer.turn()
        except RequestFailed:
            raise
        except anthropic.APIStatusError as error:
            raise self.status(error) from None
        except Exception as error:
            raise other_failure(self.endpoint, error) from None

    def status(self, error: anthropic.APIStatusError) -> RequestFailed:
        """An error in mid-stream has the status 200 of its stream; what it is stands in its type then."""
        by_type = {"overloaded_error": 529, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504}
        status = error.status_code if error.status_code >= 400 else by_type.get(error.type or "", 400)
        said = error.api_message or error.message
        return failed_status(self.endpoint, self.model, status, said, pause_before_retry(error.response.headers))


class Answer:
    """An answer as its events come in."""

    def __init__(self, meter: Meter, say: Say) -> None:
        self.meter, self.say = meter, say
        self.blocks: dict[int, dict[str, Any]] = {}
        self.pieces: dict[int, list[str]] = {}
        self.stop: Stop | None = None
        self.ended = False
        self.fresh: int | None = None

    def take(self, event: Any) -> None:
        if event.type == "message_start":
            self.meter.model = event.message.model or self.meter.model
            self.meter.request_id = event.message.id or ""
            self.count(event.message.usage)
        elif event.type == "content_block_start":
            self.blocks[event.index] = event.content_block.to_dict()
            self.pieces[event.index] = []
        elif event.type == "content_block_delta":
            self.delta(event.index, event.delta)
        elif event.type == "message_delta":
            self.stop = STOPS.get(event.delta.stop_reason or "", "end")
            self.count(event.usage)
        elif event.type == "message_stop":
            self.ended = True

    def delta(self, index: int, delta: Any) -> None:
        if delta.type == "signature_delta":
            self.blocks[index]["signature"] = delta.signature
            return
        piece = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(delta.type)
        if piece:
            self.pieces[index].append(getattr(delta, piece))
        if piece in ("text", "thinking"):
            self.say(getattr(delta, piece))

    def count(self, usage: Any) -> None:
        """Counts are cumulative. ``input_tokens`` leaves out what was read from the cache and written to it."""
        if usage is None:
            return
        read, written = usage.cache_read_input_tokens, usage.cache_creation_input_tokens
        self.meter.cached_input_tokens = later(read, self.meter.cached_input_tokens)
        self.meter.cache_write_tokens = later(written, self.meter.cache_write_tokens)
        self.fresh = later(usage.input_tokens, self.fresh)
        if self.fresh is not None:
            cached = (self.meter.cached_input_tokens or 0) + (self.meter.cache_write_tokens or 0)
            self.meter.input_tokens = self.fresh + cached
        self.meter.output_tokens = later(usage.output_tokens, self.meter.output_tokens)

    def turn(self) -> Turn:
        if not self.ended or self.stop is None:
            raise RequestFailed("the answer was cut off in the middle", transient=True)
        calls, text = [], []
        for index, block in sorted(self.blocks.items()):
            joined = "".join(self.pieces[index])
            if block["type"] == "text":
                block["text"] = joined
                text.append(joined)
            elif block["type"] == "thinking":
                block["thinking"] = joined
            elif block["type"] == "tool_use":
                calls.append(ToolCall(block["id"], block["name"], joined or "{}"))
                block["input"] = as_object(joined)
        raw = [block for _, block in sorted(self.blocks.items()) if block["type"] != "text" or block["text"].strip()]
        return Turn("".join(text), calls, self.stop, raw)


def later(new: int | None, old: int | None) -> int | None:
    return old if new is None else new


def tools(dialogue: Dialogue) -> list[dict[str, Any]]:
    return [{"name": t.name, "description": t.description, "input_schema": t.schema} for t in dialogue.tools]


def messages(dialogue: Dialogue) -> Any:
    """The dialogue in the API's form, with cache marks after the first message and after the last."""
    first = {"type": "text", "text": dialogue.first, **CACHED}
    found: list[dict[str, Any]] = [{"role": "user", "content": [first]}]
    for turn in dialogue.turns:
        if isinstance(turn, Turn):
            found.append({"role": "assistant", "content": turn.raw or [{"type": "text", "text": "(nothing)"}]})
        else:
            ours = [{"type": "text", "text": turn}] if isinstance(turn, str) else [result_block(r) for r in turn]
            if found[-1]["role"] == "user":
                found[-1]["content"] += ours
            else:
                found.append({"role": "user", "content": ours})
    if len(found) > 1 and found[-1]["role"] == "user":
        found[-1]["content"][-1] = {**found[-1]["content"][-1], **CACHED}
    return found


def result_block(result: ToolResult) -> dict[str, Any]:
    return {
        "type": "tool_result",
        "tool_use_id": result.call.id,
        "content": result.text,
        "is_error": result.is_error,
    }
