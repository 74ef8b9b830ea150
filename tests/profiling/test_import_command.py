from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from profiling.models import Profile
from tests.profiling.captures import Export
from tests.profiling.conftest import DEMO

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("media")]
KEYS = {"format", "producer", "schema", "gpus", "kernels", "span_ns", "devices", "top_kernels", "label", "findings"}


def run(*args: str) -> dict[str, Any]:
    out = StringIO()
    call_command("import_profile", *args, "--json", stdout=out)
    return dict(json.loads(out.getvalue()))


def test_it_prints_one_document_with_the_stable_keys() -> None:
    result = run(str(DEMO))
    assert set(result) >= KEYS | {"seconds"}
    assert result["kernels"] == 7842
    assert result["devices"][0]["id"] == 0
    assert result["devices"][0]["busy_share"] == pytest.approx(0.0778, abs=1e-4)
    assert result["top_kernels"][0]["calls"] == 4130
    assert set(result["findings"][0]) >= {"title", "evidence", "start_ns", "end_ns"}
    assert Profile.objects.get(pk=result["profile"]).is_ready()


def test_the_same_file_again_is_the_same_profile() -> None:
    assert run(str(DEMO))["profile"] == run(str(DEMO))["profile"]


def test_the_file_itself_stays(tmp_path: Path, export: Export) -> None:
    path = export.kernel("a", 10, 20).write(tmp_path / "mine.sqlite")
    run(str(path))
    assert path.is_file()


@pytest.mark.parametrize("content", [b"", b"no profile", None])
def test_bad_input_is_an_error_with_a_hint_and_exit_code_2(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "f"
    if content is not None:
        path.write_bytes(content)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("import_profile", str(path), "--json", stdout=out)
    assert ended.value.code == 2
    assert set(json.loads(out.getvalue())) == {"error", "hint"}
    assert Profile.objects.count() == 0


def test_times_are_null_where_nothing_was_measured(tmp_path: Path) -> None:
    export = Export()
    export.extra_sql.append("CREATE TABLE NVTX_EVENTS (start INT)")
    result = run(str(export.write(tmp_path / "f.sqlite")))
    assert result["kernels"] == 0
    assert result["span_ns"] is None
    assert result["devices"] == []
