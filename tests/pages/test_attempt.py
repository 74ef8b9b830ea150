from __future__ import annotations

import json

import msgspec
import pytest

from campaigns import actions
from campaigns.models import Flag, Verdict
from tests.factories import block, make_attempt, make_campaign, make_report, person

HTMX = {"HX-Request": "true"}


def page_of(client, attempt) -> str:
    response = client.get(attempt.get_absolute_url())
    assert response.status_code == 200
    return response.content.decode()


def test_it_sends_an_outsider_to_the_login(outsider, campaign):
    assert outsider.get(make_attempt(campaign, "kept").get_absolute_url()).status_code == 302


@pytest.mark.parametrize("verdict", ["", *Verdict.values])
def test_every_verdict_has_its_page(owner, campaign, verdict):
    page_of(owner, make_attempt(campaign, verdict))


def test_an_attempt_of_another_campaign_is_not_found(owner, campaign):
    make_attempt(campaign, "kept")
    other = make_campaign()
    assert owner.get(f"/campaigns/{other.pk}/attempts/1/").status_code == 404


def test_the_diff_is_against_the_incumbent_it_was_measured_beside(owner, campaign):
    make_attempt(campaign, "kept")
    second = make_attempt(campaign, "reverted")
    page = page_of(owner, second)
    assert "kTile1" in page
    assert "the incumbent (" in page


def test_the_diff_against_the_start_kernel_is_one_click_away(owner, campaign):
    make_attempt(campaign, "kept")
    second = make_attempt(campaign, "reverted")
    part = owner.get(f"{second.get_absolute_url()}diff?against=start").content.decode()
    assert "the start kernel" in part
    assert "kTile1 " not in part


def test_the_view_of_the_diff_is_remembered(owner, campaign):
    attempt = make_attempt(campaign, "reverted")
    owner.get(f"{attempt.get_absolute_url()}diff?view=split")
    assert 'class="diff split"' in page_of(owner, attempt)


def test_source_and_texts_from_outside_are_escaped(owner, campaign):
    evil = '</pre><script src="//evil"></script>'
    report = make_report(campaign, "build_failed", [], build_log=evil, output=evil)
    attempt = make_attempt(
        campaign, "build_failed", report=report, rationale=evil, title=evil, files={f"{evil}.cpp": f"// {evil}\n"}
    )
    assert evil not in page_of(owner, attempt)


def test_a_character_that_turns_the_reading_direction_is_spelled_out(owner, campaign):
    attempt = make_attempt(campaign, "reverted", files={"kernel.cpp": "int a; // \u202e } evil\n"})
    page = page_of(owner, attempt)
    assert "\u202e" not in page
    assert "⟦U+202E⟧" in page
    assert "RIGHT-TO-LEFT OVERRIDE" in page


def test_what_was_not_measured_says_so(owner, campaign):
    attempt = make_attempt(campaign, "incorrect")
    response = owner.get(attempt.get_absolute_url())
    assert response.context["speed_chart"] is None
    assert "not measured" in response.content.decode()
    assert "0.00×" not in response.content.decode()
    assert "1.00×" not in response.content.decode()


