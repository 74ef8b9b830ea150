"""What came of a scout: the table, and its best values written into the candidates."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from grids import GRIDS

from scouting.points import CANDIDATES, floor_us, problem_of, with_values, workloads


def show(out: Path, rows: list[dict[str, Any]]) -> None:
    path = out / "baselines.json"
    base = json.loads(path.read_text()) if path.exists() else []
    print(
        f"\n{'problem, workload':<44} {'best':>8} {'floor':>7} {'÷':>5} {'compile':>8} {'eager':>8} {'gain':>5}  with"
    )
    for problem in dict.fromkeys(row["problem"] for row in rows):
        for name, workload in workloads(problem_of(problem)).items():
            mine = [r for r in rows if r["problem"] == problem and r["workload"] == name and "us" in r]
            right = sorted((r for r in mine if r["error"] <= 1), key=lambda r: r["us"])
            if not right:
                continue
            least = floor_us(problem_of(problem), workload)
            known = {
                b["baseline"]: b["us"] for b in base if (b["problem"], b["workload"]) == (problem, name) and "us" in b
            }
            gain = f"{min(known.values()) / right[0]['us']:.2f}" if known else "–"
            compiled, eager = (f"{known[k]:.1f}" if k in known else "–" for k in ("compile", "eager"))
            for place, row in enumerate(right[:3]):
                values = " ".join(f"{k}={v}" for k, v in row["values"].items())
                ahead = f"{problem} {name}" if place == 0 else ""
                rest = f"{compiled:>8} {eager:>8} {gain:>5}" if place == 0 else " " * 23
                print(
                    f"{ahead:<44} {row['us']:>8.2f} {least:>7.1f} {row['us'] / least:>5.2f} {rest}"
                    f"  {row['file'][:2]} {values}"
                )
    wrong = [r for r in rows if r.get("error", 0) > 1]
    for row in wrong[:12]:
        print(
            "WRONG", row["problem"], row["file"], row["workload"], row["values"], f"{row['error']:.2f} of the tolerance"
        )
    failures: dict[str, int] = {}
    for row in rows:
        if "failure" in row:
            key = f"{row['problem']} {row['file'][:2]} {row['workload']}: {row['failure'][:150]}"
            failures[key] = failures.get(key, 0) + 1
    for key, count in sorted(failures.items(), key=lambda item: -item[1])[:16]:
        print(f"FAILED {count}×", key)
    checked = {(r["problem"], r["file"], r["workload"]) for r in rows if r["check"] and r.get("error", 9) <= 1}
    print(f"{len(checked)} checks of candidates as they are were right; {len(rows)} points in all")


def apply(rows: list[dict[str, Any]]) -> None:
    """Write into each candidate what was fastest and right: for each group of workloads of its grids the point with the
    least geometric mean, measured on all of them."""
    for problem, candidates in GRIDS.items():
        for file, grids in candidates.items():
            source = CANDIDATES / problem / file
            for group in dict.fromkeys(tuple(names) for names, _ in grids):
                times: dict[tuple[tuple[str, Any], ...], list[float]] = {}
                for row in rows:
                    here = (row["problem"], row["file"]) == (problem, file) and row["workload"] in group
                    if here and row["values"] and "us" in row and row["error"] <= 1:
                        times.setdefault(tuple(row["values"].items()), []).append(row["us"])
                whole = {values: us for values, us in times.items() if len(us) == len(group)}
                if not whole:
                    continue
                best = min(whole, key=lambda values: statistics.geometric_mean(whole[values]))
                source.write_text(with_values(source, dict(best)))
                print(f"{problem} {file[:2]} {', '.join(group)}: {dict(best)}", flush=True)
