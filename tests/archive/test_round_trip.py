from __future__ import annotations

import io
import json
import zipfile

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

from campaigns import actions, archive
from campaigns.archive import collect, records
from campaigns.models import (
    Attempt,
    AttemptProfile,
    Campaign,
    Event,
    Flag,
    Idea,
    Measurement,
    Phase,
    Review,
    State,
    Steering,
)

from . import samples

pytestmark = pytest.mark.django_db


def exported_again(campaign):
    file = io.BytesIO()
    archive.export(campaign, file)
    return file.getvalue()


def taken(data, by=None):
    return archive.restore(io.BytesIO(data), "colleague.zip", by)


def test_the_same_campaign_gives_the_same_bytes(rich, exported):
    assert exported_again(rich) == exported


def test_an_imported_campaign_exports_to_the_same_bytes(exported):
    assert exported_again(taken(exported)) == exported


def test_it_reads_the_same_where_the_original_and_its_people_are_unknown(rich, exported):
    signed = rich.attempts.get(number=1).signed_sha256({"axis": "rows", "lo": 1, "hi": 512})
    rich.delete()
    get_user_model().objects.all().delete()
    campaign = taken(exported)
    one = campaign.attempts.get(number=1)
    assert campaign.incumbent == one
    assert campaign.attempts.get(number=2).parent == one
    assert one.idea.text == "Read each row once.\nThen scale."
    assert one.signed_sha256({"axis": "rows", "lo": 1, "hi": 512}) == signed
    assert not one.reviews.get().is_stale()
    assert campaign.attempts.get(number=2).files["../up.h"] == "// ü\r\n"
    assert campaign.events.get(kind="idea.added").data["idea"] == campaign.ideas.first().pk


def test_times_are_those_of_the_original(rich, exported):
    campaign = taken(exported)
    assert campaign.created_at == rich.created_at
    assert list(campaign.ideas.values_list("created_at")) == list(rich.ideas.values_list("created_at"))
    assert list(campaign.events.values_list("at")) == list(rich.events.values_list("at"))


def test_people_of_an_archive_are_not_people_of_this_installation(exported):
    campaign = taken(exported)
    review = campaign.attempts.get(number=1).reviews.get()
    assert review.reviewer.username == "bob@imported"
    assert not review.reviewer.is_active
    assert not review.reviewer.has_usable_password()


def test_an_account_that_can_sign_in_never_speaks_for_an_archive(exported):
    get_user_model().objects.create(username="bob@imported")
    with pytest.raises(archive.ArchiveError, match="bob@imported is somebody's account here"):
        taken(exported)


def test_it_is_marked_with_file_hash_and_who_took_it_in(exported):
    origin = taken(exported, by=samples.person("eve")).imported_from
    with zipfile.ZipFile(io.BytesIO(exported)) as packed:
        manifest = packed.read("manifest.json")
    import hashlib

    assert (origin["file"], origin["by"]) == ("colleague.zip", "eve")
    assert origin["sha256"] == hashlib.sha256(manifest).hexdigest()


def test_it_is_not_taken_twice(exported):
    first = taken(exported)
    with pytest.raises(archive.ArchiveError, match=f"imported before: campaign {first.pk}"):
        taken(exported)


def test_paths_on_the_exporting_machine_stay_there(exported):
    assert b"/home/ada" not in b"".join(parts(exported).values())


def test_sources_can_be_read_with_any_unzip(exported):
    assert b'extern "C" void run' in parts(exported)["attempts/00001/files/kernel.cpp"]


def parts(data):
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


@pytest.mark.parametrize("state", [State.QUEUED, State.RUNNING])
def test_a_running_campaign_is_not_exported(rich, state):
    Campaign.objects.update(state=state)
    with pytest.raises(archive.ArchiveError, match="Pause or stop it"):
        exported_again(rich)


def test_a_campaign_with_an_attempt_under_way_is_not_exported(rich):
    Attempt.objects.create(campaign=rich, number=4, phase=Phase.EVALUATING)
    with pytest.raises(archive.ArchiveError, match="1 attempts are under way"):
        exported_again(rich)


