// LM head, the plain way: row of the weight by row, few sums at a time.
#include <cstdint>

constexpr int SUMS = 1;   // tunable: 1, 4, 8, 16, 32
constexpr int ROWS = 1;   // tunable: 1, 2, 4

extern "C" void run(const float* x, const float* head, float* logits, int64_t batch, int64_t hidden, int64_t vocab) {
    for (int64_t b = 0; b < batch; ++b) {
        const float* row = x + b * hidden;
        for (int64_t v = 0; v < vocab; v += ROWS) {
            const int64_t rows = v + ROWS < vocab ? ROWS : vocab - v;
            for (int64_t r = 0; r < rows; ++r) {
                const float* weight = head + (v + r) * hidden;
                float sums[SUMS] = {};
                int64_t i = 0;
                for (; i + SUMS <= hidden; i += SUMS)
                    for (int s = 0; s < SUMS; ++s) sums[s] += row[i + s] * weight[i + s];
                float total = 0.0f;
                for (; i < hidden; ++i) total += row[i] * weight[i];
                for (int s = 0; s < SUMS; ++s) total += sums[s];
                logits[b * vocab + v + r] = total;
            }
        }
    }
}