def test_a_workload_without_times_says_once_why(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    untimed = attempt.measurements.first()
    attempt.measurements.filter(pk=untimed.pk).update(
        time_us=None, baseline_us=None, incumbent_us=None, speedup=None, over_incumbent=None
    )
    toml = campaign.problem_files["problem.toml"]
    assert f'name = "{untimed.workload}"' in toml
    campaign.problem_files["problem.toml"] = toml.replace(
        f'name = "{untimed.workload}"', f'name = "{untimed.workload}"\ntimed = false'
    )
    campaign.save()
    page = page_of(owner, attempt)
    table = page[page.index("<h2>Workloads</h2>") :]
    table = table[: table.index("</table>")]
    assert (
        table.count("only checked: the problem does not time it") == attempt.measurements.filter(time_us=None).count()
    )
    assert "not measured" not in table


def test_the_matrix_shows_error_beside_what_is_allowed(owner, campaign):
    context = owner.get(make_attempt(campaign, "incorrect").get_absolute_url()).context
    assert context["tally"]["visible"]["all_right"]
    assert not context["tally"]["hidden"]["all_right"]
    assert context["tally"]["hidden"]["worst"] == pytest.approx(3e-2 / 1e-5)


def test_a_swept_axis_is_the_charts_axis(owner):
    chart = owner.get(make_attempt(make_campaign("mla_decode"), "kept").get_absolute_url()).context["speed_chart"]
    assert (chart["axis"], chart["log"]) == ("tokens", True)
    assert [bar["x"] for bar in chart["bars"]] == sorted(bar["x"] for bar in chart["bars"])


@pytest.mark.parametrize("verdict", ["flagged", "reverted", "stacked"])
def test_only_a_kept_kernels_gains_are_drawn_as_gains(owner, campaign, verdict):
    response = owner.get(make_attempt(campaign, verdict).get_absolute_url())
    assert response.context["speed_chart"]["tone"] != "kept"
    assert 'class="r num kept"' not in response.content.decode().split("<h2>Workloads</h2>")[1].split("</section>")[0]


def test_a_report_that_cannot_be_read_does_not_take_the_page_down(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    type(attempt).objects.filter(pk=attempt.pk).update(report='{"outcome": 3}')
    assert "cannot be read" in page_of(owner, attempt)


def test_the_report_is_downloaded_as_it_is_stored(owner, campaign):
    attempt = make_attempt(campaign, "kept")
    response = owner.get(f"{attempt.get_absolute_url()}report.json")
    assert json.loads(response.content) == json.loads(attempt.report)
    assert "attachment" in response.headers["Content-Disposition"]


def test_without_a_report_there_is_nothing_to_download(owner, campaign):
    assert owner.get(f"{make_attempt(campaign).get_absolute_url()}report.json").status_code == 404


def test_a_measurement_without_a_sandbox_says_so(owner, campaign):
    report = make_report(campaign, "kept", [])
    bare = msgspec.structs.replace(report, host=msgspec.structs.replace(report.host, sandbox="none"))
    assert "Measured without a sandbox" in page_of(owner, make_attempt(campaign, "kept", report=bare))


def test_a_row_grows_to_show_reason_flags_and_diff(owner, campaign):
    attempt = make_attempt(campaign, "flagged")
    part = owner.get(f"{attempt.get_absolute_url()}peek", headers=HTMX).content.decode()
    assert "output-cache" in part
    assert "kTile1" in part


def decide(client, flag: Flag, **fields):
    return client.post(f"/flags/{flag.pk}/decide", fields, headers=HTMX)


def test_a_flag_shows_its_line(owner, campaign):
    page = page_of(owner, make_attempt(campaign, "flagged"))
    assert '<tr class="hit">' in page


def test_a_flag_is_dismissed_with_a_reason_that_becomes_precedent(owner, campaign):
    first, second = make_attempt(campaign, "flagged"), make_attempt(campaign, "flagged")
    assert decide(owner, first.flags.get(), state="dismissed", reason="It is a workspace.").status_code == 200
    page = page_of(owner, second)
    assert "Dismissed before on this problem" in page
    assert "It is a workspace." in page


def test_a_flag_is_not_decided_without_a_reason(owner, campaign):
    flag = make_attempt(campaign, "flagged").flags.get()
    response = decide(owner, flag, state="dismissed", reason=" ")
    assert response.status_code == 409
    assert "Say why" in response.content.decode()
    flag.refresh_from_db()
    assert flag.state == "open"


def test_the_slower_of_two_is_told_who_was_first_and_keeps_what_was_typed(teammate, campaign):
    flag = make_attempt(campaign, "reverted", findings=[block()]).flags.get()
    actions.decide_flag(flag, person("owner"), state="confirmed", reason="It cheats.")
    response = decide(teammate, flag, state="dismissed", reason="Looks fine to me.")
    assert response.status_code == 409
    assert "owner was first" in response.content.decode()
