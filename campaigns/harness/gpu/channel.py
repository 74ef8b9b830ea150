"""The line to a process on the GPU: more than one request may be under way, each on a line of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, NamedTuple

from ..channel import ASK_SPIN_NS, Channel
from ..errors import forged
from ..processes import cpu_clock

BLOCK_SPIN_NS = 60_000_000
"""The evaluator spins through a whole block on a GPU: the longest, of twice ``lane.MAX_BLOCK_NS``, takes some 32 ms. With 20 ms it
slept at the end of those, and waking took 160 µs more, give or take 70: seven times the spread of the device's own clock
(docs/results/harness-h200.md, "Sleeping through the end of a block")."""


class Clocks(NamedTuple):
    """One block by both clocks, in nanoseconds: the evaluator's own, which decides, and the device's events."""

    wall_ns: int
    device_ns: float


class GpuChannel(Channel):
    spin_ns = ASK_SPIN_NS
    """Several threads wait at the same time while kernels compile, each for a process of its own: spinning, they would take
    the interpreter's lock from each other. What is timed is waited for without sleeping."""
    block_spin_ns = BLOCK_SPIN_NS

    def block(self, graphs: list[str], prime: list[str], limit_s: float) -> Clocks:
        """Replay graphs, one after the other, between our "go" and the answer. Raises ``CandidateFailure``.

        Not ``hurried``: under a real-time priority the driver's own threads could not run beside the one that waits.
        """
        nonce = self.send("block", graphs=graphs, prime=prime)
        if self.receive(nonce, limit_s, "preparing a block").get("ready") is not True:
            raise forged("answered a request with something else")
        word = secrets.token_hex(8)
        took, data = self._clocked(word, cpu_clock(self.pid), limit_s)
        answer = self._read(data, nonce)
        if answer.get("word") != word:
            raise forged("answered before it was told to start")
        return Clocks(took.wall_ns, number(answer.get("device_ns")))


def number(value: Any) -> float:
    """A number that a runner claims; anything else is a forged reply."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise forged("sent something else than a number")


def together(
    posted: list[tuple[GpuChannel, str, float, str]], guard: Callable[[GpuChannel], Any]
) -> list[dict[str, Any]]:
    """The answers to requests under way at the same time. All are taken before the first failure is raised.

    Each is (channel, nonce, limit in s, what); ``guard(channel)`` is a context that turns its failures into whose they are.
    """
    answers: list[dict[str, Any]] = []
    failure: Exception | None = None
    for answer in settled(posted, guard):
        if isinstance(answer, Exception):
            failure = failure or answer
        else:
            answers.append(answer)
    if failure is not None:
        raise failure
    return answers


def settled(
    posted: list[tuple[GpuChannel, str, float, str]], guard: Callable[[GpuChannel], Any]
) -> list[dict[str, Any] | Exception]:
    """As ``together``, with each failure in the place of its answer."""
    answers: list[dict[str, Any] | Exception] = []
    for channel, nonce, limit_s, what in posted:
        try:
            with guard(channel):
                answers.append(channel.receive(nonce, limit_s, what))
        except Exception as error:
            answers.append(error)
    return answers
