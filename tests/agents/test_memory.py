"""Duplicates, dead ends and lessons: what a campaign knows of itself and of earlier ones. With a real broker and model server."""

from __future__ import annotations

import re

import pytest

from campaigns import actions
from campaigns.harness.candidate import with_values
from campaigns.harness.request import CandidateSource
from campaigns.memory import lessons_for
from campaigns.models import Attempt, Lesson, Phase
from tests.agents.campaigning import judged, model_campaign, proposed, tunables_of, variant
from tests.agents.conftest import USAGE, submit
from tests.factories import make_attempt, make_campaign, person

pytestmark = pytest.mark.django_db(transaction=True)


# ── Duplicates ──


def near(text: str, number: int) -> str:
    """The same program in other words."""
    changes = [
        lambda t: t + "\n// again\n",
        lambda t: t.replace("    ", "\t"),
        lambda t: t.replace("rows", "n_rows"),
        lambda t: t.replace("sum_of_squares", "energy"),
        lambda t: "/* version two */\n" + t.replace(";\n", ";\n\n"),
        lambda t: t.replace("rows", "how_many").replace("hidden", "width"),
        lambda t: re.sub(r"\br\b", "row_index", t),
        lambda t: t.replace("1e-6f", "1.0e-6f"),
        lambda t: t.replace("{\n", "{ // open\n"),
    ]
    return changes[number % len(changes)](text)


def test_forty_near_duplicates_are_refused_before_an_evaluator_is_asked_and_told_why(at_broker, tmp_path):
    folder = tmp_path / "replay"
    folder.mkdir()
    campaign = make_campaign(agent="replay", agent_options={"directory": str(folder)}, parallel=1)
    firsts = [variant(campaign, f"\nstatic int unused = {n};\n")["kernel.cpp"] for n in range(4)]
    for number in range(40):
        text = firsts[number % 4]
        (folder / f"{number}.cpp").write_text(text if number < 4 else near(text, number))
    for _ in range(40):
        proposed(campaign)
    refused = campaign.attempts.filter(verdict="duplicate")
    assert refused.count() >= 0.9 * 36
    assert all("same program as attempt" in reason for reason in refused.values_list("reason", flat=True))
    assert not refused.exclude(ticket="").exists(), "none was sent to an evaluator"
    assert campaign.attempts.exclude(verdict="duplicate").filter(number__lte=4).count() == 4


def test_copies_of_the_start_kernel_are_the_incumbent(at_broker, tmp_path):
    folder = tmp_path / "replay"
    folder.mkdir()
    campaign = make_campaign(agent="replay", agent_options={"directory": str(folder)})
    (folder / "1.cpp").write_text("// mine\n" + campaign.start_files["kernel.cpp"])
    assert "it is the start kernel" in proposed(campaign).reason


def test_who_asks_for_it_gets_duplicates_measured(at_broker, tmp_path):
    folder = tmp_path / "replay"
    folder.mkdir()
    options = {"directory": str(folder), "duplicates": "measure"}
    campaign = make_campaign(agent="replay", agent_options=options)
    (folder / "1.cpp").write_text("// mine\n" + campaign.start_files["kernel.cpp"])
    assert proposed(campaign).phase != Phase.JUDGED


def test_a_dead_end_of_an_earlier_campaign_is_not_walked_again(at_broker, serve, vendor):
    earlier = make_campaign()
    files = variant(earlier, "\nint wrong = 1;\n")
    judged(earlier, files, "incorrect")
    campaign = model_campaign(vendor)
    server = serve(
        {"tools": [submit({"kernel.cpp": files["kernel.cpp"].replace("wrong", "odd")})], "usage": USAGE},
        {"tools": [submit(variant(campaign, "\nint right = 2;\n"))], "usage": USAGE},
    )
    attempt = proposed(campaign)
    assert "right" in attempt.files["kernel.cpp"]
    told = str(server.requests()[1]["body"]["messages"][-1])
    assert (
        f"attempt 1 of campaign {earlier.pk} on the same problem and hardware was the same program: incorrect" in told
    )


@pytest.mark.parametrize(
    ("fields", "verdict"),
    [
        ({"hardware": "h200"}, "incorrect"),
        ({"problem": "softmax"}, "incorrect"),
        ({}, "kept"),
        ({}, "no_measurement"),
        ({}, "timed_out"),
    ],
)
def test_what_says_nothing_about_this_campaign_does_not_refuse(at_broker, fields, verdict):
    from campaigns.memory import refusal

    earlier = make_campaign(**fields)
    campaign = make_campaign()
    files = variant(campaign, "\nint odd = 1;\n")
    judged(earlier, files, verdict)
    assert refusal(campaign, CandidateSource(backend="cpp", files=files)) == ""


