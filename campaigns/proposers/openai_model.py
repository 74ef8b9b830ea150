"""Chat Completions, as OpenAI, vLLM, SGLang, OpenRouter and most others serve it: streaming and tools.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import openai

from .conversation_types import Dialogue, Meter, RequestFailed, Say, Stop, ToolCall, Turn, as_object
from .endpoints import DEFAULT_URL, Endpoint
from .vendor_errors import failed_status, other_failure, pause_before_retry

STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "tools",
    "function_call": "tools",
    "length": "length",
    "content_filter": "refusal",
}


class OpenAIModel:
    """One conversation with one model. ``extra`` goes into the body of each request (reasoning effort, temperature)."""

    def __init__(self, endpoint: Endpoint, model: str, extra: Mapping[str, Any], timeout_s: float) -> None:
        self.endpoint, self.model, self.extra = endpoint, model, dict(extra)
        self.client = openai.AsyncOpenAI(
            api_key=endpoint.key or "none", base_url=endpoint.url, max_retries=0, timeout=timeout_s
        )
        # OpenAI's newer models take the one name only, older servers of others the other only.
        self.limit = "max_completion_tokens" if endpoint.url == DEFAULT_URL["openai"] else "max_tokens"

    async def close(self) -> None:
        await self.client.close()

    async def turn(self, dialogue: Dialogue, *, max_tokens: int, meter: Meter, say: Say) -> Turn:
        meter.model = self.model
        body: dict[str, Any] = {self.limit: max_tokens, **({"tools": tools(dialogue)} if dialogue.tools else {})}
        try:
            stream = await self.client.chat.completions.create(
                model=self.model,
                messages=messages(dialogue),
                stream=True,
                stream_options={"include_usage": True},
                extra_body={**body, **self.extra},
            )
            answer = Answer(meter, say)
            async with stream:
                async for chunk in stream:
                    answer.take(chunk)
            return answer.turn()
        except RequestFailed:
            raise
        except openai.APIStatusError as error:
            wait_s = pause_before_retry(error.response.headers)
            said = f"{error.code}: {error.message}" if error.code else error.message
            raise failed_status(self.endpoint, self.model, error.status_code, said, wait_s) from None
        except openai.APIConnectionError as error:
            raise other_failure(self.endpoint, error) from None
        except openai.APIError as error:  # an error in mid-stream
            status = {"invalid_request_error": 400}.get(error.type or "", 500)
            raise failed_status(self.endpoint, self.model, status, error.message, None) from None
        except Exception as error:
            raise other_failure(self.endpoint, error) from None


class Answer:
    """An answer as its chunks come in."""

    def __init__(self, meter: Meter, say: Say) -> None:
        self.meter, self.say = meter, say
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.refusal: list[str] = []
        self.calls: dict[int, dict[str, Any]] = {}
        self.finish = ""

    def take(self, chunk: Any) -> None:
        self.meter.model = chunk.model or self.meter.model
        self.meter.request_id = chunk.id or self.meter.request_id
        if chunk.usage is not None:
            self.count(chunk.usage)
        for choice in chunk.choices or []:
            if choice.delta is not None:
                self.delta(choice.delta)
            self.finish = choice.finish_reason or self.finish

    def delta(self, delta: Any) -> None:
        for kept, piece in (
            (self.text, delta.content),
            (self.reasoning, getattr(delta, "reasoning_content", None)),
            (self.refusal, getattr(delta, "refusal", None)),
        ):
            if piece:
                kept.append(piece)
                self.say(piece)
        if not getattr(delta, "reasoning_content", None) and (thought := getattr(delta, "reasoning", None)):
            self.say(thought)
        for part in delta.tool_calls or []:
            call = self.calls.setdefault(part.index if part.index is not None else len(self.calls), new_call())
            call["id"] = part.id or call["id"]
            if part.function is not None:
                call["name"] = call["name"] or part.function.name or ""
                call["arguments"].append(part.function.arguments or "")

    def count(self, usage: Any) -> None:
        """``prompt_tokens`` is the whole prompt, what came from the cache included."""
        details = usage.prompt_tokens_details
        cached = getattr(details, "cached_tokens", None)
        if cached is None:
            cached = getattr(usage, "prompt_cache_hit_tokens", None)  # DeepSeek's name for it
        self.meter.input_tokens = usage.prompt_tokens
        self.meter.output_tokens = usage.completion_tokens
        self.meter.cached_input_tokens = cached
        self.meter.cache_write_tokens = getattr(details, "cache_write_tokens", None)

    def turn(self) -> Turn:
        if not self.finish:
            raise RequestFailed("the answer was cut off in the middle", transient=True)
        stop = "refusal" if self.refusal else STOPS.get(self.finish, "end")
        calls = [
            ToolCall(call["id"] or f"call_{index}", call["name"], "".join(call["arguments"]) or "{}")
            for index, call in sorted(self.calls.items())
        ]
        text = "".join(self.text)
        raw: dict[str, Any] = {"role": "assistant", "content": text or None}
        if self.reasoning:
            raw["reasoning_content"] = "".join(self.reasoning)
        if calls:
            raw["tool_calls"] = [
                {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": sendable(c.arguments)}}
                for c in calls
            ]
        elif not text:
            raw["content"] = "(nothing)"
        return Turn(text or "".join(self.refusal), calls, stop, raw)


def sendable(arguments: str) -> str:
    """The arguments as they may be sent back: some servers parse them and fail on what their own model wrote."""
    return json.dumps(as_object(arguments))


def new_call() -> dict[str, Any]:
    return {"id": "", "name": "", "arguments": []}


def tools(dialogue: Dialogue) -> list[dict[str, Any]]:
    return [
        {"type": "function", "function": {"name": t.name, "description": t.description, "parameters": t.schema}}
        for t in dialogue.tools
    ]


def messages(dialogue: Dialogue) -> Any:
    found: list[dict[str, Any]] = [
        {"role": "system", "content": dialogue.stable},
        {"role": "user", "content": dialogue.first},
    ]
    for turn in dialogue.turns:
        if isinstance(turn, Turn):
            found.append(turn.raw)
        elif isinstance(turn, str):
            found.append({"role": "user", "content": turn})
        else:
            found += [{"role": "tool", "tool_call_id": r.call.id, "content": r.text} for r in turn]
    return found
