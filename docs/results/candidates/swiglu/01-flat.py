# One flat walk over all values, wide loads and nothing between: the library's compiled kernel is at the floor already.
import triton
import triton.language as tl

BLOCK = 1024  # tunable: 512, 1024, 2048, 4096
NUM_WARPS = 4  # tunable: 2, 4, 8


@triton.jit
def swiglu_kernel(gate, up, y, count, BLOCK: tl.constexpr, EXACT: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    at = tl.arange(0, BLOCK)
    if EXACT:
        g = tl.load(gate + start + at).to(tl.float32)
        u = tl.load(up + start + at).to(tl.float32)
        tl.store(y + start + at, g / (1.0 + tl.exp(-g)) * u)
    else:
        inside = at < count - start
        g = tl.load(gate + start + at, mask=inside, other=0.0).to(tl.float32)
        u = tl.load(up + start + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + start + at, g / (1.0 + tl.exp(-g)) * u, mask=inside)


def run(gate, up, y):
    count = gate.numel()
    exact = count % BLOCK == 0
    swiglu_kernel[(triton.cdiv(count, BLOCK),)](gate, up, y, count, BLOCK=BLOCK, EXACT=exact, num_warps=NUM_WARPS)
