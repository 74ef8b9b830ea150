from __future__ import annotations

import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from tests.system.conftest import Product, until

pytestmark = pytest.mark.slow


def is_alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1][:3]
    except (FileNotFoundError, ProcessLookupError):
        return False


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if is_alive(pid)]


def test_it_answers_and_restarts_a_worker_that_dies(product):
    with urllib.request.urlopen(f"http://127.0.0.1:{product.port}/healthz") as answer:
        assert answer.read() == b"ok"
    before = product.services["profiles"]
    os.kill(before, signal.SIGKILL)
    until(lambda: product.services["profiles"] != before, 15, "another worker in its place")
    assert "profiles ended with status -9; starting it again" in product.output.read_text()


def test_a_second_up_for_the_same_data_folder_says_so(product):
    second = product.manage("up")
    assert second.returncode == 0
    assert "runs already" in second.stdout
    assert "/login?token=" in second.stdout


def test_ctrl_c_ends_everything(tmp_path):
    own = Product(tmp_path)
    own.start()
    pids = own.processes()
    assert len(pids) >= 6
    own.interrupt()
    assert alive(pids) == []


def test_ctrl_c_twice_ends_everything_at_once(tmp_path):
    own = Product(tmp_path)
    own.start()
    pids = own.processes()
    own.process.send_signal(signal.SIGINT)
    until(lambda: "ending" in own.output.read_text(), 10, "it ends")
    own.process.send_signal(signal.SIGINT)
    own.process.wait(10)
    until(lambda: not alive(pids), 10, "all its processes are gone")
    assert not (tmp_path / "up.json").exists()


def test_no_orphan_is_left_when_it_is_killed(tmp_path):
    own = Product(tmp_path)
    own.start()
    pids = own.processes()
    own.process.send_signal(signal.SIGKILL)
    own.process.wait()
    until(lambda: not alive(pids), 10, "all its processes are gone")
    time.sleep(0.2)
    assert alive(pids) == []
