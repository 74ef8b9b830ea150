// Rotary embedding, the plain way: a rotated copy of each block of tokens is made first.
#include <cstdint>
#include <vector>

constexpr int TOKEN_BLOCK = 64;  // tunable: 1, 4, 16, 64, 256
constexpr int COPY = 1;          // tunable: 0, 1
constexpr int UNROLL = 1;        // tunable: 1, 4, 8, 16, 32

extern "C" void run(const float* x, const float* cos, const float* sin, float* y, int64_t tokens, int64_t heads,
                    int64_t dim) {
    const int64_t half = dim / 2;
    std::vector<float> rotated(COPY ? TOKEN_BLOCK * heads * dim : 0);
    for (int64_t first = 0; first < tokens; first += TOKEN_BLOCK) {
        const int64_t last = first + TOKEN_BLOCK < tokens ? first + TOKEN_BLOCK : tokens;
        if (COPY)
            for (int64_t row = 0; row < (last - first) * heads; ++row)
                for (int64_t i = 0; i < half; ++i) {
                    rotated[row * dim + i] = -x[(first * heads + row) * dim + half + i];
                    rotated[row * dim + half + i] = x[(first * heads + row) * dim + i];
                }
        for (int64_t t = first; t < last; ++t)
            for (int64_t h = 0; h < heads; ++h) {
                const float *c = cos + t * half, *s = sin + t * half;
                const float* in = x + (t * heads + h) * dim;
                float* out = y + (t * heads + h) * dim;
                if (COPY) {
                    const float* turned = rotated.data() + ((t - first) * heads + h) * dim;
                    for (int64_t i = 0; i < dim; ++i) out[i] = in[i] * c[i % half] + turned[i] * s[i % half];
                } else {
                    int64_t i = 0;
                    for (; i + UNROLL <= half; i += UNROLL)
                        for (int u = 0; u < UNROLL; ++u) {
                            const float low = in[i + u], high = in[half + i + u];
                            out[i + u] = low * c[i + u] - high * s[i + u];
                            out[half + i + u] = high * c[i + u] + low * s[i + u];
                        }
                    for (; i < half; ++i) {
                        const float low = in[i], high = in[half + i];
                        out[i] = low * c[i] - high * s[i];
                        out[half + i] = high * c[i] + low * s[i];
                    }
                }
            }
    }
}
