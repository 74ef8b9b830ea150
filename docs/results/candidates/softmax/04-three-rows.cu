// The copy engine brings a long row to shared memory, where it is looked at as it comes and costs so few registers that three rows share a processor: reads, powers and writes of different rows overlap.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

using bf16 = __nv_bfloat16;

namespace {

constexpr int CHAIN = 1;  // tunable: 0, 1
constexpr int PIECES_OF_ROW = 4;  // tunable: 1, 2, 4
constexpr int LONG_THREADS = 512;  // tunable: 256, 512

constexpr int PIECE = 16384;  // values of a row too long, for one program
constexpr int MOST_PIECES = 1 << 18;
constexpr float LOG2_E = 1.4426950408889634f;
constexpr float LEAST = -1.0e30f;

// Maximum and sum of each piece; calls must follow each other in one stream.
__device__ float2 pieces_of[MOST_PIECES];

__device__ __forceinline__ uint32_t address(const void* p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }

__device__ __forceinline__ float power(float v) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(v));
    return r;
}
__device__ __forceinline__ float low(uint32_t two) { return __uint_as_float(two << 16); }
__device__ __forceinline__ float high(uint32_t two) { return __uint_as_float(two & 0xffff0000u); }
__device__ __forceinline__ uint32_t pair(float a, float b) {
    const __nv_bfloat162 two = __floats2bfloat162_rn(a, b);
    return *reinterpret_cast<const uint32_t*>(&two);
}
template <bool ONCE>
__device__ __forceinline__ void store(bf16* to, uint4 v) {
    if (ONCE) {
        asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
    } else {
        *reinterpret_cast<uint4*>(to) = v;
    }
}

// With CHAIN a block is in place before the kernel before it has ended, and reads nothing until then.
__device__ __forceinline__ void take_turn() {
    if (CHAIN) asm volatile("griddepcontrol.wait;\n griddepcontrol.launch_dependents;" ::: "memory");
}

struct Larger {
    static __device__ __forceinline__ float of(float a, float b) { return fmaxf(a, b); }
};
struct Sum {
    static __device__ __forceinline__ float of(float a, float b) { return a + b; }
};
// Over the threads of a row. `room`: one float a warp, not in use by the reduction before.
template <class Of, int THREADS>
__device__ __forceinline__ float over(float v, float* room) {
#pragma unroll
    for (int far = 16; far > 0; far /= 2) v = Of::of(v, __shfl_xor_sync(~0u, v, far));
    if (THREADS > 32) {
        constexpr int COUNT = THREADS / 32;
        if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = v;
        __syncthreads();
        v = room[threadIdx.x % COUNT];
#pragma unroll
        for (int far = COUNT / 2; far > 0; far /= 2) v = Of::of(v, __shfl_xor_sync(~0u, v, far));
    }
    return v;
}

// A row as a thread sees it: groups of 8 values that begin at multiples of 16 bytes in memory; the first and the last may
// hold values of the neighbours. Group i of a thread is number i · THREADS + thread.
template <int THREADS, int GROUPS>
struct Row {
    int64_t begin, end;  // the row's values
    int64_t from;        // where its first group begins
    int thread;
    float v[GROUPS][8];

    __device__ __forceinline__ Row(int64_t first, int64_t width, int number)
        : begin(first), end(first + width), from(first & ~int64_t{7}), thread(number) {}

    __device__ __forceinline__ int64_t at(int i) const { return from + (static_cast<int64_t>(i) * THREADS + thread) * 8; }

