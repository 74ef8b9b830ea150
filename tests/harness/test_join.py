from __future__ import annotations

import pytest

from campaigns.harness import join


def test_an_evaluator_wants_little_and_never_the_hosts_own_torch():
    worker, everything = join.wanted(False), join.wanted(True)
    assert any(line.startswith("celery") for line in worker)
    assert any(line.startswith("Django") for line in everything)
    names = {join.plain(line.split(">")[0]) for line in (*worker, *everything)}
    assert not names & set(join.HOST_HAS)


def test_a_folder_without_wheels_says_how_to_fill_it(tmp_path, capsys):
    assert join.main(["install", str(tmp_path), "--into", str(tmp_path / "site")]) == 1
    assert f"collect {tmp_path}" in capsys.readouterr().err


def test_a_host_without_a_gpu_is_told_to_name_a_queue(tmp_path, monkeypatch):
    monkeypatch.setattr(join, "kinds", lambda env: {})
    with pytest.raises(join.JoinError, match=r"--queue gpu\.cpu"):
        join.work("redis://nowhere", None, None, [])


def test_a_kind_of_gpu_gets_a_process_a_card_and_sees_no_other():
    command, env = join.worker("gpu.h200", ["GPU-a", "GPU-b"], {"PATH": "/bin"})
    assert command[command.index("-c") + 1] == "2"
    assert env == {"PATH": "/bin", "CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b"}
    assert join.worker("gpu.cpu", [], {})[1] == {"CUDA_VISIBLE_DEVICES": ""}
    assert join.worker("gpu.mine", [], {})[1] == {}
