"""Labels, roofline, occupancy, stalls and remarks of one kernel, from its metrics alone."""

from __future__ import annotations

from typing import Any

import pytest

from profiling.ncu import occupancy, roofline, rules, stalls
from profiling.ncu.groups import groups
from profiling.ncu.hotspots import hot_lines
from profiling.ncu.labels import label
from profiling.ncu.metrics import DRAM_PERCENT, MEMORY_PERCENT, SM_PERCENT, WAVES, Metrics, unit

TIME = "gpu__time_duration.sum"
TENSOR = "sm__ops_path_tensor_"


def made(**short: float) -> Metrics:
    names = {"sm": SM_PERCENT, "mem": MEMORY_PERCENT, "dram": DRAM_PERCENT, "waves": WAVES}
    return Metrics({names.get(key, key): value for key, value in short.items()})


@pytest.mark.parametrize(
    ("compute", "memory", "waves", "name", "saturated", "small_grid"),
    [
        (82.0, 56.0, 4, "compute-bound", True, False),
        (80.0, 79.9, 4, "compute-bound", True, False),
        (91.2, 91.2, 4, "memory-bound", True, False),
        (2.5, 60.4, 31, "memory-bound", False, False),
        (68.6, 57.9, 2, "compute-bound", False, False),
        (64.7, 64.7, 2, "balanced", False, False),
        (69.9, 60.0, 2, "balanced", False, False),
        (70.0, 60.0, 2, "compute-bound", False, False),
        (59.9, 10.0, 4, "latency-bound", False, False),
        (33.0, 44.0, 0.8, "latency-bound", False, True),
        (0.0, 0.0, 1, "latency-bound", False, False),
    ],
)
def test_labels_follow_nsight_computes_own_rules(
    compute: float, memory: float, waves: float, name: str, saturated: bool, small_grid: bool
) -> None:
    found = label(made(sm=compute, mem=memory, waves=waves))
    assert (found.name, found.saturated, found.small_grid) == (name, saturated, small_grid)


@pytest.mark.parametrize("short", [{}, {"sm": 90.0}, {"mem": 90.0}])
def test_without_counters_there_is_no_label_but_a_command(short: dict[str, float]) -> None:
    found = label(made(**short))
    assert found.name == "not enough data"
    assert "ncu --section SpeedOfLight" in found.reason


def roof_metrics(**more: float) -> Metrics:
    values: dict[str, Any] = {
        "dram__bytes.sum.per_second": 1e12,
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__cycles_elapsed.avg.per_second": 4e9,
        "smsp__cycles_elapsed.avg.per_second": 2e9,
    }
    for op in ("fadd", "fmul", "ffma"):
        values[f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum.per_cycle_elapsed"] = 100.0
    values["sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"] = 16_896.0
    return Metrics(values | more)


def test_a_fused_multiply_add_is_two_operations() -> None:
    found = roofline.roofline(roof_metrics())
    assert found is not None
    assert found.bytes_per_s_peak == 4e12
    assert found.roofs == (roofline.Roof("fp32", 2 * 16_896 * 2e9),)
    assert found.points == (roofline.Point("fp32", 0.8, 8e11, "fp32"),)
    assert found.points[0].attainable(found) == pytest.approx(3.2e12)
    assert "memory roof and reaches 25.0 %" in found.sentence


def test_tensor_work_is_held_against_the_peak_of_its_own_instruction() -> None:
    rates = {
        f"{TENSOR}op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.per_second": 7e14,
        f"{TENSOR}op_hgmma_src_bf16_dst_fp32_sparsity_off.sum.peak_sustained_elapsed.per_second": 9e14,
        f"{TENSOR}src_bf16_dst_fp32.sum.per_second": 7e14,
        f"{TENSOR}src_bf16_dst_fp32.sum.peak_sustained_elapsed.per_second": 18e14,
        f"{TENSOR}src_fp64.sum.per_second": 1e13,
        f"{TENSOR}src_fp64.sum.peak_sustained_elapsed.per_second": 5e13,
    }
    found = roofline.roofline(roof_metrics(**rates))
    assert found is not None
    peaks = {roof.name: roof.flops for roof in found.roofs}
    assert peaks["tensor hgmma bf16 → fp32"] == 9e14
    assert peaks["tensor fp64"] == 5e13
    assert found.points[0].flops == 7e14
    assert all(peak != 18e14 for peak in peaks.values())


def test_without_its_sections_there_is_no_roofline() -> None:
    assert roofline.roofline(made(sm=50.0, mem=50.0)) is None
    assert "SpeedOfLight_RooflineChart" in roofline.MISSING.sentence


def test_the_resource_that_allows_fewest_blocks_limits() -> None:
    names = {"registers": 1, "shared_mem": 1, "warps": 8, "blocks": 32}
    values: dict[str, Any] = {f"launch__occupancy_limit_{name}": blocks for name, blocks in names.items()}
    values |= {"sm__maximum_warps_per_active_cycle_pct": 12.5, "launch__registers_per_thread": 184}
    found = occupancy.occupancy(Metrics(values))
    assert found.limiters == ["registers", "shared memory"]
    assert found.sentence.startswith("12.5 % of the warps fit: registers and shared memory allow 1 block")


def test_fewer_registers_are_named_where_they_let_more_warps_in() -> None:
    curve = [[32, 64], [64, 32], [128, 16], [184, 8], [255, 8]]
    metrics = Metrics({"launch__registers_per_thread": 184})
    (step,) = occupancy.steps(metrics, {"launch__occupancy_per_register_count": curve})
    assert (step.then, step.warps_now, step.warps_then) == (128, 8, 16)
    assert "With 128 registers per thread in place of 184, 16 warps would fit" in step.sentence


def test_stalls_are_shares_of_all_cycles_and_not_issued_ones_count_once() -> None:
    ratio = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
    values = {ratio.format("long_scoreboard"): 6.0, ratio.format("selected"): 1.0, ratio.format("wait"): 3.0}
    values |= {"smsp__pcsamp_warps_issue_stalled_barrier": 100, "smsp__pcsamp_warps_issue_stalled_wait_not_issued": 9}
    assert [(s.reason, s.share) for s in stalls.stalls(Metrics(values))] == [
        ("long_scoreboard", 0.6),
        ("wait", 0.3),
        ("selected", 0.1),
    ]


def test_samples_serve_where_the_ratios_were_not_collected() -> None:
    values = {"smsp__pcsamp_warps_issue_stalled_barrier": 3, "smsp__pcsamp_warps_issue_stalled_barrier_not_issued": 2}
    assert [(s.reason, s.share) for s in stalls.stalls(Metrics(values))] == [("barrier", 1.0)]
    assert stalls.stalls(made()) == []


@pytest.mark.parametrize(
    ("rule", "values", "saving"),
    [
        (
            "uncoalesced",
            {"memory_l2_theoretical_sectors_global": 100, "memory_l2_theoretical_sectors_global_ideal": 25},
            0.75,
        ),
        ("bank-conflicts", {"memory_l1_wavefronts_shared": 80, "memory_l1_wavefronts_shared_ideal": 40}, 0.5),
        ("small-grid", {"launch__grid_size": 1, "launch__sm_count": 132}, 131 / 132),
        ("tail-wave", {WAVES: 1.2}, 0.4),
        ("low-occupancy", {"sm__maximum_warps_per_active_cycle_pct": 25.0}, 0.75),
        ("cache-bound", {MEMORY_PERCENT: 90.0, DRAM_PERCENT: 9.0, SM_PERCENT: 10.0}, 0.9),
        ("register-spills", {"sass__inst_executed_register_spilling": 5}, 0.1),
    ],
)
def test_a_remark_has_its_evidence(rule: str, values: dict[str, Any], saving: float) -> None:
    (found,) = rules.remarks(Metrics(values))
    assert found.rule == rule
    assert found.saving == pytest.approx(saving)
    assert found.evidence.endswith(".")


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"memory_l2_theoretical_sectors_global": 100, "memory_l2_theoretical_sectors_global_ideal": 95},
        {"launch__grid_size": 132, "launch__sm_count": 132},
        {WAVES: 3.0},
        {WAVES: 50.5},
        {"sm__maximum_warps_per_active_cycle_pct": 12.5, SM_PERCENT: 85.0, MEMORY_PERCENT: 20.0},
        {"sass__inst_executed_register_spilling": 0},
        {MEMORY_PERCENT: 90.0, DRAM_PERCENT: 88.0, SM_PERCENT: 10.0},
    ],
)
def test_what_is_fine_gets_no_remark(values: dict[str, Any]) -> None:
    assert rules.remarks(Metrics(values)) == []