    __device__ __forceinline__ void take(int i, uint4 raw) {
        const int64_t first = at(i);
        const uint32_t word[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
        for (int e = 0; e < 8; e++) v[i][e] = e % 2 ? high(word[e / 2]) : low(word[e / 2]);
        if (first < begin || first + 8 > end) {
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (first + e < begin || first + e >= end) v[i][e] = -INFINITY;
        }
    }
    // Whole groups at once; one that reaches out of the tensor value by value.
    __device__ __forceinline__ uint4 read(const bf16* x, int i, int64_t total) const {
        const int64_t first = at(i);
        if (first >= end) return make_uint4(0, 0, 0, 0);
        if (first + 8 <= total) return __ldg(reinterpret_cast<const uint4*>(x + first));
        uint32_t word[4] = {};
        for (int e = 0; e < 8; e++)
            if (first + e < total) word[e / 2] |= static_cast<uint32_t>(__bfloat16_as_ushort(x[first + e])) << (e % 2 * 16);
        return make_uint4(word[0], word[1], word[2], word[3]);
    }
    __device__ __forceinline__ float largest() const {
        float m = LEAST;
#pragma unroll
        for (int i = 0; i < GROUPS; i++)
#pragma unroll
            for (int e = 0; e < 8; e++) m = fmaxf(m, v[i][e]);
        return m;
    }
    __device__ __forceinline__ float powers(float m) {
        const float less = m * LOG2_E;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < GROUPS; i++)
#pragma unroll
            for (int e = 0; e < 8; e++) {
                v[i][e] = power(fmaf(v[i][e], LOG2_E, -less));
                sum += v[i][e];
            }
        return sum;
    }
    __device__ __forceinline__ void write(bf16* y, float scale) const {
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
            const int64_t first = at(i);
            if (first >= begin && first + 8 <= end) {
                const float* a = v[i];
                store<true>(y + first, make_uint4(
                    pair(a[0] * scale, a[1] * scale), pair(a[2] * scale, a[3] * scale), pair(a[4] * scale, a[5] * scale),
                    pair(a[6] * scale, a[7] * scale)));
            } else if (first < end) {
#pragma unroll
                for (int e = 0; e < 8; e++)
                    if (first + e >= begin && first + e < end) y[first + e] = __float2bfloat16(v[i][e] * scale);
            }
        }
    }
};

// One row by THREADS threads, several in a block where a warp is enough.
template <int THREADS, int GROUPS, int ROWS>
__global__ void __launch_bounds__(THREADS * ROWS) row_kernel(const bf16* __restrict__ x, bf16* __restrict__ y, int64_t rows, int64_t width) {
    __shared__ float room[2][32];
    const int64_t number = static_cast<int64_t>(blockIdx.x) * ROWS + threadIdx.x / THREADS;
    take_turn();
    if (number >= rows) return;  // with ROWS above 1 whole warps, which meet nobody
    Row<THREADS, GROUPS> row(number * width, width, threadIdx.x % THREADS);
    uint4 raw[GROUPS];
#pragma unroll
    for (int i = 0; i < GROUPS; i++) raw[i] = row.read(x, i, rows * width);
#pragma unroll
    for (int i = 0; i < GROUPS; i++) row.take(i, raw[i]);
    const float m = over<Larger, THREADS>(row.largest(), room[0]);
    const float sum = over<Sum, THREADS>(row.powers(m), room[1]);
    row.write(y, 1.0f / sum);
}

__device__ __forceinline__ void wait(uint64_t* b, int parity) {
    asm volatile(
        "{\n .reg .pred p;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
        " @p bra done;\n bra again;\n"
        "done:\n}\n" ::"r"(address(b)), "r"(parity) : "memory");
}

// Maximum and sum of powers, as far as they were seen.
struct Seen {
    float m, sum;
    __device__ __forceinline__ void with(Seen other) {
        const float larger = fmaxf(m, other.m);
        sum = sum * power((m - larger) * LOG2_E) + other.sum * power((other.m - larger) * LOG2_E);
        m = larger;
    }
};

