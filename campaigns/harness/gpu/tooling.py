"""nsys and ncu around a candidate, each in a sandbox like any process on the GPU: the report, or why there is none."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from profiling import capture

from .. import sandbox
from ..backends import Built
from ..channel import Channel
from ..errors import CandidateFailure, Infrastructure
from ..inside.trace import MEASURED
from ..problem import Workload
from ..request import CandidateSource
from ..stages.base import Evaluation
from .spares import spec
from .work import describe

START = "import sys; sys.path.append('/runner'); from inside.replay import main; main(sys.argv[1])"
FOLDER = "/laid"
REPORT = Path("/tmp/report")


def report(
    evaluation: Evaluation,
    tool: tuple[str, str],
    source: CandidateSource,
    built: Built,
    workload: Workload,
    calls: tuple[list[str], int],
    most_bytes: int,
    limit_s: float,
) -> bytes:
    """What the tool recorded of the calls.

    :param tool: its name in ``profiling.capture.PRODUCTS``, and its path.
    :param calls: a slot for each call, and how many of them are warm-up.
    :raises Infrastructure: when the tool fails, with its last words.
    :raises CandidateFailure: when it takes too long.
    """
    assert evaluation.gpu is not None
    name, path = tool[0], os.path.realpath(tool[1])  # a link on the way may lead over what the sandbox does not hold
    product = REPORT.with_suffix(capture.PRODUCTS[name])
    out = os.memfd_create("report")
    program = [
        sandbox.interpreter(),
        "-I",
        "-S",
        "-B",
        "-c",
        START,
        configuration(evaluation, source, built, workload, calls),
    ]
    config = {
        "command": capture.command(name, path, program, product, MEASURED),
        "folder": "/tmp", "product": str(product), "product_fd": out,
    }  # fmt: skip
    base = spec(evaluation.gpu)
    files = {f"candidate/{p}": data for p, data in built.files.items()}
    files["problem/inputs.py"] = evaluation.problem.files["inputs.py"].encode()
    asked = replace(
        base, role="build", files=files, folder=FOLDER, config=base.config | config, binds=(*base.binds, *home_of(path))
    )
    try:
        channel = Channel(asked, evaluation.should_stop, (out,))
        try:
            status = channel.wait_end(limit_s)
        finally:
            channel.close()
        if status is None:
            raise CandidateFailure("timed_out", f"{name} took more than {limit_s:.0f} s: ended")
        size = os.fstat(out).st_size
        if status == 0 and size > most_bytes:
            raise Infrastructure(f"{name} wrote a report of {size:,} bytes: at most {most_bytes:,} are kept")
        if status != 0 or not size:
            said = channel.output.text().strip().splitlines() or ["it said nothing"]
            raise Infrastructure(f"{name} left {size:,} bytes and ended with status {status}: {said[-1][:300]}")
        return os.pread(out, size, 0)
    finally:
        os.close(out)


def configuration(
    evaluation: Evaluation, source: CandidateSource, built: Built, workload: Workload, calls: tuple[list[str], int]
) -> str:
    """What ``inside/replay.py`` needs to know, as JSON."""
    assert evaluation.gpu is not None
    bench = evaluation.on_gpu
    names = list(dict.fromkeys(calls[0]))
    slots: dict[str, Any] = {"workload": describe(evaluation.problem, workload), "names": names}
    renew = {"items": [[slot, bench.seed(), None] for slot in names], "poison": names, "seed": secrets.randbits(62)}
    return json.dumps(
        {
            "paths": sandbox.site_packages(),
            "folder": FOLDER,
            "device": evaluation.gpu.device,
            "load": {"entry": built.entry, "backend": source.backend},
            "slots": slots | {"placement": secrets.randbits(62)},
            "renew": renew | {"scales": bench.scales_of(workload)},
            "calls": calls[0],
            "warm": calls[1],
        }
    )


def home_of(path: str) -> tuple[str, ...]:
    """The tool's installation: the folder above the one that its program lies in, and NVIDIA's own, where a toolkit's
    ``bin/ncu`` finds the program proper. ``path`` is without links, and /usr is in every sandbox."""
    real = Path(path)
    found = [real.parent.parent if real.parent.name.startswith(("bin", "target")) else real.parent, Path("/opt/nvidia")]
    return tuple(
        str(folder)
        for folder in found
        if folder.is_dir() and not Path("/usr").is_relative_to(folder) and not folder.is_relative_to("/usr")
    )
