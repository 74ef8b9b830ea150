# Gate, up and down in one launch: down's tiles follow up's in the order of the programs and wait for their rows alone, so the weights never stop between the products; chained to route and sum.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

UP_N = 64  # tunable: 64, 128
UP_K = 64  # tunable: 64, 128
UP_STAGES = 4  # tunable: 2, 3, 4
DOWN_N = 128  # tunable: 64, 128
DOWN_K = 64  # tunable: 64, 128
DOWN_STAGES = 4  # tunable: 2, 3, 4
NUM_WARPS = 4  # tunable: 4, 8
ROWS = 2  # tunable: 1, 2, 4
EARLY = 1  # tunable: 0, 1
HEAD_BYTES = 0  # tunable: 0, 256, 512, 1024
NEXT = 2  # tunable: 1, 2, 3
MANY_STAGES = 4  # tunable: 3, 4
MANY_DOWN_N = 256  # tunable: 128, 256
MANY_AT_ONCE = 0  # tunable: 0, 1

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
def call_weights(
    w13, w2, expert, number, ups, up_columns, down_columns, d, f,
    UP_N: tl.constexpr, DOWN_N: tl.constexpr, HEAD: tl.constexpr,
):
    """Call the first weights of program `number`, whose tile is of this expert, to the cache."""
    item_bytes: tl.constexpr = w13.dtype.element_ty.primitive_bitwidth // 8
    if number < ups:
        gates = up_rows(w13, expert, number % up_columns * UP_N, d, f, UP_N)
        call_to_cache(gates, tl.zeros([2 * UP_N], tl.int32) + tl.minimum(HEAD, d) * item_bytes)
    else:
        rows = down_rows(w2, expert, (number - ups) % down_columns * DOWN_N, d, f, DOWN_N)
        call_to_cache(rows, tl.zeros([DOWN_N], tl.int32) + tl.minimum(HEAD, f) * item_bytes)


