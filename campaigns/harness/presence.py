"""An evaluator says that it is there: what it is, its versions, sandbox and peaks, under a key at the broker that lapses.

It says so from the worker's main process, which measures nothing, every ``EVERY_S``. Nothing is measured for it: peaks
are those that were kept before.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Any

import msgspec
import redis
from celery.signals import worker_ready

from . import cpu_peaks, kept_peaks
from .gpu import devices, peaks
from .hosts import this_host

log = logging.getLogger(__name__)
NAMES = "evaluators"
"""A set at the broker: ``<queue> <host>`` of all that ever said a word."""
KEY = "evaluator:"
EVERY_S = 10.0
LAPSES_S = 35


def described(queue: str) -> dict[str, Any]:
    """``{queue, about, gpu}``: ``about`` is a ``report.Host``, ``gpu`` says what NVML knows of the first GPU."""
    gpus = [] if queue == "gpu.cpu" else devices.visible()
    gpu = gpus[0] if gpus else None
    known = kept_peaks.kept(peaks.identity(gpu, peaks.torch_version()) if gpu else cpu_peaks.identity())
    about = this_host("cpu", gpu, known)
    card = {"memory_bytes": gpu.memory_bytes, "capability": list(gpu.capability), "count": len(gpus)} if gpu else {}
    return {"queue": queue, "about": msgspec.to_builtins(about), "gpu": card}


def say(queues: list[str]) -> None:
    from .worker import broker  # whoever only reads what was said makes no second Celery application

    for queue in queues:
        said = described(queue)
        name = f"{queue} {said['about']['name']}"
        broker().sadd(NAMES, name)
        broker().set(f"{KEY}{name}", json.dumps(said), ex=LAPSES_S)


def keep_saying(queues: list[str]) -> None:
    while True:
        try:
            say(queues)
        except (redis.RedisError, OSError) as error:
            log.warning("this evaluator could not say that it is there: %s", error)
        time.sleep(EVERY_S)


@worker_ready.connect
def begin(sender: Any, **_: Any) -> None:
    queues = [name for name in sender.app.amqp.queues.consume_from if name.startswith("gpu.")]
    if queues:
        threading.Thread(target=keep_saying, args=(queues,), name="presence", daemon=True).start()