def launch(name: str, took: float | None, grid: int = 4, **metrics: float) -> dict[str, Any]:
    values = made(**metrics).values | ({} if took is None else {TIME: took})
    return {"name": name, "demangled": name, "grid": [grid, 1, 1], "block": [128, 1, 1], "metrics": values}


def test_launches_of_one_kernel_and_shape_are_one_group() -> None:
    listed = [launch("a", 30.0), launch("b", 500.0), launch("a", 10.0), launch("a", 20.0), launch("a", 1.0, grid=8)]
    found = groups(listed)
    assert [(g.name, len(g.launches), g.total_ns) for g in found] == [("b", 1, 500.0), ("a", 3, 60.0), ("a", 1, 1.0)]
    assert found[1].typical == 3
    assert found[1].share == pytest.approx(60 / 561)


def test_a_group_says_when_its_launches_differ_in_label() -> None:
    listed = [
        launch("a", 10.0, sm=90.0, mem=10.0),
        launch("a", 20.0, sm=90.0, mem=10.0),
        launch("a", 30.0, sm=1.0, mem=1.0),
    ]
    (found,) = groups(listed)
    assert found.label.name == "compute-bound"
    assert found.others == (("latency-bound", 1),)


def test_kernels_without_a_time_come_last_and_have_no_share() -> None:
    found = groups([launch("a", None), launch("b", 5.0)])
    assert [(g.name, g.total_ns, g.share) for g in found] == [("b", 5.0, 1.0), ("a", None, None)]


def test_samples_are_summed_by_line_and_without_a_table_by_offset() -> None:
    instances = {
        "smsp__pcsamp_sample_count": [(1000, 5), (1016, 7), (1032, 1)],
        "smsp__pcsamp_warps_issue_stalled_wait": [(1016, 6)],
        "inst_executed": [(1000, 10), (1032, 20)],
    }
    by_line = hot_lines(
        instances, 1000, lambda at: ("/x/k.cu", 3 if at < 32 else 9), lambda place: f" line {place[1]} "
    )
    assert [(line.file, line.line, line.text, line.samples) for line in by_line] == [
        ("k.cu", 3, "line 3", 12),
        ("k.cu", 9, "line 9", 1),
    ]
    assert by_line[0].stalls == {"wait": 6}
    by_offset = hot_lines(instances, 1000, lambda at: None, lambda place: "")
    assert [(line.file, line.line) for line in by_offset] == [("", 16), ("", 0), ("", 32)]


def test_a_unit_that_the_name_does_not_tell_is_left_out() -> None:
    assert unit("gpu__time_duration.sum") == "ns"
    assert unit("dram__bytes.sum.per_second") == "byte/s"
    assert unit("something__new.sum") == ""
    assert unit("breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed") == ""
