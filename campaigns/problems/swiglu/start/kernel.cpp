// SwiGLU, the plain way: the sigmoids of a block are stored, then multiplied in two more walks.
#include <cmath>
#include <cstdint>

constexpr int BLOCK = 65536;  // tunable: 64, 256, 1024, 4096, 16384, 65536
constexpr int FUSE = 0;       // tunable: 0, 1
constexpr int EXP_TERMS = 0;  // tunable: 0, 3, 4, 5, 6, 7

// EXP_TERMS = 0 takes the library's exp; otherwise 2^n times a Taylor polynomial of that many terms beyond 1.
static inline float power(float x) {
    if (EXP_TERMS == 0) return std::exp(x);
    x = x < -87.0f ? -87.0f : x > 88.0f ? 88.0f : x;
    const float shifted = x * 1.44269504f + 12582912.0f;  // adding 1.5 · 2²³ rounds to a whole number
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float sum = 1.0f;
    for (int k = EXP_TERMS; k > 0; --k) sum = 1.0f + sum * r * (1.0f / k);
    union { int32_t bits; float value; } scale{(static_cast<int32_t>(n) + 127) << 23};
    return sum * scale.value;
}

extern "C" void run(const float* gate, const float* up, float* y, int64_t rows, int64_t hidden) {
    const int64_t values = rows * hidden;
    for (int64_t first = 0; first < values; first += BLOCK) {
        const int64_t last = first + BLOCK < values ? first + BLOCK : values;
        if (FUSE) {
            for (int64_t i = first; i < last; ++i) y[i] = gate[i] / (1.0f + power(-gate[i])) * up[i];
        } else {
            for (int64_t i = first; i < last; ++i) y[i] = 1.0f / (1.0f + power(-gate[i]));
            for (int64_t i = first; i < last; ++i) y[i] *= gate[i];
            for (int64_t i = first; i < last; ++i) y[i] *= up[i];
        }
    }
}
