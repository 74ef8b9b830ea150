// RMSNorm, the plain way: each block of rows is walked three times.
#include <cmath>
#include <cstdint>

constexpr int LANES = 2;       // tunable: 1, 2, 4, 8, 16, 32, 64
constexpr int ROW_BLOCK = 64;  // tunable: 1, 4, 16, 64, 256
constexpr int FUSE = 0;        // tunable: 0, 1

constexpr int64_t SUM_BLOCK = 2048;  // a float sum of many values loses digits: blocks are summed apart

// LANES independent partial sums: a float sum may not be reordered by the compiler, so it is spelled out.
static float block_sum(const float* row, int64_t hidden) {
    float lane[LANES] = {};
    int64_t i = 0;
    for (; i + LANES <= hidden; i += LANES)
        for (int l = 0; l < LANES; ++l) lane[l] += row[i + l] * row[i + l];
    float sum = 0.0f;
    for (; i < hidden; ++i) sum += row[i] * row[i];
    for (int l = 0; l < LANES; ++l) sum += lane[l];
    return sum;
}

static float sum_of_squares(const float* row, int64_t hidden) {
    float sum = 0.0f;
    for (int64_t i = 0; i < hidden; i += SUM_BLOCK)
        sum += block_sum(row + i, hidden - i < SUM_BLOCK ? hidden - i : SUM_BLOCK);
    return sum;
}

extern "C" void run(const float* x, const float* weight, float* y, int64_t rows, int64_t hidden) {
    float scale[ROW_BLOCK];
    for (int64_t first = 0; first < rows; first += ROW_BLOCK) {
        const int64_t count = rows - first < ROW_BLOCK ? rows - first : ROW_BLOCK;
        for (int64_t r = 0; r < count; ++r)
            scale[r] = 1.0f / std::sqrt(sum_of_squares(x + (first + r) * hidden, hidden) / hidden + 1e-6f);
        for (int64_t r = 0; r < count; ++r) {
            const float* in = x + (first + r) * hidden;
            float* out = y + (first + r) * hidden;
            if (FUSE) {
                for (int64_t i = 0; i < hidden; ++i) out[i] = in[i] * scale[r] * weight[i];
            } else {
                for (int64_t i = 0; i < hidden; ++i) out[i] = in[i] * scale[r];
            }
        }
        if (!FUSE)
            for (int64_t r = 0; r < count; ++r) {
                float* out = y + (first + r) * hidden;
                for (int64_t i = 0; i < hidden; ++i) out[i] *= weight[i];
            }
    }
}
