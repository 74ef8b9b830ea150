// Honest: copies a row and centres the copy in place.
#include <cstddef>
#include <cstdint>
#include <cstring>

constexpr int LANES = 16;

extern "C" void run(const float* x, const float* w, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        float* row = y + r * columns;
        std::memcpy(row, x + r * columns, columns * sizeof(float));
        float lane[LANES] = {}, sum = 0;
        int64_t i = 0;
        for (; i + LANES <= columns; i += LANES)
            for (int l = 0; l < LANES; ++l) lane[l] += row[i + l];
        for (; i < columns; ++i) sum += row[i];
        for (int l = 0; l < LANES; ++l) sum += lane[l];
        for (i = 0; i < columns; ++i) row[i] = (row[i] - sum / columns) * w[i];
    }
}