// A row a block, brought to shared memory in pieces and looked at as they come; then all is known, and it is written. So few
// registers that three blocks fit on a processor: while one computes the others read and write.
template <int GROUPS>
__global__ void __launch_bounds__(LONG_THREADS, 3) long_kernel(const bf16* __restrict__ x, bf16* __restrict__ y, int64_t rows, int64_t width) {
    extern __shared__ __align__(128) uint8_t place_bytes[];
    __shared__ Seen room[LONG_THREADS / 32];
    __shared__ __align__(8) uint64_t full[PIECES_OF_ROW];
    constexpr int EACH = (GROUPS + PIECES_OF_ROW - 1) / PIECES_OF_ROW;  // groups of a thread in a piece
    const int thread = threadIdx.x;
    const int64_t begin = blockIdx.x * width, end = begin + width, total = rows * width;
    const int64_t from = begin & ~int64_t{7};
    const int64_t past = min((end + 7) & ~int64_t{7}, total & ~int64_t{7});
    if (thread == 0) {
        for (int piece = 0; piece < PIECES_OF_ROW; piece++)
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address(&full[piece])));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        take_turn();
        for (int piece = 0; piece < PIECES_OF_ROW; piece++) {
            const int64_t first = from + static_cast<int64_t>(piece) * EACH * LONG_THREADS * 8;
            const int64_t left = past - first, most = static_cast<int64_t>(EACH) * LONG_THREADS * 8;
            if (left <= 0) break;
            const uint32_t bytes = static_cast<uint32_t>(left < most ? left : most) * 2;
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&full[piece])), "r"(bytes) : "memory");
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                ::"r"(address(place_bytes + (first - from) * 2)), "l"(x + first), "r"(bytes), "r"(address(&full[piece])) : "memory");
        }
    } else {
        take_turn();
    }
    uint4* place = reinterpret_cast<uint4*>(place_bytes);
    __syncthreads();
    // A group that holds values of the neighbours, or of nobody, gets -inf in their place; its own thread reads it later.
    const int groups = static_cast<int>((end - from + 7) / 8);
    Seen seen = {LEAST, 0.0f};
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const int group = i * LONG_THREADS + thread;
        if (group >= groups) break;
        const int64_t first = from + group * 8;
        uint4 raw;
        if (first < begin || first + 8 > end) {
            uint32_t word[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                uint32_t two = 0;
                for (int h = 0; h < 2; h++) {
                    const int64_t at = first + e * 2 + h;
                    const uint32_t value = at < begin || at >= end ? 0xff80u : __bfloat16_as_ushort(x[at]);
                    two |= value << (h * 16);
                }
                word[e] = two;
            }
            raw = make_uint4(word[0], word[1], word[2], word[3]);
            if (first + 8 <= past) wait(&full[i / EACH], 0);  // the copy of this group comes first
            place[group] = raw;
        } else {
            wait(&full[i / EACH], 0);
            raw = place[group];
        }
        const float v[8] = {low(raw.x), high(raw.x), low(raw.y), high(raw.y), low(raw.z), high(raw.z), low(raw.w), high(raw.w)};
        const float m = fmaxf(
            fmaxf(fmaxf(fmaxf(v[0], v[1]), fmaxf(v[2], v[3])), fmaxf(fmaxf(v[4], v[5]), fmaxf(v[6], v[7]))), seen.m);
        const float less = m * LOG2_E;
        float sum = 0.0f;
#pragma unroll
        for (int e = 0; e < 8; e++) sum += power(fmaf(v[e], LOG2_E, -less));
        seen.sum = fmaf(seen.sum, power((seen.m - m) * LOG2_E), sum);
        seen.m = m;
    }
#pragma unroll
    for (int far = 16; far > 0; far /= 2) seen.with({__shfl_xor_sync(~0u, seen.m, far), __shfl_xor_sync(~0u, seen.sum, far)});
    if (thread % 32 == 0) room[thread / 32] = seen;
    __syncthreads();
    seen = room[thread % (LONG_THREADS / 32)];
#pragma unroll
    for (int far = LONG_THREADS / 64; far > 0; far /= 2) seen.with({__shfl_xor_sync(~0u, seen.m, far), __shfl_xor_sync(~0u, seen.sum, far)});
    const float less = seen.m * LOG2_E, scale = 1.0f / seen.sum;
    auto raised = [&](float v) { return power(fmaf(v, LOG2_E, -less)) * scale; };
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
        const int group = i * LONG_THREADS + thread;
        if (group >= groups) break;
        const int64_t first = from + group * 8;
        const uint4 raw = place[group];
        auto both = [&](uint32_t two) { return pair(raised(low(two)), raised(high(two))); };
        const uint4 out = make_uint4(both(raw.x), both(raw.y), both(raw.z), both(raw.w));
        if (first >= begin && first + 8 <= end) {
            store<false>(y + first, out);
        } else {
            const uint32_t word[4] = {out.x, out.y, out.z, out.w};
            for (int e = 0; e < 8; e++)
                if (first + e >= begin && first + e < end)
                    y[first + e] = __ushort_as_bfloat16(static_cast<unsigned short>(word[e / 2] >> (e % 2 * 16)));
        }
    }
}

