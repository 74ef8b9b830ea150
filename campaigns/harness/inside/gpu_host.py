"""A process that has imported torch and triton and waits to be told what to be: 6 s of import are then over.

It is told once; for the next candidate there is another process.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
from typing import Any

from .gpu_device import open_device
from .link import Link
from .serve import describe

ROLES = {"run": "gpu_run", "reference": "gpu_reference", "compare": "gpu_compare", "peaks": "gpu_peaks"}
HOME = "/tmp"
ADVICE = (
    "Compile with",
    "CUDA kernel errors might",
    "For debugging consider",
    "Search for `cuda",
    "Device-side assert",
)


def main(config: dict[str, Any]) -> None:
    link = Link(config["fd"])
    device: Any = None
    try:
        import torch

        torch.set_grad_enabled(False)
        torch.set_num_threads(1)
        with contextlib.suppress(Exception):  # whoever needs Triton is told what it lacks
            import triton  # noqa: F401

            if config["device"] == "cuda":
                from .gpu_warm import warm

                warm(config["capability"])
        if config.get("opened"):
            with contextlib.suppress(Exception):  # tried again, and told, once there is somebody to tell
                device = open_device(config["device"])
    except BaseException as error:
        link.reply({"id": config["hello"], **describe(error)})
        return
    link.reply({"id": config["hello"], "ok": True})
    role: Any = None
    while True:
        message, fds = link.receive()
        try:
            if message["do"] == "become":
                device = device or open_device(config["device"])
                role, answer = become(device, message, fds)
            elif message["do"] == "block":
                answer = role.block(message, link)
            else:
                answer = {"ok": True, **(role.handle(message, fds) or {})}
        except BaseException as error:  # SystemExit and KeyboardInterrupt are failures like any other here
            answer = told(error)
        link.reply({"id": message["id"], **answer})


def told(error: BaseException) -> dict[str, Any]:
    """The failure as data, without the advice that follows CUDA's errors: their last line must be the error."""
    answer = describe(error)
    lines = str(answer["error"]).splitlines()
    return {**answer, "error": "\n".join(line for line in lines if line.strip() and not line.startswith(ADVICE))}


def become(device: Any, message: dict[str, Any], fds: list[int]) -> tuple[Any, dict[str, Any]]:
    lay(message["files"], fds[0])
    if message.get("share"):
        device.limit_memory(message["share"])
    module = importlib.import_module(f"inside.{ROLES[message['role']]}")
    role = module.Role(device, message)
    gc.collect()
    gc.freeze()  # what is there now is never looked at again: a collection takes 0.1 s of torch's objects otherwise
    return role, {"ok": True, "facts": device.facts()}


def lay(files: dict[str, list[int]], fd: int) -> None:
    """Write the files ([first byte, bytes] of each in the descriptor) below our own /tmp."""
    for path, (first, size) in files.items():
        where = os.path.join(HOME, path)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "wb") as file:
            file.write(os.pread(fd, size, first))
    os.close(fd)
