"""The runner's end of the line to the evaluator: JSON messages over a SEQPACKET socket, memory by file descriptor."""

from __future__ import annotations

import array
import ctypes
import json
import mmap
import os
import socket
import time
from typing import Any

MAX_MESSAGE_BYTES = 1 << 16
MAX_FDS = 250
SPIN_S = 0.05
"""How long to spin for "go": a core that sleeps meanwhile wakes tens of microseconds late, and not evenly."""


class Link:
    def __init__(self, fd: int) -> None:
        self.socket = socket.socket(fileno=fd)

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next message and the descriptors that came with it. Ends the process when the evaluator is gone."""
        ancillary = socket.CMSG_SPACE(MAX_FDS * 4)
        data, extra, _, _ = self.socket.recvmsg(MAX_MESSAGE_BYTES, ancillary)
        if not data:
            os._exit(0)
        fds = array.array("i")
        for level, kind, payload in extra:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[: len(payload) - len(payload) % 4])
        message, passed = json.loads(data), list(fds)
        if "long_bytes" in message:
            fd = passed.pop()
            message = json.loads(os.pread(fd, message["long_bytes"], 0))
            os.close(fd)
        return message, passed

    def reply(self, message: dict[str, Any]) -> None:
        self.socket.send(json.dumps(message).encode())

    def wait_for_go(self) -> str:
        """Spin, then sleep, until the evaluator starts its clock; its word must be given back when all is done."""
        until = time.monotonic() + SPIN_S
        while time.monotonic() < until:
            try:
                return self.socket.recv(256, socket.MSG_DONTWAIT).decode()
            except BlockingIOError:
                pass
        return self.socket.recv(256).decode()


def map_memory(fd: int, size: int, writable: bool) -> int:
    """The address of shared memory, its pages present. The descriptor is closed."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    address = libc.mmap(None, size, access, mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0x8000), fd, 0)
    os.close(fd)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), f"mmap of {size} bytes failed")
    return int(address)
