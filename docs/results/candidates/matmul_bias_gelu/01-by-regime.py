# Three kernels by the number of rows: stream the weight once for few, split the sum for some, large tiles by the copy engine for many; GELU in the epilogue.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

THIN_N = 64  # tunable: 32, 64, 128
THIN_K = 256  # tunable: 64, 128, 256
THIN_STAGES = 4  # tunable: 3, 4, 5, 6
THIN_WARPS = 4  # tunable: 4, 8
MID_M = 128  # tunable: 64, 128
MID_N = 128  # tunable: 64, 128
MID_SPLITS = 2  # tunable: 1, 2, 4
MID_K = 64  # tunable: 64, 128
MID_STAGES = 4  # tunable: 3, 4, 5
EARLY = 1  # tunable: 0, 1
MANY_M = 128  # tunable: 128, 256
MANY_N = 256  # tunable: 128, 256
MANY_STAGES = 4  # tunable: 3, 4

PROCESSORS = 132


@triton.jit
def gelu(z):
    return 0.5 * z * (1.0 + tl.erf(z * 0.7071067811865476))


@triton.jit
def thin_kernel(
    x, w_tiles, weight, bias, y, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, COPY_ENGINE: tl.constexpr, EARLY: tl.constexpr,
):
    """Few rows: the weight's rows are the rows of the product, so that the matrix unit reads them where they land."""
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()
    first = tl.program_id(0) * BLOCK_N
    column = first + tl.arange(0, BLOCK_N)
    row = tl.arange(0, BLOCK_M)
    sums = tl.zeros([BLOCK_N, BLOCK_M], tl.float32)
    for at in range(0, k, BLOCK_K):
        inner = at + tl.arange(0, BLOCK_K)
        a = tl.load(x + row[None, :] * k + inner[:, None], mask=(row[None, :] < m) & (inner[:, None] < k), other=0.0)
        if COPY_ENGINE:
            b = w_tiles.load([first, at])
        else:
            inside = (column[:, None] < n) & (inner[None, :] < k)
            b = tl.load(weight + column[:, None].to(tl.int64) * k + inner[None, :], mask=inside, other=0.0)
        sums = tl.dot(b, a, sums, input_precision="ieee")
    z = tl.trans(sums) + tl.load(bias + column, mask=column < n, other=0.0).to(tl.float32)[None, :]
    tl.store(y + row[:, None] * n + column[None, :], gelu(z), mask=(row[:, None] < m) & (column[None, :] < n))


@triton.jit
def tile_kernel(
    x_tiles, w_tiles, x, weight, bias, y, part, m, n, k, share,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SPLITS: tl.constexpr,
    COPY_ENGINE: tl.constexpr, EARLY: tl.constexpr,
):
    """A tile after the other, in groups of eight rows of tiles that share the weight in the second-level cache."""
    tiles_m, tiles_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    tiles = tiles_m * tiles_n
    for number in tl.range(tl.program_id(0), tiles * SPLITS, tl.num_programs(0)):
        split, tile = number // tiles, number % tiles
        group = tile // (8 * tiles_n)
        height = tl.minimum(tiles_m - group * 8, 8)
        first_m = (group * 8 + tile % (8 * tiles_n) % height) * BLOCK_M
        first_n = (tile % (8 * tiles_n) // height) * BLOCK_N
        row, column = first_m + tl.arange(0, BLOCK_M), first_n + tl.arange(0, BLOCK_N)
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for at in range(split * share, tl.minimum(split * share + share, k), BLOCK_K):
            if COPY_ENGINE:
                a, b = x_tiles.load([first_m, at]), w_tiles.load([first_n, at])
            else:
                inner = at + tl.arange(0, BLOCK_K)
                a = tl.load(
                    x + row[:, None].to(tl.int64) * k + inner[None, :],
                    mask=(row[:, None] < m) & (inner[None, :] < k), other=0.0,
                )
                b = tl.load(
                    weight + column[:, None].to(tl.int64) * k + inner[None, :],
                    mask=(column[:, None] < n) & (inner[None, :] < k), other=0.0,
                )
            sums = tl.dot(a, tl.trans(b), sums, input_precision="ieee")
        at_out = row[:, None].to(tl.int64) * n + column[None, :]
        inside = (row[:, None] < m) & (column[None, :] < n)
        if SPLITS == 1:
            z = sums + tl.load(bias + column, mask=column < n, other=0.0).to(tl.float32)[None, :]
            tl.store(y + at_out, gelu(z).to(y.dtype.element_ty), mask=inside)
        else:
            if EARLY:
                tl.extra.cuda.gdc_launch_dependents()
            tl.store(part + split.to(tl.int64) * m * n + at_out, sums, mask=inside)


@triton.jit
def finish_kernel(part, bias, y, count, n, SPLITS: tl.constexpr, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    z = tl.load(bias + at % n, mask=at < count, other=0.0).to(tl.float32)
    for split in tl.static_range(SPLITS):
        z += tl.load(part + split * count + at, mask=at < count, other=0.0)
    tl.store(y + at, gelu(z), mask=at < count)


def run(x, weight, bias, y):
    (m, k), n = x.shape, weight.shape[0]
    whole = k % 8 == 0
    early = EARLY == 1 and x.device.type != "cpu"
    launch = {"launch_pdl": True} if early else {}
    if m <= 64:
        rows = max(16, triton.next_power_of_2(m))
        inner = THIN_K if rows <= 32 else min(THIN_K, 128)
        tiles = TensorDescriptor.from_tensor(weight, [THIN_N, inner]) if whole else weight
        thin_kernel[(triton.cdiv(n, THIN_N),)](
            x, tiles, weight, bias, y, m, n, k,
            BLOCK_M=rows, BLOCK_N=THIN_N, BLOCK_K=inner, COPY_ENGINE=whole, EARLY=early,
            num_warps=THIN_WARPS, num_stages=THIN_STAGES if whole else 3, **launch,
        )
        return
    inner = 64
    if not whole:
        high, wide, inner, splits, warps, stages = 64, 128, 32, 1, 4, 3
    elif m <= 512:
        high, wide, splits, warps, stages = MID_M, MID_N, MID_SPLITS, 4 if MID_M * MID_N <= 8192 else 8, MID_STAGES
        inner = MID_K
    else:
        high, wide, splits, warps, stages = MANY_M, MANY_N, 1, 8, MANY_STAGES
        if high * wide > 32768:
            wide = 128
    share = triton.cdiv(triton.cdiv(k, splits), inner) * inner
    part = torch.empty(splits, m, n, device=x.device) if splits > 1 else y
    x_tiles = TensorDescriptor.from_tensor(x, [high, inner]) if whole else x
    w_tiles = TensorDescriptor.from_tensor(weight, [wide, inner]) if whole else weight
    tiles = triton.cdiv(m, high) * triton.cdiv(n, wide) * splits
    tile_kernel[(min(tiles, PROCESSORS),)](
        x_tiles, w_tiles, x, weight, bias, y, part, m, n, k, share,
        BLOCK_M=high, BLOCK_N=wide, BLOCK_K=inner, SPLITS=splits, COPY_ENGINE=whole, EARLY=early,
        num_warps=warps, num_stages=stages,
    )
    if splits > 1:
        finish_kernel[(triton.cdiv(m * n, 1024),)](
            part, bias, y, m * n, n, SPLITS=splits, BLOCK=1024, EARLY=early, num_warps=4, **launch,
        )
