// Two warpgroups share 64 heads and gather the named rows: each scores every other tile of 64 tokens and holds half of the result, and they hand each other weights through shared memory.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

using bf16 = __nv_bfloat16;

namespace {

constexpr int CLUSTERS = 1;  // tunable: 0, 1

constexpr int PROCESSORS = 132;
constexpr int WIDTH = 576, LATENT = 512;       // values of a token; the first 512 are also what is summed
constexpr int HIGH = 64, TILE = 64;            // heads of a program, tokens of a tile
constexpr int CHUNK_BYTES = 64 * 64 * 2;       // 64 rows of 64 values, swizzled: 16-byte unit u of row r lies at u ^ (r % 8)
constexpr int TILE_BYTES = 9 * CHUNK_BYTES;
constexpr int SHARED_BYTES = 3 * TILE_BYTES + CHUNK_BYTES + 1024;  // q, two tiles, weights; slack to align
constexpr float SCALE = 0.07216878364870322f * 1.4426950408889634f;  // 1 / sqrt(192), for powers of two
constexpr float LEAST = -1.0e30f;
constexpr int ROW = LATENT + 8;                // a row of results kept for the neighbours, padded for the banks
constexpr int NEIGHBOURS = 8;                  // programs of a cluster at most

// Pieces of one call; calls must follow each other in one stream.
__device__ __align__(16) float part[PROCESSORS * HIGH * LATENT];
__device__ float peaks[PROCESSORS * HIGH];

__device__ __forceinline__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ void barrier_init(uint64_t* b, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(b)), "r"(count));
}
__device__ __forceinline__ void arrive(uint64_t* b) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(b)) : "memory");
}
__device__ __forceinline__ void wait(uint64_t* b, int parity) {
    asm volatile(
        "{\n .reg .pred p;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        " @p bra done;\n bra again;\n"
        "done:\n}\n" ::"r"(address(b)), "r"(parity) : "memory");
}
template <int THREADS>
__device__ __forceinline__ void meet(int number) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}
// What ordinary stores and cp.async wrote becomes visible to the matrix units.
__device__ __forceinline__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void copy16_or_zero(uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ __forceinline__ void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT>
__device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// Matrix descriptors, 128-byte swizzle. Rows (K-major): groups of 8 rows lie 1024 bytes apart. Columns (MN-major): groups of
// 8 tokens lie 1024 bytes apart and groups of 64 columns a chunk apart.
__device__ __forceinline__ uint64_t by_rows(uint32_t at) {
    return (uint64_t(1) << 62) | (uint64_t(1024 >> 4) << 32) | (uint64_t(1) << 16) | ((at & 0x3FFFF) >> 4);
}
__device__ __forceinline__ uint64_t by_columns(uint32_t at) {
    return (uint64_t(1) << 62) | (uint64_t(1024 >> 4) << 32) | (uint64_t(CHUNK_BYTES >> 4) << 16) | ((at & 0x3FFFF) >> 4);
}
__device__ __forceinline__ void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void products_wait() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// d[64×64] (+)= a[64×16] · b[64×16]ᵀ
__device__ __forceinline__ void score(float (&d)[32], uint64_t a, uint64_t b, int add) {
    asm volatile(
        "{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
        "%32, %33, p, 1, 1, 0, 0;\n}\n"
        :
          "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b), "r"(add));
}
// d[64×256] += a[64×16] · b[16×256]; a in registers, then a in shared memory
__device__ __forceinline__ void weigh(float (&d)[128], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "{%128, %129, %130, %131}, %132, 1, 1, 1, 1;\n"
        :
          "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));
}
__device__ __forceinline__ void weigh(float (&d)[128], uint64_t a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, 1, 1, 1, 0, 1;\n"
        :
          "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]),
          "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]),
          "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]),
          "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]),
          "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]),
          "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]),
          "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]),
          "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]),
          "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
        : "l"(a), "l"(b));
}

__device__ __forceinline__ float power(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ uint32_t pair(float low, float high) {
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<uint32_t*>(&both);
}

struct Small {
    uint64_t full[2][2], empty[2][2];  // [tile of the pair][columns 0 to 255, the rest]
    uint64_t handed[2];                // weights and maximum of the pair's first and second tile
    float best[2][HIGH], total[2][HIGH], peak[HIGH];
};

// Scores of a tile: rows `lane / 4` and that plus 8 of the warp's 16, eight groups of columns, two values in each.
__device__ __forceinline__ void score_tile(float (&s)[32], uint32_t q, uint32_t tile, uint64_t* full, int parity) {
    wait(&full[0], parity);
    products_begin();
#pragma unroll
    for (int c = 0; c < 4; ++c)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            score(s, by_rows(q + c * CHUNK_BYTES + k * 32), by_rows(tile + c * CHUNK_BYTES + k * 32), c + k > 0);
    wait(&full[1], parity);
#pragma unroll
    for (int c = 4; c < 9; ++c)
#pragma unroll
        for (int k = 0; k < 4; ++k) score(s, by_rows(q + c * CHUNK_BYTES + k * 32), by_rows(tile + c * CHUNK_BYTES + k * 32), 1);
    products_commit();
    products_wait();
}

__device__ __forceinline__ void hide_past(float (&s)[32], int left, int lane) {
    if (left < TILE) {
#pragma unroll
        for (int i = 0; i < 32; ++i) {
            int column = (i / 4) * 8 + (lane % 4) * 2 + (i & 1);
            if (column >= left) s[i] = -INFINITY;
        }
    }
}

__device__ __forceinline__ void row_maxima(const float (&s)[32], float (&m)[2]) {
    m[0] = m[1] = -INFINITY;
#pragma unroll
    for (int i = 0; i < 32; ++i) m[(i >> 1) & 1] = fmaxf(m[(i >> 1) & 1], s[i]);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        m[h] = fmaxf(m[h], __shfl_xor_sync(~0u, m[h], 1));
        m[h] = fmaxf(m[h], __shfl_xor_sync(~0u, m[h], 2));
    }
}

// Weights of a tile, packed as the first operand of the next product; returns this thread's part of the sums.
__device__ __forceinline__ void weights_of(const float (&s)[32], const float (&best)[2], uint32_t (&w)[16], float (&sum)[2]) {
    sum[0] = sum[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < 32; i += 2) {
        int h = (i >> 1) & 1;
        float low = power(fmaf(s[i], SCALE, -best[h])), high = power(fmaf(s[i + 1], SCALE, -best[h]));
        sum[h] += low + high;
        w[i / 2] = pair(low, high);
    }
}

__device__ __forceinline__ void rescale(float (&o)[128], float upper, float lower) {
    if (__any_sync(~0u, upper != 1.0f || lower != 1.0f)) {
#pragma unroll
        for (int i = 0; i < 128; ++i) o[i] *= (i & 2) ? lower : upper;
    }
}

__device__ __forceinline__ void store_weights(uint32_t at, const uint32_t (&w)[16], int row, int lane) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        int r = row + (i & 1) * 8;
        uint32_t to = at + r * 128 + (((i >> 1) ^ (r & 7)) << 4) + (lane % 4) * 4;
        asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(w[i]) : "memory");
    }
}

