"""Campaigns that come with the product: imported once, beside the demo, and shown as what they are."""

from __future__ import annotations

import io
from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone

from campaigns import archive, demo, recordings
from campaigns.harness import report
from campaigns.models import Attempt, Campaign, State
from tests.factories import make_attempt, make_campaign

from . import samples

pytestmark = pytest.mark.django_db


@pytest.fixture
def on_h200(rich, tmp_path, monkeypatch):
    """A folder with one good archive of a campaign that ran on an H200, and one damaged one; the original is gone."""
    one = rich.attempts.get(number=1)
    host = report.Host(name="rack-7", kind="NVIDIA H200 <b>", processor="Xeon", versions={}, sandbox="bubblewrap")
    told = report.encode(msgspec.structs.replace(one.parsed_report(), host=host)).decode()
    Attempt.objects.filter(campaign=rich).exclude(report="").update(report=told, host="rack-7")
    Campaign.objects.filter(pk=rich.pk).update(hardware="h200")
    whole = io.BytesIO()
    archive.export(rich, whole)
    (tmp_path / "02-rmsnorm.zip").write_bytes(whole.getvalue())
    (tmp_path / "01-damaged.zip").write_bytes(whole.getvalue()[:2000])
    monkeypatch.setattr(recordings, "FOLDER", tmp_path)
    rich.delete()


def test_each_is_imported_once_and_a_damaged_one_is_said_and_harms_nothing(on_h200, caplog):
    (campaign,) = recordings.take_in()
    assert campaign.is_recorded
    assert "01-damaged.zip is not imported: " in caplog.text
    assert recordings.take_in() == []
    assert Campaign.objects.count() == 1


def test_the_folder_of_the_product_can_be_taken_in(at_broker, caplog):
    """Whatever lies there now: every archive is of this version, none is damaged, none is there twice."""
    assert len(recordings.take_in()) == len(recordings.files())
    assert "is not imported" not in caplog.text


def test_home_says_how_far_the_import_is(at_broker, client):
    client.force_login(samples.person("eve"))
    assert client.get("/").context["taking_in"] is None
    recordings.say(3, 8)
    assert "3 of 8 taken in" in client.get("/?part=1").content.decode()
    recordings.say(8, 8)
    assert client.get("/").context["taking_in"] is None


def test_pages_say_where_it_ran_and_that_nothing_was_run_here(on_h200, client):
    live = make_campaign(title=demo.TITLE, state=State.RUNNING)
    (campaign,) = recordings.take_in()
    client.force_login(samples.person("eve"))
    for address in (campaign.get_absolute_url(), campaign.attempts.get(number=1).get_absolute_url()):
        text = client.get(address).content.decode()
        assert "<b>Recorded, read only.</b> Ran on NVIDIA H200 &lt;b&gt;, host rack-7" in text
        assert "idea by “ada”" in text
        assert "Nothing of it was run on this machine." in text
    for address in ("/", "/campaigns/", live.get_absolute_url()):
        assert f'href="{campaign.get_absolute_url()}"' in client.get(address).content.decode()
    home = client.get("/").context
    assert [one.pk for one in home["recorded"]] == [campaign.pk]
    assert campaign.pk not in [one.pk for one in [*home["running"], *home["ended"]]]


def test_it_waits_for_the_first_verdict_of_the_live_campaign_but_not_for_ever():
    live = make_campaign(state=State.QUEUED)
    make_attempt(live)
    assert recordings.in_its_way(live.pk)
    make_attempt(live, "reverted")
    assert not recordings.in_its_way(live.pk)
    late = make_campaign(state=State.RUNNING)
    Campaign.objects.filter(pk=late.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    assert not recordings.in_its_way(late.pk)


def test_the_demo_asks_for_them_and_starts_no_second_campaign(on_h200, at_broker):
    live = make_campaign(title=demo.TITLE, state=State.RUNNING)
    assert demo.begin("owner") == live.get_absolute_url()
    assert sum(b"campaigns.tasks.take_recorded" in message for message in at_broker.lrange("profiles", 0, -1)) == 1
