// Few rows: every weight goes from memory straight into the registers of the matrix instruction that uses it, in an order of k that makes 16 bytes of a row one lane's share; no shared memory on the way, and several waves of small blocks.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

using bf16 = __nv_bfloat16;

namespace {

constexpr int CHAIN = 1;  // tunable: 0, 1
constexpr int FAR = 1;  // tunable: 0, 1
constexpr int WARPS = 16;  // tunable: 8, 16
constexpr int TILES = 1;  // tunable: 1, 2

constexpr int THIN_M = 16, THIN_K = 4096;
constexpr int CHUNKS = THIN_K / 32 / WARPS;  // a warp's share of a row
constexpr int TILE_N = TILES * 8;

constexpr int HIGH = 128, WIDE = 128, DEEP = 32, PITCH = DEEP + 8, STAGES = 3;
constexpr int TILE_BYTES = (HIGH + WIDE) * PITCH * 2;

__device__ __forceinline__ float gelu(float z) { return 0.5f * z * (1.0f + erff(z * 0.7071067811865476f)); }

__device__ __forceinline__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

// 16 bytes that are read once.
__device__ __forceinline__ uint4 once(const bf16* p) {
    uint4 v;
    if (FAR) {
        asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    } else {
        asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
    }
    return v;
}

__device__ __forceinline__ void copy16(uint32_t to, const void* from, bool inside) {
    const int bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void arrived() { asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory"); }

__device__ __forceinline__ void multiply(
    float (&sum)[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0, uint32_t b1
) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// A block has TILE_N rows of the weight, a warp of it CHUNKS chunks of 32 values of each, all under way at once. In a chunk the
// matrix instruction's k are taken as lane % 4 holds them: 8 neighbours each, of the weight and of x alike. x stays in the
// first-level cache. Blocks are so small that several waves of them keep a processor reading while others add up and end.
template <int HALVES>
__global__ void __launch_bounds__(WARPS * 32) thin_kernel(
    const bf16* __restrict__ x, const bf16* __restrict__ weight, const bf16* __restrict__ bias, bf16* __restrict__ y, int m,
    int n, int k
) {
    __shared__ float part[WARPS][THIN_M * TILE_N];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int first = blockIdx.x * TILE_N;
    if (CHAIN) asm volatile("griddepcontrol.wait;" ::: "memory");

    const bf16* row_of_weight[TILES];
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) row_of_weight[tile] = weight + static_cast<int64_t>(min(first + tile * 8 + g, n - 1)) * k;
    const bf16* row_of_x[2] = {x + static_cast<int64_t>(min(g, m - 1)) * k, x + static_cast<int64_t>(min(g + 8, m - 1)) * k};
    auto place = [&](int c) { return (c / 2 * WARPS + warp) * 64 + c % 2 * 32 + t * 8; };
    uint4 w[CHUNKS][TILES];
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) w[c][tile] = once(row_of_weight[tile] + (place(c) < k ? place(c) : 0));
    {  // never true, and needs every load: else the assembler sinks each to its use, and one is under way at a time
        uint32_t any = 0;
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int tile = 0; tile < TILES; tile++) any |= w[c][tile].x;
        if (any == 0xdeadbeefu && m < 0) __trap();
    }
    float sums[TILES][4] = {};
#pragma unroll
    for (int c = 0; c < CHUNKS; c++) {
        const int at = place(c) < k ? place(c) : 0;  // past the row's end zeros, without a branch
        const uint32_t keep = place(c) < k ? ~0u : 0u;
        const uint4 low = __ldg(reinterpret_cast<const uint4*>(row_of_x[0] + at));
        const uint4 high = HALVES == 2 ? __ldg(reinterpret_cast<const uint4*>(row_of_x[1] + at)) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int tile = 0; tile < TILES; tile++) {
            const uint4 b = make_uint4(w[c][tile].x & keep, w[c][tile].y & keep, w[c][tile].z & keep, w[c][tile].w & keep);
            multiply(sums[tile], low.x, high.x, low.y, high.y, b.x, b.y);
            multiply(sums[tile], low.z, high.z, low.w, high.w, b.z, b.w);
        }
    }
    if (CHAIN) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#pragma unroll
    for (int tile = 0; tile < TILES; tile++) {
        float* own = part[warp] + tile * 8 + t * 2;
        *reinterpret_cast<float2*>(own + g * TILE_N) = make_float2(sums[tile][0], sums[tile][1]);
        if (HALVES == 2) *reinterpret_cast<float2*>(own + (g + 8) * TILE_N) = make_float2(sums[tile][2], sums[tile][3]);
    }
    __syncthreads();
    for (int at = threadIdx.x; at < HALVES * 8 * TILE_N; at += WARPS * 32) {
        const int row = at / TILE_N, column = first + at % TILE_N;
        float z = 0.0f;
#pragma unroll
        for (int of = 0; of < WARPS; of++) z += part[of][at];
        if (row < m && column < n) y[static_cast<int64_t>(row) * n + column] = __float2bfloat16(gelu(z + __bfloat162float(bias[column])));
    }
}

__device__ __forceinline__ void load_matrices(uint32_t (&r)[4], const bf16* from) {
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address(from)) : "memory");
}

