"""Whatever process is killed in whatever phase: no attempt is lost, and none is counted twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.system.conftest import Product, quick_problem, until

pytestmark = pytest.mark.slow

ATTEMPTS = {"proposing": 6, "ready": 4, "evaluating": 3}
"""By the phase to be seen after the first verdict. A proposal may take a few milliseconds: it has more chances to be seen.
The other phases last as long as an evaluation."""

NEWEST = "SELECT max(id) FROM campaigns_campaign"
IN_PHASE = f"SELECT count(*) FROM campaigns_attempt WHERE campaign_id = ({NEWEST}) AND phase = ?"
JUDGED = f"SELECT count(*) FROM campaigns_attempt WHERE campaign_id = ({NEWEST}) AND verdict != ''"


def wrong_kernels(folder: Path, count: int) -> tuple[str, ...]:
    """An agent whose kernels are wrong: a verdict takes a second, and no clock. Two proposals that are made at once may
    be the same one, and other campaigns offered them before: all are measured."""
    for number in range(1, count + 1):
        text = f'extern "C" void run(const float*, const float*, float* y, long, long) {{ y[0] = {number}; }}\n'
        (folder / f"{number}.cpp").write_text(text)
    return ("--agent", "replay", "--replay", str(folder), "--option", 'duplicates="measure"')


def campaign_with_a_kill(product: Product, phase: str, service: str, agent: tuple[str, ...] = ()) -> dict:
    before = product.rows(NEWEST)[0][0] or 0
    words = ("--problem", quick_problem(product.home), "--idea", "fewer passes", "--attempts", str(ATTEMPTS[phase]))
    run = product.begin("run_campaign", *words, *agent, "--json")
    until(lambda: (product.rows(NEWEST)[0][0] or 0) > before, 60, "the campaign is there")
    until(lambda: product.rows(JUDGED)[0][0] >= 1, 240, "its first verdict")
    product.catch(IN_PHASE, phase, within_s=240, why=f"an attempt in phase {phase}")
    product.kill_service(service)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    return json.loads(out)


def nothing_is_lost_or_doubled(product: Product, result: dict, attempts: int) -> None:
    assert result["state"] == "finished"
    assert [a["number"] for a in result["attempts"]] == list(range(1, attempts + 1))
    verdicts = product.rows(
        "SELECT attempt_id, count(*) FROM campaigns_event WHERE campaign_id = ? AND kind = 'attempt.judged' GROUP BY 1",
        result["campaign"],
    )
    assert [count for _, count in verdicts] == [1] * attempts
    events = product.rows("SELECT seq FROM campaigns_event WHERE campaign_id = ? ORDER BY seq", result["campaign"])
    assert [seq for (seq,) in events] == list(range(1, len(events) + 1))


@pytest.mark.parametrize(
    ("phase", "service"),
    [
        ("proposing", "loop"),
        ("proposing", "propose"),
        ("ready", "loop"),
        ("evaluating", "loop"),
        ("evaluating", "broker"),
    ],
)
def test_a_killed_process_loses_nothing_and_doubles_nothing(product, tmp_path, phase, service):
    agent = wrong_kernels(tmp_path, ATTEMPTS[phase])
    result = campaign_with_a_kill(product, phase, service, agent)
    nothing_is_lost_or_doubled(product, result, ATTEMPTS[phase])
    assert {a["verdict"] for a in result["attempts"]} == {"incorrect"}


def test_a_killed_evaluator_loses_nothing_and_doubles_nothing(product):
    """What it measures is measured again. ``tests/conftest.py`` knows this one by its name."""
    result = campaign_with_a_kill(product, "evaluating", "gpu.cpu")
    nothing_is_lost_or_doubled(product, result, ATTEMPTS["evaluating"])
    assert not {a["verdict"] for a in result["attempts"]} & {"", "no_measurement"}
