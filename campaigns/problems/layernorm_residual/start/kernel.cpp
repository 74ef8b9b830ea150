// LayerNorm of a sum, the plain way: five walks over each block of rows.
#include <cmath>
#include <cstdint>

constexpr int LANES = 2;       // tunable: 1, 2, 4, 8, 16, 32
constexpr int ROW_BLOCK = 64;  // tunable: 1, 4, 16, 64, 256
constexpr int FUSE = 0;        // tunable: 0, 1

constexpr int64_t SUM_BLOCK = 2048;  // a float sum of many values loses digits: blocks are summed apart

template <typename Value>
static float sum_of(int64_t count, Value value) {
    float sum = 0.0f;
    for (int64_t first = 0; first < count; first += SUM_BLOCK) {
        const int64_t last = first + SUM_BLOCK < count ? first + SUM_BLOCK : count;
        float lane[LANES] = {}, rest = 0.0f;
        int64_t i = first;
        for (; i + LANES <= last; i += LANES)
            for (int l = 0; l < LANES; ++l) lane[l] += value(i + l);
        for (; i < last; ++i) rest += value(i);
        for (int l = 0; l < LANES; ++l) rest += lane[l];
        sum += rest;
    }
    return sum;
}

extern "C" void run(const float* x, const float* residual, const float* weight, const float* bias, float* y,
                    float* total, int64_t rows, int64_t hidden) {
    float mean[ROW_BLOCK], scale[ROW_BLOCK];
    for (int64_t first = 0; first < rows; first += ROW_BLOCK) {
        const int64_t count = rows - first < ROW_BLOCK ? rows - first : ROW_BLOCK;
        const int64_t at = first * hidden;
        for (int64_t i = 0; i < count * hidden; ++i) total[at + i] = x[at + i] + residual[at + i];
        for (int64_t r = 0; r < count; ++r) {
            const float* row = total + at + r * hidden;
            mean[r] = sum_of(hidden, [&](int64_t i) { return row[i]; }) / hidden;
        }
        for (int64_t r = 0; r < count; ++r) {
            const float* row = total + at + r * hidden;
            const float m = mean[r];
            scale[r] = 1.0f / std::sqrt(sum_of(hidden, [&](int64_t i) { return (row[i] - m) * (row[i] - m); }) / hidden + 1e-5f);
        }
        for (int64_t r = 0; r < count; ++r) {
            const float* row = total + at + r * hidden;
            float* out = y + at + r * hidden;
            if (FUSE) {
                for (int64_t i = 0; i < hidden; ++i) out[i] = (row[i] - mean[r]) * scale[r] * weight[i] + bias[i];
            } else {
                for (int64_t i = 0; i < hidden; ++i) out[i] = (row[i] - mean[r]) * scale[r];
            }
        }
        if (!FUSE)
            for (int64_t r = 0; r < count; ++r)
                for (int64_t i = 0; i < hidden; ++i)
                    y[at + r * hidden + i] = y[at + r * hidden + i] * weight[i] + bias[i];
    }
}
