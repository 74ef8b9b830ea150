// All loaders gather each tile together, weights take the place of a tile's RoPE part, pieces merge in clusters of as many as fit, and each kernel is in place before its forerunner ends.
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

using bf16 = __nv_bfloat16;

namespace {

constexpr int CLUSTERS = 1;  // tunable: 0, 1
constexpr int STAGES = 4;  // tunable: 3, 4, 5
constexpr int CHAIN = 1;  // tunable: 0, 1

constexpr int PROCESSORS = 132;
constexpr int WIDTH = 576, LATENT = 512;       // values of a token; the first 512 are also what is summed
constexpr int ROW_BYTES = WIDTH * 2;
constexpr int BOX = 64;                        // heads that the copy engine brings at once, 64 columns of them
constexpr int HIGH = 64, TILE = 64;            // heads of a program, tokens of a tile
constexpr int CHUNK_BYTES = 64 * 64 * 2;       // 64 rows of 64 values, swizzled: 16-byte unit u of row r lies at u ^ (r % 8)
constexpr int TILE_BYTES = 9 * CHUNK_BYTES;
constexpr int SHARED_BYTES = 3 * TILE_BYTES + 1024;  // q, two tiles; slack to align
constexpr float SCALE = 0.07216878364870322f * 1.4426950408889634f;  // 1 / sqrt(192), for powers of two
constexpr float LEAST = -1.0e30f;
constexpr int ROW = LATENT + 8;                // a row of results kept for the neighbours, padded for the banks

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
__device__ __forceinline__ void expect(uint64_t* b, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(b)), "r"(bytes) : "memory");
}
// 64 columns of BOX rows, swizzled; past the end zeros.
__device__ __forceinline__ void copy_box(uint32_t to, const CUtensorMap& map, int column, int row, int sequence, uint64_t* b) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
        ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(sequence), "r"(address(b)) : "memory");
}
template <int THREADS>
__device__ __forceinline__ void meet(int number) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}
// What ordinary stores and cp.async wrote becomes visible to the matrix units.
__device__ __forceinline__ void publish() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void copy16(uint32_t to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy16_or_zero(uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ __forceinline__ void after_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void arrive_when_copied(uint64_t* b) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address(b)) : "memory");
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
    uint64_t full[2][2], empty[2][2];  // [tile of the pair][columns 0 to 255, 256 to 511]; RoPE with the half that is loaded last
    uint64_t q_full;
    uint64_t handed[2];                // weights and maximum of the pair's first and second tile
    float best[2][HIGH], total[2][HIGH], peak[HIGH];
};

// Scores of a tile: rows `lane / 4` and that plus 8 of the warp's 16, eight groups of columns, two values in each. The half of
// the columns that is loaded first comes first.
template <int WHICH>
__device__ __forceinline__ void score_tile(float (&s)[32], uint32_t q, uint32_t tile, uint64_t* full, int parity) {
    wait(&full[WHICH], parity);
    publish();
    products_begin();
#pragma unroll
    for (int c = 4 * WHICH; c < 4 * WHICH + 4; ++c)
#pragma unroll
        for (int k = 0; k < 4; ++k)
            score(s, by_rows(q + c * CHUNK_BYTES + k * 32), by_rows(tile + c * CHUNK_BYTES + k * 32), c + k > 4 * WHICH);
    products_commit();
    wait(&full[WHICH ^ 1], parity);
    publish();
    products_begin();
#pragma unroll
    for (int i = 0; i < 5; ++i)
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            const int c = i < 4 ? 4 * (WHICH ^ 1) + i : 8;
            score(s, by_rows(q + c * CHUNK_BYTES + k * 32), by_rows(tile + c * CHUNK_BYTES + k * 32), 1);
        }
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