// The tiles of one parity, a half of the columns after the other: 64 threads, 16 bytes a copy.
__device__ __forceinline__ void load_tiles(
    uint32_t tile, const bf16* cache, const int* named, int count, int pairs, int which, Small& small, int thread) {
    const int upper = thread / 32, unit = thread % 32;  // a warp copies every other row, 512 bytes at once
    uint32_t to[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        int r = 2 * i + upper;
        to[i] = tile + (unit / 8) * CHUNK_BYTES + r * 128 + (((unit % 8) ^ r) << 4);
    }
    const int rope_row = unit / 8 * 2 + upper, rope_unit = unit % 8;
    const uint32_t to_rope = tile + 8 * CHUNK_BYTES + rope_row * 128 + ((rope_unit ^ rope_row) << 4);
    for (int j = 0; j < pairs; ++j) {
        const int first = (2 * j + which) * TILE, left = count - first;
        // Lane i of a warp keeps the index that the warp's i-th row names.
        int mine = 2 * unit + upper < left ? named[first + 2 * unit + upper] : 0;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            wait(&small.empty[which][half], (j & 1) ^ 1);
            const uint32_t shift = half * 4 * CHUNK_BYTES;
#pragma unroll 2
            for (int g = 0; g < 8; ++g)
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int64_t token = __shfl_sync(~0u, mine, g * 4 + i);
                    const bf16* from = cache + token * WIDTH + half * 256 + unit * 8;
                    copy16_or_zero(to[i] + shift + g * 1024, from, 8 * g + 2 * i + upper < left);
                }
            if (half == 1) {
#pragma unroll 4
                for (int i = 0; i < 8; ++i) {
                    const int64_t token = __shfl_sync(~0u, mine, 4 * i + unit / 8);
                    const bf16* from = cache + token * WIDTH + LATENT + rope_unit * 8;
                    copy16_or_zero(to_rope + i * 1024, from, 8 * i + rope_row < left);
                }
            }
            copies_commit();
        }
        copies_wait<1>();
        publish();
        arrive(&small.full[which][0]);
        copies_wait<0>();
        publish();
        arrive(&small.full[which][1]);
    }
}

