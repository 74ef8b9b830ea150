"""What hostile archives try, and what is taken of honest ones."""

from __future__ import annotations

import contextlib
import io
import stat
import zipfile

import pytest

from campaigns.intake import IntakeError, read_upload, save
from campaigns.intake.draft import Draft


def zipped(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        for name, target in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, target)
    return buffer.getvalue()


def test_files_of_one_folder_come_without_it_and_caches_are_left_out():
    data = zipped(
        {"mine/problem.toml": b"a", "mine/start/kernel.cpp": b"b", "mine/.git/config.py": b"c", "mine/a.bin": b"d"}
    )

    assert read_upload("mine.zip", data) == {"problem.toml": "a", "start/kernel.cpp": "b"}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (zipped({"../a.py": b"x"}), "leaves its folder"),
        (zipped({"/etc/a.py": b"x"}), "leaves its folder"),
        (zipped({"a\\..\\b.py": b"x"}), "leaves its folder"),
        (zipped({"C:/a.py": b"x"}), "leaves its folder"),
        (zipped({"a/../../b.py": b"x"}), "leaves its folder"),
        (zipped({}, {"a.py": "/etc/passwd"}), "a link"),
        (zipped({"a.py": b"0" * (3 << 20)}), "unpacks to more"),
        (zipped({f"{i}.py": b"0" * (1 << 20) for i in range(17)}), "unpacks to more"),
        (zipped({f"{i}.py": b"0" for i in range(500)}), "500 files"),
        (zipped({"a.py": b"\xff\xfe"}), "not UTF-8"),
        (zipped({"a.bin": b"x"}), "no text file"),
        (b"PK\x03\x04 and then nothing", "not a readable zip"),
        (zipped({"a.py": b"x"})[:-30], "not a readable zip"),
    ],
)
def test_a_hostile_archive_is_refused_for_its_reason(data: bytes, told: str):
    with pytest.raises(IntakeError, match=told):
        read_upload("it.zip", data)


def test_a_header_that_lies_about_the_size_is_not_believed():
    data = bytearray(zipped({"a.py": b"0" * (5 << 20)}))
    for at in (data.find(b"PK\x01\x02") + 24, 22):
        data[at : at + 4] = (10).to_bytes(4, "little")

    with pytest.raises(IntakeError):
        read_upload("it.zip", bytes(data))


@pytest.mark.parametrize(("data", "told"), [(b"", "empty"), (b"\x00a", "NUL"), (b"x" * (9 << 20), "at most")])
def test_a_single_file_has_its_limits_too(data: bytes, told: str):
    with pytest.raises(IntakeError, match=told):
        read_upload("a.py", data)


def test_a_shelf_takes_a_name_once_and_nothing_outside_it(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path))
    save(Draft("mine", "Mine", "x", {"problem.toml": "a", "start/k.py": "b"}))

    assert (tmp_path / "problems" / "mine" / "start" / "k.py").read_text() == "b"
    for name, files, told in [
        ("mine", {"problem.toml": "a"}, "already"),
        ("rmsnorm", {"problem.toml": "a"}, "already"),
        ("../x", {"problem.toml": "a"}, "letters"),
        ("other", {"../../a.py": "x"}, "leaves its folder"),
    ]:
        with pytest.raises(IntakeError, match=told):
            save(Draft(name, "", "x", files))
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["k.py", "mine", "problem.toml", "problems", "start"]


def test_an_archive_with_any_byte_changed_is_read_or_refused():
    good = zipped({"mine/problem.toml": b"a" * 50, "mine/inputs.py": b"b" * 50})
    for at in range(len(good)):
        for value in (0x00, 0x86, 0xFF):
            with contextlib.suppress(IntakeError):
                read_upload("a.zip", good[:at] + bytes([value]) + good[at + 1 :])
