# Mean and mean of squares in one reduction, variance as their difference: one pass over the registers instead of two.
import triton
import triton.language as tl

NUM_WARPS = 8  # tunable: 4, 8, 16


@triton.jit
def layernorm_kernel(x, residual, weight, bias, y, total, hidden, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * hidden
    column = tl.arange(0, BLOCK)
    inside = column < hidden
    a = tl.load(x + start + column, mask=inside, other=0.0).to(tl.float32)
    a += tl.load(residual + start + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(total + start + column, a, mask=inside)
    mean = tl.sum(a, 0) / hidden
    variance = tl.sum(a * a, 0) / hidden - mean * mean
    scale = tl.rsqrt(variance + 1e-5)
    w = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    c = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + start + column, (a - mean) * scale * w + c, mask=inside)


def run(x, residual, weight, bias, y, total):
    rows, hidden = x.shape
    block = triton.next_power_of_2(hidden)
    layernorm_kernel[(rows,)](x, residual, weight, bias, y, total, hidden, BLOCK=block, num_warps=NUM_WARPS)
