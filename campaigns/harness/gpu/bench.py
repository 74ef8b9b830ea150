"""What stays warm between evaluations of one problem on a GPU: reference, baseline, the process that compares, spares."""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import random
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .. import backends
from ..accuracy import Comparison
from ..errors import CandidateFailure, Infrastructure, Stopped
from ..memory import Area
from ..problem import Problem, Workload
from ..request import CandidateSource
from . import precision
from .channel import GpuChannel, together
from .devices import Gpu
from .runner import RENEW_LIMIT_S, STORE_LIMIT_S, GpuRunner
from .spares import BECOME_LIMIT_S, Spares, become
from .work import Draw, Piece, describe, expected_dtype, nbytes, pieces, sizes

log = logging.getLogger(__name__)
EXPECT_LIMIT_S = 120.0
BASELINE_CALL_LIMIT_S = 180.0
EXPECTED_AREA = 0
EDGE_BYTES = 64 << 20

_spares: dict[str, Spares] = {}


def spares_of(gpu: Gpu) -> Spares:
    """The waiting processes of a GPU: they serve every problem."""
    if gpu.uuid not in _spares:
        _spares[gpu.uuid] = Spares(gpu)
    return _spares[gpu.uuid]


def close_spares() -> None:
    while _spares:
        _spares.popitem()[1].close()


@dataclass(frozen=True)
class Checked:
    """A comparison, and the RMS of the error over the RMS of what was expected: it names the arithmetic."""

    comparison: Comparison
    rms_error: float


