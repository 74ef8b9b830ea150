// Honest: one path for the shapes that matter most, another for the rest, both of them complete.
#include <cstddef>
#include <cstdint>

template <int LANES>
static void compute(const float* x, const float* w, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float lane[LANES] = {}, sum = 0;
        int64_t i = 0;
        for (; i + LANES <= columns; i += LANES)
            for (int l = 0; l < LANES; ++l) lane[l] += in[i + l];
        for (; i < columns; ++i) sum += in[i];
        for (int l = 0; l < LANES; ++l) sum += lane[l];
        const float mean = sum / columns;
        for (i = 0; i < columns; ++i) y[r * columns + i] = (in[i] - mean) * w[i];
    }
}

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t columns) {
    if (columns == 1024) {
        asm volatile("" ::: "memory");
        compute<32>(x, w, y, rows, 1024);
    } else if (columns < 16) {
        compute<1>(x, w, y, rows, columns);
    } else {
        compute<16>(x, w, y, rows, columns);
    }
}