// The pieces of a block of heads lie in the shared memory of a cluster's programs: each merges every so many rows.
__device__ __forceinline__ void meet_cluster() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ __forceinline__ uint32_t of_neighbour(uint32_t at, int rank) {
    uint32_t there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    return there;
}
__device__ __forceinline__ void merge_cluster(
    bf16* out, uint32_t results, const Small& small, int sequence, int block, int piece, int heads, int pieces) {
    meet_cluster();
    const int column = threadIdx.x % 128 * 4;
    for (int r = piece + pieces * (threadIdx.x / 128); r < HIGH && block * HIGH + r < heads; r += 2 * pieces) {
        float peak[NEIGHBOURS], largest = -INFINITY, total = 0.0f;
        float4 v[NEIGHBOURS], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int i = 0; i < NEIGHBOURS; ++i)
            if (i < pieces) {
                asm volatile("ld.shared::cluster.f32 %0, [%1];"
                             : "=f"(peak[i]) : "r"(of_neighbour(address(&small.peak[r]), i)) : "memory");
                asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(v[i].x), "=f"(v[i].y), "=f"(v[i].z), "=f"(v[i].w)
                             : "r"(of_neighbour(results + (r * ROW + column) * 4, i)) : "memory");
            }
#pragma unroll
        for (int i = 0; i < NEIGHBOURS; ++i)
            if (i < pieces) largest = fmaxf(largest, peak[i]);
#pragma unroll
        for (int i = 0; i < NEIGHBOURS; ++i)
            if (i < pieces) {
                const float by = power(peak[i] - largest);
                total += by;
                sum.x += v[i].x * by, sum.y += v[i].y * by, sum.z += v[i].z * by, sum.w += v[i].w * by;
            }
        const float by = 1.0f / total;
        *reinterpret_cast<uint2*>(out + (int64_t(sequence) * heads + block * HIGH + r) * LATENT + column) =
            make_uint2(pair(sum.x * by, sum.y * by), pair(sum.z * by, sum.w * by));
    }
    meet_cluster();  // nobody leaves while a neighbour reads
}

