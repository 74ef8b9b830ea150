"""What this GPU can do at most, measured: bytes a second by copy and by read, operations a second by matrix product."""

from __future__ import annotations

from typing import Any

COPY_BYTES = 2 << 30
SIDE = 8192
TRIES = 3


class Role:
    def __init__(self, device: Any, message: dict[str, Any]) -> None:
        self.device, self.torch = device, device.torch

    def handle(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any] | None:
        scale = message["scale"]
        return {"peaks": {**self.memory(int(COPY_BYTES * scale)), **self.products(max(64, int(SIDE * scale)))}}

    def best_s(self, work: Any, repeats: int) -> float:
        """Seconds of one call: the best of a few windows, after one that warms."""
        self.device.timed(work)
        windows = [self.device.timed(lambda: [work() for _ in range(repeats)]) for _ in range(TRIES)]
        return min(windows) / repeats / 1e9

    def memory(self, size: int) -> dict[str, float]:
        torch = self.torch
        source = torch.empty(size // 4, dtype=torch.float32, device=self.device.name).normal_()
        target = torch.empty_like(source)
        nbytes = source.numel() * 4
        copy = self.best_s(lambda: target.copy_(source), 10)
        read = self.best_s(lambda: torch.sum(source), 10)
        write = self.best_s(lambda: target.zero_(), 10)
        return {
            "copy_bytes_per_s": 2 * nbytes / copy,
            "read_bytes_per_s": nbytes / read,
            "write_bytes_per_s": nbytes / write,
        }

    def products(self, side: int) -> dict[str, float]:
        """Random values: zeros let the clock run higher than real data does."""
        torch, device = self.torch, self.device.name
        flop = 2.0 * side**3
        a, b = (torch.randn(side, side, device=device) for _ in range(2))
        found = {}
        for name, tf32 in (("float32", False), ("tf32", True)):
            torch.backends.cuda.matmul.allow_tf32 = tf32
            found[f"{name}_flop_per_s"] = flop / self.best_s(lambda: a @ b, 2 if name == "float32" else 8)
        torch.backends.cuda.matmul.allow_tf32 = False
        for name in ("bfloat16", "float16"):
            x, y = a.to(getattr(torch, name)), b.to(getattr(torch, name))
            out = torch.empty_like(x)
            found[f"{name}_flop_per_s"] = flop / self.best_s(lambda x=x, y=y, out=out: torch.mm(x, y, out=out), 10)
        return {**found, **self.product_fp8(a, b, flop)}

    def product_fp8(self, a: Any, b: Any, flop: float) -> dict[str, float]:
        """Where the GPU has such units (compute capability 8.9 on)."""
        torch = self.torch
        try:
            x, y = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
            one = torch.ones((), device=self.device.name)
            best = self.best_s(
                lambda: torch._scaled_mm(x, y, one, one, out_dtype=torch.bfloat16, use_fast_accum=True), 10
            )
        except (RuntimeError, AttributeError, ValueError):
            return {}
        return dict.fromkeys(("float8_e4m3fn_flop_per_s", "float8_e5m2_flop_per_s"), flop / best)