// The tiles in turn, a half of the columns after the other: 128 threads, each with 16 bytes of every chunk of four rows.
__device__ __forceinline__ void load_tiles(
    uint32_t tiles, const bf16* rows, const int* named, int count, int pairs, Small& small, int thread) {
    const int first_row = thread / 8, unit = thread % 8;
    const uint32_t to = tiles + first_row * 128 + ((unit ^ (first_row % 8)) << 4);
    int mine[4];  // what the thread's rows of the next tile are called
#pragma unroll
    for (int i = 0; i < 4; ++i) mine[i] = first_row + 16 * i < count ? named[first_row + 16 * i] : 0;
    for (int t = 0; t < 2 * pairs; ++t) {
        const int left = count - t * TILE, which = t & 1, parity = (t >> 1 & 1) ^ 1;
        const bf16* from[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            from[i] = rows + int64_t(mine[i]) * WIDTH + unit * 8;
            const int next = first_row + 16 * i + TILE;
            mine[i] = next < left ? named[t * TILE + next] : 0;
        }
        const uint32_t at = to + which * TILE_BYTES;
#pragma unroll
        for (int turn = 0; turn < 2; ++turn) {
            const int half = which ^ turn;  // of the second tile the latter half is free first
            wait(&small.empty[which][half], parity);
            const uint32_t to_half = at + half * 4 * CHUNK_BYTES;
            if (left >= TILE) {
#pragma unroll
                for (int c = 0; c < 4; ++c)
#pragma unroll
                    for (int i = 0; i < 4; ++i) copy16(to_half + c * CHUNK_BYTES + i * 2048, from[i] + half * 256 + c * 64);
                if (turn == 1) {
#pragma unroll
                    for (int i = 0; i < 4; ++i) copy16(at + 8 * CHUNK_BYTES + i * 2048, from[i] + LATENT);
                }
            } else {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const bool there = first_row + 16 * i < left;
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        copy16_or_zero(to_half + c * CHUNK_BYTES + i * 2048, from[i] + half * 256 + c * 64, there);
                    if (turn == 1) copy16_or_zero(at + 8 * CHUNK_BYTES + i * 2048, from[i] + LATENT, there);
                }
            }
            arrive_when_copied(&small.full[which][half]);
        }
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
template <int NEAR>
__device__ __forceinline__ void merge_cluster(
    bf16* out, uint32_t results, float* scratch, Small& small, int sequence, int block, int piece, int heads, int pieces) {
    constexpr int ROWS_AT_ONCE = 16 / NEAR;
    const int rank = piece % NEAR, column = threadIdx.x % 128 * 4;
    meet_cluster();
    if (threadIdx.x < HIGH) {
        float peak[NEAR], largest = -INFINITY, total = 0.0f;
#pragma unroll
        for (int i = 0; i < NEAR; ++i)
            asm volatile("ld.shared::cluster.f32 %0, [%1];"
                         : "=f"(peak[i]) : "r"(of_neighbour(address(&small.peak[threadIdx.x]), i)) : "memory");
#pragma unroll
        for (int i = 0; i < NEAR; ++i) largest = fmaxf(largest, peak[i]);
#pragma unroll
        for (int i = 0; i < NEAR; ++i) total += power(peak[i] - largest);
#pragma unroll
        for (int i = 0; i < NEAR; ++i) scratch[i * HIGH + threadIdx.x] = power(peak[i] - largest) / total;
        scratch[NEAR * HIGH + threadIdx.x] = largest + log2f(total);
    }
    meet<256>(1);
#pragma unroll 1
    for (int first = rank + NEAR * (threadIdx.x / 128); first < HIGH; first += 2 * NEAR * ROWS_AT_ONCE) {
        float4 v[ROWS_AT_ONCE][NEAR];
#pragma unroll
        for (int u = 0; u < ROWS_AT_ONCE; ++u)
#pragma unroll
            for (int i = 0; i < NEAR; ++i) {
                const uint32_t at = results + ((first + 2 * NEAR * u) * ROW + column) * 4;
                asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                             : "=f"(v[u][i].x), "=f"(v[u][i].y), "=f"(v[u][i].z), "=f"(v[u][i].w)
                             : "r"(of_neighbour(at, i)) : "memory");
            }
#pragma unroll
        for (int u = 0; u < ROWS_AT_ONCE; ++u) {
            const int r = first + 2 * NEAR * u;
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int i = 0; i < NEAR; ++i) {
                const float by = scratch[i * HIGH + r];
                sum.x += v[u][i].x * by, sum.y += v[u][i].y * by, sum.z += v[u][i].z * by, sum.w += v[u][i].w * by;
            }
            if (block * HIGH + r >= heads) continue;
            if (NEAR == pieces) {
                *reinterpret_cast<uint2*>(out + (int64_t(sequence) * heads + block * HIGH + r) * LATENT + column) =
                    make_uint2(pair(sum.x, sum.y), pair(sum.z, sum.w));
            } else {
                const int slot = ((sequence * gridDim.x + block) * (pieces / NEAR) + piece / NEAR) * HIGH + r;
                __stcg(reinterpret_cast<float4*>(part + int64_t(slot) * LATENT + column), sum);
                if (column == 0) peaks[slot] = scratch[NEAR * HIGH + r];
            }
        }
    }
    meet_cluster();  // nobody leaves while a neighbour reads
}

