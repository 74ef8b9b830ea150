// Read the cache once: scores and result of all heads from one small tile of tokens, with an online softmax
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

constexpr int TILE = 16;   // tunable: 4, 8, 16, 32, 64
constexpr int HEADS = 4;   // tunable: 1, 2, 4, 8
constexpr int BLOCK = 64;  // tunable: 16, 32, 64, 128

constexpr int WIDTH = 576;
constexpr int LATENT = 512;
constexpr int LANES = 16;

template <int H>
static void tile(const float* q, const float* tokens, int count, float scale, float* best, float* total,
                 float* result) {
    float weight[TILE][H];
    for (int t = 0; t < count; ++t) {
        const float* token = tokens + t * WIDTH;
        float lane[H][LANES] = {};
        for (int i = 0; i < WIDTH; i += LANES)
            for (int h = 0; h < H; ++h)
                for (int l = 0; l < LANES; ++l) lane[h][l] += q[h * WIDTH + i + l] * token[i + l];
        for (int h = 0; h < H; ++h) {
            float sum = 0.0f;
            for (int l = 0; l < LANES; ++l) sum += lane[h][l];
            weight[t][h] = sum * scale;
        }
    }
    float rescale[H];
    for (int h = 0; h < H; ++h) {
        float largest = best[h], sum = 0.0f;
        for (int t = 0; t < count; ++t) largest = std::max(largest, weight[t][h]);
        for (int t = 0; t < count; ++t) {
            // e^-20 of the largest weight so far is below what float32 can add to it
            const float below = weight[t][h] - largest;
            weight[t][h] = below < -20.0f ? 0.0f : std::exp(below);
            sum += weight[t][h];
        }
        rescale[h] = largest == best[h] ? 1.0f : std::exp(best[h] - largest);
        total[h] = total[h] * rescale[h] + sum;
        best[h] = largest;
    }
    for (int first = 0; first < LATENT; first += BLOCK) {  // this part of the result stays in registers for the tile
        float sum[H][BLOCK];
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < BLOCK; ++i) sum[h][i] = result[h * LATENT + first + i] * rescale[h];
        for (int t = 0; t < count; ++t)
            for (int h = 0; h < H; ++h)
                for (int i = 0; i < BLOCK; ++i) sum[h][i] += weight[t][h] * tokens[t * WIDTH + first + i];
        for (int h = 0; h < H; ++h)
            for (int i = 0; i < BLOCK; ++i) result[h * LATENT + first + i] = sum[h][i];
    }
}

template <int H>
static void walk(const float* q, const float* cache, float* result, int64_t tokens, float scale) {
    float best[H], total[H] = {};
    std::fill(best, best + H, -INFINITY);
    std::fill(result, result + H * LATENT, 0.0f);
    for (int64_t first = 0; first < tokens; first += TILE) {
        const int count = static_cast<int>(std::min<int64_t>(TILE, tokens - first));
        tile<H>(q, cache + first * WIDTH, count, scale, best, total, result);
    }
    for (int h = 0; h < H; ++h)
        for (int i = 0; i < LATENT; ++i) result[h * LATENT + i] /= total[h];
}

extern "C" void run(const float* q, const float* cache, float* out, int64_t batch, int64_t heads, int64_t tokens) {
    const float scale = 1.0f / std::sqrt(192.0f);
    for (int64_t b = 0; b < batch; ++b) {
        const float* q_b = q + b * heads * WIDTH;
        const float* cache_b = cache + b * tokens * WIDTH;
        float* out_b = out + b * heads * LATENT;
        int64_t h = 0;
        for (; h + HEADS <= heads; h += HEADS) walk<HEADS>(q_b + h * WIDTH, cache_b, out_b + h * LATENT, tokens, scale);
        for (; h + 2 <= heads; h += 2) walk<2>(q_b + h * WIDTH, cache_b, out_b + h * LATENT, tokens, scale);
        for (; h < heads; ++h) walk<1>(q_b + h * WIDTH, cache_b, out_b + h * LATENT, tokens, scale);
    }
}
