"""An LM head in Triton: a program for a few tokens of the vocabulary and one sequence, small pieces of a row."""

import triton
import triton.language as tl

ROWS = 4  # tunable: 1, 2, 4, 8, 16, 32
BLOCK = 128  # tunable: 128, 256, 512, 1024, 2048
NUM_WARPS = 4  # tunable: 1, 2, 4, 8


@triton.jit
def lm_head_kernel(x, head, logits, hidden, vocab, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    sequence = tl.program_id(1)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = row[:, None].to(tl.int64) * hidden
    sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for first in range(0, hidden, BLOCK):
        column = first + tl.arange(0, BLOCK)
        a = tl.load(x + sequence * hidden + column, mask=column < hidden, other=0.0).to(tl.float32)
        inside = (row[:, None] < vocab) & (column[None, :] < hidden)
        sums += tl.load(head + at + column[None, :], mask=inside, other=0.0).to(tl.float32) * a[None, :]
    tl.store(logits + sequence.to(tl.int64) * vocab + row, tl.sum(sums, 1), mask=row < vocab)


def run(x, head, logits):
    (batch, hidden), vocab = x.shape, head.shape[0]
    lm_head_kernel[(triton.cdiv(vocab, ROWS), batch)](
        x, head, logits, hidden, vocab, ROWS=ROWS, BLOCK=BLOCK, num_warps=NUM_WARPS
    )