@triton.jit
def tile_of(number, ups, up_columns, down_columns):
    """The tile of rows of program `number`: first the `ups` programs of up, then those of down."""
    return tl.where(number < ups, number // up_columns, (number - ups) // down_columns)


@triton.jit
def route_kernel(
    chosen, order, tile_expert, tile_first, tile_last, ready, used_tiles, count, tiles, experts,
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
        used = tiles
    else:
        bins = tl.arange(0, EXPERTS)
        sizes = sizes_of(chosen, count, experts, EXPERTS, BLOCK)
        own = tl.sum(tl.where(bins == expert, sizes, 0), 0)
        begin = tl.sum(tl.where(bins < expert, sizes, 0), 0)
        tiles_of = (sizes + BLOCK_M - 1) // BLOCK_M
        first_tile = tl.sum(tl.where(bins < expert, tiles_of, 0), 0)
        used = tl.sum(tiles_of, 0)
        mine = (number < (own + BLOCK_M - 1) // BLOCK_M) & (first_tile + number < tiles)
    if expert == 0:
        tl.store(used_tiles, used)
        tl.store(ready + number, tl.zeros([TILES], tl.int32), mask=number < tiles)
    tl.store(tile_expert + first_tile + number, tl.where(number * BLOCK_M < own, expert, -1), mask=mine)
    tl.store(tile_first + first_tile + number, begin + number * BLOCK_M, mask=mine)
    tl.store(tile_last + first_tile + number, tl.zeros([TILES], tl.int32) + begin + own, mask=mine)
    for first in range(0, count, BLOCK):
        at = first + tl.arange(0, BLOCK)
        hit = (tl.load(chosen + at, mask=at < count, other=-1) == expert).to(tl.int32)
        tl.store(order + begin + tl.cumsum(hit, 0) - 1, at, mask=hit == 1)
        begin += tl.sum(hit, 0)


@triton.jit
def up_sums(
    x, w_tiles, w13, order, expert, row, last, first, topk, d, f,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr, COPY_ENGINE: tl.constexpr,
):
    """silu(gate) · up, [BLOCK_N, BLOCK_M]: the weights' rows are the rows of the product."""
    token = tl.load(order + row, mask=row < last, other=0) // topk
    column = first + tl.arange(0, BLOCK_N)
    gate = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    up = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    x_row = x + token.to(tl.int64) * d
    w_row = w13 + (expert.to(tl.int64) * 2 * f + column) * d
    for at in tl.range(0, d, BLOCK_K, num_stages=STAGES):
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
    return gate / (1.0 + tl.exp(-gate)) * up


@triton.jit
def down_sums(
    middle, m_tiles, w_tiles, w2, expert, first_row, row, last, first, d, f,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, STAGES: tl.constexpr, COPY_ENGINE: tl.constexpr,
    WHOLE_ROWS: tl.constexpr,
):
    column = first + tl.arange(0, BLOCK_N)
    sums = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    m_row = middle + row.to(tl.int64) * f
    w_row = w2 + (expert.to(tl.int64) * d + column) * f
    for at in tl.range(0, f, BLOCK_K, num_stages=STAGES):
        inner = at + tl.arange(0, BLOCK_K)
        if WHOLE_ROWS:  # the next expert's rows with them: their sums are not stored
            a = tl.trans(m_tiles.load([first_row, at]))
        else:
            a = tl.load(m_row[None, :] + inner[:, None], mask=(row[None, :] < last) & (inner[:, None] < f), other=0.0)
        if COPY_ENGINE:
            b = w_tiles.load([expert * d + first, at])
        else:
            b = tl.load(w_row[:, None] + inner[None, :], mask=(column[:, None] < d) & (inner[None, :] < f), other=0.0)
        sums = tl.dot(b, a, sums, input_precision="ieee")
    return sums


@triton.jit
def store_rows(target, value, row, mine, column, width):
    """The columns of ``value`` as rows of ``target``, each ``width`` long."""
    at_out = row[:, None].to(tl.int64) * width + column[None, :]
    tl.store(target + at_out, tl.trans(value.to(target.dtype.element_ty)), mask=mine[:, None] & (column[None, :] < width))


@triton.jit
def products_kernel(
    x, up_tiles, w13, middle, m_tiles, down_tiles, w2, weights, each, chosen, order, tile_expert, tile_first, tile_last,
    ready, used_tiles, count, tiles, experts, topk, d, f,
    BLOCK_M: tl.constexpr, UP_N: tl.constexpr, UP_K: tl.constexpr, UP_STAGES: tl.constexpr, DOWN_N: tl.constexpr,
    DOWN_K: tl.constexpr, DOWN_STAGES: tl.constexpr, COPY_ENGINE: tl.constexpr, WHOLE_ROWS: tl.constexpr, UP: tl.constexpr,
    DOWN: tl.constexpr, EARLY: tl.constexpr, HEAD: tl.constexpr, NEXT: tl.constexpr, EXPERTS: tl.constexpr, BLOCK: tl.constexpr,
):
    """A tile of up or, where the program's number is past up's, of down.

    Programs start in the order of their numbers, and none of up's waits, so that down's always come to their rows.
    """
    number = tl.program_id(0)
    up_columns = tl.cdiv(f, UP_N)
    down_columns = tl.cdiv(d, DOWN_N)
    if EARLY:
        if HEAD > 0:
            if number < NEXT:  # the route is still under way: its tiles, found again
                tiles_of = (sizes_of(chosen, count, experts, EXPERTS, BLOCK) + BLOCK_M - 1) // BLOCK_M
                early_ups = tl.sum(tiles_of, 0) * up_columns
                tile = tile_of(number, early_ups, up_columns, down_columns)
                expert = tl.sum((tl.cumsum(tiles_of, 0) <= tile).to(tl.int32), 0)
                if expert < experts:
                    call_weights(w13, w2, expert, number, early_ups, up_columns, down_columns, d, f, UP_N, DOWN_N, HEAD)
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    used = tl.load(used_tiles)
    ups = used * up_columns if UP else 0
    tile = tile_of(number, ups, up_columns, down_columns)
    expert = tl.load(tile_expert + tile, mask=tile < used, other=-1)
    if expert >= 0:
        first_row = tl.load(tile_first + tile)
        row = first_row + tl.arange(0, BLOCK_M)
        last = tl.load(tile_last + tile)
        if HEAD > 0:
            ahead = tile_of(number + NEXT, ups, up_columns, down_columns)
            soon = tl.load(tile_expert + ahead, mask=ahead < used, other=-1)
        if UP and (not DOWN or number < ups):
            first = number % up_columns * UP_N
            value = up_sums(
                x, up_tiles, w13, order, expert, row, last, first, topk, d, f,
                BLOCK_M, UP_N, UP_K, UP_STAGES, COPY_ENGINE,
            )
            if HEAD > 0:
                if soon >= 0:
                    call_weights(w13, w2, soon, number + NEXT, ups, up_columns, down_columns, d, f, UP_N, DOWN_N, HEAD)
            store_rows(middle, value, row, row < last, first + tl.arange(0, UP_N), f)
            if DOWN:
                tl.debug_barrier()
                tl.atomic_add(ready + tile, 1, sem="release")
        elif DOWN:
            first = (number - ups) % down_columns * DOWN_N
            place = tl.load(order + row, mask=row < last, other=0)
            weight = tl.load(weights + place, mask=row < last, other=0.0)
            if UP:
                done = tl.atomic_add(ready + tile, 0, sem="acquire")
                while done < up_columns:
                    done = tl.atomic_add(ready + tile, 0, sem="acquire")
                tl.debug_barrier()
                if WHOLE_ROWS:
                    tl.inline_asm_elementwise(
                        "fence.proxy.async; // dummy $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1
                    )
            sums = down_sums(
                middle, m_tiles, down_tiles, w2, expert, first_row, row, last, first, d, f,
                BLOCK_M, DOWN_N, DOWN_K, DOWN_STAGES, COPY_ENGINE, WHOLE_ROWS,
            )
            if HEAD > 0:
                if soon >= 0:
                    call_weights(w13, w2, soon, number + NEXT, ups, up_columns, down_columns, d, f, UP_N, DOWN_N, HEAD)
            store_rows(each, sums * weight[None, :], place, row < last, first + tl.arange(0, DOWN_N), d)


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
    gpu = x.device.type != "cpu"
    early = EARLY == 1 and gpu
    whole = d % 8 == 0 and f % 8 == 0
    if many:
        high, warps = 128, 8
        up_n, up_k, up_stages, down_n, down_k, down_stages = 128, 64, MANY_STAGES, MANY_DOWN_N, 64, MANY_STAGES
    else:
        high, warps = min(128, max(16, triton.next_power_of_2(mean) * ROWS)), NUM_WARPS
        up_n, up_k, up_stages, down_n, down_k, down_stages = UP_N, UP_K, UP_STAGES, DOWN_N, DOWN_K, DOWN_STAGES
    whole_rows = whole and many and gpu
    tiles = experts + count // high if many else min(count, experts + count // high)
    order, tile_expert, tile_first, tile_last, ready, used_tiles = (
        torch.empty(n, dtype=torch.int32, device=x.device) for n in (count, tiles, tiles, tiles, tiles, 1)
    )
    middle = torch.empty(count, f, dtype=x.dtype, device=x.device)
    each = torch.empty(count, d, dtype=x.dtype, device=x.device)
    bins, block = triton.next_power_of_2(experts + 1), min(4096, max(256, triton.next_power_of_2(count)))
    dependent = {"launch_pdl": True} if early else {}
    route_kernel[(experts,)](
        chosen, order, tile_expert, tile_first, tile_last, ready, used_tiles, count, tiles, experts,
        EXPERTS=bins, BLOCK=block, BLOCK_M=high, TILES=triton.next_power_of_2(tiles), MANY=many, EARLY=early, num_warps=8,
    )
    up_tiles = TensorDescriptor.from_tensor(w13.view(-1, d), [up_n, up_k]) if whole else w13
    m_tiles = TensorDescriptor.from_tensor(middle, [high, down_k]) if whole_rows else middle
    down_tiles = TensorDescriptor.from_tensor(w2.view(-1, f), [down_n, down_k]) if whole else w2
    up_columns, down_columns = triton.cdiv(f, up_n), triton.cdiv(d, down_n)
    at_once = not many or MANY_AT_ONCE == 1
    for up, down in ((True, True),) if at_once else ((True, False), (False, True)):
        products_kernel[(tiles * (up_columns * up + down_columns * down),)](
            x, up_tiles, w13, middle, m_tiles, down_tiles, w2, weights, each, chosen, order, tile_expert, tile_first,
            tile_last, ready, used_tiles, count, tiles, experts, topk, d, f,
            BLOCK_M=high, UP_N=up_n, UP_K=up_k, UP_STAGES=up_stages, DOWN_N=down_n, DOWN_K=down_k, DOWN_STAGES=down_stages,
            COPY_ENGINE=whole, WHOLE_ROWS=whole_rows, UP=up, DOWN=down, EARLY=early,
            HEAD=HEAD_BYTES // x.element_size() if early and whole and not many else 0, NEXT=NEXT * PROCESSORS,
            EXPERTS=bins, BLOCK=block, num_warps=warps, **dependent,
        )
    sum_kernel[(tokens, triton.cdiv(d, 1024))](
        each, y, d, TOPK=topk, BLOCK=1024, EARLY=early, num_warps=4, **dependent,
    )