// NEAR programs, pieces of the same heads, merge in a cluster.
template <int NEAR>
__global__ void __launch_bounds__(384, 1) split_kernel(
    const bf16* __restrict__ q, const bf16* __restrict__ cache, const int* __restrict__ indices,
    const __grid_constant__ CUtensorMap q_map, bf16* __restrict__ out, int heads, int tokens, int topk, int share,
    int pieces) {
    extern __shared__ uint8_t raw[];
    __shared__ Small small;
    const uint32_t q_at = (address(raw) + 1023) & ~1023u, tiles_at = q_at + TILE_BYTES;
    const int block = blockIdx.x, piece = blockIdx.y, sequence = blockIdx.z, blocks = gridDim.x;
    const int thread = threadIdx.x % 128, group = __shfl_sync(~0u, int(threadIdx.x) / 128, 0), lane = threadIdx.x % 32;
    const int count = min(share, topk - piece * share), pairs = (count + 2 * TILE - 1) / (2 * TILE);
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            for (int half = 0; half < 2; ++half) {
                barrier_init(&small.full[i][half], 128);
                barrier_init(&small.empty[i][half], 4);
            }
            barrier_init(&small.handed[i], 128);
        }
        barrier_init(&small.q_full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (CHAIN) after_previous();
    asm volatile("griddepcontrol.launch_dependents;");

    if (group == 2) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (thread == 0) {
            expect(&small.q_full, TILE_BYTES);
#pragma unroll
            for (int c = 0; c < 9; ++c)
#pragma unroll
                for (int r = 0; r < HIGH; r += BOX)
                    copy_box(q_at + c * CHUNK_BYTES + r * 128, q_map, c * 64, block * HIGH + r, sequence, &small.q_full);
        }
        __syncwarp();
        const int* named = indices + int64_t(sequence) * topk + int64_t(piece) * share;
        const bf16* rows = cache + int64_t(sequence) * tokens * WIDTH;
        load_tiles(tiles_at, rows, named, count, pairs, small, thread);
        __syncwarp();
        if constexpr (NEAR > 1) {
            meet_cluster();
            meet_cluster();
        }
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
    wait(&small.q_full, 0);

    const int row = (thread / 32) * 16 + lane / 4;
    float o[128], l[2] = {0.0f, 0.0f}, best[2] = {LEAST, LEAST};
#pragma unroll
    for (int i = 0; i < 128; ++i) o[i] = 0.0f;

    // Of a pair of tiles each group scores one, hands the other the weights, which take the place of the tile's RoPE part, and
    // adds both tiles' values to its half of the columns.
    const uint32_t first = tiles_at, second = tiles_at + TILE_BYTES;
    const uint32_t first_weights = first + 8 * CHUNK_BYTES, second_weights = second + 8 * CHUNK_BYTES;
    float s[32], peak[2], sum[2], fade[2];
    uint32_t w[16];
    if (group == 0) {
        for (int j = 0; j < pairs; ++j) {
            const int parity = j & 1;
            score_tile<0>(s, q_at, first, small.full[0], parity);
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
            meet<128>(2);  // all of this group are done with the RoPE part
            store_weights(first_weights, w, row, lane);
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
                weigh(o, w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3], by_columns(first + k * 2048));
            products_commit();
            products_wait();
            if (lane == 0) arrive(&small.empty[0][0]);

            wait(&small.handed[1], parity);
            wait(&small.full[1][0], parity);
            publish();
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
            for (int k = 0; k < 4; ++k) weigh(o, by_rows(second_weights + k * 32), by_columns(second + k * 2048));
            products_commit();
            products_wait();
            if (lane == 0) arrive(&small.empty[1][0]);
        }
    } else {
        for (int j = 0; j < pairs; ++j) {
            const int parity = j & 1;
            score_tile<1>(s, q_at, second, small.full[1], parity);
            hide_past(s, count - (2 * j + 1) * TILE, lane);
            row_maxima(s, peak);
            wait(&small.handed[0], parity);
            wait(&small.full[0][1], parity);
            publish();
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
                weigh(o, by_rows(first_weights + k * 32), by_columns(first + 4 * CHUNK_BYTES + k * 2048));
            products_commit();
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                float larger = fmaxf(best[h], peak[h] * SCALE);
                fade[h] = power(best[h] - larger);
                best[h] = larger;
            }
            weights_of(s, best, w, sum);
            l[0] = l[0] * fade[0] + sum[0];
            l[1] = l[1] * fade[1] + sum[1];
            meet<128>(3);  // all of this group are done with the RoPE part
            store_weights(second_weights, w, row, lane);
            if (lane % 4 == 0) {
                small.best[1][row] = best[0];
                small.best[1][row + 8] = best[1];
            }
            publish();
            arrive(&small.handed[1]);
            products_wait();
            if (lane == 0) arrive(&small.empty[0][1]);
            rescale(o, fade[0], fade[1]);
            products_begin();
#pragma unroll
            for (int k = 0; k < 4; ++k)
                weigh(o, w[4 * k], w[4 * k + 1], w[4 * k + 2], w[4 * k + 3], by_columns(second + 4 * CHUNK_BYTES + k * 2048));
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
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const int r = row + 8 * h, head = block * HIGH + r;
        const float total = small.total[0][r] + small.total[1][r], by = 1.0f / total;
        if (pieces == 1) {
            if (head >= heads) continue;
            bf16* to = out + (int64_t(sequence) * heads + head) * LATENT + group * 256 + (lane % 4) * 2;
#pragma unroll
            for (int n = 0; n < 32; ++n)
                *reinterpret_cast<uint32_t*>(to + n * 8) = pair(o[n * 4 + h * 2] * by, o[n * 4 + h * 2 + 1] * by);
        } else {
            if (group == 0 && lane % 4 == 0) small.peak[r] = best[h] + log2f(total);
            const uint32_t to = q_at + (r * ROW + group * 256 + (lane % 4) * 2) * 4;
#pragma unroll
            for (int n = 0; n < 32; ++n)
                asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + n * 32), "f"(o[n * 4 + h * 2] * by),
                             "f"(o[n * 4 + h * 2 + 1] * by) : "memory");
        }
    }
    if constexpr (NEAR > 1) {
        float* scratch = reinterpret_cast<float*>(raw + (tiles_at + TILE_BYTES - address(raw)));
        merge_cluster<NEAR>(out, q_at, scratch, small, sequence, block, piece, heads, pieces);
    } else if (pieces > 1) {
        meet<256>(1);
        const int column = threadIdx.x % 128 * 4, slot = ((sequence * blocks + block) * pieces + piece) * HIGH;
#pragma unroll 8
        for (int r = threadIdx.x / 128; r < HIGH; r += 2) {
            float4 v;
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(q_at + (r * ROW + column) * 4) : "memory");
            __stcg(reinterpret_cast<float4*>(part + int64_t(slot + r) * LATENT + column), v);
            if (column == 0) peaks[slot + r] = small.peak[r];
        }
    }
}

