"""A hardware card made from what a host's evaluator reported of itself: for every GPU that has no card of its own."""

from __future__ import annotations

from campaigns.harness.report import Host

from .cards import Card, checked

UNITS = {
    "copy_bytes_per_s": ("copy, read and written together", 1e9, "GB/s"),
    "read_bytes_per_s": ("read", 1e9, "GB/s"),
    "float32_flop_per_s": ("float32 arithmetic", 1e9, "GFLOP/s"),
    "fp32_flop_per_s": ("float32 arithmetic", 1e9, "GFLOP/s"),
    "bfloat16_flop_per_s": ("bf16 matmul", 1e12, "TFLOP/s"),
    "memory_clock_bytes_per_s": ("all that the memory's clock allows", 1e9, "GB/s"),
}


def card_of(hardware: str, host: Host) -> Card:
    """What the host says, and plainly what it does not say. Nothing is filled in from memory."""
    rows = [f"| device | {plain(host.kind)} |", f"| processor of the host | {plain(host.processor)} |"]
    for key, value in sorted(host.peaks.items()):
        if "_at_" in key:  # by size, for the floor
            continue
        label, scale, unit = UNITS.get(key, (key.replace("_", " "), 1.0, ""))
        rows.append(f"| measured: {plain(label)} | {value / scale:,.1f} {unit} |")
    rows += [f"| {plain(name)} | {plain(version)} |" for name, version in sorted(host.versions.items())]
    unknown = [] if host.peaks else ["its ceilings (nobody has measured bandwidth or arithmetic there)"]
    unknown += ["shared memory, registers, caches and instructions beyond what is listed"]
    text = "\n".join(
        [
            "---",
            f"title: {plain(host.kind)}, as the host {plain(host.name)} reports it",
            f"match: ^{hardware}$",
            "---",
            f"# {plain(host.kind)}, as its host reports it",
            "",
            "| | |",
            "|---|---|",
            *rows,
            "",
            f"Not known here: {'; '.join(unknown)}. Do not assume them from a card with a similar name; write",
            "code that works within the limits common to all (48 KiB of shared memory a block on a GPU).",
        ]
    )
    return checked(f"hardware/{hardware[:60]}-device", text, "device")


def plain(text: str) -> str:
    """One line without marks that Markdown tables or heads would read."""
    return " ".join(str(text).replace("|", "/").split())[:200]
