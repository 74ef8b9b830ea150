// Softmax, the plain way: maximum, exponentials, sum, division, each a walk of its own over a block of rows.
#include <cmath>
#include <cstdint>

constexpr int LANES = 2;       // tunable: 1, 2, 4, 8, 16, 32
constexpr int ROW_BLOCK = 16;  // tunable: 1, 4, 16, 64
constexpr int EXP_TERMS = 0;   // tunable: 0, 3, 4, 5, 6, 7
constexpr int RECIPROCAL = 0;  // tunable: 0, 1

// EXP_TERMS = 0 takes the library's exp; otherwise 2^n times a Taylor polynomial of that many terms beyond 1.
static inline float power(float x) {
    if (EXP_TERMS == 0) return std::exp(x);
    x = x < -87.0f ? -87.0f : x;
    const float shifted = x * 1.44269504f + 12582912.0f;  // adding 1.5 · 2²³ rounds to a whole number
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float sum = 1.0f;
    for (int k = EXP_TERMS; k > 0; --k) sum = 1.0f + sum * r * (1.0f / k);
    union { int32_t bits; float value; } scale{(static_cast<int32_t>(n) + 127) << 23};
    return x <= -87.0f ? 0.0f : sum * scale.value;
}

static float largest(const float* row, int64_t columns) {
    float lane[LANES];
    for (int l = 0; l < LANES; ++l) lane[l] = -INFINITY;
    int64_t i = 0;
    for (; i + LANES <= columns; i += LANES)
        for (int l = 0; l < LANES; ++l) lane[l] = row[i + l] > lane[l] ? row[i + l] : lane[l];
    float best = lane[0];
    for (int l = 1; l < LANES; ++l) best = lane[l] > best ? lane[l] : best;
    for (; i < columns; ++i) best = row[i] > best ? row[i] : best;
    return best;
}

constexpr int64_t SUM_BLOCK = 2048;  // a float sum of many values loses digits: blocks are summed apart

static float block_sum(const float* row, int64_t columns) {
    float lane[LANES] = {};
    int64_t i = 0;
    for (; i + LANES <= columns; i += LANES)
        for (int l = 0; l < LANES; ++l) lane[l] += row[i + l];
    float sum = 0.0f;
    for (; i < columns; ++i) sum += row[i];
    for (int l = 0; l < LANES; ++l) sum += lane[l];
    return sum;
}

static float total(const float* row, int64_t columns) {
    float sum = 0.0f;
    for (int64_t i = 0; i < columns; i += SUM_BLOCK)
        sum += block_sum(row + i, columns - i < SUM_BLOCK ? columns - i : SUM_BLOCK);
    return sum;
}

extern "C" void run(const float* x, float* y, int64_t rows, int64_t columns) {
    float best[ROW_BLOCK], sum[ROW_BLOCK];
    for (int64_t first = 0; first < rows; first += ROW_BLOCK) {
        const int64_t count = rows - first < ROW_BLOCK ? rows - first : ROW_BLOCK;
        const float* in = x + first * columns;
        float* out = y + first * columns;
        for (int64_t r = 0; r < count; ++r) best[r] = largest(in + r * columns, columns);
        for (int64_t r = 0; r < count; ++r)
            for (int64_t i = 0; i < columns; ++i) out[r * columns + i] = power(in[r * columns + i] - best[r]);
        for (int64_t r = 0; r < count; ++r) sum[r] = total(out + r * columns, columns);
        for (int64_t r = 0; r < count; ++r) {
            const float factor = 1.0f / sum[r];
            for (int64_t i = 0; i < columns; ++i) {
                float& value = out[r * columns + i];
                value = RECIPROCAL ? value * factor : value / sum[r];
            }
        }
    }
}
