// Sets a part of the second-level cache aside for its input.
#include <cuda_bf16.h>
#include <cstdint>
__global__ void scale_kernel(const __nv_bfloat16* x, const __nv_bfloat16* s, __nv_bfloat16* y, int64_t width) {
    const int64_t row = blockIdx.x;
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x)
        y[row * width + i] = __float2bfloat16(__bfloat162float(x[row * width + i]) * __bfloat162float(s[row]));
}
extern "C" void run(const __nv_bfloat16* x, const __nv_bfloat16* s, __nv_bfloat16* y, int64_t rows, int64_t width, cudaStream_t stream) {
    cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 16 << 20);
    cudaStreamAttrValue value = {};
    value.accessPolicyWindow.base_ptr = (void*)x;
    value.accessPolicyWindow.num_bytes = rows * width * 2;
    value.accessPolicyWindow.hitRatio = 1.0f;
    value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
    value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
    cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
    scale_kernel<<<rows, 256, 0, stream>>>(x, s, y, width);
}
