# Read the chosen experts' weights where they lie: two kernels of whole rows, the second sums both experts; no copy, no third kernel.
import torch
import triton
import triton.language as tl

UP_ROWS = 4  # tunable: 2, 4, 8
UP_BLOCK = 1024  # tunable: 512, 1024, 2048
UP_WARPS = 4  # tunable: 2, 4, 8
DOWN_ROWS = 8  # tunable: 4, 8, 16
DOWN_BLOCK = 512  # tunable: 256, 512, 1024
DOWN_WARPS = 4  # tunable: 2, 4, 8
EARLY = 1  # tunable: 0, 1


@triton.jit
def up_kernel(
    x, expert, up, middle, hidden, inner, ROWS: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr, EARLY: tl.constexpr
):
    place = tl.program_id(1)
    chosen = tl.load(expert + place)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = up + (chosen * 2 * inner + tl.minimum(row, inner - 1)[:, None]) * hidden
    x += place // 2 * hidden
    gate = tl.zeros([ROWS, BLOCK], tl.float32)
    value = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        column = first + tl.arange(0, BLOCK)
        if EXACT:
            g, v = tl.load(at + column[None, :]), tl.load(at + inner * hidden + column[None, :])
            a = tl.load(x + column).to(tl.float32)[None, :]
        else:
            inside = column[None, :] < hidden
            g = tl.load(at + column[None, :], mask=inside, other=0.0)
            v = tl.load(at + inner * hidden + column[None, :], mask=inside, other=0.0)
            a = tl.load(x + column, mask=column < hidden, other=0.0).to(tl.float32)[None, :]
        gate += g.to(tl.float32) * a
        value += v.to(tl.float32) * a
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    g, v = tl.sum(gate, 1), tl.sum(value, 1)
    tl.store(middle + place * inner + row, g / (1.0 + tl.exp(-g)) * v, mask=row < inner)


@triton.jit
def down_kernel(
    middle, expert, share, down, y, hidden, inner,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr, EARLY: tl.constexpr,
):
    token = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    for each in tl.static_range(2):
        place = 2 * token + each
        at = down + (tl.load(expert + place) * hidden + tl.minimum(row, hidden - 1)[:, None]) * inner
        part = tl.load(share + place).to(tl.float32)
        for first in range(0, inner, BLOCK):
            column = first + tl.arange(0, BLOCK)
            if EXACT:
                w = tl.load(at + column[None, :]).to(tl.float32)
                a = tl.load(middle + place * inner + column) * part
            else:
                w = tl.load(at + column[None, :], mask=column[None, :] < inner, other=0.0).to(tl.float32)
                a = tl.load(middle + place * inner + column, mask=column < inner, other=0.0) * part
            sums += w * a[None, :]
    tl.store(y + token * hidden + row, tl.sum(sums, 1), mask=row < hidden)


def run(x, expert, share, up, down, y):
    (batch, hidden), inner = x.shape, down.shape[2]
    middle = torch.empty(2 * batch, inner, device=x.device)
    early = EARLY == 1 and x.device.type != "cpu"
    wide = min(UP_BLOCK, triton.next_power_of_2(hidden))
    up_kernel[(triton.cdiv(inner, UP_ROWS), 2 * batch)](
        x, expert, up, middle, hidden, inner,
        ROWS=UP_ROWS, BLOCK=wide, EXACT=hidden % wide == 0, EARLY=early, num_warps=UP_WARPS,
    )
    wide = min(DOWN_BLOCK, triton.next_power_of_2(inner))
    launch = {"launch_pdl": True} if early else {}
    down_kernel[(triton.cdiv(hidden, DOWN_ROWS), batch)](
        middle, expert, share, down, y, hidden, inner,
        ROWS=DOWN_ROWS, BLOCK=wide, EXACT=inner % wide == 0, EARLY=early, num_warps=DOWN_WARPS, **launch,
    )
