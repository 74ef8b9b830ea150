from __future__ import annotations

import pytest

from profiling.importers.kineto_names import Role, copy_kind, role
from profiling.kernel_names import readable, short_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::pow_impl<float>"
            "(at::TensorIteratorBase&, float)::{lambda(float)#1}, std::array<char*, 2ul> >(int, float)",
            "vectorized_elementwise_kernel",
        ),
        ("void (anonymous namespace)::elementwise_kernel_with_index<int, long>(int)", "elementwise_kernel_with_index"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
        ("nvjet_sm90_tst_64x8_64x16_4x2_h_bz_NNT", "nvjet_sm90_tst_64x8_64x16_4x2_h_bz_NNT"),
        ("triton_poi_fused_add_cos_sin_0", "triton_poi_fused_add_cos_sin_0"),
        ("_ZN7cutlass13device_kernelIN2at4cuda6detail25enable_3x_kernel_for_sm9xE", "device_kernel"),
        ("_ZN12_GLOBAL__N_112split_kernelILi2EEEvPK13__nv_bfloat16", "split_kernel"),
        ("_ZL9my_kernelPf", "my_kernel"),
        ("_attn_fwd_0d1d2d3de4", "_attn_fwd"),
        ("conv_2d", "conv_2d"),
        ("_Zelda", "_Zelda"),
        ("void broken<template", "void broken<template"),
        ("a -> b", "a -> b"),
        ("", ""),
    ],
)  # fmt: skip
def test_a_signature_is_shortened_as_nsight_systems_does(name: str, short: str) -> None:
    assert short_name(name) == short


def test_symbols_in_a_sentence_become_names() -> None:
    assert readable("8 launches of _Z9my_kernelPKf, 2 µs each") == "8 launches of my_kernel, 2 µs each"


def test_copies_say_what_memory_they_touch() -> None:
    assert copy_kind("Memcpy HtoD (Pageable -> Device)") == (1, "HtoD", 0, 2)
    assert copy_kind("Memcpy DtoH (Device -> Pinned)") == (2, "DtoH", 2, 1)
    assert copy_kind("CopyDeviceToHost") == (-1, "", -1, -1)


@pytest.mark.parametrize(
    ("category", "wanted"),
    [
        ("kernel", Role.KERNEL),
        ("Kernel", Role.KERNEL),
        ("cuda_runtime", Role.CALL),
        ("hip_driver", Role.CALL),
        ("gpu_memcpy", Role.COPY),
        ("cpu_op", Role.RANGE),
        ("something new", Role.RANGE),
        (None, Role.RANGE),
        ("ac2g", Role.IGNORED),
    ],
)
def test_categories_of_old_and_new_builds_have_a_role(category: str | None, wanted: Role) -> None:
    assert role(category) == wanted
