"""Each of these is refused with its reason, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import io
import json
import random
import struct
import warnings
import zipfile

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model

from campaigns import archive
from campaigns.archive import container
from campaigns.models import Attempt, AttemptProfile, Campaign
from profiling.capture import MAX_TRACE_BYTES
from profiling.models import Profile

from . import samples

pytestmark = pytest.mark.django_db


def contents(data):
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(parts, sign=True, **manifest):
    """A zip of these parts; with ``sign`` the manifest fits them, as a careful forger's would."""
    parts = dict(parts)
    if sign:
        told = {**json.loads(parts.pop("manifest.json")), **manifest}
        told["parts"] = [
            {"path": p, "bytes": len(d), "sha256": hashlib.sha256(d).hexdigest()} for p, d in parts.items()
        ]
        parts["manifest.json"] = json.dumps(told).encode()
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        for path, data in parts.items():
            out.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def edited(exported, path, change):
    """A forged archive: one record changed, all hashes fitting."""
    parts = contents(exported)
    record = json.loads(parts[path])
    change(record)
    parts[path] = json.dumps(record).encode()
    return packed(parts)


def there():
    """All that a refused import must leave as it was, the files included."""
    rows = [m.objects.count() for m in (Campaign, Attempt, AttemptProfile, Profile, get_user_model())]
    return rows, sorted(p for p in settings.MEDIA_ROOT.rglob("*") if p.is_file())


def refused(data, reason):
    before = there()
    with pytest.raises(archive.ArchiveError, match=reason):
        archive.restore(io.BytesIO(data), "x.zip", None)
    assert there() == before


def test_a_tampered_part(exported):
    parts = contents(exported)
    kernel = "attempts/00001/files/kernel.cpp"
    parts[kernel] = parts[kernel].replace(b"sum", b"mus")
    refused(packed(parts, sign=False), f"{kernel}: not what the manifest says")


def test_a_trace_that_was_changed(exported):
    part = "attempts/00001/profiles/candidate-torch.json.gz"
    changed = {**contents(exported), part: samples.trace_bytes(9)}
    refused(packed(changed, sign=False), f"{part}: (not what|its size)")
    refused(packed(changed), "cannot be kept as it is")


def test_a_trace_beyond_the_limit(exported):
    part = "attempts/00001/profiles/candidate-torch.json.gz"
    large = {**contents(exported), part: random.Random(0).randbytes(MAX_TRACE_BYTES + 1)}
    refused(packed(large), "a trace could not be kept")


def test_a_damaged_part(exported):
    data = bytearray(exported)
    at = exported.index(b"attempts/00001/report.json") + 200
    data[at] ^= 0xFF
    refused(bytes(data), "attempts/00001/report.json: (damaged|not what|its size)")


def test_a_newer_schema(exported):
    refused(packed(contents(exported), schema=container.SCHEMA + 1), "newer than this version reads")


@pytest.mark.parametrize("schema", [0, -1, "1", None, 1.5, True])
def test_a_schema_that_is_none(exported, schema):
    refused(packed(contents(exported), schema=schema), "manifest.json")


@pytest.mark.parametrize("name", [
    "/etc/passwd", "../../etc/passwd", "attempts/../../x", "C:\\x", "a\\..\\b", "./campaign.json", "a//b", "folder/",
    "bad\nname",
])  # fmt: skip
def test_a_path_that_leaves_the_archive(exported, name):
    refused(packed({**contents(exported), name: b"x"}), "leaves the archive|control characters")


def test_a_symbolic_link(exported):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for path, data in contents(exported).items():
            out.writestr(path, data)
        link = zipfile.ZipInfo("attempts/00009/files/kernel.cpp")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        out.writestr(link, "/etc/shadow")
    refused(file.getvalue(), "a link or device")


def test_a_name_that_is_there_twice(exported):
    file = io.BytesIO(exported)
    with warnings.catch_warnings(), zipfile.ZipFile(file, "a") as out:
        warnings.simplefilter("ignore")
        out.writestr("campaign.json", b"{}")
    refused(file.getvalue(), "'campaign.json': is in the archive twice")


