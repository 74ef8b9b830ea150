from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profiling.importers import Refused, import_profile
from profiling.importers.sniff import sniff
from tests.profiling.conftest import DEMO, SHARED


def refusal(path: Path, content: bytes, name: str = "upload.sqlite") -> Refused:
    path.write_bytes(content)
    with pytest.raises(Refused) as caught:
        import_profile(path, path.parent / "store", name=name)
    assert caught.value.hint
    assert not (path.parent / "store").exists()
    return caught.value


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"hello world, this is my notes file", "not a profile"),
        (b"PK\x03\x04" + b"\0" * 100, "zip archive"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 585000000\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><title>Sign in</title>", "web page"),
        (b"\x7fELF" + b"\0" * 100, "program"),
        (b"SQLite format 3\0" + b"\0" * 40, "cut SQLite"),
    ],
)
def test_it_names_what_a_file_is(tmp_path: Path, content: bytes, words: str) -> None:
    assert words in refusal(tmp_path / "f", content).error


def test_it_tells_the_size_that_an_lfs_pointer_stands_for(tmp_path: Path) -> None:
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 585000000\n"
    refused = refusal(tmp_path / "f", pointer)
    assert "585,000,000" in refused.error
    assert "git lfs pull" in refused.hint


def test_it_gives_the_exact_command_for_an_nsys_rep(tmp_path: Path) -> None:
    header = b"NVIDIA Tegra Profiler Report 36398880.\n\nLocal (CLI)\0\0SECRET=1"
    refused = refusal(tmp_path / "f", header, name="my run.nsys-rep")
    assert refused.needs_export
    assert "36398880" in refused.error
    assert "nsys export --type sqlite --output my_run.sqlite my_run.nsys-rep" in refused.hint
    assert "SECRET" not in refused.error + refused.hint


def test_a_prefixed_nsys_rep_is_called_damaged(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "f", b"junk" + b"NVIDIA Tegra Profiler Report 1.\n")
    assert "4 bytes stand before its header" in refused.error
    assert not refused.needs_export


def test_a_cut_export_is_told_by_its_length(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "f", DEMO.read_bytes()[:700_000])
    assert "its header states 1,490,944 bytes, the file has 700,000" in refused.error


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    copy = tmp_path / "holiday.jpg"
    shutil.copyfile(DEMO, copy)
    assert sniff(copy) == "sqlite"


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared sample profiles are not here")
def test_a_real_nsys_rep_is_recognised(tmp_path: Path) -> None:
    refused = refusal(tmp_path / "f", (SHARED / "h200" / "decode_h200.head.nsys-rep").read_bytes())
    assert refused.format == "nsys-rep"