template <bool CLUSTERED>
__global__ void __launch_bounds__(384, 1) split_kernel(
    const bf16* __restrict__ q, const bf16* __restrict__ cache, const int* __restrict__ indices, bf16* __restrict__ out,
    int heads, int tokens, int topk, int share,
    int pieces) {
    extern __shared__ uint8_t raw[];
    __shared__ Small small;
    const uint32_t q_at = (address(raw) + 1023) & ~1023u, tiles_at = q_at + TILE_BYTES, weights_at = q_at + 3 * TILE_BYTES;
    const int block = blockIdx.x, piece = blockIdx.y, sequence = blockIdx.z, blocks = gridDim.x;
    const int thread = threadIdx.x % 128, group = __shfl_sync(~0u, int(threadIdx.x) / 128, 0), lane = threadIdx.x % 32;
    const int count = min(share, topk - piece * share), pairs = (count + 2 * TILE - 1) / (2 * TILE);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            for (int half = 0; half < 2; ++half) {
                barrier_init(&small.full[i][half], 64);
                barrier_init(&small.empty[i][half], 4);
            }
            barrier_init(&small.handed[i], 128);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        const int which = thread / 64;
        const int* named = indices + int64_t(sequence) * topk + int64_t(piece) * share;
        const bf16* rows = cache + int64_t(sequence) * tokens * WIDTH;
        load_tiles(tiles_at + which * TILE_BYTES, rows, named, count, pairs, which, small, thread % 64);
        if constexpr (CLUSTERED) {
            meet_cluster();
            meet_cluster();
        }
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    for (int i = threadIdx.x; i < HIGH * 72; i += 256) {
        int r = i / 72, unit = i % 72, head = block * HIGH + r;
        const bf16* from = q + (int64_t(sequence) * heads + min(head, heads - 1)) * WIDTH + unit * 8;
        copy16_or_zero(q_at + (unit / 8) * CHUNK_BYTES + r * 128 + (((unit % 8) ^ (r & 7)) << 4), from, head < heads);
    }
    copies_commit();
    copies_wait<0>();
    publish();
    meet<256>(1);

    const int row = (thread / 32) * 16 + lane / 4;
    const uint32_t tile[2] = {tiles_at, tiles_at + TILE_BYTES};
    float o[128], l[2] = {0.0f, 0.0f}, best[2] = {LEAST, LEAST};
#pragma unroll
    for (int i = 0; i < 128; ++i) o[i] = 0.0f;

    if (group == 0) {
        for (int j = 0; j < pairs; ++j) {
            const int parity = j & 1;
            float s[32], peak[2], sum[2], fade[2];
            uint32_t w[16];
            score_tile(s, q_at, tile[0], small.full[0], parity);
            hide_past(s, count - 2 * j * TILE, lane);
            row_maxima(s, peak);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float larger = fmaxf(best[h], peak[h] * SCALE);
                fade[h] = power(best[h] - larger);
                best[h] = larger;
            }
            weights_of(s, best, w, sum);
            l[0] = l[0] * fade[0] + sum[0];
            l[1] = l[1] * fade[1] + sum[1];
            meet<128>(2);  // all of this group have read the other's weights
            store_weights(weights_at, w, row, lane);
            if (lane % 4 == 0) {
                small.best[0][row] = best[0];
                small.best[0][row + 8] = best[1];
            }
            publish();
            arrive(&small.handed[0]);
            rescale(o, fade[0], fade[1]);
            products_begin();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                weigh(o, w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3], by_columns(tile[0] + k * 2048));
            products_commit();
            products_wait();
            if (lane == 0) arrive(&small.empty[0][0]);

            wait(&small.handed[1], parity);
            wait(&small.full[1][0], parity);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float larger = small.best[1][row + 8 * h];
                fade[h] = power(best[h] - larger);
                best[h] = larger;
                l[h] *= fade[h];
            }
            rescale(o, fade[0], fade[1]);
            products_begin();