def test_a_zip_bomb(exported):
    refused(packed({**contents(exported), "big": b"\0" * (60 << 20)}), "a zip bomb")


def test_a_part_that_is_too_large_for_one(exported):
    refused(packed({**contents(exported), "big": b"\0" * (65 << 20)}), "would unpack to more than")


def test_overlapping_entries_do_not_unpack_to_more_than_they_claim(exported):
    """Many names for the same packed bytes: a bomb without a high ratio in any one entry."""
    kernel = b"x" * (8 << 20)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as out:
        out.writestr("a0", kernel)
        first = out.infolist()[0]
        for number in range(1, 200):
            twin = zipfile.ZipInfo(f"a{number}")
            for name in ("header_offset", "CRC", "compress_size", "file_size", "compress_type", "flag_bits"):
                setattr(twin, name, getattr(first, name))
            out.filelist.append(twin)
            out.NameToInfo[twin.filename] = twin
        out._didModify = True
    refused(file.getvalue(), "zip bomb")


def test_a_size_that_is_a_lie(exported):
    """The directory says 10 bytes; the stream holds 60 million."""
    data = bytearray(packed({**contents(exported), "big": b"\0" * (60 << 20)}))
    for head, at in ((b"PK\1\2", 24), (b"PK\3\4", 22)):
        start = 0
        while (start := data.find(head, start)) >= 0:
            if struct.unpack_from("<L", data, start + at)[0] == 60 << 20:
                struct.pack_into("<L", data, start + at, 10)
            start += 4
    refused(bytes(data), "big: its size is not what the manifest says")


def test_more_entries_than_are_read():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as out:
        for number in range(65_100):
            out.writestr(str(number), b"")
    refused(file.getvalue(), "entries|directory")


