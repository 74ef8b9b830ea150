// Absorbed MLA decode: the cache in pieces of CHUNK tokens, each copied first; then, for a few heads at a time,
// scores, maximum, weights, rescaling of what was summed so far, and the weighted sum, each a walk of its own.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

constexpr int CHUNK = 1024;        // tunable: 32, 64, 128, 256, 512, 1024, 2048, 4096
constexpr int COPY = 1;            // tunable: 0, 1
constexpr int HEADS_PER_PASS = 1;  // tunable: 1, 2, 4
constexpr int LANES = 32;          // tunable: 8, 16, 32, 64
constexpr int TOKEN_TILE = 2;      // tunable: 1, 2, 4, 8

constexpr int WIDTH = 576;   // 512 latent values and 64 with the position in them
constexpr int LATENT = 512;

// scores[h][t] = q[h] · token[t] · scale
template <int HEADS>
static void score(const float* q, const float* tokens, int64_t count, float scale, float* scores) {
    for (int64_t t = 0; t < count; ++t) {
        const float* token = tokens + t * WIDTH;
        float lane[HEADS][LANES] = {};
        for (int i = 0; i < WIDTH; i += LANES)
            for (int h = 0; h < HEADS; ++h)
                for (int l = 0; l < LANES; ++l) lane[h][l] += q[h * WIDTH + i + l] * token[i + l];
        for (int h = 0; h < HEADS; ++h) {
            float sum = 0.0f;
            for (int l = 0; l < LANES; ++l) sum += lane[h][l];
            scores[h * CHUNK + t] = sum * scale;
        }
    }
}

// result[h] += sum over t of weight[h][t] · token[t][:512], TOKEN_TILE tokens for each reading of the result
template <int HEADS>
static void accumulate(const float* weights, const float* tokens, int64_t count, float* result) {
    int64_t t = 0;
    for (; t + TOKEN_TILE <= count; t += TOKEN_TILE)
        for (int h = 0; h < HEADS; ++h) {
            const float* weight = weights + h * CHUNK + t;
            for (int i = 0; i < LATENT; ++i) {
                float sum = result[h * LATENT + i];
                for (int k = 0; k < TOKEN_TILE; ++k) sum += weight[k] * tokens[(t + k) * WIDTH + i];
                result[h * LATENT + i] = sum;
            }
        }
    for (; t < count; ++t)
        for (int h = 0; h < HEADS; ++h)
            for (int i = 0; i < LATENT; ++i)
                result[h * LATENT + i] += weights[h * CHUNK + t] * tokens[t * WIDTH + i];
}

template <int HEADS>
static void attend(const float* q, const float* tokens, int64_t count, float scale, float* weights, float* best,
                   float* total, float* result) {
    score<HEADS>(q, tokens, count, scale, weights);
    for (int h = 0; h < HEADS; ++h) {
        float* row = weights + h * CHUNK;
        float largest = best[h];
        for (int64_t t = 0; t < count; ++t) largest = std::max(largest, row[t]);
        for (int64_t t = 0; t < count; ++t) row[t] = std::exp(row[t] - largest);
        const float rescale = std::exp(best[h] - largest);
        float sum = 0.0f;
        for (int64_t t = 0; t < count; ++t) sum += row[t];
        total[h] = total[h] * rescale + sum;
        for (int i = 0; i < LATENT; ++i) result[h * LATENT + i] *= rescale;
        best[h] = largest;
    }
    accumulate<HEADS>(weights, tokens, count, result);
}

extern "C" void run(const float* q, const float* cache, float* out, int64_t batch, int64_t heads, int64_t tokens) {
    const float scale = 1.0f / std::sqrt(192.0f);
    std::vector<float> piece(COPY ? static_cast<size_t>(CHUNK) * WIDTH : 0);
    std::vector<float> weights(static_cast<size_t>(HEADS_PER_PASS) * CHUNK), best(heads), total(heads);
    for (int64_t b = 0; b < batch; ++b) {
        const float* q_b = q + b * heads * WIDTH;
        float* result = out + b * heads * LATENT;
        std::fill(best.begin(), best.end(), -INFINITY);
        std::fill(total.begin(), total.end(), 0.0f);
        std::fill(result, result + heads * LATENT, 0.0f);
        for (int64_t first = 0; first < tokens; first += CHUNK) {
            const int64_t count = std::min<int64_t>(CHUNK, tokens - first);
            const float* source = cache + (b * tokens + first) * WIDTH;
            if (COPY) {
                std::memcpy(piece.data(), source, count * WIDTH * sizeof(float));
                source = piece.data();
            }
            int64_t h = 0;
            for (; h + HEADS_PER_PASS <= heads; h += HEADS_PER_PASS)
                attend<HEADS_PER_PASS>(q_b + h * WIDTH, source, count, scale, weights.data(), &best[h], &total[h],
                                       result + h * LATENT);
            for (; h < heads; ++h)
                attend<1>(q_b + h * WIDTH, source, count, scale, weights.data(), &best[h], &total[h],
                          result + h * LATENT);
        }
        for (int64_t h = 0; h < heads; ++h)
            for (int i = 0; i < LATENT; ++i) result[h * LATENT + i] /= total[h];
    }
}