def act_on(campaign):
    """Everything that a person could try."""
    who, attempt = samples.person(), campaign.attempts.get(number=1)
    yield lambda: actions.start(campaign, who)
    yield lambda: actions.pause(campaign, who)
    yield lambda: actions.resume(campaign, who)
    yield lambda: actions.stop(campaign, who)
    yield lambda: actions.steer(campaign, who, "x")
    yield lambda: actions.add_idea(campaign, who, "x")
    yield lambda: actions.strike_idea(campaign.ideas.first(), who)
    yield lambda: actions.approve(attempt, who, seen=1, sha256=attempt.signed_sha256())
    yield lambda: actions.reject(attempt, who, seen=1, kind="cheat", reason="x")
    yield lambda: actions.decide_flag(Flag.objects.get(attempt__campaign=campaign), who, state="confirmed", reason="x")


@pytest.mark.parametrize("state", [State.DRAFT, State.PAUSED, State.FINISHED])
def test_an_imported_campaign_is_only_read(rich, state):
    Campaign.objects.update(state=state)
    campaign = taken(exported_again(rich))
    before = exported_again(campaign)
    for act in act_on(campaign):
        with pytest.raises(actions.ActionError, match="imported"):
            act()
    assert exported_again(campaign) == before


def test_every_field_of_every_row_is_in_the_archive_or_left_out_by_name():
    """A field that somebody adds later must be exported, too: plain ones are by themselves, relations are not."""
    handled = {
        Campaign: {"region", "incumbent", "created_by"},
        Idea: {"campaign", "author"},
        Steering: {"campaign", "author"},
        Attempt: {"campaign", "idea", "parent", "cards"},
        AttemptProfile: {"attempt", "profile"},
        Measurement: {"attempt"},
        Flag: {"attempt", "decided_by"},
        Review: {"attempt", "reviewer"},
        Event: {"campaign", "attempt"},
    }
    for model, relations in handled.items():
        plain = {f.name for f in records.fields(model)} | records.LEFT_OUT[model] | records.APART.get(model, set())
        assert {f.name for f in model._meta.get_fields() if f.concrete} == plain | relations, model


def test_every_table_that_belongs_to_a_campaign_is_in_the_archive_or_left_out_by_name():
    library, keys, money = (
        {"Kernel", "Remeasurement", "StackMeasurement"},
        {"ApiToken"},
        {"ModelCall"},
    )  # this installation's own
    left_out = library | keys | money
    for model in (Campaign, Attempt, Idea):
        below = {f.related_model.__name__ for f in model._meta.related_objects if not f.hidden}
        assert below - left_out <= {m.__name__ for m in records.LEFT_OUT}, model


def test_commands_export_and_import(rich, tmp_path, capsys):
    path = tmp_path / "one.zip"
    call_command("export_campaign", rich.pk, path, "--json")
    assert json.loads(capsys.readouterr().out)["bytes"] == path.stat().st_size
    call_command("import_campaign", path, "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["title"], told["attempts"]) == (rich.title, 3)


def test_a_failed_export_leaves_the_file_that_was_there(rich, tmp_path):
    path = tmp_path / "one.zip"
    path.write_text("mine")
    Campaign.objects.update(state=State.RUNNING)
    with pytest.raises(CommandError):
        call_command("export_campaign", rich.pk, path)
    assert [p.read_text() for p in tmp_path.iterdir()] == ["mine"]


def test_a_marked_region_goes_along_in_figures_and_words(rich):
    from profiling.models import Profile, Region

    profile = Profile.objects.create(name="decode.sqlite", sha256="c" * 64, size_bytes=1, label="host_bound")
    rich.region = Region.objects.create(
        profile=profile, start_ns=1, end_ns=9, note="this is dumb", figures={"kernels": 3}
    )
    rich.save()
    data = exported_again(rich)
    campaign = taken(data)
    assert campaign.imported_from["region"]["note"] == "this is dumb"
    assert exported_again(campaign) == data


def test_export_collects_lazily(rich):
    assert next(iter(collect.parts_of(rich)))[0] == "campaign.json"


def test_nothing_imported_waits_for_a_decision_here(rich):
    from campaigns.presenters.review import waiting
    from campaigns.views.home import flagged

    samples.judged(rich, rich.start_candidate(), number=4)
    open_flag = samples.judged(rich, rich.start_candidate(), number=5)
    Attempt.objects.filter(pk=open_flag.pk).update(verdict="flagged")
    Flag.objects.create(attempt=open_flag, rule="decoy", severity="block", evidence="x")
    taken(exported_again(rich))
    assert [a.campaign for a in waiting()] == [rich]
    assert [a.campaign for a in flagged()] == [rich]