#pragma unroll
            for (int k = 0; k < 4; ++k) weigh(o, by_rows(weights_at + k * 32), by_columns(tile[1] + k * 2048));
            products_commit();
            products_wait();
            if (lane == 0) arrive(&small.empty[1][0]);
        }
    } else {
        for (int j = 0; j < pairs; ++j) {
            const int parity = j & 1;
            float s[32], peak[2], sum[2], fade[2];
            uint32_t w[16];
            // The first tile's weights before this group's own scores, so that the tile is free as early as can be.
            wait(&small.handed[0], parity);
            wait(&small.full[0][1], parity);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float larger = small.best[0][row + 8 * h];
                fade[h] = power(best[h] - larger);
                best[h] = larger;
                l[h] *= fade[h];
            }
            rescale(o, fade[0], fade[1]);
            products_begin();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                weigh(o, by_rows(weights_at + k * 32), by_columns(tile[0] + 4 * CHUNK_BYTES + k * 2048));
            products_commit();
            products_wait();
            if (lane == 0) arrive(&small.empty[0][1]);

            score_tile(s, q_at, tile[1], small.full[1], parity);
            hide_past(s, count - (2 * j + 1) * TILE, lane);
            row_maxima(s, peak);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float larger = fmaxf(best[h], peak[h] * SCALE);
                fade[h] = power(best[h] - larger);
                best[h] = larger;
            }
            weights_of(s, best, w, sum);
            l[0] = l[0] * fade[0] + sum[0];
            l[1] = l[1] * fade[1] + sum[1];
            meet<128>(3);  // all of this group have read the other's weights
            store_weights(weights_at, w, row, lane);
            if (lane % 4 == 0) {
                small.best[1][row] = best[0];
                small.best[1][row + 8] = best[1];
            }
            publish();
            arrive(&small.handed[1]);
            rescale(o, fade[0], fade[1]);
            products_begin();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                weigh(o, w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3], by_columns(tile[1] + 4 * CHUNK_BYTES + k * 2048));
            products_commit();
            products_wait();
            if (lane == 0) arrive(&small.empty[1][1]);
        }
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l[h] += __shfl_xor_sync(~0u, l[h], 1);
        l[h] += __shfl_xor_sync(~0u, l[h], 2);
        if (lane % 4 == 0) small.total[group][row + 8 * h] = l[h];
    }
    meet<256>(1);
    asm volatile("griddepcontrol.launch_dependents;");
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int r = row + 8 * h, head = block * HIGH + r;
        const float total = small.total[0][r] + small.total[1][r], by = 1.0f / total;
        if constexpr (CLUSTERED) {
            if (group == 0 && lane % 4 == 0) small.peak[r] = best[h] + log2f(total);
            const uint32_t to = q_at + (r * ROW + group * 256 + (lane % 4) * 2) * 4;
#pragma unroll
            for (int n = 0; n < 32; ++n)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + n * 32), "f"(o[n * 4 + h * 2] * by),
                             "f"(o[n * 4 + h * 2 + 1] * by) : "memory");
            continue;
        }
        if (head >= heads) continue;
        const int first = group * 256 + (lane % 4) * 2;
        if (pieces == 1) {
            bf16* to = out + (int64_t(sequence) * heads + head) * LATENT + first;
#pragma unroll
            for (int n = 0; n < 32; ++n)
                *reinterpret_cast<uint32_t*>(to + n * 8) = pair(o[n * 4 + h * 2] * by, o[n * 4 + h * 2 + 1] * by);
        } else {
            const int slot = ((sequence * blocks + block) * pieces + piece) * HIGH + r;
            float* to = part + int64_t(slot) * LATENT + first;
#pragma unroll
            for (int n = 0; n < 32; ++n)
                *reinterpret_cast<float2*>(to + n * 8) = make_float2(o[n * 4 + h * 2] * by, o[n * 4 + h * 2 + 1] * by);
            if (group == 0 && lane % 4 == 0) peaks[slot] = best[h] + log2f(total);
        }
    }
    if constexpr (CLUSTERED) merge_cluster(out, q_at, small, sequence, block, piece, heads, pieces);
}

