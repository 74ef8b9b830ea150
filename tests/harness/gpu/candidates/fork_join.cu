// Honest: a stream of its own for half of the rows, forked from the caller's and joined to it by events.
#include <cuda_bf16.h>
#include <cstdint>
template <typename T> __global__ void scale_kernel(const T* x, const T* s, T* y, int64_t width) {
    const int64_t row = blockIdx.x;
    const float by = float(s[row]);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) y[row * width + i] = T(float(x[row * width + i]) * by);
}
template <typename T> void both(const T* x, const T* s, T* y, int64_t rows, int64_t width, cudaStream_t stream) {
    static cudaStream_t side = nullptr;
    static cudaEvent_t forked, joined;
    if (!side) {
        cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&forked, cudaEventDisableTiming);
        cudaEventCreateWithFlags(&joined, cudaEventDisableTiming);
    }
    const int64_t half = rows / 2;
    cudaEventRecord(forked, stream);
    cudaStreamWaitEvent(side, forked, 0);
    scale_kernel<<<half, 256, 0, side>>>(x, s, y, width);
    scale_kernel<<<rows - half, 256, 0, stream>>>(x + half * width, s + half, y + half * width, width);
    cudaEventRecord(joined, side);
    cudaStreamWaitEvent(stream, joined, 0);
}
extern "C" void run(const void* x, const void* s, void* y, int64_t rows, int64_t width, cudaStream_t stream) {
    if (width == 33) both((const float*)x, (const float*)s, (float*)y, rows, width, stream);
    else both((const __nv_bfloat16*)x, (const __nv_bfloat16*)s, (__nv_bfloat16*)y, rows, width, stream);
}
