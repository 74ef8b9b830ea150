"""Real campaigns on this host's GPU, one after the other, through the product: its broker, loop, evaluator and judge.

    python3 docs/results/h200/campaigns.py --seconds 280 --out FOLDER [--hardware h200] [--only PROBLEM[:BACKEND] …]

For each problem an agent of the kind ``external`` offers the candidates of docs/results/candidates/PROBLEM in the order of
their names, then turns the declared parameters of the best one until its share of the time is used. What was kept is
approved, the scenario is measured with it, and every campaign is exported. Results are written after each campaign, so that
whatever ends this leaves what was done.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CANDIDATES = HERE.parent / "candidates"
AGENT = "sizes by chance"
PROFILE_S = 15.0
"""Kept at a campaign's end for the traces of what was kept."""
SHARE_S = 38.0
"""A first evaluation of a problem, with its baseline compiled and a confirmation, takes about that."""

PLAN: dict[str, tuple[str, str]] = {
    "mla_decode": ("compile", "Read the cache once per 32k, split over the SMs, merge at the end."),
    "sparse_mla_decode": (
        "compile",
        "Gather the named rows straight into the pipeline, once for all heads, and merge pieces.",
    ),
    "moe_grouped_gemm": ("compile", "Sort tokens by expert on the device and stream each expert's weights once."),
    "softmax": ("compile", "Hold a whole row on the chip: one read, one write, however long it is."),
    "moe_two_of_eight": ("compile", "Read the two experts where they lie instead of gathering copies of them."),
    "lm_head": ("compile", "One new token: stream the weight, with all loads of a row under way at once."),
    "rmsnorm": ("compile", "One pass with the row in registers."),
    "layernorm_residual": ("compile", "Add, normalise and scale while the row is in registers."),
    "matmul_bias_gelu": ("compile", "Stream the weight once for few rows, and keep GELU in the epilogue."),
    "swiglu": ("compile", "See whether anything is left to gain; it looks to be at the floor already."),
}
"""Problem → baseline and idea, the most to gain first: the time limit ends what comes late."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=280)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or "campaigns-out"))
    parser.add_argument("--home", type=Path, default=Path("/tmp/autoresearch-home"))
    parser.add_argument("--hardware", default="", help="the queue's kind; the first GPU here when left out")
    parser.add_argument("--backend", default="triton")
    parser.add_argument("--scenario", default="toy_deepseek", help="empty: none is measured")
    parser.add_argument("--stack-seconds", type=float, default=75.0, help="kept for the scenario at the end")
    parser.add_argument("--only", action="append", default=[], metavar="PROBLEM[:BACKEND]")
    parser.add_argument(
        "--order", action="append", default=[], metavar="PROBLEM=04,01", help="these of its candidates, in this order"
    )
    parser.add_argument("--each", type=int, default=3, help="attempts of a campaign, at most")
    options = parser.parse_args()
    deadline = time.monotonic() + options.seconds
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("AUTORESEARCH_HOME", str(options.home))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "autoresearch_web.settings")
    options.home.mkdir(parents=True, exist_ok=True)
    sys.path.insert(0, str(ROOT))
    import django

    django.setup()
    from django.core.management import call_command

    from autoresearch_web.local.stack import Stack

    call_command("migrate", verbosity=0, interactive=False)
    with Stack(web=False) as stack:
        Run(options, stack, deadline).all()


class Run:
    def __init__(self, options: argparse.Namespace, stack: Any, deadline: float) -> None:
        from django.contrib.auth.models import User

        from autoresearch_web.local.hardware import local_kinds

        self.options, self.stack, self.deadline = options, stack, deadline
        self.end_at = deadline - (options.stack_seconds if options.scenario else 5.0)
        self.hardware = options.hardware or local_kinds()[0]
        self.person = User.objects.get_or_create(username="campaigns")[0]
        self.rows: list[dict[str, Any]] = []
        self.campaigns: list[Any] = []
        self.random = random.Random(20261130)

    def all(self) -> None:
        plan = self.options.only or list(PLAN)
        for place, problem in enumerate(plan):
            left = self.end_at - time.monotonic()
            if left < SHARE_S / 2:
                print(f"no time left for {', '.join(plan[place:])}", flush=True)
                break
            share = max(SHARE_S, left / (len(plan) - place))
            try:
                self.campaign(problem, min(self.end_at, time.monotonic() + share))
            except Exception as error:
                print(f"{problem}: {type(error).__name__}: {error}", flush=True)
            self.write()
        self.scenario()
        self.write()

    def campaign(self, asked: str, until: float) -> None:
        from campaigns import actions, dispatch
        from campaigns.actions import submit

        problem, _, backend = asked.partition(":")
        baseline, idea = PLAN[problem]
        new = actions.NewCampaign(
            problem=problem, idea=idea, agent="external", backend=backend or self.options.backend, baseline=baseline,
            hardware=self.hardware, budget_attempts=self.options.each,
        )  # fmt: skip
        campaign = actions.create(new, self.person)
        self.campaigns.append(campaign)
        actions.start(campaign, self.person)
        began = time.monotonic()
        print(
            f"\n{problem}: campaign {campaign.pk} in {campaign.backend}, {until - began:.0f} s, baseline {baseline}",
            flush=True,
        )
        for title, source in self.offers(problem, campaign):
            campaign.refresh_from_db()
            if campaign.is_ended or time.monotonic() > until - PROFILE_S:
                break
            try:
                new_one = submit.Submission(files=source.files, title=title, backend=source.backend)
                attempt = submit.submit(campaign, new_one, AGENT)
            except submit.Refusal as refusal:
                print(f"  not taken: {refusal}", flush=True)
                continue
            dispatch.advance(campaign.pk)
            if not self.judged(attempt, until - PROFILE_S):
                break
        self.end(campaign, time.monotonic() - began, until)

    def offers(self, problem: str, campaign: Any) -> Any:
        """The folder's candidates, then the incumbent with one or two parameters changed."""
        from campaigns.harness.candidate import load_candidate, tunables, with_values
        from campaigns.proposers.replay import title

        kind = {"triton": ".py", "cuda": ".cu"}.get(campaign.backend, f".{campaign.backend}")
        found = sorted(p for p in (CANDIDATES / problem).iterdir() if p.suffix == kind)
        for name, _, numbers in (line.partition("=") for line in self.options.order):
            if name == problem:
                found = [p for number in numbers.split(",") for p in found if p.name.startswith(number)]
        for path in found:
            source = load_candidate(path)
            yield title(source) or path.stem, source
        seen: set[str] = set()
        for _ in range(200):
            campaign.refresh_from_db()
            incumbent = campaign.incumbent_candidate()
            declared = tunables(incumbent)
            values = {t.name: t.value for t in declared}
            for tunable in self.random.sample(declared, min(len(declared), self.random.choice((1, 1, 2)))):
                values[tunable.name] = self.random.choice([c for c in tunable.choices if c != tunable.value])
            changes = ", ".join(f"{t.name} {t.value} → {values[t.name]}" for t in declared if values[t.name] != t.value)
            if not changes or changes in seen:
                continue
            seen.add(changes)
            yield changes, with_values(incumbent, values)

    def judged(self, attempt: Any, until: float) -> bool:
        """Wait for the verdict; False when the time is over first."""
        while time.monotonic() < until:
            self.stack.check()
            attempt.refresh_from_db()
            if attempt.verdict:
                gain = f"{attempt.speedup:.3f}×" if attempt.speedup is not None else "–"
                took = (attempt.judged_at - attempt.proposed_at).total_seconds()
                print(
                    f"  {attempt.number:>3} {attempt.verdict:<13} {gain:>8} {took:5.1f} s  {attempt.title[:60]}",
                    flush=True,
                )
                print(f"      {attempt.reason[:200]}", flush=True)
                if (report := attempt.parsed_report()) is not None:
                    parts = ", ".join(f"{s.name} {s.seconds:.1f}" for s in report.stages if s.seconds >= 0.5)
                    print(f"      {report.seconds:.1f} s: {parts}", flush=True)
                return True
            time.sleep(0.1)
        print(f"  {attempt.number:>3} not judged in time: {attempt.title[:80]}", flush=True)
        return False

    def end(self, campaign: Any, seconds: float, until: float) -> None:
        from campaigns import actions

        campaign.refresh_from_db()
        if not campaign.is_ended:
            actions.stop(campaign, self.person)
        campaign.refresh_from_db()
        best = campaign.best()
        if best is not None:
            self.profiled(best, until)
        row: dict[str, Any] = {
            "problem": campaign.problem,
            "campaign": campaign.pk,
            "hardware": self.hardware,
            "backend": campaign.backend,
            "baseline": campaign.baseline,
            "seconds": round(seconds, 1),
            "tally": campaign.tally(),
            "attempts_per_hour": self.pace(campaign),
            "speedup": best.speedup if best else None,
            "band": best.band if best else None,
            "title": best.title if best else "",
            "workloads": workloads(best) if best else [],
        }
        if (
            best is not None and (best.speedup or 0) > 1
        ):  # what beat the start kernel and no baseline is not worth a name
            try:
                actions.approve(best, self.person, seen=best.decision_seq, sha256=best.signed_sha256(None))
                row["approved"] = True
            except actions.ActionError as error:
                row["approved"] = str(error)
        self.rows.append(row)
        for w in row["workloads"]:
            print(
                "      {name:<26} {time_us:>9} µs, baseline {baseline_us:>9}, floor {floor_us:>8}  {speedup}".format(
                    **w
                )
            )

    def pace(self, campaign: Any) -> float | None:
        """Attempts an hour after the first, which compiles the baseline; None below three verdicts."""
        judged = sorted(campaign.attempts.exclude(judged_at=None).values_list("judged_at", flat=True))
        if len(judged) < 3:
            return None
        pace = (len(judged) - 1) / (judged[-1] - judged[0]).total_seconds() * 3600
        print(f"      {len(judged)} verdicts, {pace:.0f} an hour after the first", flush=True)
        return round(pace, 1)

    def profiled(self, attempt: Any, until: float) -> None:
        """Wait for the traces of a keep and of its baseline, while its processes are warm."""
        while time.monotonic() < until and attempt.profiles.filter(tool="torch", profile=None, problem="").exists():
            self.stack.check()
            time.sleep(0.2)

    def scenario(self) -> None:
        """The step with what was approved, asked for as the Stack page does."""
        import msgspec

        from campaigns.actions.errors import ActionError
        from campaigns.management.commands.measure_stack import table
        from campaigns.models import StackState
        from campaigns.scenarios import stacking
        from campaigns.scenarios.request import decode

        if not self.options.scenario or self.deadline - time.monotonic() < 20:
            return
        began = time.monotonic()
        try:
            row = stacking.ask(self.options.scenario, self.person)
        except ActionError as error:
            print(f"{self.options.scenario}: {error}", flush=True)
            return
        while row.state == StackState.WAITING and time.monotonic() < self.deadline:
            self.stack.check()
            time.sleep(0.2)
            row.refresh_from_db()
        print(f"\n{self.options.scenario}: {row.state} after {time.monotonic() - began:.0f} s {row.error}", flush=True)
        if row.state == StackState.DONE:
            report = decode(row.report.encode())
            print(table(report, row.not_here), flush=True)
            (self.options.out / "stack.json").write_bytes(msgspec.json.encode(report))

    def write(self) -> None:
        """The table so far, and every campaign that has ended as an archive, all in one file."""
        from campaigns.archive import ArchiveError
        from campaigns.management.commands.export_campaign import write

        (self.options.out / "campaigns.json").write_text(json.dumps(self.rows, indent=1))
        folder = self.options.home / "archives"
        folder.mkdir(exist_ok=True)
        with zipfile.ZipFile(self.options.out / "archives.zip", "w") as bundle:
            for campaign in self.campaigns:
                path = folder / f"{campaign.pk:02}-{campaign.problem}.zip"
                try:
                    campaign.refresh_from_db()
                    write(campaign, path)
                    bundle.write(path, path.name)
                except (ArchiveError, OSError) as error:
                    print(f"  campaign {campaign.pk} is not exported: {error}", flush=True)


def workloads(attempt: Any) -> list[dict[str, Any]]:
    report = attempt.parsed_report()
    if report is None:
        return []

    def us(value: float | None) -> str:
        return f"{value:.2f}" if value is not None else "–"

    return [
        {
            "name": w.name,
            "hidden": w.hidden,
            "time_us": us(w.time_us),
            "baseline_us": us(w.baseline_us),
            "incumbent_us": us(w.incumbent_us),
            "floor_us": us(w.floor_us),
            "speedup": f"{w.speedup.value:.3f}× ({w.speedup.lo:.3f} to {w.speedup.hi:.3f})" if w.speedup else "–",
        }
        for w in report.workloads
        if w.time_us is not None
    ]


if __name__ == "__main__":
    main()
