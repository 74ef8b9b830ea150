"""A model server by script, run as a process of its own: Anthropic's and OpenAI's protocols over real HTTP.

``python server.py PORT_FILE LOG_FILE [SCRIPT]``. The script is JSON: model name → list of steps; request n of that model is
answered by step n (the last one again and again). Each request becomes a line in the log: what was asked, what was
answered, what was counted, and whether the client went away in the middle. A step is an object:

    text, thinking          streamed in pieces
    tools                   list of {"name", "arguments"}; arguments is an object, or a string sent as it is
    usage                   {"input", "cached", "written", "output"}: input is all of it, as we count; absent: none is sent
    status, error, headers  an error answer instead of a stream
    cut                     "clean" (the stream just ends), "reset" (the connection breaks) or "silent" (nothing more comes)
    stop                    the stop reason, in the protocol's own word
    delay_s, piece_s        before the first byte, between pieces
    event_error             an error in mid-stream: {"type", "message"}
    author                  true: a submission made from the incumbent in the prompt, with another value of a tunable
"""

from __future__ import annotations

import json
import re
import socket
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PIECE = 400
_FILE = re.compile(
    r"<<<data (?P<word>\w+) \(incumbent, file (?P<path>[^)]+)\)\n(?P<text>.*?)\ndata (?P=word)>>>", re.DOTALL
)
_TUNABLE = re.compile(
    r"(?P<head>\b(?P<name>\w+)\s*=\s*)(?P<value>[\w.]+)(?P<tail>;?\s*(?://|#)\s*tunable:\s*(?P<choices>[^\n]+))"
)


class State:
    def __init__(self, log: Path, script: dict[str, list[dict[str, Any]]]) -> None:
        self.log, self.script = log, script
        self.lock = threading.Lock()
        self.asked: dict[str, int] = {}
        self.at_once = 0

    def step(self, model: str) -> tuple[int, dict[str, Any]]:
        with self.lock:
            number = self.asked.get(model, 0)
            self.asked[model] = number + 1
        steps = self.script.get(model)
        if steps is None:
            return number, {"status": 404, "error": {"type": "not_found_error", "message": f"model: {model}"}}
        return number, steps[min(number, len(steps) - 1)]

    def write(self, line: dict[str, Any]) -> None:
        with self.lock, self.log.open("a") as file:
            file.write(json.dumps(line) + "\n")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        began = time.time()
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number, step = self.state.step(body["model"])
        anthropic = self.path.endswith("/messages")
        with self.state.lock:
            self.state.at_once += 1
            at_once = self.state.at_once
        line = {
            "path": self.path,
            "model": body["model"],
            "number": number,
            "body": body,
            "key": self.headers.get("x-api-key") or self.headers.get("Authorization"),
            "usage": None,
            "gone": False,
            "at_once": at_once,
            "began": began,
        }
        try:
            self.answer(step, body, anthropic, number, line)
        except (BrokenPipeError, ConnectionResetError):
            line["gone"] = True
        finally:
            line["ended"] = time.time()
            with self.state.lock:
                self.state.at_once -= 1
            self.state.write(line)
            self.close_connection = True

    def answer(
        self, step: dict[str, Any], body: dict[str, Any], anthropic: bool, number: int, line: dict[str, Any]
    ) -> None:
        self.wait(step.get("delay_s", 0))
        if status := step.get("status"):
            error = step.get("error", {"type": "api_error", "message": "scripted"})
            text = json.dumps({"type": "error", "error": error} if anthropic else {"error": error}).encode()
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **step.get("headers", {})}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            return
        if step.get("author"):
            step = {**step, "tools": [authored(body, number)]}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        events = anthropic_events(step, body) if anthropic else openai_events(step, body)
        for kind, event, usage in events:
            if kind == "cut":
                self.cut(step["cut"])
                return
            name = f"event: {event.get('type')}\n" if anthropic else ""
            self.chunk(f"{name}data: {json.dumps(event) if isinstance(event, dict) else event}\n\n")
            if usage:
                line["usage"] = usage
            if kind == "piece":
                self.wait(step.get("piece_s", 0))
        if not anthropic:
            self.chunk("data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def wait(self, seconds: float) -> None:
        """Sleep, but notice a client that goes away."""
        end = time.time() + seconds
        while (left := end - time.time()) > 0:
            self.connection.settimeout(min(left, 0.05))
            try:
                if self.connection.recv(1, socket.MSG_PEEK) == b"":
                    raise ConnectionResetError
            except TimeoutError:
                pass
            finally:
                self.connection.settimeout(None)

    def chunk(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def cut(self, how: str) -> None:
        if how == "clean":
            self.wfile.write(b"0\r\n\r\n")
        elif how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            raise ConnectionResetError
        else:
            self.wait(3600)


def pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def arguments(tool: dict[str, Any]) -> str:
    return tool["arguments"] if isinstance(tool["arguments"], str) else json.dumps(tool["arguments"])


def anthropic_events(step: dict[str, Any], body: dict[str, Any]) -> Any:
    usage = step.get("usage")
    counted = None
    if usage:
        cached, written = usage.get("cached", 0), usage.get("written", 0)
        counted = {"cache_read_input_tokens": cached, "cache_creation_input_tokens": written}
        counted["input_tokens"] = usage["input"] - cached - written
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
    start = {
        **message,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**(counted or {"input_tokens": 0}), "output_tokens": 1},
    }
    yield "start", {"type": "message_start", "message": start}, {**usage, "output": 1} if usage else None
    yield "ping", {"type": "ping"}, None
    blocks: list[tuple[dict[str, Any], str, str]] = []
    if step.get("thinking"):
        blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, "thinking", step["thinking"]))
    if step.get("text"):
        blocks.append(({"type": "text", "text": ""}, "text", step["text"]))
    for number, tool in enumerate(step.get("tools", [])):
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool["name"], "input": {}}
        blocks.append((block, "input_json", arguments(tool)))
    for index, (block, kind, text) in enumerate(blocks):
        yield "block", {"type": "content_block_start", "index": index, "content_block": block}, None
        field = {"thinking": "thinking", "text": "text", "input_json": "partial_json"}[kind]
        for number, piece in enumerate(pieces(text)):
            delta = {"type": f"{kind}_delta", field: piece}
            yield "piece", {"type": "content_block_delta", "index": index, "delta": delta}, None
            if step.get("cut") and number == 0 and index == len(blocks) - 1:
                yield "cut", {}, None
        if kind == "thinking":
            yield (
                "delta",
                {
                    "type": "content_block_delta",
                    "index": index,
                    "delta": {"type": "signature_delta", "signature": "sig"},
                },
                None,
            )
        yield "block", {"type": "content_block_stop", "index": index}, None
    if step.get("cut"):
        yield "cut", {}, None
    if error := step.get("event_error"):
        yield "error", {"type": "error", "error": error}, None
        return
    stop = step.get("stop") or ("tool_use" if step.get("tools") else "end_turn")
    delta = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": usage["output"] if usage else 0},
    }
    yield "stop", delta, usage
    yield "stop", {"type": "message_stop"}, None


