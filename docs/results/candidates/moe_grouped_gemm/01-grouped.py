# Sort the tokens by expert on the device, then stream each expert's weights once: gate and up in one product with SiLU in it, then down, then one sum.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

UP_N = 64  # tunable: 64, 128
UP_K = 64  # tunable: 64, 128
UP_STAGES = 4  # tunable: 2, 3, 4
UP_WARPS = 4  # tunable: 4, 8
DOWN_N = 128  # tunable: 64, 128
DOWN_K = 128  # tunable: 64, 128
DOWN_STAGES = 3  # tunable: 2, 3, 4
DOWN_WARPS = 4  # tunable: 4, 8
ROWS = 2  # tunable: 1, 2, 4
MANY_STAGES = 4  # tunable: 2, 3, 4

MANY = 128
"""Mean rows of an expert above which arithmetic decides, not the reading of the weights."""


@triton.jit
def route_kernel(
    chosen, order, tile_expert, tile_first, tile_last, count, tiles, experts,
    EXPERTS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, TILES: tl.constexpr,
):
    """One program an expert: where its rows begin, which they are, and which tiles of BLOCK_M rows it has."""
    expert = tl.program_id(0)
    bins = tl.arange(0, EXPERTS)
    sizes = tl.zeros([EXPERTS], tl.int32)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        sizes += tl.histogram(tl.load(chosen + at, mask=at < count, other=EXPERTS - 1), EXPERTS)
    sizes = tl.where(bins < experts, sizes, 0)
    own = tl.sum(tl.where(bins == expert, sizes, 0), 0)
    begin = tl.sum(tl.where(bins < expert, sizes, 0), 0)
    tiles_of = (sizes + BLOCK_M - 1) // BLOCK_M
    first_tile = tl.sum(tl.where(bins < expert, tiles_of, 0), 0)
    used = tl.sum(tiles_of, 0)
    number = tl.arange(0, TILES)
    mine = (number < (own + BLOCK_M - 1) // BLOCK_M) & (first_tile + number < tiles)
    tl.store(tile_expert + first_tile + number, tl.zeros([TILES], tl.int32) + expert, mask=mine)
    tl.store(tile_first + first_tile + number, begin + number * BLOCK_M, mask=mine)
    tl.store(tile_last + first_tile + number, tl.zeros([TILES], tl.int32) + begin + own, mask=mine)
    if expert == 0:
        tl.store(tile_expert + number, tl.full([TILES], -1, tl.int32), mask=(number >= used) & (number < tiles))
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        hit = (tl.load(chosen + at, mask=at < count, other=-1) == expert).to(tl.int32)
        tl.store(order + begin + tl.cumsum(hit, 0) - 1, at, mask=hit == 1)
        begin += tl.sum(hit, 0)


@triton.jit
def up_kernel(
    x, w_tiles, w13, middle, order, tile_expert, tile_first, tile_last, topk, d, f,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, COPY_ENGINE: tl.constexpr,
):
    """silu(gate) · up for a tile of an expert's rows. The weights' rows are the rows of the product."""
    tile = tl.program_id(1)
    expert = tl.load(tile_expert + tile)
    if expert >= 0:
        row = tl.load(tile_first + tile) + tl.arange(0, BLOCK_M)
        last = tl.load(tile_last + tile)
        token = tl.load(order + row, mask=row < last, other=0) // topk
        first = tl.program_id(0) * BLOCK_N
        column = first + tl.arange(0, BLOCK_N)
        gate = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
        up = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
        x_row = x + token.to(tl.int64) * d
        w_row = w13 + (expert.to(tl.int64) * 2 * f + column) * d
        for at in range(0, d, BLOCK_K):
            inner = at + tl.arange(0, BLOCK_K)
            a = tl.load(x_row[None, :] + inner[:, None], mask=(row[None, :] < last) & (inner[:, None] < d), other=0.0)
            if COPY_ENGINE:
                b = w_tiles.load([expert * 2 * f + first, at])
                c = w_tiles.load([expert * 2 * f + f + first, at])
            else:
                inside = (column[:, None] < f) & (inner[None, :] < d)
                b = tl.load(w_row[:, None] + inner[None, :], mask=inside, other=0.0)
                c = tl.load(w_row[:, None] + f * d + inner[None, :], mask=inside, other=0.0)
            gate = tl.dot(b, a, gate, input_precision="ieee")
            up = tl.dot(c, a, up, input_precision="ieee")
        value = tl.trans(gate / (1.0 + tl.exp(-gate)) * up)
        at_out = row[:, None].to(tl.int64) * f + column[None, :]
        tl.store(
            middle + at_out, value.to(middle.dtype.element_ty), mask=(row[:, None] < last) & (column[None, :] < f)
        )


@triton.jit
def down_kernel(
    middle, w_tiles, w2, weights, each, order, tile_expert, tile_first, tile_last, d, f,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, COPY_ENGINE: tl.constexpr,
):
    tile = tl.program_id(1)
    expert = tl.load(tile_expert + tile)
    if expert >= 0:
        row = tl.load(tile_first + tile) + tl.arange(0, BLOCK_M)
        last = tl.load(tile_last + tile)
        place = tl.load(order + row, mask=row < last, other=0)
        first = tl.program_id(0) * BLOCK_N
        column = first + tl.arange(0, BLOCK_N)
        sums = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
        m_row = middle + row.to(tl.int64) * f
        w_row = w2 + (expert.to(tl.int64) * d + column) * f
        for at in range(0, f, BLOCK_K):
            inner = at + tl.arange(0, BLOCK_K)
            a = tl.load(m_row[None, :] + inner[:, None], mask=(row[None, :] < last) & (inner[:, None] < f), other=0.0)
            if COPY_ENGINE:
                b = w_tiles.load([expert * d + first, at])
            else:
                b = tl.load(
                    w_row[:, None] + inner[None, :], mask=(column[:, None] < d) & (inner[None, :] < f), other=0.0
                )
            sums = tl.dot(b, a, sums, input_precision="ieee")
        weight = tl.load(weights + place, mask=row < last, other=0.0)
        value = tl.trans(sums) * weight[:, None]
        at_out = place[:, None].to(tl.int64) * d + column[None, :]
        tl.store(each + at_out, value.to(each.dtype.element_ty), mask=(row[:, None] < last) & (column[None, :] < d))


@triton.jit
def sum_kernel(each, y, topk, d, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for place in range(topk):
        total += tl.load(each + (token * topk + place) * d + column, mask=column < d, other=0.0).to(tl.float32)
    tl.store(y + token * d + column, total, mask=column < d)


def run(x, w13, w2, chosen, weights, y):
    (tokens, topk), (experts, d, f) = chosen.shape, w2.shape
    count = tokens * topk
    mean = triton.cdiv(count, experts)
    many = mean > MANY
    if many:
        high, up_n, up_k, up_warps, down_n, down_k, down_warps = 128, 128, 64, 8, 128, 64, 8
        up_stages = down_stages = MANY_STAGES
    else:
        high = min(128, max(16, triton.next_power_of_2(mean) * ROWS))
        up_n, up_k, up_warps, up_stages = UP_N, UP_K, UP_WARPS, UP_STAGES
        down_n, down_k, down_warps, down_stages = DOWN_N, DOWN_K, DOWN_WARPS, DOWN_STAGES
    tiles = min(count, experts + count // high)
    order, tile_expert, tile_first, tile_last = (
        torch.empty(n, dtype=torch.int32, device=x.device) for n in (count, tiles, tiles, tiles)
    )
    middle = torch.empty(count, f, dtype=x.dtype, device=x.device)
    each = torch.empty(count, d, dtype=x.dtype, device=x.device)
    route_kernel[(experts,)](
        chosen, order, tile_expert, tile_first, tile_last, count, tiles, experts,
        EXPERTS=triton.next_power_of_2(experts + 1), BLOCK=min(4096, max(256, triton.next_power_of_2(count))), BLOCK_M=high,
        TILES=triton.next_power_of_2(tiles), num_warps=8,
    )
    whole = d % 8 == 0 and f % 8 == 0
    up_tiles = TensorDescriptor.from_tensor(w13.view(-1, d), [up_n, up_k]) if whole else w13
    down_tiles = TensorDescriptor.from_tensor(w2.view(-1, f), [down_n, down_k]) if whole else w2
    up_kernel[(triton.cdiv(f, up_n), tiles)](
        x, up_tiles, w13, middle, order, tile_expert, tile_first, tile_last, topk, d, f,
        BLOCK_M=high, BLOCK_N=up_n, BLOCK_K=up_k, COPY_ENGINE=whole, num_warps=up_warps, num_stages=up_stages,
    )
    down_kernel[(triton.cdiv(d, down_n), tiles)](
        middle, down_tiles, w2, weights, each, order, tile_expert, tile_first, tile_last, d, f,
        BLOCK_M=high, BLOCK_N=down_n, BLOCK_K=down_k, COPY_ENGINE=whole, num_warps=down_warps, num_stages=down_stages,
    )
    sum_kernel[(tokens, triton.cdiv(d, 1024))](each, y, topk, d, BLOCK=1024, num_warps=4)
