#!/usr/bin/env python
"""The command line of Autoresearch Web."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "autoresearch_web.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is not installed in this Python. Run `make install`, then `.venv/bin/python manage.py …`.")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
