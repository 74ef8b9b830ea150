"""How much reading a source may cost. Counted and not timed, so that the same source is always judged alike."""

from __future__ import annotations

from collections.abc import Sequence

STEPS = 20_000_000
"""Some ten seconds. The largest kernels that people write need a hundredth of it."""


class TooInvolved(Exception):
    """Reading it would take too long: no person reads such a source either."""


class Effort:
    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise TooInvolved


class Flow:
    """Statements that carry names to names: what is reached from some, in time proportional to the text."""

    def __init__(self, effort: Effort) -> None:
        self.effort = effort
        self.carried: list[frozenset[str]] = []
        self.by_name: dict[str, list[int]] = {}

    def add(self, sources: set[str], targets: set[str]) -> None:
        """Where any of ``sources`` is, there are all of ``targets``."""
        if not sources or not targets:
            return
        self.effort.spend(len(sources) + len(targets))
        for name in sources:
            self.by_name.setdefault(name, []).append(len(self.carried))
        self.carried.append(frozenset(targets))

    def closure(self, names: set[str], without: set[str] | frozenset[str] = frozenset()) -> set[str]:
        found = names - without
        todo, done = list(found), set()
        while todo:
            for index in self.by_name.get(todo.pop(), ()):
                if index in done:
                    continue
                done.add(index)
                self.effort.spend(1 + len(self.carried[index]))
                more = self.carried[index] - found - without
                found |= more
                todo += more
        return found


def by_target(flow: Sequence[tuple[set[str], set[str]]], effort: Effort) -> Flow:
    """The same statements against the stream: from what is written to what was read."""
    found = Flow(effort)
    for sources, targets in flow:
        found.add(targets, sources)
    return found


__all__ = ["STEPS", "Effort", "Flow", "TooInvolved", "by_target"]