def openai_events(step: dict[str, Any], body: dict[str, Any]) -> Any:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": body["model"],
            "choices": [choice],
        }

    yield "start", chunk({"role": "assistant", "content": ""}), None
    for piece in pieces(step.get("thinking", "")):
        yield "piece", chunk({"reasoning_content": piece}), None
    for number, piece in enumerate(pieces(step.get("text", ""))):
        yield "piece", chunk({"refusal": piece} if step.get("stop") == "refusal" else {"content": piece}), None
        if step.get("cut") and number == 0:
            yield "cut", {}, None
    for index, tool in enumerate(step.get("tools", [])):
        call = {
            "index": index,
            "id": f"call_{index}",
            "type": "function",
            "function": {"name": tool["name"], "arguments": ""},
        }
        yield "piece", chunk({"tool_calls": [call]}), None
        for piece in pieces(arguments(tool)):
            yield "piece", chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), None
            if step.get("cut"):
                yield "cut", {}, None
    if step.get("cut"):
        yield "cut", {}, None
    if error := step.get("event_error"):
        yield "error", {"error": error}, None
        return
    stop = step.get("stop") or ("tool_calls" if step.get("tools") else "stop")
    yield "stop", chunk({}, "stop" if stop == "refusal" else stop), None
    if usage := step.get("usage"):
        counted = {
            "prompt_tokens": usage["input"],
            "completion_tokens": usage["output"],
            "total_tokens": usage["input"] + usage["output"],
            "prompt_tokens_details": {"cached_tokens": usage.get("cached", 0)},
        }
        yield "usage", {**chunk({}), "choices": [], "usage": counted}, usage


def authored(body: dict[str, Any], number: int) -> dict[str, Any]:
    """A submission that differs from the incumbent in the values of its tunables, by the request's number."""
    texts = json.dumps(body["messages"])
    prompt = "".join(part for part in strings(json.loads(texts)))
    files = {m["path"]: m["text"] for m in _FILE.finditer(prompt)}

    def turn(match: re.Match[str]) -> str:
        nonlocal number
        choices = [c.strip() for c in match["choices"].split(",")]
        number, place = divmod(number + 1, len(choices))
        return f"{match['head']}{choices[place]}{match['tail']}"

    files = {path: _TUNABLE.sub(turn, text) for path, text in files.items()}
    return {"name": "submit", "arguments": {"title": "other sizes", "rationale": "A guess.", "files": files}}


def strings(value: Any) -> Any:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def main(port_file: str, log: str, script: str = "") -> None:
    Handler.state = State(Path(log), json.loads(Path(script).read_text()) if script else {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Path(port_file + ".new").write_text(str(server.server_address[1]))
    Path(port_file + ".new").rename(port_file)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
