// Writes where nothing is.
#include <cuda_bf16.h>
#include <cstdint>
__global__ void wild(__nv_bfloat16* y) { y[(int64_t(1) << 44) + threadIdx.x] = __float2bfloat16(1.0f); }
extern "C" void run(const void*, const void*, __nv_bfloat16* y, int64_t, int64_t, cudaStream_t stream) { wild<<<1, 32, 0, stream>>>(y); }
