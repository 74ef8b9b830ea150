# The grouped kernels as a chain of dependent launches, each calling its first weights to the second-level cache while the one before ends; each program calls those of a later one before it stores.
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
EARLY = 1  # tunable: 0, 1
HEAD_BYTES = 512  # tunable: 0, 256, 512, 1024
UP_NEXT = 2  # tunable: 0, 1, 2, 3
DOWN_NEXT = 1  # tunable: 0, 1, 2, 3
FAR_BYTES = 0  # tunable: 0, 512, 1024
MANY_STAGES = 4  # tunable: 3, 4
MANY_DOWN_N = 256  # tunable: 128, 256

MANY = 128
"""Mean rows of an expert above which arithmetic decides, not the reading of the weights."""
PROCESSORS = 132


@triton.jit
def call_to_cache(address, size_bytes):
    """Ask the second-level cache for `size_bytes` from each address, both in units of 16 bytes; 0 asks for nothing."""
    tl.inline_asm_elementwise(
        "{ .reg .pred p; setp.ne.u32 p, $2, 0; @p cp.async.bulk.prefetch.L2.global [$1], $2; mov.u32 $0, 0; }",
        "=r,l,r", [address.to(tl.int64), size_bytes], dtype=tl.int32, is_pure=False, pack=1,
    )


@triton.jit
def up_rows(w13, expert, first, d, f, BLOCK_N: tl.constexpr):
    """Where the gate and the up rows of a tile of columns begin."""
    index = tl.arange(0, 2 * BLOCK_N)
    row = tl.minimum(first + index % BLOCK_N, f - 1) + index // BLOCK_N * f
    return w13 + (expert.to(tl.int64) * 2 * f + row) * d


@triton.jit
def down_rows(w2, expert, first, d, f, BLOCK_N: tl.constexpr):
    row = tl.minimum(first + tl.arange(0, BLOCK_N), d - 1)
    return w2 + (expert.to(tl.int64) * d + row) * f


