#!/usr/bin/env python
"""The command line of Autoresearch Web."""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "autoresearch_web.settings")
    try:
        from django.core.exceptions import ImproperlyConfigured
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit("Django is not installed in this Python. Run `make install`, then `.venv/bin/python manage.py …`.")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # what is ours cannot be imported then
        what, _, hint = str(error).partition(". ")
        end({"error": what, "hint": hint})
    except Exception as error:
        from autoresearch_web import host_faults

        found = host_faults.explained(error)
        if found is None:
            raise
        end(found)


def end(found: dict[str, str]) -> NoReturn:
    """Say what is wrong and what to do, as everything else is said: in JSON on stdout where that was asked for."""
    if "--json" in sys.argv:
        print(json.dumps(found))
    else:
        print(f"{found['error']}\n{found['hint']}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