// Few heads: 16 a program, tiles of 32 tokens that the copy engine brings row by row into a ring; eight warps, each with an
// eighth of the result's columns, and one that copies.
constexpr int FEW_HIGH = 16, FEW_TILE = 32;
constexpr int PITCH = ROW_BYTES + 16;  // padded, so that eight rows lie in different banks
constexpr int FEW_SHARED_BYTES = (STAGES * FEW_TILE + FEW_HIGH) * PITCH;

struct FewSmall {
    uint64_t full[STAGES], empty[STAGES], q_full;
    float scores[2][2][FEW_HIGH][FEW_TILE + 8];  // [tile's parity][half of the columns]
};

__device__ __forceinline__ void copy_row(uint32_t to, const bf16* from, uint64_t* b) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from),
                 "n"(ROW_BYTES), "r"(address(b)) : "memory");
}
__device__ __forceinline__ void zero_row(uint32_t to) {
    for (int i = 0; i < ROW_BYTES; i += 16)
        asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to + i), "r"(0) : "memory");
}
__device__ __forceinline__ void matrices(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
__device__ __forceinline__ void matrices_turned(uint32_t (&r)[4], uint32_t at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
// d[16×8] += a[16×16] · b[16×8]
__device__ __forceinline__ void product(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__global__ void __launch_bounds__(288, 1) few_kernel(
    const bf16* __restrict__ q, const bf16* __restrict__ cache, const int* __restrict__ indices,
    const __grid_constant__ CUtensorMap q_map, bf16* __restrict__ out, int heads, int tokens, int topk, int share,
    int pieces) {
    extern __shared__ __align__(128) uint8_t raw[];
    __shared__ FewSmall small;
    const uint32_t q_at = address(raw), ring_at = q_at + FEW_HIGH * PITCH;
    const int block = blockIdx.x, piece = blockIdx.y, sequence = blockIdx.z, blocks = gridDim.x;
    const int warp = __shfl_sync(~0u, int(threadIdx.x) / 32, 0), lane = threadIdx.x % 32;
    const int count = min(share, topk - piece * share), tiles = (count + FEW_TILE - 1) / FEW_TILE;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            barrier_init(&small.full[i], 1);
            barrier_init(&small.empty[i], 8);
        }
        barrier_init(&small.q_full, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (CHAIN) after_previous();
    asm volatile("griddepcontrol.launch_dependents;");

    if (warp == 8) {
        const int there = min(FEW_HIGH, heads - block * FEW_HIGH);
        if (lane >= there && lane < FEW_HIGH) zero_row(q_at + lane * PITCH);
        __syncwarp();
        if (lane == 0) expect(&small.q_full, there * ROW_BYTES);
        __syncwarp();
        if (lane < there)
            copy_row(q_at + lane * PITCH, q + (int64_t(sequence) * heads + block * FEW_HIGH + lane) * WIDTH, &small.q_full);
        const int* named = indices + int64_t(sequence) * topk + int64_t(piece) * share;
        const bf16* rows = cache + int64_t(sequence) * tokens * WIDTH;
        int next = lane < count ? named[lane] : 0;
        for (int t = 0, stage = 0, parity = 1; t < tiles; ++t) {
            const int row = t * FEW_TILE + lane, left = min(FEW_TILE, count - t * FEW_TILE);
            const int64_t token = next;
            next = row + FEW_TILE < count ? named[row + FEW_TILE] : 0;
            wait(&small.empty[stage], parity);
            const uint32_t to = ring_at + (stage * FEW_TILE + lane) * PITCH;
            if (lane >= left) zero_row(to);
            __syncwarp();
            if (lane == 0) expect(&small.full[stage], left * ROW_BYTES);
            __syncwarp();
            if (lane < left) copy_row(to, rows + token * WIDTH, &small.full[stage]);
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        return;
    }

    const int half = warp / 4, row = lane / 4;
    const uint32_t score_at = ring_at + ((warp % 4) * 8 + lane % 8) * PITCH + half * WIDTH + (lane / 8) * 16;
    const uint32_t value_at = ring_at + (lane % 16) * PITCH + warp * 128 + (lane / 16) * 16;
    uint32_t a[18][4];
    wait(&small.q_full, 0);
#pragma unroll
    for (int k = 0; k < 18; ++k) matrices(a[k], q_at + (lane % 16) * PITCH + half * WIDTH + k * 32 + (lane / 16) * 16);
    float o[8][4] = {}, l[2] = {0.0f, 0.0f}, best[2] = {LEAST, LEAST};
    for (int t = 0, stage = 0, parity = 0; t < tiles; ++t) {
        const uint32_t shift = stage * FEW_TILE * PITCH;
        wait(&small.full[stage], parity);
        float s[4][4] = {};
#pragma unroll
        for (int k = 0; k < 9; ++k) {
            uint32_t b[4];
            matrices(b, score_at + shift + k * 64);
            product(s[k % 2 * 2], a[2 * k], b[0], b[1]);
            product(s[k % 2 * 2 + 1], a[2 * k + 1], b[2], b[3]);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h)
            *reinterpret_cast<float2*>(&small.scores[t & 1][half][row + 8 * h][(warp % 4) * 8 + (lane % 4) * 2]) =
                make_float2(s[0][2 * h] + s[1][2 * h] + s[2][2 * h] + s[3][2 * h],
                            s[0][2 * h + 1] + s[1][2 * h + 1] + s[2][2 * h + 1] + s[3][2 * h + 1]);
        meet<256>(1);
        // Each warp weighs all of the tile: groups of eight tokens, two of each.
        float p[2][4][2], fade[2];
        const int left = count - t * FEW_TILE;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            float peak = -INFINITY;
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                const int column = n * 8 + (lane % 4) * 2;
                const float2 x = *reinterpret_cast<const float2*>(&small.scores[t & 1][0][row + 8 * h][column]);
                const float2 y = *reinterpret_cast<const float2*>(&small.scores[t & 1][1][row + 8 * h][column]);
                p[h][n][0] = column < left ? x.x + y.x : -INFINITY;
                p[h][n][1] = column + 1 < left ? x.y + y.y : -INFINITY;
                peak = fmaxf(peak, fmaxf(p[h][n][0], p[h][n][1]));
            }
            peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, 1));
            peak = fmaxf(peak, __shfl_xor_sync(~0u, peak, 2));
            const float larger = fmaxf(best[h], peak * SCALE);
            fade[h] = power(best[h] - larger);
            best[h] = larger;
            l[h] *= fade[h];
#pragma unroll
            for (int n = 0; n < 4; ++n)
#pragma unroll
                for (int i = 0; i < 2; ++i) {
                    p[h][n][i] = power(fmaf(p[h][n][i], SCALE, -larger));
                    l[h] += p[h][n][i];
                }
        }
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int i = 0; i < 4; ++i) o[n][i] *= fade[i / 2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
            const uint32_t w[4] = {
                pair(p[0][2 * k][0], p[0][2 * k][1]), pair(p[1][2 * k][0], p[1][2 * k][1]),
                pair(p[0][2 * k + 1][0], p[0][2 * k + 1][1]), pair(p[1][2 * k + 1][0], p[1][2 * k + 1][1])};
#pragma unroll
            for (int n = 0; n < 4; ++n) {
                uint32_t b[4];
                matrices_turned(b, value_at + shift + k * 16 * PITCH + n * 32);
                product(o[2 * n], w, b[0], b[1]);
                product(o[2 * n + 1], w, b[2], b[3]);
            }
        }
        __syncwarp();
        if (lane == 0) arrive(&small.empty[stage]);
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }

