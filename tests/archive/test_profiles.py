"""The profiles of an archive: shown after an import as they were taken, and harmless whatever is in their traces."""

from __future__ import annotations

import gzip
import hashlib
import io
import stat

import pytest

from campaigns import archive, captures
from campaigns.archive.container import from_json
from campaigns.models import AttemptProfile
from profiling import importing
from profiling.models import Profile

from . import samples
from .test_hostile import contents, edited, packed

pytestmark = pytest.mark.django_db

CANDIDATE = "attempts/00001/profiles/candidate-torch.json.gz"
BASELINE = "attempts/00001/profiles/baseline-torch.json.gz"


def elsewhere(data, rich, capture):
    """Imported into an installation that knows neither the campaign nor its profiles."""
    rich.delete()
    for profile in Profile.objects.all():
        profile.discard()
    with capture(execute=True):
        return archive.restore(io.BytesIO(data), "x.zip", None)


def exported_again(campaign):
    file = io.BytesIO()
    archive.export(campaign, file)
    return file.getvalue()


def import_all():
    for profile in Profile.objects.all():
        assert importing.run(str(profile.pk))


def forged(exported, part, trace):
    """An archive with another trace in a part, its sha256 fitting in the record, too."""
    data = packed({**contents(exported), part: trace})
    sha256 = hashlib.sha256(trace).hexdigest()
    role = part.rpartition("/")[2].partition("-")[0]

    def change(record):
        next(p for p in record["profiles"] if p.get("part") and p["role"] == role)["sha256"] = sha256

    return edited(data, "attempts/00001/attempt.json", change)


def test_the_archive_holds_the_traces_of_our_own_profiler_and_a_record_of_the_others(exported):
    parts = contents(exported)
    assert gzip.decompress(parts[CANDIDATE]) == gzip.decompress(samples.trace_bytes(0))
    baseline, ncu, candidate = from_json(parts["attempts/00001/attempt.json"], "x")["profiles"]
    assert (candidate["part"], baseline["part"]) == (CANDIDATE, BASELINE)
    assert candidate["name"].endswith("attempt 1 · candidate, torch.json.gz")
    assert candidate["host"] == "box"
    assert set(ncu) == {"role", "tool", "workload", "host", "problem"}


def test_an_imported_campaign_shows_them_and_compares_them(rich, exported, client, django_capture_on_commit_callbacks):
    campaign = elsewhere(exported, rich, django_capture_on_commit_callbacks)
    one = campaign.attempts.get(number=1)
    assert {s.word for s in captures.pair(one).sides} == {"waiting for import"}
    import_all()
    pair = captures.pair(one)
    assert [s.ready for s in pair.sides] == [True, True]
    client.force_login(samples.person("eve"))
    page = client.get(one.get_absolute_url()).content.decode()
    assert pair.compare.replace("&", "&amp;") in page
    assert pair.compare.replace("&", "&amp;") in client.get(campaign.get_absolute_url()).content.decode()
    assert "no &lt;permission&gt; to read counters" in page
    compared = client.get(pair.compare)
    assert compared.context["result"]["a"]["occurrences"] == 5
    shown = client.get(pair.sides[1].profile.get_absolute_url())
    for page in (compared, shown):
        assert f'href="{one.get_absolute_url()}"' in page.content.decode()
        assert "Nothing of it was run on this machine." in page.content.decode()
    for page in (compared.content.decode(), shown.content.decode()):
        assert "&quot; onfocus=&quot;alert" in page
        assert '" onfocus="alert' not in page
        assert "<script>alert(1)" not in page
    assert exported_again(campaign) == exported


def test_a_damaged_or_hostile_trace_is_a_failed_profile_and_no_failed_import(
    rich, exported, settings, django_capture_on_commit_callbacks
):
    settings.PROFILE_IMPORT_MEMORY_BYTES = 1 << 30
    data = forged(exported, CANDIDATE, b"\x1f\x8b no gzip at all")
    data = forged(data, BASELINE, gzip.compress(b'{"traceEvents": [' + b" " * (64 << 20), mtime=0))
    campaign = elsewhere(data, rich, django_capture_on_commit_callbacks)
    import_all()
    assert {p.state for p in Profile.objects.all()} == {"failed"}
    assert {s.word for s in captures.pair(campaign.attempts.get(number=1)).sides} == {"not imported"}
    assert contents(exported_again(campaign))[CANDIDATE] == contents(data)[CANDIDATE]


def test_traces_left_by_an_import_that_was_killed_are_imported_later(rich, exported, settings):
    settings.LOST_AFTER_S = 0
    settings.PROFILE_KEPT = False
    rich.delete()
    Profile.objects.all().delete()
    campaign = archive.restore(io.BytesIO(exported), "x.zip", None)  # killed before the commit's callbacks
    assert Profile.objects.count() == 0
    captures.watch()
    assert Profile.objects.count() == 2
    assert {s.word for s in captures.pair(campaign.attempts.get(number=1)).sides} == {"waiting for import"}


def test_nobody_is_asked_for_profiles_that_an_archive_lacks(rich, settings, monkeypatch):
    settings.LOST_AFTER_S = 0
    AttemptProfile.objects.filter(tool="ncu").delete()
    AttemptProfile.objects.update(trace_sha256="", host="", profile=None)
    data = exported_again(rich)
    rich.delete()
    campaign = archive.restore(io.BytesIO(data), "x.zip", None)
    monkeypatch.setattr("campaigns.dispatch.capture", lambda *a: pytest.fail("asked"))
    monkeypatch.setattr("campaigns.dispatch.capture_under_way", lambda *a: False)
    monkeypatch.setattr("campaigns.dispatch.traces_of", lambda *a: [])
    captures.watch()
    assert {s.word for s in captures.pair(campaign.attempts.get(number=1)).sides} == {"deleted, or not in the archive"}


def test_an_archive_from_before_there_were_profiles_in_it(rich, exported):
    data = edited(exported, "attempts/00001/attempt.json", lambda r: r.pop("profiles"))
    data = packed({k: v for k, v in contents(data).items() if "/profiles/" not in k})
    assert captures.pair(archive.restore(io.BytesIO(data), "x.zip", None).attempts.get(number=1)) is None


def test_traces_are_private_and_go_with_what_names_them(rich, settings, django_capture_on_commit_callbacks):
    folder = settings.MEDIA_ROOT / "traces"
    assert [stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()] == [0o600, 0o600]
    with django_capture_on_commit_callbacks(execute=True):
        rich.attempts.get(number=1).profiles.get(role="candidate", tool="torch").profile.discard()
    assert len(list(folder.iterdir())) == 1
    assert CANDIDATE not in contents(exported_again(rich))
    with django_capture_on_commit_callbacks(execute=True):
        rich.delete()
    assert list(folder.iterdir()) == []
