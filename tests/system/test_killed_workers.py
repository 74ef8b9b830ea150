"""Whatever process is killed in whatever phase: no attempt is lost, and none is counted twice."""

from __future__ import annotations

import json

import pytest

from tests.system.conftest import Product, quick_problem, until

pytestmark = pytest.mark.slow

ATTEMPTS = {"proposing": 6, "ready": 4, "evaluating": 3}
"""By the phase to be seen after the first verdict. A proposal may take a few milliseconds: it has more chances to be seen.
The other phases last as long as an evaluation."""

NEWEST = "SELECT max(id) FROM campaigns_campaign"
IN_PHASE = f"SELECT count(*) FROM campaigns_attempt WHERE campaign_id = ({NEWEST}) AND phase = ?"
JUDGED = f"SELECT count(*) FROM campaigns_attempt WHERE campaign_id = ({NEWEST}) AND verdict != ''"


def campaign_with_a_kill(product: Product, phase: str, service: str) -> dict:
    before = product.rows(NEWEST)[0][0] or 0
    words = ("--problem", quick_problem(product.home), "--idea", "fewer passes", "--attempts", str(ATTEMPTS[phase]))
    run = product.begin("run_campaign", *words, "--json")
    until(lambda: (product.rows(NEWEST)[0][0] or 0) > before, 60, "the campaign is there")
    until(lambda: product.rows(JUDGED)[0][0] >= 1, 240, "its first verdict")
    product.catch(IN_PHASE, phase, within_s=240, why=f"an attempt in phase {phase}")
    product.kill_service(service)
    out, err = run.communicate(timeout=300)
    assert run.returncode == 0, err
    return json.loads(out)


@pytest.mark.parametrize(
    ("phase", "service"),
    [
        ("proposing", "loop"),
        ("proposing", "propose"),
        ("ready", "loop"),
        ("evaluating", "gpu.cpu"),
        ("evaluating", "loop"),
        ("evaluating", "broker"),
    ],
)
def test_a_killed_process_loses_nothing_and_doubles_nothing(product, phase, service):
    result = campaign_with_a_kill(product, phase, service)
    assert result["state"] == "finished"
    assert [a["number"] for a in result["attempts"]] == list(range(1, ATTEMPTS[phase] + 1))
    assert all(a["verdict"] not in ("", "no_measurement") for a in result["attempts"])
    verdicts = product.rows(
        "SELECT attempt_id, count(*) FROM campaigns_event WHERE campaign_id = ? AND kind = 'attempt.judged' GROUP BY 1",
        result["campaign"],
    )
    assert [count for _, count in verdicts] == [1] * ATTEMPTS[phase]
    seqs = [
        s
        for (s,) in product.rows(
            "SELECT seq FROM campaigns_event WHERE campaign_id = ? ORDER BY seq", result["campaign"]
        )
    ]
    assert seqs == list(range(1, len(seqs) + 1))