#pragma unroll
    for (int h = 0; h < 2; ++h) {
        l[h] += __shfl_xor_sync(~0u, l[h], 1);
        l[h] += __shfl_xor_sync(~0u, l[h], 2);
        const int r = row + 8 * h, head = block * FEW_HIGH + r, first = warp * 64 + (lane % 4) * 2;
        if (head >= heads) continue;
        const float by = 1.0f / l[h];
        if (pieces == 1) {
            bf16* to = out + (int64_t(sequence) * heads + head) * LATENT + first;
#pragma unroll
            for (int n = 0; n < 8; ++n)
                *reinterpret_cast<uint32_t*>(to + n * 8) = pair(o[n][2 * h] * by, o[n][2 * h + 1] * by);
        } else {
            const int slot = ((sequence * blocks + block) * pieces + piece) * FEW_HIGH + r;
            float* to = part + int64_t(slot) * LATENT + first;
#pragma unroll
            for (int n = 0; n < 8; ++n)
                *reinterpret_cast<float2*>(to + n * 8) = make_float2(o[n][2 * h] * by, o[n][2 * h + 1] * by);
            if (warp == 0 && lane % 4 == 0) peaks[slot] = best[h] + log2f(l[h]);
        }
    }
}

// The pieces of one head, `512 / gridDim.y` of its values: four values a thread, the pieces spread over the rest of the threads.
constexpr int MERGERS = 256, AT_ONCE = 8;
__global__ void __launch_bounds__(MERGERS) merge_kernel(bf16* __restrict__ out, int heads, int pieces, int high) {
    __shared__ float4 sums[MERGERS];
    __shared__ float2 totals[MERGERS];  // of a group of threads: its largest peak, the sum of its weights
    const int head = blockIdx.x % heads, sequence = blockIdx.x / heads, blocks = (heads + high - 1) / high;
    const int width = LATENT / gridDim.y, lanes = width / 4, groups = MERGERS / lanes;
    const int group = threadIdx.x / lanes, column = blockIdx.y * width + (threadIdx.x % lanes) * 4;
    const int slot = (sequence * blocks + head / high) * pieces * high + head % high;
    const float* from = part + int64_t(slot) * LATENT + column;
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float largest = LEAST, total = 0.0f;
    asm volatile("griddepcontrol.launch_dependents;");
    after_previous();
    for (int first = group; first < pieces; first += AT_ONCE * groups) {
        float peak[AT_ONCE];
        float4 v[AT_ONCE];
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int piece = first + i * groups;
            if (piece < pieces) {
                peak[i] = __ldcg(&peaks[slot + piece * high]);
                v[i] = __ldcg(reinterpret_cast<const float4*>(from + int64_t(piece) * high * LATENT));
            } else {
                peak[i] = LEAST;
                v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            }
        }
        float larger = largest;
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) larger = fmaxf(larger, peak[i]);
        const float fade = power(largest - larger);
        largest = larger;
        total *= fade, sum.x *= fade, sum.y *= fade, sum.z *= fade, sum.w *= fade;
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const float by = first + i * groups < pieces ? power(peak[i] - larger) : 0.0f;
            total += by, sum.x += v[i].x * by, sum.y += v[i].y * by, sum.z += v[i].z * by, sum.w += v[i].w * by;
        }
    }
    sums[threadIdx.x] = sum;
    totals[threadIdx.x] = make_float2(largest, total);
    for (int half = groups / 2; half > 0; half /= 2) {
        __syncthreads();
        if (group < half) {
            const float2 other = totals[threadIdx.x + half * lanes];
            const float4 v = sums[threadIdx.x + half * lanes];
            const float larger = fmaxf(largest, other.x), by = power(other.x - larger), fade = power(largest - larger);
            largest = larger, total = total * fade + other.y * by;
            sum.x = sum.x * fade + v.x * by, sum.y = sum.y * fade + v.y * by;
            sum.z = sum.z * fade + v.z * by, sum.w = sum.w * fade + v.w * by;
            sums[threadIdx.x] = sum;
            totals[threadIdx.x] = make_float2(largest, total);
        }
    }
    if (group == 0) {
        const float by = 1.0f / total;
        *reinterpret_cast<uint2*>(out + int64_t(blockIdx.x) * LATENT + column) =
            make_uint2(pair(sum.x * by, sum.y * by), pair(sum.z * by, sum.w * by));
    }
}