class GpuBench:
    def __init__(self, problem: Problem, gpu: Gpu, baseline: str) -> None:
        self.problem, self.gpu, self.baseline_name = problem, gpu, baseline
        self.spares = spares_of(gpu)
        self.should_stop: Callable[[], bool] = lambda: False
        self.reference: GpuChannel | None = None
        self.compare: GpuChannel | None = None
        self.baseline: GpuRunner | None = None
        self.facts: dict[str, Any] = {}
        self.scales: dict[str, dict[str, float]] = {}
        self.baseline_us: dict[str, float] = {}
        self.baseline_lock = threading.Lock()
        """The baseline warms up beside the candidate's checks: whoever asks it something, asks alone."""
        self.lock = threading.RLock()
        """The reference and the process that compares answer one question at a time; workloads are checked beside each
        other. Whoever holds the baseline's lock may take this one, not the other way round."""
        self.edge_lists: dict[str, list[str]] = {}
        self.expected_area: Area | None = None
        self.areas: dict[int, Area] = {}
        """What the comparing process has mapped, by the number under which it has it."""
        self.numbers = itertools.count()
        self.random = secrets.SystemRandom()

    def ready(self) -> None:
        """Have all three up, a dead one started again."""
        self.spares.fill()
        starting: list[tuple[GpuChannel, str, float, str]] = []
        try:
            self._start_missing(starting)
        except BaseException:
            for channel, *_ in starting:  # nobody takes their answers, which the next question would be given
                channel.close()
            raise
        for answer in together(starting, lambda channel: trusted("a process of the harness")):
            self.facts = answer.get("facts") or self.facts
        assert self.reference is not None
        assert self.compare is not None
        assert self.baseline is not None
        self.baseline.load()
        for channel in (self.reference, self.compare, self.baseline.channel):
            channel.should_stop = lambda: self.should_stop()

    def _start_missing(self, starting: list[tuple[GpuChannel, str, float, str]]) -> None:
        """Start what is not there or has ended. Requests whose answers have to be waited for are added to ``starting``."""
        if ended(self.reference):
            self.reference = self._start("reference", "inputs.py", "reference.py", into=starting)
            self.expected_area = None
        if ended(self.compare):
            self.compare = self._start("compare", into=starting)
            self.areas.clear()
            self.expected_area = None
        if ended(self.baseline.channel if self.baseline is not None else None):
            self._start_baseline()

    def _start(self, role: str, *files: str, into: list[tuple[GpuChannel, str, float, str]]) -> GpuChannel:
        with trusted(f"{role} process"):
            channel = self.spares.take(lambda: self.should_stop())
            try:
                nonce = become(channel, role, {f"problem/{name}": self.problem.files[name].encode() for name in files})
            except CandidateFailure:
                channel.close()
                raise
        into.append((channel, nonce, BECOME_LIMIT_S, f"starting the {role} process"))
        return channel

    def _start_baseline(self) -> None:
        path = self.problem.baselines[self.baseline_name].file
        source = CandidateSource(backend="torch", files={"kernel.py": self.problem.files[path]})
        built = backends.get("torch").build(source)
        who = f"baseline {self.baseline_name}"
        self.baseline_us.clear()
        self.baseline = GpuRunner.start(
            who, self.spares, self.problem, source, built, lambda: self.should_stop(), mine=False
        )

    def seed(self) -> int:
        return self.random.getrandbits(62)

    def draw(self) -> Draw:
        return Draw(self.seed())

    @property
    def l2_bytes(self) -> int:
        return int(self.facts.get("l2_bytes") or 0)

    def ask_reference(self, what: str, **more: Any) -> dict[str, Any]:
        assert self.reference is not None
        with self.lock, trusted(f"reference process ({what})"):
            return self.reference.ask(what, EXPECT_LIMIT_S, **more)

    def scales_of(self, workload: Workload) -> dict[str, float]:
        """The RMS of each output, from a draw of its own: wrong values for the outputs are made at that scale."""
        if workload.name not in self.scales:
            answer = self.ask_reference(
                "expect", workload=describe(self.problem, workload), seed=self.seed(), area=EXPECTED_AREA, pieces=[]
            )
            scales = {name: float(value) or 1.0 for name, value in answer["rms"].items()}
            self.scales[workload.name] = {n: v if math.isfinite(v) else 1.0 for n, v in scales.items()}
        return self.scales[workload.name]

    def edge_names(self, workload: Workload, seed: int) -> list[str]:
        """The problem's named hard cases; none where they are too large to be drawn all at once."""
        if nbytes(self.problem, self.problem.inputs, workload) > EDGE_BYTES:
            return []
        if workload.name not in self.edge_lists:
            answer = self.ask_reference("edge_names", workload=describe(self.problem, workload), seed=seed)
            self.edge_lists[workload.name] = [str(name) for name in answer["names"]]
        return self.edge_lists[workload.name]

    def input_digest(self, workload: Workload, draw: Draw) -> dict[str, int]:
        answer = self.ask_reference("digest", workload=describe(self.problem, workload), seed=draw.seed, edge=draw.edge)
        return dict(answer["digest"])

    def renew(self, runner: GpuRunner, workload: Workload, items: dict[str, Draw], poison: list[str]) -> None:
        """New values in a runner's slots; meanwhile the reference computes what they are to give."""
        scales = self.scales_of(workload)
        assert self.reference is not None
        with runner.blamed():
            asked = runner.channel.send("renew", **runner.renewal(items, poison, scales))
        draws = [[draw.seed, draw.edge] for draw in reversed(items.values())]
        self._both(
            (runner, asked, RENEW_LIMIT_S, "drawing its inputs"),
            lambda: self.ask_reference("prepare", workload=describe(self.problem, workload), draws=draws),
        )

    def check(self, runner: GpuRunner, workload: Workload, slot: str, whole: bool = False) -> Checked:
        """The outputs of a slot, chosen now, against what the reference makes of the same seed."""
        draw = runner.draws[slot]
        looked = pieces(self.problem, workload, whole, random.Random(self.seed()))
        out_bytes, expected_bytes = sizes(self.problem, workload, looked)
        area = self._outputs_area(runner, out_bytes)
        with runner.blamed():
            out_items = [[p.name, p.first, p.count, p.out_byte] for p in looked]
            stored = runner.channel.send("store", slot=slot, area=0, pieces=out_items)
        items = [[p.name, p.first, p.count, p.expected_byte] for p in looked]
        with self.lock:  # until the comparison is over the expected values lie where the next ones would be written
            expected = self.expected(expected_bytes)
            answer, wanted = self._both(
                (runner, stored, STORE_LIMIT_S, "copying its outputs"),
                lambda: self.ask_reference(
                    "expect", workload=describe(self.problem, workload), seed=draw.seed, edge=draw.edge,
                    area=EXPECTED_AREA, pieces=items,
                ),
            )  # fmt: skip
            if answer.get("guards") is not True:
                raise CandidateFailure("incorrect", "wrote outside its outputs")
            return self._compared(workload, looked, wanted["rms"], self._number(area), self._number(expected))

    def _both(
        self, posted: tuple[GpuRunner, str, float, str], ask: Callable[[], dict[str, Any]]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answers of a runner that was asked before (the nonce, its limit, what it does) and of ``ask``. Both are taken
        before a failure is raised, the runner's first."""
        runner, nonce, limit_s, doing = posted
        wanted: dict[str, Any] | Exception
        try:
            wanted = ask()
        except Exception as error:
            wanted = error
        with runner.blamed():
            answer = runner.channel.receive(nonce, limit_s, doing)
        if isinstance(wanted, Exception):
            raise wanted
        return answer, wanted

    def _outputs_area(self, runner: GpuRunner, nbytes: int) -> Area:
        """The memory that a runner copies its outputs to. The comparing process gives back what that replaces."""
        before = runner.area
        area = runner.ensure_area(nbytes)
        if before is not None and before is not area:
            self.forget(before)
        return area

    def expected(self, size: int) -> Area:
        """The memory that the reference process writes to, of so many bytes at least."""
        if self.expected_area is None or self.expected_area.nbytes < size:
            if self.expected_area is not None:
                self.forget(self.expected_area)
            self.expected_area = Area(size)
            assert self.reference is not None
            self.reference.mapped_bytes += self.expected_area.nbytes
            with trusted("reference process"):
                self.reference.ask(
                    "areas", STORE_LIMIT_S, [self.expected_area.fd],
                    numbers=[EXPECTED_AREA], sizes=[self.expected_area.nbytes], writable=True,
                )  # fmt: skip
        return self.expected_area

    def _number(self, area: Area) -> int:
        """The area's number in the comparing process, which may only read it."""
        for number, known in self.areas.items():
            if known is area:
                return number
        number = next(self.numbers)
        assert self.compare is not None
        self.compare.mapped_bytes += area.nbytes
        with trusted("comparing process"):
            self.compare.ask("areas", STORE_LIMIT_S, [area.fd], numbers=[number], sizes=[area.nbytes], writable=False)
        self.areas[number] = area
        return number

    def _compared(
        self, workload: Workload, looked: list[Piece], rms: dict[str, float], out: int, expected: int
    ) -> Checked:
        assert self.compare is not None
        specs = {spec.name: spec for spec in self.problem.outputs}
        items = []
        for p in looked:
            dtype = self.problem.tensor_dtype(specs[p.name], workload)
            items.append(
                {
                    "out": [out, p.out_byte],
                    "expected": [expected, p.expected_byte],
                    "count": p.count,
                    "dtype": dtype,
                    "expected_dtype": expected_dtype(dtype),
                    "t": self.problem.tolerance_for(specs[p.name], workload),
                    "scale": rms[p.name],
                }
            )
        with trusted("comparing process"):
            found = self.compare.ask("compare", EXPECT_LIMIT_S, items=items)["found"]
        return summed(self.problem, workload, looked, found)

    def time_baseline(self, workload: Workload) -> float:
        """Seconds of a warm call of the baseline, on the device, as it says: it is trusted for a limit only."""
        with self.baseline_lock:
            if workload.name not in self.baseline_us:
                assert self.baseline is not None
                slot = f"{workload.name}/0"
                self.baseline.make_slots(workload, [slot])
                self.baseline.renew({slot: self.draw()}, [slot], self.scales_of(workload))
                self.baseline.call([slot], BASELINE_CALL_LIMIT_S)
                self.baseline_us[workload.name] = self.baseline.call([slot], BASELINE_CALL_LIMIT_S) / 1e3
            return self.baseline_us[workload.name] / 1e6

    def warm_baseline(self, workloads: Sequence[Workload]) -> None:
        """Have the baseline compiled for these, in their order, while other things are looked at. Returns at once.

        What goes wrong is left to ``time_baseline``, which then tries again and raises it.
        """
        for workload in workloads:
            self.scales_of(workload)  # asks the reference process, which is no other thread's

        def warm() -> None:
            with contextlib.suppress(Exception):  # closed in the middle of it, say: the next evaluation has another
                for workload in workloads:
                    self.time_baseline(workload)

        if any(workload.name not in self.baseline_us for workload in workloads):
            threading.Thread(target=warm, name="warm baseline", daemon=True).start()

    def baseline_passes(self, workload: Workload, draw: Draw) -> bool:
        assert self.baseline is not None
        slot = f"{workload.name}/0"
        with self.baseline_lock:
            self.baseline.make_slots(workload, [slot])
            self.baseline.renew({slot: draw}, [slot], self.scales_of(workload))
            self.baseline.call([slot], BASELINE_CALL_LIMIT_S)
            return self.check(self.baseline, workload, slot).comparison.passed

    def forget(self, area: Area) -> None:
        """Shared memory is used no more: the comparing process gives it back, and so do we.

        A comparing process that cannot is ended, and nothing is raised: whoever calls this may be closing other processes
        as well. ``ready`` starts another.
        """
        with self.lock:
            for number in [number for number, known in self.areas.items() if known is area]:
                del self.areas[number]
                if self.compare is not None and not self.compare.closed:
                    try:
                        self.compare.ask("unmap", STORE_LIMIT_S, number=number, size=area.nbytes)
                    except (CandidateFailure, Stopped) as error:
                        log.warning("the comparing process gave no memory back: %s", error)
                        self.compare.close()
                    self.compare.mapped_bytes -= area.nbytes

    def close(self) -> None:
        for channel in (self.reference, self.compare, self.baseline.channel if self.baseline else None):
            if channel is not None:
                channel.close()
        self.reference = self.compare = self.baseline = None


def ended(channel: GpuChannel | None) -> bool:
    """Whether another has to be started in its place. What an ended one still holds here is given back."""
    if channel is not None and not channel.closed and channel.exited():
        channel.close()
    return channel is None or channel.closed


@contextlib.contextmanager
def trusted(who: str) -> Iterator[None]:
    """Whatever goes wrong here is no fault of a candidate."""
    try:
        yield
    except CandidateFailure as failure:
        raise Infrastructure(f"{who}: {failure.message}") from failure


def summed(problem: Problem, workload: Workload, looked: list[Piece], found: list[dict[str, Any]]) -> Checked:
    """All pieces together; the first wrong value is told by its place in its tensor."""
    specs = {spec.name: spec for spec in problem.outputs}
    error = max((float(f["error"]) for f in found), default=0.0)
    squares = sum(float(f["sum_expected"]) for f in found)
    rms_error = math.sqrt(sum(float(f["sum_error"]) for f in found) / squares) if squares > 0 else 0.0
    wrong = sum(int(f["wrong"]) for f in found)
    if not wrong:
        return Checked(Comparison(True, error), rms_error)
    at = next(i for i, f in enumerate(found) if f["wrong"])
    piece, first = looked[at], found[at]
    index = _index(piece.first + int(first["first"]), problem.shape(specs[piece.name], workload))
    total = sum(p.count for p in looked)
    got, want = float(first["got"]), float(first["want"])
    text = f"output {piece.name}: {wrong} of {total} values looked at are wrong; "
    text += f"the first at [{index}]: {got:.6g}, expected {want:.6g}"
    if bad := sum(int(f["nonfinite"]) for f in found):
        text += f"; {bad} are not finite where the reference is"
    dtype = problem.tensor_dtype(specs[piece.name], workload)
    if named := precision.explain(dtype, rms_error):
        text += f"; {named}"
    return Checked(Comparison(False, error, text), rms_error)


def _index(flat: int, shape: tuple[int, ...]) -> str:
    places = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        places.append(str(place))
    return ", ".join(reversed(places))
