"""Honest: scratch memory by shape that lives from call to call; a small sum by torch after the kernel."""

import torch
import triton
import triton.language as tl

PARTS = 4
scratch = {}


@triton.jit
def part_kernel(x, parts, rows, width, share, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    first = tl.program_id(1) * share
    columns = first + tl.arange(0, BLOCK)
    inside = (columns < width) & (columns < first + share)
    values = tl.load(x + row * width + columns, mask=inside, other=0.0).to(tl.float32)
    tl.store(parts + tl.program_id(1) * rows + row, tl.sum(values, 0))


def run(x, y):
    rows, width = x.shape
    if rows not in scratch:
        scratch[rows] = torch.empty(PARTS, rows, dtype=torch.float32, device=x.device)
    parts, share = scratch[rows], triton.cdiv(width, PARTS)
    part_kernel[(rows, PARTS)](x, parts, rows, width, share, BLOCK=triton.next_power_of_2(share))
    torch.sum(parts, 0, out=y)