// The same for a few pieces of many heads: four values a thread.
template <int PIECES>
__global__ void __launch_bounds__(256) merge_few_kernel(bf16* __restrict__ out, int heads, int high, int rows) {
    const int row = blockIdx.x * 2 + threadIdx.x / 128, column = threadIdx.x % 128 * 4;
    asm volatile("griddepcontrol.launch_dependents;");
    if (row >= rows) return;
    const int head = row % heads, sequence = row / heads, blocks = (heads + high - 1) / high;
    const int slot = (sequence * blocks + head / high) * PIECES * high + head % high;
    float peak[PIECES], largest = -INFINITY, total = 0.0f;
    float4 v[PIECES], sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    after_previous();
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        peak[i] = __ldcg(&peaks[slot + i * high]);
        v[i] = __ldcg(reinterpret_cast<const float4*>(part + int64_t(slot + i * high) * LATENT + column));
    }
#pragma unroll
    for (int i = 0; i < PIECES; ++i) largest = fmaxf(largest, peak[i]);
#pragma unroll
    for (int i = 0; i < PIECES; ++i) {
        const float by = power(peak[i] - largest);
        total += by, sum.x += v[i].x * by, sum.y += v[i].y * by, sum.z += v[i].z * by, sum.w += v[i].w * by;
    }
    const float by = 1.0f / total;
    *reinterpret_cast<uint2*>(out + int64_t(row) * LATENT + column) =
        make_uint2(pair(sum.x * by, sum.y * by), pair(sum.z * by, sum.w * by));
}

