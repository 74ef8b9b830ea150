from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from django.core.management import BaseCommand, CommandError, CommandParser

from profiling.bench import generate, imports, pan, windows
from profiling.words import size

PARTS = ("import", "windows", "pan")


class Command(BaseCommand):
    help = (
        "Measure profiles: import of a generated capture (time, peak memory), windows of ten million events beside "
        "plain SQLite, a pan in Chromium. Exit code 1 when a figure misses its target."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--kernels", type=int, default=1_000_000, help="of the imported capture; calls 2×, ranges 5×"
        )
        parser.add_argument("--events", type=int, default=10_000_000, help="of the store that windows are asked of")
        parser.add_argument("--windows", type=int, default=200)
        parser.add_argument("--sqlite-every", type=int, default=10, help="ask SQLite for every N-th of the windows")
        parser.add_argument("--only", choices=PARTS, action="append", help="leave the other parts out")
        parser.add_argument("--folder", help="where the generated files go (several GB); a temporary one by default")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        if min(options["kernels"], options["events"], options["windows"], options["sqlite_every"]) < 1:
            raise CommandError("Numbers have to be positive.")
        parts = options["only"] or PARTS
        result: dict[str, Any] = {"cores": os.cpu_count(), "load_before": round(os.getloadavg()[0], 2)}
        with tempfile.TemporaryDirectory(prefix="bench-profiles-", dir=options["folder"]) as scratch:
            if "import" in parts:
                result["import"] = self.measure_import(Path(scratch), options["kernels"])
            if "windows" in parts or "pan" in parts:
                self.say(f"making a store of {options['events']:,} events …")
                store = windows.prepare(options["events"], Path(scratch) / "store")
                if "windows" in parts:
                    result["windows"] = self.measure_windows(Path(scratch), store, options)
                if "pan" in parts:
                    result["pan"] = self.measure_pan(Path(scratch))
        result["load_after"] = round(os.getloadavg()[0], 2)
        result["met"] = all(part["met"] for key in PARTS if (part := result.get(key)) and part["met"] is not None)
        self.stdout.write(json.dumps(result) if options["json"] else as_text(result))
        if not result["met"]:
            raise SystemExit(1)

    def say(self, text: str) -> None:
        self.stderr.write(text)

    def measure_import(self, scratch: Path, kernels: int) -> dict[str, Any]:
        self.say(f"generating a capture of {kernels:,} kernels …")
        file = scratch / "generated.sqlite"
        rows = generate.export(file, kernels)
        self.say(f"importing {size(file.stat().st_size)} …")
        found = imports.measure(file, scratch / "imported")
        file.unlink()
        return {
            "rows": rows,
            "seconds": round(found.seconds, 2),
            "cpu_seconds": round(found.cpu_seconds, 2),
            "peak_bytes": found.peak_bytes,
            "target": "30 s and 2.5 GB for 1 M kernels",
            "met": found.seconds <= 30 and found.peak_bytes <= 2.5e9,
        }

    def measure_windows(self, scratch: Path, store: windows.Store, options: dict[str, Any]) -> dict[str, Any]:
        asked = windows.random_windows(store, options["windows"])
        windows.measure(store, asked[:3])  # the first touch of a mapped file reads the disk
        ours = windows.measure(store, asked)
        took, largest = ours.wall_ms, int(ours.payload_bytes.max())
        self.say("filling plain SQLite with the same events …")
        plain = windows.PlainSqlite(store, scratch / "plain.sqlite")
        every = options["sqlite_every"]
        self.say(f"asking SQLite for {len(asked[::every])} of the {len(asked)} windows …")
        other = plain.measure(asked[::every])
        same = took[::every]
        p95 = float(np.percentile(took, 95))
        return {
            "events": len(store.column("start")),
            "lanes": len(store.lanes),
            "p50_ms": round(float(np.median(took)), 2),
            "p95_ms": round(p95, 2),
            "most_ms": round(float(took.max()), 2),
            "p95_cpu_ms": round(float(np.percentile(ours.cpu_ms, 95)), 2),
            "largest_payload_bytes": largest,
            "sqlite_windows": len(other),
            "sqlite_p50_ms": round(float(np.median(other)), 1),
            "sqlite_p95_ms": round(float(np.percentile(other, 95)), 1),
            "p50_ratio": round(float(np.median(other) / np.median(same)), 1),
            "p95_ratio": round(float(np.percentile(other, 95) / np.percentile(same, 95)), 1),
            "target": "p95 20 ms, payload 150 kB",
            "met": p95 <= 20 and largest <= windows.MAX_PAYLOAD_BYTES,
        }

    def measure_pan(self, scratch: Path) -> dict[str, Any]:
        self.say("panning in Chromium …")
        try:
            took = pan.measure(scratch / "store", scratch / "home")
        except RuntimeError as error:
            return {"not_measured": str(error), "target": "p95 120 ms", "met": None}
        p95 = float(np.percentile(took, 95))
        return {
            "pans": len(took),
            "p50_ms": round(float(np.median(took)), 1),
            "p95_ms": round(p95, 1),
            "target": "p95 120 ms",
            "met": p95 <= 120,
        }


def as_text(result: dict[str, Any]) -> str:
    lines = [f"{result['cores']} cores, load {result['load_before']} before and {result['load_after']} after"]
    if part := result.get("import"):
        rows = ", ".join(f"{number:,} {table}" for table, number in part["rows"].items())
        lines.append(
            f"import   {part['seconds']:.1f} s ({part['cpu_seconds']:.1f} s of CPU), peak {part['peak_bytes'] / 1e9:.2f} GB: "
            f"{rows}   {verdict(part)}"
        )
    if part := result.get("windows"):
        lines.append(
            f"windows  p50 {part['p50_ms']} ms, p95 {part['p95_ms']} ms ({part['p95_cpu_ms']} ms of CPU), largest "
            f"payload "
            f"{part['largest_payload_bytes'] / 1e3:.0f} kB: {part['events']:,} events, {part['lanes']} lanes   {verdict(part)}"
        )
        lines.append(
            f"         plain SQLite, {part['sqlite_windows']} of the same windows: p50 {part['sqlite_p50_ms']} ms, p95 "
            f"{part['sqlite_p95_ms']} ms; {part['p50_ratio']} and {part['p95_ratio']} times ours"
        )
    if part := result.get("pan"):
        said = part.get("not_measured") or f"p50 {part['p50_ms']} ms, p95 {part['p95_ms']} ms over {part['pans']} pans"
        lines.append(f"pan      {said}   {verdict(part)}")
    return "\n".join(lines)


def verdict(part: dict[str, Any]) -> str:
    word = {True: "met", False: "MISSED", None: "not measured"}[part["met"]]
    return f"[target: {part['target']}: {word}]"
