"""Runs a compiler and hands its output over. What it prints is the build log."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Any


def main(config: dict[str, Any]) -> None:
    done = subprocess.run(config["command"], stdin=subprocess.DEVNULL, cwd=config["folder"])
    if done.returncode == 0:
        with open(config["product"], "rb") as product, os.fdopen(config["product_fd"], "wb") as out:
            shutil.copyfileobj(product, out, 1 << 20)
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
