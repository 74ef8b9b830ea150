"""Tries, from inside, what a sandbox must refuse, and says what it found. What is true holds."""

from __future__ import annotations

import ctypes
import functools
import os
import resource
import socket
import time
from collections.abc import Callable
from typing import Any

from .link import Link

FORK_TRIES = 200
ABSENT: list[str] = []
"""Paths of the host that must not be seen here; the evaluator names them."""


def main(config: dict[str, Any]) -> None:
    link = Link(config["fd"])
    link.reply({"id": config["hello"], "ok": True})
    message, _ = link.receive()
    ABSENT.extend(message["absent"])
    found = {name: _quietly(test) for name, test in TESTS.items()}
    link.reply({"id": message["id"], "ok": True, "found": found})


def _quietly(test: Callable[[], bool]) -> bool:
    try:
        return bool(test())
    except Exception:
        return False


def _refused(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return True
    return False


def no_network() -> bool:
    def connect() -> None:
        with socket.socket() as line:
            line.settimeout(1)
            line.connect(("192.0.2.1", 80))

    names = [name for _, name in socket.if_nameindex()]
    return names in ([], ["lo"]) and _refused(connect)


def no_writes() -> bool:
    """Nowhere but in its own /tmp and /dev/shm."""
    places = ("/", "/usr", "/usr/lib", "/etc", "/root", "/home", "/runner", "/candidate", "/dev", "/var/tmp")
    return all(_refused(functools.partial(open, f"{place}/written", "w")) for place in places if os.path.isdir(place))


def no_secrets() -> bool:
    """Nothing of the project, of its data folder or of the user's own is in sight."""
    return not any(os.path.isfile(path) or (os.path.isdir(path) and _listed(path)) for path in ABSENT)


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def no_other_processes() -> bool:
    """Itself and bubblewrap's first process."""
    return len([name for name in os.listdir("/proc") if name.isdigit()]) <= 2 and os.getpid() <= 3


def unprivileged() -> bool:
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    capabilities = int(status["CapEff"], 16) | int(status["CapPrm"], 16)
    return os.getuid() != 0 and capabilities == 0 and status["NoNewPrivs"].strip() == "1"


def no_environment() -> bool:
    mine = {"PATH", "HOME", "TMPDIR", "LANG", "USER", "LOGNAME", "PWD", "SHLVL", "_", "XDG_CACHE_HOME", "LC_CTYPE"}
    mine.add("LD_LIBRARY_PATH")
    ours = ("PYTHON", "TORCHINDUCTOR", "TRITON", "CUDA")
    return all(n in mine or n.endswith("_NUM_THREADS") or n.startswith(ours) for n in os.environ)


def processes_limited() -> bool:
    children: list[int] = []
    try:
        for _ in range(FORK_TRIES):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
    except OSError:
        return True
    finally:
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
    return False


def memory_limited() -> bool:
    return resource.getrlimit(resource.RLIMIT_DATA)[1] != resource.RLIM_INFINITY


def files_limited() -> bool:
    """Neither one large file nor many small ones."""
    if resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY:
        return False
    room = os.statvfs("/tmp")
    return room.f_frsize * room.f_blocks <= 1 << 30


def filtered() -> bool:
    """The system call filter is on and refuses to leave the timed core."""
    with open("/proc/self/status") as file:
        on = any(line.split() == ["Seccomp:", "2"] for line in file)
    return on and _refused(lambda: os.sched_setaffinity(0, {0}))


def no_namespaces() -> bool:
    """It cannot make itself master of a namespace of its own."""
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.unshare(0x10000000) != 0)


TESTS: dict[str, Callable[[], bool]] = {
    "no network": no_network,
    "no write outside its own /tmp": no_writes,
    "no sight of the project, problems or data": no_secrets,
    "no sight of other processes": no_other_processes,
    "unprivileged user, no capabilities": unprivileged,
    "no environment of its parent": no_environment,
    "limit on processes binds": processes_limited,
    "limit on memory": memory_limited,
    "limit on files": files_limited,
    "system calls filtered": filtered,
    "no namespaces of its own": no_namespaces,
}
