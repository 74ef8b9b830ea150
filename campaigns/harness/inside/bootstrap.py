"""The first code in every sandbox: limits, core, unprivileged user, system call filter; only then the role.

Anything that fails here ends the process with a message on stderr before foreign code is loaded.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import sys
from typing import Any

from . import packages

PR_SET_NO_NEW_PRIVS = 38


def main() -> None:
    config: dict[str, Any] = json.loads(sys.argv[1])
    sys.argv[1:] = []
    limit(config["limits"])
    if config["cores"]:
        os.sched_setaffinity(0, config["cores"])
    drop(config["uid"])
    if config["filter"]:
        from .seccomp import install

        install(config["alone"])
    packages.add(config["paths"])
    importlib.import_module(f"inside.{config['role']}").main(config)


def limit(limits: dict[str, int]) -> None:
    """``RLIMIT_*`` by its name in lower case. Hard and soft alike, so that nothing inside can raise them."""
    for name, value in limits.items():
        kind = getattr(resource, f"RLIMIT_{name.upper()}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def drop(uid: int) -> None:
    """Become ``uid``, of which no other process is (RLIMIT_NPROC does not bind root and counts by user)."""
    if uid and os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("bootstrap: PR_SET_NO_NEW_PRIVS refused")
