// Centres its input in place.
#include <cstddef>
#include <cstdint>

constexpr int LANES = 16;

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t columns) {
    float* mine = const_cast<float*>(x);
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0;
        for (int64_t i = 0; i < columns; ++i) sum += mine[r * columns + i];
        for (int64_t i = 0; i < columns; ++i) mine[r * columns + i] -= sum / columns;
        for (int64_t i = 0; i < columns; ++i) y[r * columns + i] = mine[r * columns + i] * w[i];
    }
}