// Any shape. WHOLE: rows begin at multiples of 16 bytes.
template <bool WHOLE>
__global__ void __launch_bounds__(256) tile_kernel(
    const bf16* __restrict__ x, const bf16* __restrict__ weight, const bf16* __restrict__ bias, bf16* __restrict__ y, int m,
    int n, int k
) {
    extern __shared__ __align__(128) uint8_t shared[];
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int64_t first_m = static_cast<int64_t>(blockIdx.x) * HIGH, first_n = static_cast<int64_t>(blockIdx.y) * WIDE;
    const int warp_m = warp / 4 * 64, warp_n = warp % 4 * 32;
    const int steps = (k + DEEP - 1) / DEEP;

    auto rows_of = [&](int stage) { return reinterpret_cast<bf16*>(shared + stage * TILE_BYTES); };
    auto bring = [&](int step) {  // both tiles of a step: 256 rows of 32 values
        bf16* tiles = rows_of(step % STAGES);
        const int inner = step * DEEP;
        if (WHOLE) {
            for (int unit = thread; unit < (HIGH + WIDE) * 4; unit += 256) {
                const int row = unit / 4, at = inner + unit % 4 * 8;
                const bool of_x = row < HIGH;
                const int64_t from = of_x ? first_m + row : first_n + row - HIGH;
                const bool inside = from < (of_x ? m : n) && at < k;
                copy16(address(tiles + row * PITCH + unit % 4 * 8), (of_x ? x : weight) + (inside ? from * k + at : 0), inside);
            }
        } else {
            for (int unit = thread; unit < (HIGH + WIDE) * DEEP; unit += 256) {
                const int row = unit / DEEP, at = inner + unit % DEEP;
                const bool of_x = row < HIGH;
                const int64_t from = of_x ? first_m + row : first_n + row - HIGH;
                const bool inside = from < (of_x ? m : n) && at < k;
                tiles[row * PITCH + unit % DEEP] = inside ? (of_x ? x : weight)[from * k + at] : __float2bfloat16(0.0f);
            }
        }
        commit();
    };

    float sums[4][4][4] = {};
    for (int step = 0; step < STAGES - 1; step++) {
        if (step < steps) bring(step);
        else commit();
    }
    for (int step = 0; step < steps; step++) {
        arrived<STAGES - 2>();
        __syncthreads();
        if (step + STAGES - 1 < steps) bring(step + STAGES - 1);
        else commit();
        const bf16* a_rows = rows_of(step % STAGES);
        const bf16* b_rows = a_rows + HIGH * PITCH;
#pragma unroll
        for (int inner = 0; inner < DEEP; inner += 16) {
            uint32_t a[4][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++)
                load_matrices(a[i], a_rows + (warp_m + i * 16 + lane % 16) * PITCH + inner + lane / 16 * 8);
#pragma unroll
            for (int j = 0; j < 2; j++)
                load_matrices(b[j], b_rows + (warp_n + j * 16 + lane / 16 * 8 + lane % 8) * PITCH + inner + lane / 8 % 2 * 8);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    multiply(sums[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
        }
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            const int64_t column = first_n + warp_n + j * 8 + lane % 4 * 2 + e;
            if (column >= n) continue;
            const float add = __bfloat162float(bias[column]);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int64_t row = first_m + warp_m + i * 16 + lane / 4 + half * 8;
                    if (row < m) y[row * n + column] = __float2bfloat16(gelu(sums[i][j][half * 2 + e] + add));
                }
        }
}

}  // namespace

extern "C" void run(
    const bf16* x, const bf16* weight, const bf16* bias, bf16* y, int64_t m, int64_t n, int64_t k, cudaStream_t stream
) {
    const bool whole = k % 8 == 0;
    const int mm = static_cast<int>(m), nn = static_cast<int>(n), kk = static_cast<int>(k);
    if (whole && m <= THIN_M && k <= THIN_K) {
        cudaLaunchAttribute chain[1];
        chain[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        chain[0].val.programmaticStreamSerializationAllowed = CHAIN;
        cudaLaunchConfig_t how = {};
        how.gridDim = dim3(static_cast<unsigned>((n + TILE_N - 1) / TILE_N));
        how.blockDim = dim3(WARPS * 32);
        how.stream = stream;
        how.attrs = chain;
        how.numAttrs = CHAIN;
        cudaLaunchKernelEx(&how, m <= 8 ? thin_kernel<1> : thin_kernel<2>, x, weight, bias, y, mm, nn, kk);
        return;
    }
    const dim3 grid(static_cast<unsigned>((m + HIGH - 1) / HIGH), static_cast<unsigned>((n + WIDE - 1) / WIDE));
    constexpr int bytes = STAGES * TILE_BYTES;
    if (whole) {
        cudaFuncSetAttribute(tile_kernel<true>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        tile_kernel<true><<<grid, 256, bytes, stream>>>(x, weight, bias, y, mm, nn, kk);
    } else {
        cudaFuncSetAttribute(tile_kernel<false>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
        tile_kernel<false><<<grid, 256, bytes, stream>>>(x, weight, bias, y, mm, nn, kk);
    }
}
