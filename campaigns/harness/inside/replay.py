"""A program for nsys and ncu to watch: loads a candidate, draws its inputs, calls it in the harness's named phases.

It is a whole process and not a role, since those tools start what they watch. It talks to nobody.
"""

from __future__ import annotations

import functools
import json
import os
import shutil

from . import packages


def main(text: str) -> None:
    config = json.loads(text)
    packages.add(config["paths"])
    from . import gpu_run
    from .gpu_device import open_device
    from .trace import phases

    for name in ("candidate", "problem"):
        shutil.copytree(os.path.join(config["folder"], name), os.path.join("/tmp", name), dirs_exist_ok=True)
    device = open_device(config["device"])
    device.torch.set_grad_enabled(False)
    role = gpu_run.Role(device, config["load"])
    role.make_slots(config["slots"])
    role.renew(config["renew"])
    calls = [functools.partial(role.call, role.slots[name], role.axes(name)) for name in config["calls"]]
    calls[0]()  # which compiles, before any phase
    device.sync()
    for call, _ in phases(calls, config["warm"]):
        call()
        device.sync()