// The pieces of one head, `512 / gridDim.y` of its values: four values a thread, the pieces spread over the rest of the threads.
__global__ void __launch_bounds__(128) merge_kernel(bf16* __restrict__ out, int heads, int pieces) {
    __shared__ float weight[PROCESSORS];
    __shared__ float4 sums[128];
    const int head = blockIdx.x % heads, sequence = blockIdx.x / heads, blocks = (heads + HIGH - 1) / HIGH;
    const int width = LATENT / gridDim.y, lanes = width / 4, groups = 128 / lanes;
    const int group = threadIdx.x / lanes, column = blockIdx.y * width + (threadIdx.x % lanes) * 4;
    const int slot = (sequence * blocks + head / HIGH) * pieces * HIGH + head % HIGH;
    asm volatile("griddepcontrol.wait;" ::: "memory");
    for (int i = threadIdx.x; i < pieces; i += 128) weight[i] = __ldcg(&peaks[slot + i * HIGH]);
    __syncthreads();
    float largest = -INFINITY, total = 0.0f;
    for (int i = 0; i < pieces; ++i) largest = fmaxf(largest, weight[i]);
    for (int i = 0; i < pieces; ++i) total += power(weight[i] - largest);
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    const float* from = part + int64_t(slot) * LATENT + column;
#pragma unroll 8
    for (int i = group; i < pieces; i += groups) {
        float4 v = __ldcg(reinterpret_cast<const float4*>(from + int64_t(i) * HIGH * LATENT));
        float by = power(weight[i] - largest);
        sum.x += v.x * by, sum.y += v.y * by, sum.z += v.z * by, sum.w += v.w * by;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (group == 0) {
        for (int g = 1; g < groups; ++g) {
            float4 v = sums[g * lanes + threadIdx.x];
            sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
        }
        const float by = 1.0f / total;
        uint2 packed = make_uint2(pair(sum.x * by, sum.y * by), pair(sum.z * by, sum.w * by));
        *reinterpret_cast<uint2*>(out + int64_t(blockIdx.x) * LATENT + column) = packed;
    }
}

template <typename Kernel>
bool allow(Kernel* kernel) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES) == cudaSuccess;
}

}  // namespace

extern "C" void run(
    const bf16* q, const bf16* cache, const int32_t* indices, bf16* out, int64_t batch, int64_t heads, int64_t tokens,
    int64_t topk, cudaStream_t stream) {
    const int64_t length = topk;
    const int64_t blocks = (heads + HIGH - 1) / HIGH, doubles = (length + 2 * TILE - 1) / (2 * TILE);
    int64_t pieces = PROCESSORS / (batch * blocks);
    pieces = pieces < 1 ? 1 : pieces > doubles ? doubles : pieces;
    const int64_t share = (doubles + pieces - 1) / pieces * 2 * TILE;
    pieces = (length + share - 1) / share;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attribute = {};
    config.gridDim = dim3(blocks, pieces, batch);
    config.blockDim = dim3(384);
    config.dynamicSmemBytes = SHARED_BYTES;
    config.stream = stream;
    config.attrs = &attribute;
    static const bool ready = allow(split_kernel<false>) && allow(split_kernel<true>);
    if (!ready) return;
    if (pieces > 1 && pieces <= NEIGHBOURS) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = 1, attribute.val.clusterDim.y = pieces, attribute.val.clusterDim.z = 1;
        config.numAttrs = 1;
        static int fit[NEIGHBOURS + 1] = {};  // clusters of so many programs that run at once
        int& clusters = fit[pieces];
        if (clusters == 0 && cudaOccupancyMaxActiveClusters(&clusters, split_kernel<true>, &config) != cudaSuccess) {
            cudaGetLastError();
            clusters = -1;
        }
        if (CLUSTERS == 1 && clusters >= batch * blocks) {
            cudaLaunchKernelEx(
                &config, split_kernel<true>, q, cache, indices, out, int(heads), int(tokens), int(topk), int(share), int(pieces));
            return;
        }
        config.numAttrs = 0;
    }
    cudaLaunchKernelEx(
        &config, split_kernel<false>, q, cache, indices, out, int(heads), int(tokens), int(topk), int(share), int(pieces));
    if (pieces == 1) return;
    const int64_t rows = batch * heads;
    config.gridDim = dim3(rows, rows <= 64 ? 8 : rows <= 512 ? 4 : 1);
    config.blockDim = dim3(128);
    config.dynamicSmemBytes = 0;
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.numAttrs = 1;
    cudaLaunchKernelEx(&config, merge_kernel, out, int(heads), int(pieces));
}