// A row of a million values by many blocks: maximum and sum of a piece, then all pieces' put together.
template <bool LAST>
__global__ void __launch_bounds__(512) piece_kernel(
    const bf16* __restrict__ x, bf16* __restrict__ y, int64_t rows, int64_t width, int64_t begin, int pieces
) {
    __shared__ float room[4][32];
    const int64_t number = begin + blockIdx.y, first = number * width + static_cast<int64_t>(blockIdx.x) * PIECE;
    const int64_t left = number * width + width - first;
    Row<512, PIECE / 4096 + 1> row(first, left < PIECE ? left : PIECE, threadIdx.x);
    uint4 raw[PIECE / 4096 + 1];
#pragma unroll
    for (int i = 0; i < PIECE / 4096 + 1; i++) raw[i] = row.read(x, i, rows * width);
#pragma unroll
    for (int i = 0; i < PIECE / 4096 + 1; i++) row.take(i, raw[i]);
    if (!LAST) {
        const float m = over<Larger, 512>(row.largest(), room[0]);
        const float sum = over<Sum, 512>(row.powers(m), room[1]);
        if (threadIdx.x == 0) pieces_of[static_cast<int64_t>(blockIdx.y) * pieces + blockIdx.x] = make_float2(m, sum);
        return;
    }
    asm volatile("griddepcontrol.wait;" ::: "memory");
    float m = LEAST, sum = 0.0f;
    for (int i = threadIdx.x; i < pieces; i += 512) m = fmaxf(m, pieces_of[static_cast<int64_t>(blockIdx.y) * pieces + i].x);
    m = over<Larger, 512>(m, room[2]);
    for (int i = threadIdx.x; i < pieces; i += 512) {
        const float2 of = pieces_of[static_cast<int64_t>(blockIdx.y) * pieces + i];
        sum += of.y * power((of.x - m) * LOG2_E);
    }
    sum = over<Sum, 512>(sum, room[3]);
    row.powers(m);
    row.write(y, 1.0f / sum);
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, int threads, int bytes, bool chained, cudaStream_t stream, Arguments... arguments) {
    cudaLaunchAttribute chain[1];
    chain[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    chain[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t how = {};
    how.gridDim = grid;
    how.blockDim = dim3(threads);
    how.dynamicSmemBytes = bytes;
    how.stream = stream;
    how.attrs = chain;
    how.numAttrs = chained;
    cudaLaunchKernelEx(&how, kernel, static_cast<Parameters>(arguments)...);
}

template <int THREADS, int GROUPS, int ROWS>
void rows_by(const bf16* x, bf16* y, int64_t rows, int64_t width, cudaStream_t stream) {
    launch(row_kernel<THREADS, GROUPS, ROWS>, dim3(static_cast<unsigned>((rows + ROWS - 1) / ROWS)), THREADS * ROWS, 0, CHAIN, stream, x, y, rows, width);
}

template <int GROUPS>
void long_by(const bf16* x, bf16* y, int64_t rows, int64_t width, cudaStream_t stream) {
    const int bytes = static_cast<int>((width * 2 + 32 + 127) / 128 * 128);
    cudaFuncSetAttribute(long_kernel<GROUPS>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    launch(long_kernel<GROUPS>, dim3(static_cast<unsigned>(rows)), LONG_THREADS, bytes, CHAIN, stream, x, y, rows, width);
}

}  // namespace

extern "C" void run(const bf16* x, bf16* y, int64_t rows, int64_t width, cudaStream_t stream) {
    const bool aligned = width % 8 == 0;  // else a row may take one group more
    if (width <= 1024) {
        aligned ? rows_by<32, 4, 4>(x, y, rows, width, stream) : rows_by<32, 5, 4>(x, y, rows, width, stream);
    } else if (width <= 4096) {
        aligned ? rows_by<128, 4, 1>(x, y, rows, width, stream) : rows_by<128, 5, 1>(x, y, rows, width, stream);
    } else if (width <= 8192) {
        aligned ? rows_by<256, 4, 1>(x, y, rows, width, stream) : rows_by<256, 5, 1>(x, y, rows, width, stream);
    } else if (width <= 16384) {
        aligned ? rows_by<512, 4, 1>(x, y, rows, width, stream) : rows_by<512, 5, 1>(x, y, rows, width, stream);
    } else if (width <= 32768 && aligned) {
        long_by<4096 / LONG_THREADS>(x, y, rows, width, stream);
    } else if (width <= 36000) {
        long_by<4096 / LONG_THREADS + 1>(x, y, rows, width, stream);
    } else {
        const int pieces = static_cast<int>((width + PIECE - 1) / PIECE);
        const int64_t most = MOST_PIECES / pieces < 65535 ? MOST_PIECES / pieces : 65535;  // rows that there is room for
        for (int64_t first = 0; first < rows; first += most) {
            const dim3 grid(pieces, static_cast<unsigned>(rows - first < most ? rows - first : most));
            launch(piece_kernel<false>, grid, 512, 0, false, stream, x, y, rows, width, first, pieces);
            launch(piece_kernel<true>, grid, 512, 0, true, stream, x, y, rows, width, first, pieces);
        }
    }
}
