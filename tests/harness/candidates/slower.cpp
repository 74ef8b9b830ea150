// Honest and slow: walks every row eight times.
#include <cstddef>
#include <cstdint>

constexpr int LANES = 16;

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        volatile float mean = 0;
        for (int again = 0; again < 8; ++again) {
            float sum = 0;
            for (int64_t i = 0; i < columns; ++i) sum += in[i];
            mean = sum / columns;
        }
        for (int64_t i = 0; i < columns; ++i) y[r * columns + i] = (in[i] - mean) * w[i];
    }
}
