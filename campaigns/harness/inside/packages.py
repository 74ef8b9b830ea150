"""Where a runner finds installed packages. It starts without ``site``, so that no ``.pth`` file of the host runs by itself."""

from __future__ import annotations

import os
import site
import sys

BY_PTH = ("nvidia_cutlass",)
"""Distributions whose modules are found by a ``.pth`` file only: CuTe DSL's ``cutlass`` lies in a folder of its own."""


def add(folders: list[str]) -> None:
    sys.path.extend(folders)
    for folder in folders:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if name.endswith(".pth") and name.startswith(BY_PTH):
                site.addpackage(folder, name, None)
