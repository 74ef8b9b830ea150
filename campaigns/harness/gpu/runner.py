"""One process that holds one candidate on the GPU, and what the evaluator asks of it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import backends
from ..errors import CandidateFailure, Infrastructure
from ..memory import Area
from ..problem import Problem, Workload
from ..request import CandidateSource
from ..runner import trace_in
from .channel import Clocks, GpuChannel, number
from .spares import BECOME_LIMIT_S, Spares, become
from .work import Draw, describe

COMPILE_LIMIT_S = 60.0
RENEW_LIMIT_S = 60.0
STORE_LIMIT_S = 60.0
PRIME = "prime"
SLOTS_PER_MESSAGE = 64


class GpuRunner:
    """``who`` is what failures call it. ``mine``: it runs the candidate's code, so its failures are the candidate's."""

    def __init__(
        self,
        who: str,
        problem: Problem,
        source: CandidateSource,
        built: backends.Built,
        channel: GpuChannel,
        mine: bool = True,
    ) -> None:
        self.who, self.problem, self.source, self.channel, self.mine = who, problem, source, channel, mine
        self.built = built
        self.draws: dict[str, Draw] = {}
        self.graphs: set[str] = set()
        self.area: Area | None = None
        self.nonce = ""

    @classmethod
    def start(
        cls,
        who: str,
        spares: Spares,
        problem: Problem,
        source: CandidateSource,
        built: backends.Built,
        should_stop: Callable[[], bool],
        mine: bool = True,
    ) -> GpuRunner:
        """Hand the code to a waiting process and return at once; ``load`` waits until it has loaded it."""
        runner = cls(who, problem, source, built, spares.take(should_stop), mine)
        files = {f"candidate/{path}": data for path, data in built.files.items()}
        files["problem/inputs.py"] = problem.files["inputs.py"].encode()
        try:
            with runner.blamed():
                runner.nonce = become(
                    runner.channel,
                    "run",
                    files,
                    entry=built.entry,
                    backend=source.backend,
                    share=0.45 if mine else None,
                )
        except BaseException:
            runner.close()
            raise
        return runner

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """A failure of any other runner than the candidate's is none of the candidate's."""
        try:
            yield
        except CandidateFailure as failure:
            if self.mine:
                raise
            raise Infrastructure(f"{self.who}: {failure.message}") from failure

    def load(self, limit_s: float = BECOME_LIMIT_S) -> None:
        """Wait until the code is loaded. From here on the process is not trusted."""
        if self.nonce:
            nonce, self.nonce = self.nonce, ""
            with self.blamed():
                self.channel.receive(nonce, limit_s, "loading")

    def ask(self, what: str, limit_s: float, fds: list[int] | None = None, **more: Any) -> dict[str, Any]:
        with self.blamed():
            return self.channel.ask(what, limit_s, fds, **more)

    def names(self, workload: Workload, count: int) -> list[str]:
        return [f"{workload.name}/{i}" for i in range(count)]

    def make_slots(self, workload: Workload, names: Sequence[str]) -> None:
        """Memory on the device for those slots that it does not have yet."""
        for request in self.slot_requests(workload, names):
            self.ask("slots", RENEW_LIMIT_S, **request)

    def slot_requests(self, workload: Workload, names: Sequence[str]) -> list[dict[str, Any]]:
        """The requests that make those slots; from now on they count as there."""
        new = [name for name in names if name not in self.draws]
        self.draws |= dict.fromkeys(new, Draw(0))
        described = describe(self.problem, workload)
        parts = [new[first : first + SLOTS_PER_MESSAGE] for first in range(0, len(new), SLOTS_PER_MESSAGE)]
        return [{"workload": described, "names": part, "placement": secrets.randbits(62)} for part in parts]

    def renewal(self, items: dict[str, Draw], poison: Sequence[str], scales: dict[str, float]) -> dict[str, Any]:
        """The request that gives slots new values and fills outputs with wrong ones."""
        self.draws |= items
        return {
            "items": [[name, draw.seed, draw.edge] for name, draw in items.items()],
            "poison": list(poison),
            "scales": scales,
            "seed": secrets.randbits(62),
        }

    def renew(self, items: dict[str, Draw], poison: Sequence[str], scales: dict[str, float]) -> None:
        self.ask("renew", RENEW_LIMIT_S, **self.renewal(items, poison, scales))

    def call(self, names: Sequence[str], limit_s: float) -> float:
        """Plain calls, one for each slot; the nanoseconds that it claims they took on the device."""
        return number(self.ask("call", limit_s, calls=list(names)).get("device_ns"))

    def capture(self, graph: str, names: Sequence[str], limit_s: float, direct: bool = False) -> int | None:
        """Capture calls over these slots as one CUDA graph; how many nodes it has. ``direct``: keep plain calls."""
        answer = self.ask("capture", limit_s, graph=graph, calls=list(names), direct=direct)
        self.graphs.add(graph)
        nodes = answer.get("nodes")
        return None if nodes is None else int(number(nodes))

    def block(self, graphs: Sequence[str], prime: Sequence[str], limit_s: float) -> Clocks:
        with self.blamed():
            return self.channel.block(list(graphs), list(prime), limit_s)

    def trace(self, names: Sequence[str], warm: int, most_bytes: int, limit_s: float) -> bytes:
        """One call for each slot under torch.profiler, the first ``warm`` as warm-up: a Kineto trace in gzip."""
        kept = Area(most_bytes)
        try:
            self.channel.mapped_bytes += kept.nbytes
            request = {"calls": list(names), "warm": warm, "most_bytes": most_bytes}
            return trace_in(kept, self.ask("trace", limit_s, [kept.fd], **request))
        finally:
            kept.close()

    def digest(self, slot: str, of: str) -> dict[str, int]:
        """Of ``inputs`` or ``outputs``."""
        return dict(self.ask("digest", STORE_LIMIT_S, slot=slot, of=of).get("digest") or {})

    def ensure_area(self, nbytes: int) -> Area:
        """Shared memory for its outputs, of so many bytes at least. What was too small for them is replaced."""
        if self.area is None or self.area.nbytes < nbytes:
            self.area = Area(nbytes)
            self.channel.mapped_bytes += self.area.nbytes
            self.ask("areas", STORE_LIMIT_S, [self.area.fd], numbers=[0], sizes=[self.area.nbytes], writable=True)
        return self.area

    def drop(self, workload: Workload) -> None:
        """Give back a workload's memory on the device."""
        names = [name for name in self.draws if name.rpartition("/")[0] == workload.name]
        graphs = [name for name in self.graphs if name.rpartition("/")[0] == workload.name]
        self.ask("drop", RENEW_LIMIT_S, names=names, graphs=graphs)
        for name in names:
            self.draws.pop(name)
        self.graphs -= set(graphs)

    def close(self) -> None:
        self.channel.close()
        self.area = None
