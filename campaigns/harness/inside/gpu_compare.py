"""Compares outputs with what was expected, on the GPU. It runs no code but this: no problem's, no candidate's.

The test is that of ``accuracy.compare``: |out − ref| ≤ t·RMS(ref) + t·|ref|.
"""

from __future__ import annotations

from typing import Any

from .gpu_tensors import Areas

PIECE = 1 << 23
TINY = 1.1754943508222875e-38


class Role:
    def __init__(self, device: Any, message: dict[str, Any]) -> None:
        self.device, self.torch = device, device.torch
        self.areas = Areas()

    def handle(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any] | None:
        match message["do"]:
            case "areas":
                self.areas.map(message, fds)
                return None
            case "unmap":
                self.areas.unmap(message["number"], message["size"])
                return None
        return {"found": [self.compare(item) for item in message["items"]]}

    def compare(self, item: dict[str, Any]) -> dict[str, Any]:
        """One piece of one output. ``scale`` is the RMS of the whole expected output."""
        torch = self.torch
        count, t, scale = item["count"], item["t"], item["scale"]
        outs = self.areas.tensor(item["out"][0], item["out"][1], count, item["dtype"])
        expecteds = self.areas.tensor(item["expected"][0], item["expected"][1], count, item["expected_dtype"])
        found: dict[str, Any] = {"wrong": 0, "error": 0.0, "nonfinite": 0, "sum_error": 0.0, "sum_expected": 0.0}
        for first in range(0, count, PIECE):
            out = outs[first : first + PIECE].to(self.device.name).double()
            expected = expecteds[first : first + PIECE].to(self.device.name).double()
            error = (out - expected).abs()
            relative = error / (expected.abs() + (scale + TINY))
            finite = torch.isfinite(expected)
            same = torch.where(out == expected, 0.0, float("inf"))
            relative = torch.where(finite, relative, same.to(relative.dtype))
            relative = torch.where(torch.isnan(relative), float("inf"), relative)
            wrong = ~(relative <= t)
            bad = int(wrong.sum())
            if bad and not found["wrong"]:
                at = int(wrong.to(torch.uint8).argmax())
                found |= {"first": first + at, "got": float(out[at]), "want": float(expected[at])}
            both = finite & torch.isfinite(out)
            zero = torch.zeros((), dtype=error.dtype, device=error.device)
            found["wrong"] += bad
            found["error"] = max(found["error"], float(relative.max()))
            found["nonfinite"] += int((finite & ~torch.isfinite(out)).sum())
            found["sum_error"] += float(torch.where(both, error, zero).square().sum())
            found["sum_expected"] += float(torch.where(both, expected, zero).square().sum())
        return {k: _plain(v) for k, v in found.items()}


def _plain(value: Any) -> Any:
    """JSON has no infinities and no NaN: they go as words."""
    return repr(value) if isinstance(value, float) and (value != value or abs(value) == float("inf")) else value
