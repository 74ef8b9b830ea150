# A few whole rows of the weight a program, all their loads under way at once; a row that is loaded serves eight sequences.
import triton
import triton.language as tl

ROWS = 2  # tunable: 2, 4, 8, 16
BLOCK = 2048  # tunable: 512, 1024, 2048
NUM_WARPS = 8  # tunable: 2, 4, 8


@triton.jit
def lm_head_kernel(
    x, head, logits, batch, hidden, vocab, ROWS: tl.constexpr, BLOCK: tl.constexpr, EXACT: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.minimum(row, vocab - 1)[:, None].to(tl.int64) * hidden
    sequence = tl.program_id(1)
    sums = tl.zeros([ROWS], tl.float32)
    for first in range(0, hidden, BLOCK):
        column = first + tl.arange(0, BLOCK)
        if EXACT:
            w = tl.load(head + at + column[None, :]).to(tl.float32)
            a = tl.load(x + sequence * hidden + column).to(tl.float32)
        else:
            w = tl.load(head + at + column[None, :], mask=column[None, :] < hidden, other=0.0).to(tl.float32)
            a = tl.load(x + sequence * hidden + column, mask=column < hidden, other=0.0).to(tl.float32)
        sums += tl.sum(w * a[None, :], 1)
    tl.store(logits + sequence.to(tl.int64) * vocab + row, sums, mask=row < vocab)


@triton.jit
def several_kernel(x, head, logits, batch, hidden, vocab, BLOCK_B: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Several sequences: the matrix unit, weight rows as rows of the product."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.minimum(row, vocab - 1)[:, None].to(tl.int64) * hidden
    sequence = tl.program_id(1) * BLOCK_B + tl.arange(0, BLOCK_B)
    sums = tl.zeros([ROWS, BLOCK_B], tl.float32)
    for first in range(0, hidden, BLOCK):
        column = first + tl.arange(0, BLOCK)
        w = tl.load(head + at + column[None, :], mask=column[None, :] < hidden, other=0.0)
        inside = (sequence[None, :] < batch) & (column[:, None] < hidden)
        a = tl.load(x + sequence[None, :] * hidden + column[:, None], mask=inside, other=0.0)
        sums = tl.dot(w, a, sums, input_precision="ieee")
    at_out = sequence[None, :].to(tl.int64) * vocab + row[:, None]
    tl.store(logits + at_out, sums, mask=(sequence[None, :] < batch) & (row[:, None] < vocab))


def run(x, head, logits):
    (batch, hidden), vocab = x.shape, head.shape[0]
    if batch <= 2:
        block = min(BLOCK, triton.next_power_of_2(hidden))
        lm_head_kernel[(triton.cdiv(vocab, ROWS), batch)](
            x, head, logits, batch, hidden, vocab,
            ROWS=ROWS, BLOCK=block, EXACT=hidden % block == 0, num_warps=NUM_WARPS,
        )
    else:
        several_kernel[(triton.cdiv(vocab, 64), triton.cdiv(batch, 16))](
            x, head, logits, batch, hidden, vocab, BLOCK_B=16, ROWS=64, BLOCK=128, num_warps=4, num_stages=4
        )
