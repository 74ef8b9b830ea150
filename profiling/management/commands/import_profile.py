from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandParser, call_command

from profiling import importing, uploads
from profiling.importers.limits import Refused
from profiling.models import Profile
from profiling.words import duration, percent

KEYS = ("format", "producer", "schema", "gpus", "kernels", "span_ns", "devices", "top_kernels", "label")


class Command(BaseCommand):
    help = "Import a profile and say what stands out. Exit code 2 for a file that cannot be imported."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE")
        parser.add_argument("--json", action="store_true", help="one JSON document on stdout")

    def handle(self, *args: Any, **options: Any) -> None:
        begun = time.monotonic()
        try:
            profile = self.import_file(Path(options["file"]))
        except Refused as refused:
            self.refuse(refused, options["json"])
        result = document(profile) | {"seconds": round(time.monotonic() - begun, 3)}
        self.stdout.write(json.dumps(result) if options["json"] else as_text(profile, result))

    def import_file(self, path: Path) -> Profile:
        if not path.is_file():
            raise Refused(f"{path} is no file", "Check the path; a folder or a device cannot be imported.")
        try:
            sha256 = uploads.digest(uploads.file_chunks(path))
        except OSError as error:
            raise Refused(f"{path} cannot be read ({error.strerror})", "Check its permissions.") from error
        call_command("migrate", verbosity=0, interactive=False)
        return importing.import_file(path, uploads.display_name(path.name), sha256, self.tell)

    def tell(self, percent: int, phase: str) -> bool:
        if sys.stderr.isatty():
            self.stderr.write(f"\r{percent:3d} %  {phase:<40}", ending="\n" if percent == 100 else "")
        return True

    def refuse(self, refused: Refused, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps({"error": refused.error, "hint": refused.hint}))
        else:
            self.stderr.write(f"Not imported: {refused.error}.\n{refused.hint}")
        sys.exit(2)


def document(profile: Profile) -> dict[str, Any]:
    """The keys of KEYS and ``findings`` are kept stable; others stand beside them."""
    summary = profile.summary
    return (
        {key: summary[key] for key in KEYS}
        | {"findings": profile.findings}
        | {key: value for key, value in summary.items() if key not in KEYS}
        | {"profile": str(profile.pk), "path": profile.get_absolute_url()}
    )


def as_text(profile: Profile, result: dict[str, Any]) -> str:
    span = duration(result["span_ns"]) if result["span_ns"] is not None else "no span"
    gpus = ", ".join(profile.gpus) or "GPU not recorded"
    lines = [
        profile.title(),
        f"{profile.producer} · {gpus} · {span} · {result['kernels']:,} kernels",
        f"Why: {result['label_reason']}",
        "",
        *(f"{n}. {f['title']}\n   {f['evidence']}" for n, f in enumerate(result["findings"], 1)),
        "",
        f"{'calls':>9} {'total':>10} {'mean':>10} {'share':>7}  kernel",
    ]
    for kernel in result["top_kernels"][:10]:
        mean = duration(kernel["mean_ns"])
        figures = f"{kernel['calls']:>9,} {duration(kernel['total_ns']):>10} {mean:>10} {percent(kernel['share']):>7}"
        lines.append(f"{figures}  {kernel['name'][:100]}")
    return "\n".join(lines)
