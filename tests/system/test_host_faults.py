"""A disk that is full or read-only: one sentence, what to do, and exit code 2."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.db.utils import OperationalError

from autoresearch_web import host_faults

MANAGE = Path(__file__).parents[2] / "manage.py"


@pytest.mark.parametrize("text", ["database or disk is full", "disk I/O error", "database is locked"])
def test_what_the_database_says_of_its_host_is_explained(text: str):
    error = OperationalError(text)
    error.__cause__ = sqlite3.OperationalError(text)

    assert set(host_faults.explained(error) or {}) == {"error", "hint"}


def test_a_fault_of_ours_is_not_explained_away():
    error = OperationalError("no such table")
    error.__cause__ = sqlite3.OperationalError("no such table")

    assert host_faults.explained(error) is None
    assert host_faults.explained(ValueError("x")) is None


def test_a_data_folder_that_cannot_be_made_ends_the_command_with_a_sentence():
    environment = {**os.environ, "AUTORESEARCH_HOME": "/proc/nowhere"}
    command = [sys.executable, MANAGE, "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert done.returncode == 2
    assert "AUTORESEARCH_HOME" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_that_is_taken_ends_it_at_once_with_a_sentence(tmp_path: Path):
    environment = {**os.environ, "AUTORESEARCH_HOME": str(tmp_path)}
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        command = [sys.executable, MANAGE, "up", "--port", str(sock.getsockname()[1])]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)

    assert done.returncode == 1
    assert "choose another address with --port" in done.stderr
    assert "broker" not in done.stderr