def test_a_kernel_that_lost_elsewhere_is_measured_where_it_may_win(at_broker):
    from campaigns.memory import refusal

    earlier = make_campaign()
    best = judged(earlier, variant(earlier, "\nint a = 1;\n"), "kept", host="one")
    files = variant(earlier, "\nint a = 2;\n")
    judged(earlier, files, "reverted", host="one", parent=best)
    source = CandidateSource(backend="cpp", files=files)
    campaign = make_campaign()
    assert refusal(campaign, source) == "", (
        "here the incumbent is the start kernel, which it was never measured against"
    )
    judged(campaign, variant(campaign, "\nint a = 3;\n"), "kept", host="one")
    campaign.refresh_from_db()
    assert "was the same program" in refusal(campaign, source), (
        "its interval is below the incumbent's, on the same host"
    )
    Attempt.objects.filter(pk=campaign.incumbent_id).update(host="two")
    campaign.refresh_from_db()
    assert refusal(campaign, source) == "", "figures of two hosts are not compared"


def test_what_lost_to_a_kernel_that_a_person_rejected_may_be_measured_again(at_broker):
    from campaigns.memory import refusal

    campaign = make_campaign()
    cheat = judged(campaign, variant(campaign, "\nint a = 1;\n"), "kept")
    files = variant(campaign, "\nint a = 2;\n")
    judged(campaign, files, "reverted", parent=cheat)
    source = CandidateSource(backend="cpp", files=files)
    assert "attempt 2" in refusal(campaign, source)
    actions.reject(cheat, person("owner"), seen=0, kind="cheat", reason="It returns zeros.")
    campaign.refresh_from_db()
    assert refusal(campaign, source) == ""


# ── Lessons ──


def test_a_failure_is_told_to_the_next_campaign_and_a_rejection_first(at_broker, serve, vendor):
    from campaigns import memory

    earlier = make_campaign()
    memory.learn(judged(earlier, variant(earlier, "\nint a = 1;\n"), "incorrect", title="Sum in bf16", proposer=vendor))
    kept = judged(earlier, variant(earlier, "\nint a = 2;\n"), "kept", title="Skip the tail")
    actions.reject(kept, person("owner"), seen=0, kind="fragile", reason="Only even rows.")
    campaign = model_campaign(vendor)
    told = [lesson.text for lesson in lessons_for(campaign)]
    assert told[0].startswith("Skip the tail: a person rejected it")
    assert any(text.startswith("Sum in bf16: incorrect") for text in told), told
    server = serve({"tools": [submit(variant(campaign, "int other = 3;"))], "usage": USAGE})
    proposed(campaign)
    assert "Only even rows." in str(server.requests()[0]["body"])


def test_lessons_are_kept_once_and_counted(at_broker):
    from campaigns import memory

    for _ in range(3):
        campaign = make_campaign()
        memory.learn(judged(campaign, variant(campaign, "\nint a = 1;\n"), "incorrect", title="Sum in bf16"))
    lesson = Lesson.objects.get()
    assert lesson.count == 3


def test_points_of_one_program_are_one_lesson(at_broker):
    from campaigns import memory

    campaign = make_campaign()
    name, choices = next((t.name, t.choices) for t in tunables_of(campaign))
    for choice in choices[:3]:
        source = with_values(campaign.start_candidate(), {name: choice})
        memory.learn(judged(campaign, dict(source.files), "reverted", proposer="tuner", parameters={name: choice}))
    lesson = Lesson.objects.get()
    assert lesson.text.startswith(f"3 points of {name} tried; the best was {name}=")


def test_a_dismissed_flag_is_a_lesson(at_broker):
    campaign = make_campaign()
    flagged = make_attempt(campaign, "flagged")
    actions.decide_flag(flagged.flags.first(), person("owner"), state="dismissed", reason="The cache is of code only.")
    assert "The cache is of code only." in Lesson.objects.get(kind="dismissed").text


def test_a_struck_lesson_is_not_told_and_a_pinned_one_comes_first(at_broker):
    from django.utils import timezone

    campaign = make_campaign()
    rows = [
        Lesson.objects.create(problem="rmsnorm", hardware="cpu", key=str(n), kind="dead_end", text=f"lesson {n}")
        for n in range(3)
    ]
    Lesson.objects.filter(pk=rows[0].pk).update(pinned_at=timezone.now())
    Lesson.objects.filter(pk=rows[1].pk).update(struck_at=timezone.now())
    assert [lesson.text for lesson in lessons_for(campaign)] == ["lesson 0", "lesson 2"]
