// Sparse MLA decode, the plain way: head by head, each named token read once for its score and once for the result.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr int GATHER = 1;          // tunable: 0, 1
constexpr int HEADS_PER_PASS = 1;  // tunable: 1, 2, 4
constexpr int LANES = 16;          // tunable: 8, 16, 32, 64
constexpr int PREFETCH = 0;        // tunable: 0, 1, 2, 4, 8

constexpr int WIDTH = 576;
constexpr int LATENT = 512;

template <int HEADS, typename Token>
static void attend(const float* q, Token token, int64_t topk, float scale, float* weights, float* result) {
    for (int64_t t = 0; t < topk; ++t) {
        const float* row = token(t);
        if (PREFETCH && t + PREFETCH < topk)
            for (int i = 0; i < WIDTH; i += 16) __builtin_prefetch(token(t + PREFETCH) + i);
        float lane[HEADS][LANES] = {};
        for (int i = 0; i < WIDTH; i += LANES)
            for (int h = 0; h < HEADS; ++h)
                for (int l = 0; l < LANES; ++l) lane[h][l] += q[h * WIDTH + i + l] * row[i + l];
        for (int h = 0; h < HEADS; ++h) {
            float sum = 0.0f;
            for (int l = 0; l < LANES; ++l) sum += lane[h][l];
            weights[h * topk + t] = sum * scale;
        }
    }
    for (int h = 0; h < HEADS; ++h) {
        float* row = weights + h * topk;
        const float largest = *std::max_element(row, row + topk);
        float sum = 0.0f;
        for (int64_t t = 0; t < topk; ++t) sum += row[t] = std::exp(row[t] - largest);
        for (int64_t t = 0; t < topk; ++t) row[t] /= sum;
    }
    std::fill(result, result + HEADS * LATENT, 0.0f);
    for (int64_t t = 0; t < topk; ++t) {
        const float* row = token(t);
        for (int h = 0; h < HEADS; ++h)
            for (int i = 0; i < LATENT; ++i) result[h * LATENT + i] += weights[h * topk + t] * row[i];
    }
}

extern "C" void run(const float* q, const float* cache, const int32_t* indices, float* out, int64_t batch,
                    int64_t heads, int64_t tokens, int64_t topk) {
    const float scale = 1.0f / std::sqrt(192.0f);
    std::vector<float> picked(GATHER ? topk * WIDTH : 0), weights(HEADS_PER_PASS * topk);
    for (int64_t b = 0; b < batch; ++b) {
        const float* sequence = cache + b * tokens * WIDTH;
        const int32_t* named = indices + b * topk;
        if (GATHER)
            for (int64_t t = 0; t < topk; ++t)
                std::copy_n(sequence + static_cast<int64_t>(named[t]) * WIDTH, WIDTH, picked.data() + t * WIDTH);
        auto token = [&](int64_t t) {
            return GATHER ? picked.data() + t * WIDTH : sequence + static_cast<int64_t>(named[t]) * WIDTH;
        };
        int64_t h = 0;
        for (; h + HEADS_PER_PASS <= heads; h += HEADS_PER_PASS)
            attend<HEADS_PER_PASS>(q + (b * heads + h) * WIDTH, token, topk, scale, weights.data(), out + (b * heads + h) * LATENT);
        for (; h < heads; ++h)
            attend<1>(q + (b * heads + h) * WIDTH, token, topk, scale, weights.data(), out + (b * heads + h) * LATENT);
    }
}