using Encode = CUresult (*)(
    CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
    const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
Encode encoder() {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result;
    const bool there = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result) ==
                           cudaSuccess && result == cudaDriverEntryPointSuccess;
    return there ? reinterpret_cast<Encode>(found) : nullptr;
}
// [batch, rows, WIDTH] for the copy engine.
bool describe(CUtensorMap& map, const bf16* values, int64_t batch, int64_t rows) {
    const cuuint64_t sizes[3] = {WIDTH, cuuint64_t(rows), cuuint64_t(batch)};
    const cuuint64_t strides[2] = {ROW_BYTES, cuuint64_t(rows) * ROW_BYTES};
    const cuuint32_t box[3] = {64, BOX, 1}, ones[3] = {1, 1, 1};
    static const Encode encode = encoder();
    return encode != nullptr &&
           encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<bf16*>(values), sizes, strides, box, ones,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <typename Kernel>
bool allow(Kernel* kernel, int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess;
}

// Whether all clusters of this size run at once; each size of each kernel is asked about once.
template <typename Kernel>
bool fit(Kernel* kernel, const cudaLaunchConfig_t& wanted, dim3 size) {
    static int known[2][5] = {};
    int& clusters = known[size.x - 1][size.y];
    if (clusters == 0) {
        cudaLaunchConfig_t config = wanted;
        cudaLaunchAttribute attribute = {};
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = size.x, attribute.val.clusterDim.y = size.y, attribute.val.clusterDim.z = 1;
        config.attrs = &attribute, config.numAttrs = 1;
        if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
            cudaGetLastError();
            clusters = -1;
        }
    }
    return int64_t(clusters) * size.x * size.y >= int64_t(wanted.gridDim.x) * wanted.gridDim.y * wanted.gridDim.z;
}

}  // namespace