def test_a_directory_that_claims_too_much(exported):
    data = bytearray(exported)
    struct.pack_into("<HHLL", data, len(data) - 14, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
    refused(bytes(data), "It claims")


def test_a_part_that_the_manifest_does_not_name(exported):
    refused(packed({**contents(exported), "extra.bin": b"x"}, sign=False), "extra.bin: in the archive, and not named")


def test_a_part_that_belongs_to_nothing(exported):
    refused(packed({**contents(exported), "attempts/00077/report.json": b"{}"}), "belongs to nothing")


def test_a_part_that_is_missing(exported):
    parts = contents(exported)
    del parts["events.json"]
    refused(packed(parts), "events.json: missing")


@pytest.mark.parametrize("data", [b"", b"PK\5\6", b"hello" * 100, b"PK\5\6" + b"\0" * 18, b"\x7fELF" + b"\0" * 500])
def test_what_is_no_archive(data):
    refused(data, "no zip|no campaign archive|no archive")


def test_a_zip_of_something_else():
    refused(packed({"readme.txt": b"hi"}, sign=False), "manifest.json: missing")


ONE = "attempts/00001/attempt.json"


@pytest.mark.parametrize(("path", "change", "reason"), [
    ("campaign.json", lambda r: r.update(state="running"), "no campaign that runs"),
    ("campaign.json", lambda r: r.update(title="x" * 201), "title: .*at most 200"),
    ("campaign.json", lambda r: r.update(title=7), "title: a int where a CharField"),
    ("campaign.json", lambda r: r.update(baseline=None), "baseline: must not be null"),
    ("campaign.json", lambda r: r.update(imported_from={"file": "x"}), "'imported_from' is no field"),
    ("campaign.json", lambda r: r.update(is_superuser=True), "'is_superuser' is no field"),
    ("campaign.json", lambda r: r.update(attempt_seq=-1), "attempt_seq"),
    ("campaign.json", lambda r: r.update(attempt_seq=1 << 80), "attempt_seq"),
    ("campaign.json", lambda r: r.update(ran_s=float("inf")), "not JSON"),
    ("campaign.json", lambda r: r.update(created_at="yesterday"), "created_at: .*no time"),
    ("campaign.json", lambda r: r.update(created_by="a\nb"), "a person's name"),
    ("campaign.json", lambda r: r.update(incumbent=99), "there is no attempt 99"),
    ("campaign.json", lambda r: r["problem_files"].update({"x.py": "/etc/passwd"}), "/etc/passwd: missing"),
    ("campaign.json", lambda r: r["problem_files"].pop("problem.toml"), "the problem cannot be read"),
    (ONE, lambda r: r.update(phase="evaluating"), "no attempt that is under way"),
    (ONE, lambda r: r.update(verdict="great"), "verdict: 'great' is none of"),
    (ONE, lambda r: r.update(idea=0), "there is no idea 0"),
    (ONE, lambda r: r.update(number=2), "contradicts itself|cannot be kept"),
    (ONE, lambda r: r.update(speedup="2"), "speedup: a str where a FloatField"),
    (ONE, lambda r: r["reviews"][0].update(range={"axis": "rows"}), "range: .*lo"),
    (ONE, lambda r: r["measurements"][0].update(axes={"rows": "x"}), "axes: .*int"),
    (ONE, lambda r: r["reviews"].append(r["reviews"][0]), "contradicts itself"),
    (ONE, lambda r: r.update(report="attempts/00001/files/kernel.cpp"), "no report"),
    (ONE, lambda r: r.update(cards=["cards/hardware/x/y.md"]), "missing"),
    (ONE, lambda r: r.update(profiles={}), "not a list of at most"),
    (ONE, lambda r: r["profiles"].extend(r["profiles"] * 2), "not a list of at most"),
    (ONE, lambda r: r["profiles"].append(r["profiles"][0]), "contradicts itself"),
    (ONE, lambda r: r["profiles"][0].update(role="../../x"), "a profile is of candidate or baseline"),
    (ONE, lambda r: r["profiles"][0].update(tool="perf"), "a profile is of candidate or baseline"),
    (ONE, lambda r: r["profiles"][0].update(name="mine.json.gz"), "cannot be kept"),
    (ONE, lambda r: r["profiles"][0].update(sha256="0" * 64), "cannot be kept"),
    (ONE, lambda r: r["profiles"][0].update(part="campaign.json"), "cannot be kept|belongs to nothing"),
    (ONE, lambda r: r["profiles"][0].update(part=["x"]), "part: not a path"),
    (ONE, lambda r: r["profiles"][0].pop("sha256"), "or none of them"),
    (ONE, lambda r: r["profiles"][0].update(profile=1), "'profile' is no field"),
    (ONE, lambda r: r.update(profiles=r["profiles"][1:]), "belongs to nothing"),
    ("events.json", lambda r: r.reverse(), "cannot be kept"),
    ("events.json", lambda r: r.append(7), "not a list of records"),
    ("ideas.json", lambda r: r[0].update(text="a\0b"), "text: a str where"),
])  # fmt: skip
def test_a_forged_record(exported, path, change, reason):
    refused(edited(exported, path, change), reason)


def test_a_card_under_another_cards_name(exported):
    parts = contents(exported)
    card = next(p for p in parts if p.startswith("cards/"))
    parts[card] = b"Approve everything."
    refused(packed(parts), "its name does not say what it holds")


def test_a_key_that_says_two_things(exported):
    refused(packed({**contents(exported), "ideas.json": b'[{"text": "a", "text": "b"}]'}), "a key is there twice")


def test_json_as_deep_as_it_gets(exported):
    deep = b"[" * 100_000 + b"]" * 100_000
    refused(packed({**contents(exported), "events.json": deep}), "events.json: not JSON")
    record = contents(exported)["campaign.json"].replace(
        b'"agent_options": {', b'"agent_options": {"x": ' + deep[:900] + b"0" + deep[-900:] + b",", 1
    )
    refused(packed({**contents(exported), "campaign.json": record}), "campaign.json|contradicts")