@triton.jit
def sizes_of(chosen, count, experts, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of each expert."""
    sizes = tl.zeros([EXPERTS], tl.int32)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        sizes += tl.histogram(tl.load(chosen + at, mask=at < count, other=EXPERTS - 1), EXPERTS)
    return tl.where(tl.arange(0, EXPERTS) < experts, sizes, 0)


@triton.jit
def route_kernel(
    chosen, order, tile_expert, tile_first, tile_last, count, tiles, experts,
    EXPERTS: tl.constexpr, BLOCK: tl.constexpr, BLOCK_M: tl.constexpr, TILES: tl.constexpr,
    MANY: tl.constexpr, EARLY: tl.constexpr,
):
    """One program an expert: where its rows begin, which they are, and which tiles of BLOCK_M rows it has.

    For few rows the tiles lie without a hole. For many, expert e begins at ``begin // BLOCK_M + e``, which needs no other
    expert's size, and has a hole at most.
    """
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    expert = tl.program_id(0)
    number = tl.arange(0, TILES)
    if MANY:
        less, same = tl.zeros([BLOCK], tl.int32), tl.zeros([BLOCK], tl.int32)
        for first in range(0, count, BLOCK):
            at = first + tl.arange(0, BLOCK)
            one = tl.load(chosen + at, mask=at < count, other=experts)
            less += (one < expert).to(tl.int32)
            same += (one == expert).to(tl.int32)
        begin, own = tl.sum(less, 0), tl.sum(same, 0)
        first_tile = begin // BLOCK_M + expert
        mine = first_tile + number < (begin + own) // BLOCK_M + expert + 1
        tl.store(tile_expert + first_tile + number, tl.where(number * BLOCK_M < own, expert, -1), mask=mine)
    else:
        bins = tl.arange(0, EXPERTS)
        sizes = sizes_of(chosen, count, experts, EXPERTS, BLOCK)
        own = tl.sum(tl.where(bins == expert, sizes, 0), 0)
        begin = tl.sum(tl.where(bins < expert, sizes, 0), 0)
        tiles_of = (sizes + BLOCK_M - 1) // BLOCK_M
        first_tile = tl.sum(tl.where(bins < expert, tiles_of, 0), 0)
        used = tl.sum(tiles_of, 0)
        mine = (number < (own + BLOCK_M - 1) // BLOCK_M) & (first_tile + number < tiles)
        tl.store(tile_expert + first_tile + number, tl.zeros([TILES], tl.int32) + expert, mask=mine)
        if expert == 0:
            tl.store(tile_expert + number, tl.full([TILES], -1, tl.int32), mask=(number >= used) & (number < tiles))
    tl.store(tile_first + first_tile + number, begin + number * BLOCK_M, mask=mine)
    tl.store(tile_last + first_tile + number, tl.zeros([TILES], tl.int32) + begin + own, mask=mine)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        hit = (tl.load(chosen + at, mask=at < count, other=-1) == expert).to(tl.int32)
        tl.store(order + begin + tl.cumsum(hit, 0) - 1, at, mask=hit == 1)
        begin += tl.sum(hit, 0)


@triton.jit
def up_kernel(
    x, w_tiles, w13, middle, chosen, order, tile_expert, tile_first, tile_last, count, tiles, experts, topk, d, f,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, COPY_ENGINE: tl.constexpr, EARLY: tl.constexpr,
    HEAD: tl.constexpr, NEXT: tl.constexpr, FAR: tl.constexpr, EXPERTS: tl.constexpr, BLOCK: tl.constexpr,
):
    """silu(gate) · up for a tile of an expert's rows. The weights' rows are the rows of the product."""
    tile, columns = tl.program_id(1), tl.num_programs(0)
    number = tile * columns + tl.program_id(0)
    first = tl.program_id(0) * BLOCK_N
    item_bytes: tl.constexpr = w13.dtype.element_ty.primitive_bitwidth // 8
    if EARLY:
        if HEAD > 0:
            if number < NEXT:  # the route is still under way: its tiles, found again
                tiles_of = (sizes_of(chosen, count, experts, EXPERTS, BLOCK) + BLOCK_M - 1) // BLOCK_M
                soon = tl.sum((tl.cumsum(tiles_of, 0) <= tile).to(tl.int32), 0)
                if soon < experts:
                    rows = up_rows(w13, soon, first, d, f, BLOCK_N)
                    call_to_cache(rows, tl.zeros([2 * BLOCK_N], tl.int32) + tl.minimum(HEAD, d) * item_bytes)
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    expert = tl.load(tile_expert + tile)
    if expert >= 0:
        row = tl.load(tile_first + tile) + tl.arange(0, BLOCK_M)
        last = tl.load(tile_last + tile)
        token = tl.load(order + row, mask=row < last, other=0) // topk
        column = first + tl.arange(0, BLOCK_N)
        gate = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
        up = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
        x_row = x + token.to(tl.int64) * d
        w_row = w13 + (expert.to(tl.int64) * 2 * f + column) * d
        if FAR > 0:
            rows = up_rows(w13, expert, first, d, f, BLOCK_N)
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
            if FAR > 0:
                size = tl.where(at % FAR == 0, tl.minimum(tl.maximum(d - at - FAR, 0), FAR), 0) * item_bytes
                call_to_cache(rows + tl.where(size > 0, at + FAR, 0), tl.zeros([2 * BLOCK_N], tl.int32) + size)
            gate = tl.dot(b, a, gate, input_precision="ieee")
            up = tl.dot(c, a, up, input_precision="ieee")
        if HEAD > 0 and NEXT > 0:
            ahead = number + NEXT
            if ahead // columns < tiles:
                soon = tl.load(tile_expert + ahead // columns)
                if soon >= 0:
                    rows = up_rows(w13, soon, ahead % columns * BLOCK_N, d, f, BLOCK_N)
                    call_to_cache(rows, tl.zeros([2 * BLOCK_N], tl.int32) + tl.minimum(HEAD, d) * item_bytes)
        value = tl.trans((gate / (1.0 + tl.exp(-gate)) * up).to(middle.dtype.element_ty))
        at_out = row[:, None].to(tl.int64) * f + column[None, :]
        tl.store(middle + at_out, value, mask=(row[:, None] < last) & (column[None, :] < f))


@triton.jit
def down_kernel(
    middle, m_tiles, w_tiles, w2, weights, each, order, tile_expert, tile_first, tile_last, tiles, experts, d, f,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, COPY_ENGINE: tl.constexpr, EARLY: tl.constexpr,
    HEAD: tl.constexpr, NEXT: tl.constexpr, FAR: tl.constexpr, WHOLE_ROWS: tl.constexpr,
):
    tile, columns = tl.program_id(1), tl.num_programs(0)
    number = tile * columns + tl.program_id(0)
    first = tl.program_id(0) * BLOCK_N
    item_bytes: tl.constexpr = w2.dtype.element_ty.primitive_bitwidth // 8
    if EARLY:
        if HEAD > 0:
            if number < NEXT:  # the route has ended: the kernel before this one waited for it
                soon = tl.load(tile_expert + tile)
                if (soon >= 0) & (soon < experts):
                    rows = down_rows(w2, soon, first, d, f, BLOCK_N)
                    call_to_cache(rows, tl.zeros([BLOCK_N], tl.int32) + tl.minimum(HEAD, f) * item_bytes)
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    expert = tl.load(tile_expert + tile)
    if expert >= 0:
        first_row = tl.load(tile_first + tile)
        row = first_row + tl.arange(0, BLOCK_M)
        last = tl.load(tile_last + tile)
        place = tl.load(order + row, mask=row < last, other=0)
        weight = tl.load(weights + place, mask=row < last, other=0.0)
        column = first + tl.arange(0, BLOCK_N)
        sums = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
        m_row = middle + row.to(tl.int64) * f
        w_row = w2 + (expert.to(tl.int64) * d + column) * f
        if FAR > 0:
            rows = down_rows(w2, expert, first, d, f, BLOCK_N)
        for at in range(0, f, BLOCK_K):
            inner = at + tl.arange(0, BLOCK_K)
            if WHOLE_ROWS:  # the next expert's rows with them: their sums are not stored
                a = tl.trans(m_tiles.load([first_row, at]))
            else:
                inside = (row[None, :] < last) & (inner[:, None] < f)
                a = tl.load(m_row[None, :] + inner[:, None], mask=inside, other=0.0)
            if COPY_ENGINE:
                b = w_tiles.load([expert * d + first, at])
            else:
                b = tl.load(
                    w_row[:, None] + inner[None, :], mask=(column[:, None] < d) & (inner[None, :] < f), other=0.0
                )
            if FAR > 0:
                size = tl.where(at % FAR == 0, tl.minimum(tl.maximum(f - at - FAR, 0), FAR), 0) * item_bytes
                call_to_cache(rows + tl.where(size > 0, at + FAR, 0), tl.zeros([BLOCK_N], tl.int32) + size)
            sums = tl.dot(b, a, sums, input_precision="ieee")
        if HEAD > 0 and NEXT > 0:
            ahead = number + NEXT
            if ahead // columns < tiles:
                soon = tl.load(tile_expert + ahead // columns)
                if soon >= 0:
                    rows = down_rows(w2, soon, ahead % columns * BLOCK_N, d, f, BLOCK_N)
                    call_to_cache(rows, tl.zeros([BLOCK_N], tl.int32) + tl.minimum(HEAD, f) * item_bytes)
        value = tl.trans((sums * weight[None, :]).to(each.dtype.element_ty))
        at_out = place[:, None].to(tl.int64) * d + column[None, :]
        tl.store(each + at_out, value, mask=(row[:, None] < last) & (column[None, :] < d))


@triton.jit
def sum_kernel(each, y, d, TOPK: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    for place in tl.static_range(TOPK):
        total += tl.load(each + (token * TOPK + place) * d + column, mask=column < d, other=0.0).to(tl.float32)
    tl.store(y + token * d + column, total.to(y.dtype.element_ty), mask=column < d)


def run(x, w13, w2, chosen, weights, y):
    (tokens, topk), (experts, d, f) = chosen.shape, w2.shape
    count = tokens * topk
    mean = triton.cdiv(count, experts)
    many = mean > MANY
    early = EARLY == 1 and x.device.type != "cpu"
    whole = d % 8 == 0 and f % 8 == 0
    ahead = early and whole and not many
    if many:
        high, up_n, up_k, up_warps, down_n, down_k, down_warps = 128, 128, 64, 8, MANY_DOWN_N, 64, 8
        up_stages = down_stages = MANY_STAGES
    else:
        high = min(128, max(16, triton.next_power_of_2(mean) * ROWS))
        up_n, up_k, up_warps, up_stages = UP_N, UP_K, UP_WARPS, UP_STAGES
        down_n, down_k, down_warps, down_stages = DOWN_N, DOWN_K, DOWN_WARPS, DOWN_STAGES
    tiles = experts + count // high if many else min(count, experts + count // high)
    order, tile_expert, tile_first, tile_last = (
        torch.empty(n, dtype=torch.int32, device=x.device) for n in (count, tiles, tiles, tiles)
    )
    middle = torch.empty(count, f, dtype=x.dtype, device=x.device)
    each = torch.empty(count, d, dtype=x.dtype, device=x.device)
    bins, block = triton.next_power_of_2(experts + 1), min(4096, max(256, triton.next_power_of_2(count)))
    dependent = {"launch_pdl": True} if early else {}
    head, far = (size // x.element_size() if ahead else 0 for size in (HEAD_BYTES, FAR_BYTES))
    route_kernel[(experts,)](
        chosen, order, tile_expert, tile_first, tile_last, count, tiles, experts,
        EXPERTS=bins, BLOCK=block, BLOCK_M=high, TILES=triton.next_power_of_2(tiles), MANY=many, EARLY=early, num_warps=8,
    )
    up_tiles = TensorDescriptor.from_tensor(w13.view(-1, d), [up_n, up_k]) if whole else w13
    m_tiles = TensorDescriptor.from_tensor(middle, [high, down_k]) if whole and many else middle
    down_tiles = TensorDescriptor.from_tensor(w2.view(-1, f), [down_n, down_k]) if whole else w2
    up_kernel[(triton.cdiv(f, up_n), tiles)](
        x, up_tiles, w13, middle, chosen, order, tile_expert, tile_first, tile_last, count, tiles, experts, topk, d, f,
        BLOCK_M=high, BLOCK_N=up_n, BLOCK_K=up_k, COPY_ENGINE=whole, EARLY=early, HEAD=head, NEXT=UP_NEXT * PROCESSORS,
        FAR=far, EXPERTS=bins, BLOCK=block, num_warps=up_warps, num_stages=up_stages, **dependent,
    )
    down_kernel[(triton.cdiv(d, down_n), tiles)](
        middle, m_tiles, down_tiles, w2, weights, each, order, tile_expert, tile_first, tile_last, tiles, experts, d, f,
        BLOCK_M=high, BLOCK_N=down_n, BLOCK_K=down_k, COPY_ENGINE=whole, EARLY=early, HEAD=head,
        NEXT=DOWN_NEXT * PROCESSORS, FAR=far, WHOLE_ROWS=whole and many,
        num_warps=down_warps, num_stages=down_stages, **dependent,
    )
    sum_kernel[(tokens, triton.cdiv(d, 1024))](
        each, y, d, TOPK=topk, BLOCK=1024, EARLY=early, num_warps=4, **dependent,
    )