extern "C" void run(
    const bf16* q, const bf16* cache, const int32_t* indices, bf16* out, int64_t batch, int64_t heads, int64_t tokens,
    int64_t topk, cudaStream_t stream) {
    const int64_t length = topk;
    // 64 heads a program where that gives work to the processors; else 16, in tiles a quarter as long.
    const int64_t doubles = (length + 2 * TILE - 1) / (2 * TILE);
    const bool few = heads <= FEW_HIGH || batch * ((heads + HIGH - 1) / HIGH) * doubles < PROCESSORS / 2;
    const int64_t high = few ? FEW_HIGH : HIGH, step = few ? FEW_TILE : 2 * TILE;
    const int64_t blocks = (heads + high - 1) / high, steps = (length + step - 1) / step;
    int64_t pieces = PROCESSORS / (batch * blocks);
    pieces = pieces < 1 ? 1 : pieces > steps ? steps : pieces;
    const int64_t share = (steps + pieces - 1) / pieces * step;
    pieces = (length + share - 1) / share;
    CUtensorMap q_map;
    if (!describe(q_map, q, batch, heads)) return;
    cudaLaunchConfig_t config = {};
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributeClusterDimension;
    attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[1].val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks, pieces, batch);
    config.blockDim = dim3(few ? 288 : 384);
    config.dynamicSmemBytes = few ? FEW_SHARED_BYTES : SHARED_BYTES;
    config.stream = stream;
    config.attrs = attributes;
    static const bool ready = allow(split_kernel<1>, SHARED_BYTES) && allow(split_kernel<2>, SHARED_BYTES) &&
                              allow(split_kernel<4>, SHARED_BYTES) && allow(few_kernel, FEW_SHARED_BYTES);
    if (!ready) return;
    auto kernel = few ? few_kernel : split_kernel<1>;
    int near = 1, with = 1;  // programs that merge in a cluster; programs of a cluster
    if (!few && CLUSTERS == 1) {
        if (pieces % 4 == 0 && fit(split_kernel<4>, config, dim3(1, 4, 1)))
            kernel = split_kernel<4>, near = with = 4;
        else if (pieces % 2 == 0 && fit(split_kernel<2>, config, dim3(1, 2, 1)))
            kernel = split_kernel<2>, near = with = 2;
    }
    config.attrs = attributes + (with == 1), config.numAttrs = (with > 1) + CHAIN;
    attributes[0].val.clusterDim.x = 1, attributes[0].val.clusterDim.y = near, attributes[0].val.clusterDim.z = 1;
    cudaLaunchKernelEx(&config, kernel, q, cache, indices, q_map, out, int(heads), int(tokens), int(topk), int(share), int(pieces));
    if (pieces == near) return;
    pieces /= near;
    const int64_t rows = batch * heads;
    config.gridDim = dim3(rows, rows <= 64 ? 8 : rows <= 512 ? 4 : 1);
    config.blockDim = dim3(256);
    config.dynamicSmemBytes = 0;
    config.attrs = attributes + 1, config.numAttrs = 1;
    if (pieces <= 4) {
        config.gridDim = dim3((rows + 1) / 2);
        const auto merge = pieces == 2 ? merge_few_kernel<2> : pieces == 3 ? merge_few_kernel<3> : merge_few_kernel<4>;
        cudaLaunchKernelEx(&config, merge, out, int(heads), int(high), int(rows));
    } else {
        cudaLaunchKernelEx(&config, merge_kernel, out, int(heads), int(pieces), int(high));
    }
}
