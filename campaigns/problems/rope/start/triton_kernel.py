"""Rotary embedding in Triton: one program for each head of each token, cosine and sine loaded by each of them."""

import triton
import triton.language as tl

HEADS = 1  # tunable: 1, 2, 4, 8, 16
NUM_WARPS = 4  # tunable: 1, 2, 4, 8


@triton.jit
def rope_kernel(x, cos, sin, y, heads, half, HEADS: tl.constexpr, HALF: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    pair = tl.arange(0, HALF)[None, :]
    inside = (head < heads) & (pair < half)
    c = tl.load(cos + token * half + pair, mask=pair < half, other=0.0)
    s = tl.load(sin + token * half + pair, mask=pair < half, other=0.0)
    at = (token * heads + head) * (2 * half) + pair
    low = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    high = tl.load(x + at + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + at, low * c - high * s, mask=inside)
    tl.store(y + at + half, high * c + low * s, mask=inside)


def run(x, cos, sin, y):
    tokens, heads, dim = x.shape
    half = dim // 2
    grid = (tokens, triton.cdiv(heads, HEADS))
    rope_kernel[grid](x, cos, sin, y, heads, half, HEADS=HEADS, HALF=triton.next_power_of_2(half), num_warps=NUM_WARPS)
