"""JSON that is not quite JSON, cut files, gzip bombs: read, repaired, or refused in words."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from profiling.importers import Refused, import_profile, kineto_bytes
from profiling.importers.kineto_scan import escape_inner_quotes, scan
from tests.profiling.traces_made import kernel, names, run, starts, trace

HEAD = b'{"schemaVersion": 1, "traceEvents": ['


def raw(name: bytes, ts: int = 50) -> bytes:
    """A kernel whose name stands in the file byte for byte."""
    return (
        b'{"ph": "X", "cat": "kernel", "name": "%b", "pid": 0, "tid": 7, "ts": %d, "dur": 5, "args": {"device": 0}}'
        % (
            name,
            ts,
        )
    )


def around(event: bytes, before: int = 3, after: int = 3) -> bytes:
    """The event amid sound ones."""
    first = [json.dumps(kernel(ts * 10)).encode() for ts in range(1, before + 1)]
    last = [json.dumps(kernel(100 + ts * 10)).encode() for ts in range(after)]
    return HEAD + b", ".join([*first, event, *last]) + b']\n, "traceName": "x"}'


def test_control_characters_in_a_name_are_replaced(tmp_path: Path) -> None:
    report, found = run(around(raw(b"bell\x07 and\nnewline\x00")), tmp_path)
    assert report["kernels"] == 7
    assert any(name.startswith("bell") for name in names(found))


def test_bad_utf8_in_a_name_is_replaced(tmp_path: Path) -> None:
    report, found = run(around(raw(b"caf\xe9\xff")), tmp_path)
    assert report["kernels"] == 7
    assert "caf\ufffd\ufffd" in names(found)


def test_lone_surrogates_and_markup_are_text(tmp_path: Path) -> None:
    report, found = run(around(raw(rb"\ud800<script>alert(1)</script>")), tmp_path)
    assert report["kernels"] == 7
    assert any("<script>" in name for name in names(found))


@pytest.mark.parametrize("name", [b'say "hi" now', b'one " quote', b'ends with quote"', b'{lambda} "[memory]" ]}, "x'])
def test_unescaped_quotes_lose_at_most_their_own_event(name: bytes, tmp_path: Path) -> None:
    report, _ = run(around(raw(name)), tmp_path)
    lost = 7 - report["kernels"]
    assert lost == 0 or (lost == 1 and any("1 events are broken JSON" in note for note in report["notes"]))


def test_an_unescaped_quote_in_the_middle_of_many_events_loses_no_other(tmp_path: Path) -> None:
    events = b",\n".join(
        raw(b'odd " one' if i % 1000 == 500 else b"fine {lambda()#1} [x]", i * 10) for i in range(1, 5001)
    )
    report, _ = run(HEAD + events + b"]}", tmp_path)
    assert report["kernels"] >= 4995
    assert report["kernels"] == 5000 or any("broken JSON" in note for note in report["notes"])


def test_quotes_broken_beyond_a_chunk_lose_only_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_bytes, "CHUNK_BYTES", 4096)
    monkeypatch.setattr(kineto_bytes, "READ_BYTES", 1024)
    events = b",\n".join(raw(b'odd " one' if i % 100 == 50 else b"fine {lambda()#1}", i * 10) for i in range(1, 501))
    report, _ = run(HEAD + events + b"]}", tmp_path)
    assert report["kernels"] >= 490


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "nan", "inf", "-nan"])
def test_numbers_that_are_none_do_no_harm(literal: str, tmp_path: Path) -> None:
    event = json.dumps(kernel(50)).replace('"stream": 7', f'"stream": 7, "memory bandwidth (GB/s)": {literal}')
    report, _ = run(around(event.encode()), tmp_path)
    assert report["kernels"] == 7


@pytest.mark.parametrize("junk", [b"null", b"3", b'"text"', b"[1, 2]", b"{}", b'{"ph": 5, "name": []}'])
def test_elements_that_are_no_events_are_passed_over(junk: bytes, tmp_path: Path) -> None:
    report, _ = run(around(junk), tmp_path)
    assert report["kernels"] == 6


@pytest.mark.parametrize("keep", [0.3, 0.7, 0.97])
def test_a_cut_trace_is_refused_with_where_it_ends(keep: float, tmp_path: Path) -> None:
    whole = json.dumps(trace(*[kernel(i * 10) for i in range(200)])).encode()
    with pytest.raises(Refused, match=r"cut JSON file: it ends at byte [\d,]+, after \d+ events") as refused:
        run(whole[: int(len(whole) * keep)], tmp_path)
    assert "Record the trace again" in refused.value.hint


def test_a_cut_gzip_file_is_refused(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(trace(*[kernel(i * 10) for i in range(500)])).encode())
    with pytest.raises(Refused, match="cut gzip file"):
        run(whole[:-20], tmp_path)


def test_a_damaged_gzip_file_is_refused(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(json.dumps(trace(*[kernel(i * 10) for i in range(500)])).encode()))
    whole[len(whole) // 2] ^= 0xFF
    with pytest.raises(Refused, match=r"damaged|cut|JSON"):
        run(bytes(whole), tmp_path)


def test_gzip_members_one_after_another_are_one_file(tmp_path: Path) -> None:
    whole = json.dumps(trace(kernel(1), kernel(10))).encode()
    report, _ = run(gzip.compress(whole[:50]) + gzip.compress(whole[50:]), tmp_path)
    assert report["kernels"] == 2


def test_a_gzip_bomb_is_refused_early(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_bytes, "RATIO_COUNTS_FROM_BYTES", 16 << 20)
    packer = zlib.compressobj(9, wbits=31)
    bomb = packer.compress(HEAD) + b"".join(packer.compress(b" " * (1 << 20)) for _ in range(64)) + packer.flush()
    with pytest.raises(Refused, match="expands without bound"):
        run(bomb, tmp_path)


@pytest.mark.parametrize(
    ("content", "what"),
    [(b"SQLite format 3\0" + b"x" * 100, "SQLite"), (b"NVR\0" + b"x" * 100, "Nsight Compute"), (b"hello", "no trace")],
)
def test_gzip_of_something_else_is_named(content: bytes, what: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=what):
        run(gzip.compress(content), tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": 1}',
        b"{}",
        b"[]",
        b'{"cells": [], "metadata": {}}',
        b"[1, 2, 3]",
        b'{"traceEvents": 5}',
        b"[[[[" * 50 + b"]]]]" * 50,
    ],
)
def test_json_that_is_no_trace_is_refused(content: bytes, tmp_path: Path) -> None:
    if content == b"[]":
        report, _ = run(content, tmp_path)
        assert report["label"] == "no kernels captured"
        return
    with pytest.raises(Refused, match=r"no trace|trace events"):
        run(content, tmp_path)


def test_deep_nesting_does_no_harm(tmp_path: Path) -> None:
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    event = raw(b"k")[:-2] + b', "deep": %b}}' % (b"[" * 5000 + b"]" * 5000)
    report, _ = run(b'{"x": ' + deep + b', "traceEvents": [' + event + b", " + raw(b"k", 90) + b"]}", tmp_path)
    assert report["kernels"] >= 1


def test_a_huge_value_beside_the_events_is_passed_over(tmp_path: Path) -> None:
    content = b'{"INFO": "' + b"x" * (3 << 20) + b'", "traceEvents": [' + raw(b"k") + b"]}"
    assert run(content, tmp_path)[0]["kernels"] == 1


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    assert run(b"\xef\xbb\xbf" + around(raw(b"k")), tmp_path)[0]["kernels"] == 7


@pytest.mark.parametrize("size", [64, 257, 1000, 4096])
def test_the_chunk_size_does_not_change_the_result(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kineto_bytes, "CHUNK_BYTES", size)
    monkeypatch.setattr(kineto_bytes, "READ_BYTES", size)
    odd = [kernel(i * 10, name=f'quote \\" and back\\\\slash {{}} [] {i} é "x"') for i in range(100)]
    report, found = run(trace(*odd), tmp_path)
    assert starts(found) == [i * 10_000 for i in range(100)]
    assert report["notes"] == []


@given(st.lists(st.text(max_size=12), max_size=8))
def test_scanning_finds_the_objects_of_any_array(texts: list[str]) -> None:
    objects = [{"name": text, "args": {text: [text, {"a": []}]}} for text in texts]
    text = json.dumps(objects, ensure_ascii=False).encode()[1:]
    found = scan(text)
    assert [json.loads(text[a:b]) for a, b in found.objects] == objects
    assert found.closed == len(text) - 1


def test_inner_quotes_are_escaped_and_others_left_alone() -> None:
    sound = json.dumps(kernel(1, name='a \\"quoted\\" name')).encode()
    assert escape_inner_quotes(sound) == sound
    assert json.loads(escape_inner_quotes(b'{"name": "foo "bar" baz", "x": 1}')) == {"name": 'foo "bar" baz', "x": 1}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
@example(None)
def test_mutilated_traces_import_or_are_refused(tmp_path: Path, data: st.DataObject | None) -> None:
    content = bytearray(around(raw(b"k")))
    for _ in range(data.draw(st.integers(1, 6)) if data else 0):
        at = data.draw(st.integers(0, len(content) - 1))  # type: ignore[union-attr]
        change = data.draw(st.binary(max_size=3))  # type: ignore[union-attr]
        content[at : at + data.draw(st.integers(0, 4))] = change  # type: ignore[union-attr]
    file = tmp_path / "made.json"
    file.write_bytes(b"{" + bytes(content)[1:])
    said = ["imported"]
    try:
        import_profile(file, tmp_path / "store")
    except Refused as refused:
        said = [refused.error, refused.hint]
    assert all(said)
