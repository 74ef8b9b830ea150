"""An import in a process of its own: ``python -m profiling.importers FILE STORE_DIR``.

Bounded in memory and time, ended when its parent ends, with no secret in its environment. Says one JSON object a line
on stdout: ``{"percent", "phase"}`` any number of times, then ``{"report"}`` or ``{"refused": {…}}``.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import os
import resource
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1


def confine(memory_bytes: int, seconds: int, parent: int) -> None:
    """Limits of this process. The wall-clock limit is ``Limits.seconds`` and, above it, the parent's."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_bytes:
        # What it writes to counts, and not the file that it maps: captures may be as large as the limit, or larger.
        resource.setrlimit(resource.RLIMIT_DATA, (memory_bytes, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    resource.setrlimit(resource.RLIMIT_CPU, (4 * seconds, 4 * seconds + 5))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        sys.exit("the process that started this import has ended")  # it did before it could be tied to this one


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def out_of_memory(error: Exception) -> bool:
    no_thread = isinstance(error, RuntimeError) and "start new thread" in str(error)
    return no_thread or isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def no_room(error: Exception) -> bool:
    numpys = ("requested and", "Not enough free space")  # which give no number
    numbered = getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT)
    return numbered or (isinstance(error, OSError) and any(words in str(error) for words in numpys))


def fault(error: Exception) -> dict[str, str]:
    """What an error that no importer foresaw is told as. By its place and kind only: its text may hold what the capture holds."""
    if no_room(error):
        return {
            "error": "the disk is full",
            "hint": "The upload is kept. Make room in the data folder, then try again.",
        }
    frame = traceback.extract_tb(error.__traceback__)[-1]
    what = f"the import failed in {Path(frame.filename).name}, line {frame.lineno} ({type(error).__name__})"
    return {"error": what, "hint": "The upload is kept. Report the fault with these words; a shorter window may pass."}


def main() -> int:
    parser = argparse.ArgumentParser(prog="profiling.importers")
    parser.add_argument("file", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--name", default="")
    parser.add_argument("--memory-bytes", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--nsys", default="", help="exports an .nsys-rep; without it such a file needs export")
    parser.add_argument("--sandbox-optional", action="store_true", help="nsys may run where no sandbox can be had")
    parser.add_argument("--parent", type=int, default=0, help="end with the process of this id")
    options = parser.parse_args()
    confine(options.memory_bytes, options.seconds, options.parent)
    from profiling.importers import Limits, Refused, import_profile
    from profiling.importers.nsys_export import Tool

    tool = Tool(options.nsys, options.memory_bytes, options.sandbox_optional) if options.nsys else None
    try:
        done = import_profile(
            options.file,
            options.store,
            lambda percent, phase: say(percent=percent, phase=phase),
            Limits(seconds=options.seconds),
            options.name,
            tool,
        )
    except Refused as refused:
        why = {"error": refused.error, "hint": refused.hint, "format": refused.format}
        say(refused=why | {"needs_export": refused.needs_export})
        return 2
    except Exception as error:
        if not out_of_memory(error):
            say(refused=fault(error))
            return 2
        hint = "Capture a shorter window, or raise PROFILE_IMPORT_MEMORY_BYTES."
        limit = f"{options.memory_bytes / (1 << 30):.1f} GiB" if options.memory_bytes else "of this machine"
        say(refused={"error": f"the import needs more memory than its limit ({limit})", "hint": hint})
        return 2
    say(report=done.report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
