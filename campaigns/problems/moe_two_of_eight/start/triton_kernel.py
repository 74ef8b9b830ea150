"""Two experts a token in Triton: two kernels, a few rows a program, small pieces of a row, results summed by a third."""

import torch
import triton
import triton.language as tl

ROWS = 4  # tunable: 1, 2, 4, 8, 16
BLOCK = 128  # tunable: 128, 256, 512, 1024
NUM_WARPS = 4  # tunable: 1, 2, 4, 8


@triton.jit
def up_kernel(x, expert, up, middle, hidden, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(1)
    chosen = tl.load(expert + place)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = up + (chosen * 2 * inner + row[:, None]) * hidden
    gate = tl.zeros([ROWS, BLOCK], tl.float32)
    value = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        column = first + tl.arange(0, BLOCK)
        a = tl.load(x + place // 2 * hidden + column, mask=column < hidden, other=0.0).to(tl.float32)[None, :]
        inside = (row[:, None] < inner) & (column[None, :] < hidden)
        gate += tl.load(at + column[None, :], mask=inside, other=0.0).to(tl.float32) * a
        value += tl.load(at + inner * hidden + column[None, :], mask=inside, other=0.0).to(tl.float32) * a
    g, v = tl.sum(gate, 1), tl.sum(value, 1)
    tl.store(middle + place * inner + row, g / (1.0 + tl.exp(-g)) * v, mask=row < inner)


@triton.jit
def down_kernel(middle, expert, share, down, each, hidden, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    place = tl.program_id(1)
    chosen = tl.load(expert + place)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = down + (chosen * hidden + row[:, None]) * inner
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(0, inner, BLOCK):
        column = first + tl.arange(0, BLOCK)
        a = tl.load(middle + place * inner + column, mask=column < inner, other=0.0)[None, :]
        inside = (row[:, None] < hidden) & (column[None, :] < inner)
        sums += tl.load(at + column[None, :], mask=inside, other=0.0).to(tl.float32) * a
    part = tl.load(share + place).to(tl.float32)
    tl.store(each + place * hidden + row, tl.sum(sums, 1) * part, mask=row < hidden)


@triton.jit
def sum_kernel(each, y, hidden, BLOCK: tl.constexpr):
    token = tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    one = tl.load(each + 2 * token * hidden + column, mask=column < hidden, other=0.0)
    other = tl.load(each + (2 * token + 1) * hidden + column, mask=column < hidden, other=0.0)
    tl.store(y + token * hidden + column, one + other, mask=column < hidden)


def run(x, expert, share, up, down, y):
    (batch, hidden), inner = x.shape, down.shape[2]
    middle = torch.empty(2 * batch, inner, device=x.device)
    each = torch.empty(2 * batch, hidden, device=x.device)
    sizes = {"ROWS": ROWS, "BLOCK": BLOCK, "num_warps": NUM_WARPS}
    up_kernel[(triton.cdiv(inner, ROWS), 2 * batch)](x, expert, up, middle, hidden, inner, **sizes)
    down_kernel[(triton.cdiv(hidden, ROWS), 2 * batch)](middle, expert, share, down, each, hidden, inner, **sizes)
    sum_kernel[(triton.cdiv(hidden, 1024), batch)](each, y, hidden, BLOCK=1024)
