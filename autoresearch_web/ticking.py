"""Beat by a clock that nobody sets. Celery's own compares times of day, and slept for an hour when the clock was set back."""

from __future__ import annotations

import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler
from celery.schedules import schedule


class Ticks(Scheduler):
    """Sends each entry of ``beat_schedule`` at its interval, the first time at once. Nothing is kept on the disk."""

    def setup_schedule(self) -> None:
        self.merge_inplace(self.app.conf.beat_schedule)
        self.due_s: dict[str, float] = {}

    def tick(self, *_: Any, **__: Any) -> float:
        """Send what is due. Returns the seconds until the next."""
        for name, entry in list(self.schedule.items()):
            if time.monotonic() >= self.due_s.get(name, 0.0):
                self.apply_entry(entry, producer=self.producer)
                self.due_s[name] = time.monotonic() + interval_s(entry)
        return max(0.01, min(self.due_s.values()) - time.monotonic())


def interval_s(entry: ScheduleEntry) -> float:
    assert isinstance(entry.schedule, schedule), "beat_schedule holds intervals only"
    return float(entry.schedule.seconds)
