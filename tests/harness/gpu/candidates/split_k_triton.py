"""Honest: the inner sum split over programs, partial products in scratch memory, added up by a second kernel."""

import torch
import triton
import triton.language as tl

BLOCK, STEP, PARTS = 64, 32, 2


@triton.jit
def part_kernel(a, b, parts, m, n, k, share, BLOCK: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)[:, None]
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)[None, :]
    sums = tl.zeros([BLOCK, BLOCK], tl.float32)
    end = tl.minimum((tl.program_id(2) + 1) * share, k)
    for first in range(tl.program_id(2) * share, end, STEP):
        inner = first + tl.arange(0, STEP)
        left = tl.load(a + row * k + inner[None, :], mask=(row < m) & (inner[None, :] < end), other=0.0)
        right = tl.load(b + inner[:, None] * n + column, mask=(inner[:, None] < end) & (column < n), other=0.0)
        sums = tl.dot(left, right, sums, input_precision="ieee")
    tl.store(parts + tl.program_id(2) * m * n + row * n + column, sums, mask=(row < m) & (column < n))


@triton.jit
def sum_kernel(parts, y, values, PARTS: tl.constexpr, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    total = tl.zeros([SIZE], tl.float32)
    for part in range(PARTS):
        total += tl.load(parts + part * values + at, mask=at < values, other=0.0)
    tl.store(y + at, total, mask=at < values)


def run(a, b, y):
    (m, k), n = a.shape, b.shape[1]
    parts = torch.empty(PARTS, m, n, dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK), PARTS)
    part_kernel[grid](a, b, parts, m, n, k, triton.cdiv(k, PARTS), BLOCK=BLOCK, STEP=STEP)
    sum_kernel[(triton.cdiv(m * n, 1024),)](parts, y, m * n, PARTS=PARTS, SIZE=1024)
