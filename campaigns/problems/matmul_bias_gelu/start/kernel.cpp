// A linear layer and GELU, the plain way: one scalar product after the other, GELU in a walk of its own.
#include <algorithm>
#include <cmath>
#include <cstdint>

constexpr int LANES = 8;      // tunable: 4, 8, 16, 32
constexpr int ROW_TILE = 1;   // tunable: 1, 2, 4, 8
constexpr int COL_BLOCK = 64; // tunable: 8, 16, 64, 256
constexpr int FUSE = 0;       // tunable: 0, 1

static inline float gelu(float z) { return 0.5f * z * (1.0f + std::erf(z * 0.70710678f)); }

template <int ROWS>
static void dots(const float* x, const float* row, float* out, int64_t k, int64_t n, float bias) {
    float lane[ROWS][LANES] = {}, sum[ROWS] = {};
    int64_t i = 0;
    for (; i + LANES <= k; i += LANES)
        for (int r = 0; r < ROWS; ++r)
            for (int l = 0; l < LANES; ++l) lane[r][l] += x[r * k + i + l] * row[i + l];
    for (; i < k; ++i)
        for (int r = 0; r < ROWS; ++r) sum[r] += x[r * k + i] * row[i];
    for (int r = 0; r < ROWS; ++r) {
        for (int l = 0; l < LANES; ++l) sum[r] += lane[r][l];
        out[r * n] = FUSE ? gelu(sum[r] + bias) : sum[r] + bias;
    }
}

extern "C" void run(const float* x, const float* weight, const float* bias, float* y, int64_t m, int64_t n, int64_t k) {
    for (int64_t first = 0; first < n; first += COL_BLOCK) {
        const int64_t last = std::min<int64_t>(first + COL_BLOCK, n);
        int64_t row = 0;
        for (; row + ROW_TILE <= m; row += ROW_TILE)
            for (int64_t j = first; j < last; ++j)
                dots<ROW_TILE>(x + row * k, weight + j * k, y + row * n + j, k, n, bias[j]);
        for (; row < m; ++row)
            for (int64_t j = first; j < last; ++j) dots<1>(x + row * k, weight + j * k, y + row * n + j, k, n, bias[j]);
    }
    if (!FUSE)
        for (int64_t i = 0; i < m * n; ++i) y[i] = gelu(y[i]);
}
