"""The guard ends what a killed supervisor had started; one that is killed itself is replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

SUPERVISOR = """
import os, subprocess, sys, time
from autoresearch_web.local.guard import Guard
guard = Guard()
services = [subprocess.Popen(["sleep", "600"], start_new_session=True) for _ in range(2)]
guard.add(services[0].pid)
os.kill(guard.pid, 9)
os.waitid(os.P_PID, guard.pid, os.WEXITED | os.WNOWAIT)
guard.add(services[1].pid)
print(*(s.pid for s in services), flush=True)
time.sleep(600)
"""


def gone(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_killed_guard_is_replaced_and_knows_the_same():
    supervisor = subprocess.Popen([sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True)
    assert supervisor.stdout is not None
    services = [int(pid) for pid in supervisor.stdout.readline().split()]
    assert len(services) == 2

    os.kill(supervisor.pid, signal.SIGKILL)
    supervisor.wait()
    until = time.monotonic() + 20
    while time.monotonic() < until and not all(map(gone, services)):
        time.sleep(0.05)

    assert all(map(gone, services))
