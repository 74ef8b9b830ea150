"""Honest: rows in another order by a small index, sums in scratch memory, and a launch that is tried again with fewer stages."""

import torch
import triton
import triton.language as tl

try:
    from triton.runtime.errors import OutOfResources
except ImportError:
    OutOfResources = RuntimeError


@triton.jit
def sum_kernel(x, sums, order, columns, BLOCK: tl.constexpr):
    row = tl.load(order + tl.program_id(0)).to(tl.int64)
    at = tl.arange(0, BLOCK)
    tl.store(sums + row, tl.sum(tl.load(x + row * columns + at, mask=at < columns, other=0.0), 0))


@triton.jit
def centre_kernel(x, w, sums, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0) - tl.load(sums + row) / columns
    tl.store(y + row * columns + at, values * tl.load(w + at, mask=inside, other=0.0), mask=inside)


def run(x, w, y):
    rows, columns = x.shape
    block = triton.next_power_of_2(columns)
    order = torch.arange(rows, device=x.device, dtype=torch.int32).flip(0)
    sums = torch.empty(rows, dtype=torch.float32, device=x.device)
    sum_kernel[(rows,)](x.contiguous(), sums, order, columns, BLOCK=block)
    try:
        centre_kernel[(rows,)](x, w, sums, y.view(rows, columns), columns, BLOCK=block, num_stages=4)
    except OutOfResources:
        centre_kernel[(rows,)](x, w, sums, y.view(rows, columns), columns, BLOCK=block, num_stages=1)
