from __future__ import annotations

import shutil

import pytest

from campaigns import catalog
from campaigns.models import Campaign
from profiling.models import Profile, Region


def typed(**changes):
    return {
        "problem": "rmsnorm",
        "idea": "Read each row once.",
        "backend": "cpp",
        "baseline": "eager",
        "hardware": "cpu",
        "agent": "tuner",
        "rules": "Keep graphs working.",
        "gate": "person",
        "budget_attempts": "12",
        "budget_minutes": "1.5",
        "target_speedup": "2.5",
        **changes,
    }


@pytest.fixture
def region(db):
    profile = Profile.objects.create(name="decode", sha256="a" * 64, size_bytes=1, state="ready")
    figures = {"span_ns": 10, "kernels": 0, "launched_alone": 0, "devices": [], "top_kernels": [], "ranges": []}
    note = "This is dumb: 32 trips."
    return Region.objects.create(profile=profile, start_ns=0, end_ns=10, note=note, figures=figures)


def test_an_outsider_makes_nothing(outsider):
    outsider.post("/campaigns/new", typed())
    assert not Campaign.objects.exists()


def test_it_offers_the_bundled_problems_and_default_rules(owner):
    page = owner.get("/campaigns/new").content.decode()
    for name in ("mla_decode", "rmsnorm", "softmax"):
        assert f'value="{name}"' in page
    assert "CUDA graphs must keep working" in page


def test_start_creates_and_starts(owner):
    response = owner.post("/campaigns/new", typed())
    campaign = Campaign.objects.get()
    assert response.headers["Location"] == campaign.get_absolute_url()
    assert campaign.state == "queued"
    assert (campaign.budget_attempts, campaign.budget_seconds, campaign.target_speedup) == (12, 90, 2.5)
    assert (campaign.gate, campaign.rules, campaign.created_by.username) == ("person", "Keep graphs working.", "owner")
    assert campaign.ideas.get().text == "Read each row once."


def test_a_draft_waits(owner):
    owner.post("/campaigns/new", typed(later="1"))
    assert Campaign.objects.get().state == "draft"


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("idea", " ", "Say the idea"),
        ("budget_attempts", "0", "greater than or equal to 1"),
        ("budget_attempts", "many", "whole number"),
        ("target_speedup", "-2", "greater than or equal"),
        ("target_speedup", "nan", "Enter a number"),
        ("hardware", "../x", "A kind is a short word"),
        ("problem", "nothing", "Select a valid choice"),
        ("backend", "cobol", "no backend"),
        ("baseline", "slow", "no baseline"),
        ("agent", "nobody", "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_typed_is_lost(owner, field, value, says):
    response = owner.post("/campaigns/new", typed(**{field: value, "title": "My <title>"}))
    page = response.content.decode()
    assert response.status_code == 422
    assert says in page
    assert "My &lt;title&gt;" in page
    assert "Keep graphs working." in page
    assert not Campaign.objects.exists()


def test_the_tuner_is_not_started_on_a_kernel_without_numbers_to_turn(owner, tmp_path, monkeypatch):
    monkeypatch.setattr("campaigns.catalog.folders", lambda: [tmp_path, catalog.BUNDLED])
    shutil.copytree(catalog.find("rmsnorm"), tmp_path / "plain")
    for kernel in (tmp_path / "plain" / "start").iterdir():
        kernel.write_text(kernel.read_text().replace("tunable:", ""))
    manifest = tmp_path / "plain" / "problem.toml"
    manifest.write_text(manifest.read_text().replace('name = "rmsnorm"', 'name = "plain"'))
    response = owner.post("/campaigns/new", typed(problem="plain"))
    assert response.status_code == 422
    assert "declares no numbers to turn" in response.content.decode()
    assert owner.get("/campaigns/new?problem=plain").context["form"]["agent"].value() == "external"
    assert owner.post("/campaigns/new", typed(problem="plain", agent="external")).status_code == 302


def test_replay_needs_its_folder(owner):
    assert owner.post("/campaigns/new", typed(agent="replay")).status_code == 422


def test_replay_takes_its_folder_along(owner, tmp_path, settings):
    settings.AUTORESEARCH_HOME = tmp_path
    folder = tmp_path / "replays" / "two tries"
    folder.mkdir(parents=True)
    assert f'<option value="{folder}">' in owner.get("/campaigns/new").content.decode()
    owner.post("/campaigns/new", typed(agent="replay", replay_directory=str(folder)))
    assert Campaign.objects.get().agent_options == {"directory": str(folder)}


def test_replay_reads_no_folder_outside_its_place(owner):
    assert owner.post("/campaigns/new", typed(agent="replay", replay_directory="/etc")).status_code == 422
    assert not Campaign.objects.exists()


def test_a_marked_region_brings_its_note_and_goes_along(owner, region):
    page = owner.get(f"/campaigns/new?region={region.pk}").content.decode()
    assert "This is dumb: 32 trips.</textarea>" in page
    owner.post("/campaigns/new", typed(region=region.pk))
    campaign = Campaign.objects.get()
    assert campaign.region == region
    assert campaign.region_context == region.as_context()


@pytest.mark.parametrize("number", ["999", "x", "٣", "9" * 30])
def test_a_region_that_is_gone_is_said(owner, number):
    assert "The marked region is gone" in owner.get("/campaigns/new", {"region": number}).content.decode()


def test_another_problem_brings_its_own_backends(owner):
    part = owner.get("/campaigns/new/problem?problem=softmax").content.decode()
    assert 'name="backend"' in part
    assert "<html" not in part


def test_a_broken_problem_is_named_and_takes_the_page_not_down(owner, tmp_path, monkeypatch):
    broken = tmp_path / "problems" / "half"
    broken.mkdir(parents=True)
    (broken / "problem.toml").write_text("name = ")
    monkeypatch.setattr("campaigns.catalog.folders", lambda: [tmp_path / "problems"])
    page = owner.get("/campaigns/new").content.decode()
    assert "half cannot be used: problem.toml" in page


def test_a_language_without_a_start_kernel_begins_from_the_pytorch_one(owner):
    owner.post("/campaigns/new", typed(problem="mla_decode", backend="cuda", hardware="h200", baseline=""))
    campaign = Campaign.objects.get()
    assert (campaign.backend, campaign.start_candidate().backend) == ("cuda", "torch")
    assert "def run(" in campaign.start_candidate().files["kernel.py"]


def test_a_language_of_the_gpu_is_refused_on_a_cpu_and_the_other_way_round(owner):
    for backend, hardware in (("cuda", "cpu"), ("cpp", "h200")):
        page = owner.post("/campaigns/new", typed(backend=backend, hardware=hardware)).content.decode()
        assert f"and the hardware is {hardware}" in page
    assert not Campaign.objects.exists()
    owner.post("/campaigns/new", typed(backend="", hardware="h200"))
    assert Campaign.objects.get().backend == "triton"
