"""Cross-entropy in Triton: one program a row, one walk for the maximum and one for the sum."""

import triton
import triton.language as tl

BLOCK = 1024  # tunable: 512, 1024, 2048, 4096, 8192, 16384
NUM_WARPS = 4  # tunable: 2, 4, 8, 16, 32


@triton.jit
def cross_entropy_kernel(logits, target, loss, vocab, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    start = row.to(tl.int64) * vocab
    columns = tl.arange(0, BLOCK)
    best = tl.full([BLOCK], float("-inf"), tl.float32)
    for first in range(0, vocab, BLOCK):
        inside = first + columns < vocab
        best = tl.maximum(best, tl.load(logits + start + first + columns, mask=inside, other=float("-inf")).to(tl.float32))
    largest = tl.max(best, 0)
    sums = tl.zeros([BLOCK], tl.float32)
    for first in range(0, vocab, BLOCK):
        inside = first + columns < vocab
        values = tl.load(logits + start + first + columns, mask=inside, other=float("-inf")).to(tl.float32)
        sums += tl.exp(values - largest)
    right = tl.load(logits + start + tl.load(target + row)).to(tl.float32)
    tl.store(loss + row, tl.log(tl.sum(sums, 0)) + largest - right)


def run(logits, target, loss):
    cross_entropy_kernel[(logits.shape[0],)](
        logits, target, loss, logits.shape[1], BLOCK=BLOCK, num_warps=NUM_WARPS
    )
