"""What the scout tries: for each problem and candidate, the workloads and the values of its declared parameters."""

from __future__ import annotations

from typing import Any

Grid = tuple[list[str], dict[str, list[Any]]]
FEW_SPARSE = ["b1_h128_t32768_k2048", "b32_h16_t8192_k1024"]

GRIDS: dict[str, dict[str, list[Grid]]] = {
    "mla_decode": {
        "01-split-and-merge.py": [
            (
                ["b1_h16_t32768", "b16_h16_t8192"],
                {"FEW_T": [64], "FEW_STAGES": [2], "FEW_WARPS": [4, 8], "FEW_RESIDENT": [1], "EARLY": [0, 1]},
            ),
            (
                ["b1_h16_t32768", "b16_h16_t8192"],
                {"FEW_T": [32], "FEW_STAGES": [2, 3, 4], "FEW_WARPS": [4], "FEW_RESIDENT": [1, 2], "EARLY": [1]},
            ),
            (["b32_h128_t4096"], {"MANY_T": [64], "MANY_STAGES": [2], "EARLY": [0]}),
            (["b32_h128_t4096"], {"MANY_T": [32], "MANY_STAGES": [3, 4], "EARLY": [0]}),
            (
                ["b1_h16_t32768", "b16_h16_t8192"],
                {"FEW_WAY": [1], "FEW_T": [32], "FEW_STAGES": [3, 4, 6], "FEW_WARPS": [4, 8], "FEW_RESIDENT": [1]},
            ),
            (
                ["b1_h16_t32768", "b16_h16_t8192"],
                {"FEW_WAY": [1], "FEW_T": [64], "FEW_STAGES": [3], "FEW_WARPS": [4, 8], "FEW_RESIDENT": [1]},
            ),
            (["b1_h16_t32768"], {"FEW_T": [64], "FEW_STAGES": [2], "FEW_WARPS": [4], "EARLY": [1], "HALF": [1]}),
            (["b32_h128_t4096"], {"MANY_T": [64], "MANY_STAGES": [2], "EARLY": [1], "HALF": [0, 1]}),
        ],
        "04-two-warpgroups.cu": [(["b32_h128_t4096"], {"CLUSTERS": [0]})],
        "05-few-heads-by-rows.cu": [(["b1_h16_t32768", "b16_h16_t8192"], {"CLUSTERS": [0, 1], "STAGES": [4, 5]})],
        "06-chained-kernels.cu": [
            (["b1_h16_t32768", "b16_h16_t8192"], {"STAGES": [4, 5], "CHAIN": [0, 1]}),
            (["b32_h128_t4096"], {"AHEAD": [0, 1], "CLUSTERS": [0, 1]}),
        ],
    },
    "sparse_mla_decode": {
        "01-gather-and-merge.py": [
            (["b16_h128_t65536_k2048"], {"MANY_T": [32], "MANY_STAGES": [4, 6]}),
            (["b16_h128_t65536_k2048"], {"MANY_T": [64], "MANY_STAGES": [2]}),
            (FEW_SPARSE, {"FEW_WAY": [1], "FEW_T": [32], "FEW_STAGES": [4, 6], "FEW_WARPS": [4, 8]}),
            (FEW_SPARSE, {"FEW_WAY": [1], "FEW_T": [64], "FEW_STAGES": [3, 4], "FEW_WARPS": [4, 8]}),
            (FEW_SPARSE, {"FEW_WAY": [0], "FEW_T": [64], "FEW_STAGES": [2], "FEW_WARPS": [4], "FEW_H": [16, 32]}),
        ],
        "03-two-warpgroups.cu": [(["b16_h128_t65536_k2048"], {"CLUSTERS": [0]})],
        "04-few-heads-by-rows.cu": [
            (["b1_h128_t32768_k2048", "b32_h16_t8192_k1024"], {"CLUSTERS": [0, 1], "STAGES": [4, 5]})
        ],
        "05-gather-together.cu": [
            (["b16_h128_t65536_k2048"], {"CLUSTERS": [0, 1], "CHAIN": [0, 1]}),
            (["b1_h128_t32768_k2048", "b32_h16_t8192_k1024"], {"STAGES": [4, 5]}),
        ],
    },
    "moe_grouped_gemm": {
        "01-grouped.py": [
            (
                ["t256_e64_k6", "t16_e64_k6"],
                {"UP_N": [64], "UP_K": [64, 128], "UP_STAGES": [3, 4], "UP_WARPS": [4], "ROWS": [1]},
            ),
            (["t256_e64_k6"], {"UP_N": [64, 128], "UP_K": [64], "UP_STAGES": [4], "UP_WARPS": [4, 8], "ROWS": [1, 2]}),
            (
                ["t256_e64_k6", "t16_e64_k6"],
                {"DOWN_N": [64, 128], "DOWN_K": [64, 128], "DOWN_STAGES": [3, 4], "DOWN_WARPS": [4]},
            ),
            (["t4096_e64_k6"], {"MANY_STAGES": [2, 3, 4]}),
        ],
        "05-one-stream.py": [
            (["t256_e64_k6", "t16_e64_k6"], {"HEAD_BYTES": [512, 0], "NEXT": [2]}),
            (["t256_e64_k6", "t16_e64_k6"], {"UP_STAGES": [3], "DOWN_STAGES": [3], "NEXT": [3]}),
            (["t4096_e64_k6"], {"MANY_DOWN_N": [256], "MANY_AT_ONCE": [0, 1]}),
            (["t4096_e64_k6"], {"MANY_DOWN_N": [128], "MANY_AT_ONCE": [0]}),
            (["t1_e64_k6"], {"HEAD_BYTES": [512, 1024, 4096]}),
            (["t256_e64_k6"], {"HEAD_BYTES": [1024]}),
            (["t256_e64_k6"], {"UP_K": [128], "UP_STAGES": [2], "DOWN_K": [128], "DOWN_STAGES": [2]}),
            (["t256_e64_k6"], {"DOWN_N": [64], "DOWN_K": [128], "DOWN_STAGES": [3]}),
            (["t256_e64_k6"], {"ROWS": [1]}),
            (["t256_e64_k6", "t16_e64_k6"], {"ROWS": [1], "UP_STAGES": [3], "DOWN_STAGES": [3], "NEXT": [3]}),
            (["t256_e64_k6"], {"UP_N": [128], "NUM_WARPS": [8], "UP_STAGES": [2]}),
            (
                ["t256_e64_k6"],
                {"UP_N": [128], "NUM_WARPS": [8], "DOWN_K": [128], "DOWN_STAGES": [3], "NEXT": [1]},
            ),
            (["t256_e64_k6"], {"EARLY": [0]}),
        ],
        "04-chained.py": [
            (["t256_e64_k6", "t16_e64_k6"], {"HEAD_BYTES": [512, 0]}),
            (
                ["t256_e64_k6", "t16_e64_k6"],
                {"DOWN_N": [128], "DOWN_K": [64], "DOWN_STAGES": [4], "DOWN_NEXT": [2]},
            ),
            (["t4096_e64_k6"], {"MANY_DOWN_N": [256, 128], "MANY_STAGES": [4]}),
            (["t4096_e64_k6"], {"MANY_DOWN_N": [256], "MANY_STAGES": [3]}),
            (["t256_e64_k6"], {"HEAD_BYTES": [1024]}),
            (["t256_e64_k6"], {"FAR_BYTES": [512]}),
            (["t256_e64_k6"], {"HEAD_BYTES": [1024], "FAR_BYTES": [1024]}),
            (["t256_e64_k6"], {"DOWN_N": [64], "DOWN_K": [128], "DOWN_STAGES": [3], "DOWN_NEXT": [2]}),
            (["t256_e64_k6"], {"UP_K": [128], "UP_STAGES": [2]}),
            (["t256_e64_k6"], {"ROWS": [1], "UP_STAGES": [3], "UP_NEXT": [3]}),
            (["t256_e64_k6"], {"UP_N": [128], "UP_WARPS": [8], "UP_NEXT": [1]}),
            (["t256_e64_k6"], {"EARLY": [0]}),
        ],
    },
    "softmax": {
        "04-three-rows.cu": [
            (["r4096_c32768", "r1023_c32771"], {"PIECES_OF_ROW": [1, 2, 4], "LONG_THREADS": [256, 512]}),
            (["r4096_c1024", "r512_c8192", "r16_c1000003"], {"CHAIN": [0, 1]}),
        ],
        "01-row-in-registers.py": [
            (["r4096_c32768"], {"LONG_WARPS": [8, 16, 32], "LONG_PROGRAMS": [0], "STAGES": [1]}),
            (["r4096_c32768"], {"LONG_WARPS": [16, 32], "LONG_PROGRAMS": [1], "STAGES": [1, 2, 3]}),
            (["r4096_c32768"], {"LONG_WARPS": [16], "LONG_PROGRAMS": [2], "STAGES": [1, 2]}),
            (["r4096_c1024"], {"NARROW_WARPS": [1, 2, 4]}),
            (["r512_c8192"], {"ROW_WARPS": [4, 8, 16]}),
        ],
        "02-two-walks.py": [
            (["r4096_c32768"], {"BLOCK": [2048, 4096, 8192], "NUM_WARPS": [4, 8, 16], "STAGES": [1]}),
            (["r4096_c32768"], {"BLOCK": [4096], "NUM_WARPS": [8], "STAGES": [2, 3]}),
        ],
    },
    "matmul_bias_gelu": {
        "01-by-regime.py": [
            (["m16_n8192_k4096", "m1_n8192_k4096"], {"THIN_STAGES": [3, 4], "THIN_K": [128, 256], "EARLY": [0, 1]}),
            (
                ["m16_n8192_k4096"],
                {"THIN_N": [32, 64], "THIN_K": [128, 256], "THIN_STAGES": [3, 4, 5], "THIN_WARPS": [4]},
            ),
            (["m16_n8192_k4096"], {"THIN_N": [64], "THIN_K": [128], "THIN_STAGES": [5], "THIN_WARPS": [8]}),
            (
                ["m256_n4096_k4096"],
                {"MID_M": [64, 128], "MID_N": [128], "MID_SPLITS": [1, 2, 4], "MID_STAGES": [4]},
            ),
            (["m256_n4096_k4096"], {"MID_M": [128], "MID_N": [64], "MID_SPLITS": [1, 2], "MID_STAGES": [4]}),
            (["m256_n4096_k4096"], {"MID_K": [64], "MID_STAGES": [4, 5], "EARLY": [0, 1]}),
            (["m256_n4096_k4096"], {"MID_K": [128], "MID_STAGES": [3], "EARLY": [0, 1]}),
            (["m4096_n8192_k4096"], {"MANY_M": [128], "MANY_N": [256], "MANY_STAGES": [3, 4]}),
            (["m4096_n8192_k4096"], {"MANY_M": [128], "MANY_N": [128], "MANY_STAGES": [4]}),
            (["m4096_n8192_k4096"], {"MANY_M": [256], "MANY_N": [128], "MANY_STAGES": [3]}),
        ],
        "03-weights-to-registers.cu": [
            (["m16_n8192_k4096"], {"CHAIN": [0, 1], "FAR": [0, 1], "WARPS": [8, 16], "TILES": [1, 2]}),
            (["m1_n8192_k4096"], {"CHAIN": [1], "WARPS": [8, 16], "TILES": [1, 2]}),
        ],
    },
    "rmsnorm": {
        "01-one-pass.py": [
            (["r64_h4096"], {"FEW_WARPS": [4, 8, 16]}),
            (["r8192_h4096"], {"ROW_WARPS": [2, 4, 8, 16], "ROW_PROGRAMS": [0]}),
            (["r8192_h4096"], {"ROW_WARPS": [4, 8], "ROW_PROGRAMS": [2, 4, 8], "STAGES": [1, 2, 3]}),
            (["r2048_h16384"], {"WIDE_WARPS": [4, 8, 16, 32], "WIDE_PROGRAMS": [0]}),
            (["r2048_h16384"], {"WIDE_WARPS": [8, 16], "WIDE_PROGRAMS": [1, 2], "STAGES": [1, 2, 3]}),
        ],
    },
    "layernorm_residual": {
        "01-one-pass.py": [
            (["r64_h4096"], {"FEW_WARPS": [4, 8, 16]}),
            (["r8192_h4096", "r2048_h8192"], {"ROW_WARPS": [4, 8, 16], "ROW_PROGRAMS": [0]}),
            (["r8192_h4096", "r2048_h8192"], {"ROW_WARPS": [8], "ROW_PROGRAMS": [2, 4], "STAGES": [1, 2, 3]}),
        ],
    },
    "swiglu": {
        "01-flat.py": [
            (
                ["r8192_h14336", "r64_h14336", "r2048_h2816"],
                {"BLOCK": [512, 1024, 2048, 4096], "NUM_WARPS": [4]},
            ),
            (["r8192_h14336"], {"BLOCK": [1024, 4096], "NUM_WARPS": [2, 8]}),
        ],
    },
    "lm_head": {
        "01-whole-rows.py": [
            (["b1_h2048_v24576"], {"ROWS": [2, 4, 8, 16], "BLOCK": [1024, 2048], "NUM_WARPS": [4]}),
            (["b1_h2048_v24576"], {"ROWS": [2, 4], "BLOCK": [2048], "NUM_WARPS": [2, 8]}),
        ],
    },
    "moe_two_of_eight": {
        "01-gather-free.py": [
            (["b1_h2048_e8_i1408"], {"UP_ROWS": [2, 4, 8], "UP_BLOCK": [512, 1024, 2048], "UP_WARPS": [4]}),
            (["b1_h2048_e8_i1408"], {"DOWN_ROWS": [4, 8, 16], "DOWN_BLOCK": [256, 512], "DOWN_WARPS": [4]}),
            (["b1_h2048_e8_i1408"], {"UP_WARPS": [2, 4], "DOWN_WARPS": [2, 4], "EARLY": [1]}),
        ],
    },
}
