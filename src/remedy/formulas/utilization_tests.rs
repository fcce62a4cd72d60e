//! Values of the flagship incidents and of recorded launches, computed by hand.

use super::super::testing::to;
use super::*;
use crate::remedy::evidence::testing::Case;

fn flagship_b() -> Case {
    Case::figures(&[
        ("node_used_gib", 113.78),
        ("node_limit_gib", 119.70),
        ("node_used_fraction", 0.950_535),
        ("node_threshold_fraction", 0.95),
        ("kv_available_gib", 49.12),
    ])
    .set("gpu_memory_utilization", "0.9")
    .unified(true)
}

#[test]
fn flagship_b_goes_from_090_to_087() {
    // over 113.78 - 0.95 x 119.70 = 0.065; spike 0.025 x 119.70 = 2.9925; (0.065 + 2.9925) / 119.70 = 0.0255
    let case = flagship_b();
    let sum = for_ray_monitor(&case.evidence("host-mem.ray-monitor", "vllm", "0.17.0", "graph-capture"));
    assert_eq!(to(&sum), "0.87");
    let Sum::Value(computed) = sum else { panic!() };
    assert_eq!(
        computed.arithmetic.as_deref(),
        Some(
            "0.90 - ((113.78 used - 0.95 x 119.70 = 0.065 over) + 2.99 spike assumed, 2.5 % of the pool) / 119.70 GiB \
             = 0.8745, rounded down to 0.87"
        )
    );
}

#[test]
fn a_known_graph_estimate_replaces_the_assumed_spike() {
    // (0.065 + 6.5) / 119.70 = 0.0548 -> 0.8452 -> 0.84
    let mut case = flagship_b();
    case.figures.insert("graph_estimate_gib".to_owned(), 6.5);
    let e = case.evidence("host-mem.ray-monitor", "vllm", "0.25.1", "graph-capture");
    assert_eq!(to(&for_ray_monitor(&e)), "0.84");
}

#[test]
fn the_threshold_may_be_a_percentage_or_missing() {
    let mut case = flagship_b();
    case.figures.insert("node_threshold_fraction".to_owned(), 95.0);
    assert_eq!(
        to(&for_ray_monitor(&case.evidence(
            "host-mem.ray-monitor",
            "vllm",
            "0.17.0",
            ""
        ))),
        "0.87"
    );
    case.figures.remove("node_threshold_fraction");
    assert_eq!(
        to(&for_ray_monitor(&case.evidence(
            "host-mem.ray-monitor",
            "vllm",
            "0.17.0",
            ""
        ))),
        "0.87"
    );
}

#[test]
fn the_threshold_gets_room_for_the_spike() {
    // (113.78 + 2.9925) / 119.70 = 0.9755 -> 0.98
    let case = flagship_b();
    assert_eq!(
        to(&ray_threshold(&case.evidence(
            "host-mem.ray-monitor",
            "vllm",
            "0.17.0",
            ""
        ))),
        "0.98"
    );
}

#[test]
fn flagship_c_goes_down_by_the_graphs_still_to_come() {
    // 2.83 estimated - 1.61 captured = 1.22; 0.95 - 1.22 / 79.19 - 0.02 = 0.9146
    let case = Case::figures(&[
        ("tried_to_allocate_gib", 98.0 / 1024.0),
        ("gpu_total_gib", 79.19),
        ("gpu_free_gib", 41.06 / 1024.0),
        ("private_pools_gib", 1.61),
        ("graph_estimate_gib", 2.83),
    ])
    .set("gpu_memory_utilization", "0.95")
    .holder(20817, 1.17);
    assert_eq!(
        to(&down(&case.evidence(
            "gpu-oom.graph-capture",
            "vllm",
            "0.19.0",
            "graph-capture"
        ))),
        "0.91"
    );
}

#[test]
fn a_failed_allocation_alone_gives_a_small_step() {
    // 0.92 - 0.0195 / 139.80 - 0.02 = 0.8999; ceiling (139.80 - 11.12 - 0.02) / 139.80 - 0.02 = 0.9003
    let case =
        Case::figures(&[("tried_to_allocate_gib", 20.0 / 1024.0), ("gpu_total_gib", 139.80)]).holder(1413, 11.12);
    assert_eq!(
        to(&down(&case.evidence(
            "gpu-oom.graph-capture",
            "vllm",
            "0.25.1",
            "graph-capture"
        ))),
        "0.89"
    );
}

#[test]
fn a_large_neighbour_sets_the_ceiling() {
    // (80 - 30 - 1) / 80 - 0.02 = 0.5925
    let case = Case::figures(&[("tried_to_allocate_gib", 1.0), ("gpu_total_gib", 80.0)]).holder(7, 30.0);
    assert_eq!(
        to(&down(&case.evidence("gpu-oom.serving", "vllm", "0.25.1", "serving"))),
        "0.59"
    );
}

#[test]
fn kv_cache_that_is_still_to_be_allocated_counts() {
    // 60 sized - (40 allocated - 15 weights) = 35 to come; 0.92 - 35 / 139.8 - 0.02 = 0.6496
    let case = Case::figures(&[
        ("tried_to_allocate_gib", 2.0),
        ("gpu_total_gib", 139.8),
        ("torch_allocated_gib", 40.0),
        ("weights_gib", 15.0),
        ("kv_available_gib", 60.0),
    ]);
    assert_eq!(
        to(&down(&case.evidence("gpu-oom.kv-alloc", "vllm", "0.25.1", "kv-cache"))),
        "0.64"
    );
}

#[test]
fn a_share_below_the_weights_is_no_remedy() {
    let case = Case::figures(&[
        ("tried_to_allocate_gib", 1.0),
        ("gpu_total_gib", 80.0),
        ("weights_gib", 72.0),
    ]);
    assert_eq!(
        down(&case.evidence("gpu-oom.graph-capture", "vllm", "0.25.1", "graph-capture")),
        Sum::Unfit
    );
}

#[test]
fn missing_figures_are_named() {
    let case = Case::figures(&[]);
    let name = |version| down(&case.evidence("gpu-oom.graph-capture", "vllm", version, ""));
    assert_eq!(name(""), Sum::Missing("the utilisation in force"));
    assert_eq!(name("0.25.1"), Sum::Missing("the device's total memory"));
    let case = Case::figures(&[("gpu_total_gib", 80.0)]);
    let sum = down(&case.evidence("gpu-oom.graph-capture", "vllm", "0.25.1", ""));
    assert_eq!(sum, Sum::Missing("the size of the failed allocation"));
}

#[test]
fn free_memory_bounds_the_share() {
    // The highest share that passes the check is free / total; one step of rounding and 0.5 GiB below it.
    for (free, total, highest, suggested) in [
        (58.08, 139.80, 0.415, "0.41"), // (58.08 - 0.5) / 139.80 = 0.4119
        (9.81, 139.80, 0.070, "0.06"),  // 0.0666
        (9.30, 139.80, 0.066, "0.06"),  // 0.0629
        (16.01, 93.00, 0.172, "0.16"),  // 0.1668
        (54.34, 79.18, 0.686, "0.67"),  // 0.6800 -> 0.6799
    ] {
        let case = Case::figures(&[("gpu_free_gib", free), ("gpu_total_gib", total)]);
        let sum = for_free_memory(&case.evidence("gpu-mem.occupied", "vllm", "0.25.1", "device-init"));
        let value: f64 = to(&sum).parse().unwrap();
        assert_eq!(to(&sum), suggested, "{free}");
        assert!(value <= highest && highest - value <= 0.04, "{free}: {value}");
    }
    // 0.92 x 79.1 - 52.78 = 19.99 held beside it; (30 + 19.99 - 0.5) / 79.1 = 0.6257
    let figures = [
        ("gpu_free_gib", 30.0),
        ("gpu_total_gib", 79.1),
        ("requested_gib", 52.78),
    ];
    let case = Case::figures(&figures).set("gpu_memory_utilization", "0.92");
    let sum = for_free_memory(&case.evidence("gpu-mem.occupied", "vllm", "0.32.0", "device-init"));
    assert_eq!(to(&sum), "0.62");
    let case = Case::figures(&[("gpu_free_gib", 0.3), ("gpu_total_gib", 80.0)]);
    assert_eq!(
        for_free_memory(&case.evidence("gpu-mem.occupied", "vllm", "0.25.1", "")),
        Sum::Unfit
    );
}

#[test]
fn one_sequence_more_needs_a_little_more() {
    // no total in the log: at least (2.81 + 3.81) / 0.05 = 132.4; 0.05 + (0.19 + 0.5) / 132.4 = 0.0552
    let case = Case::figures(&[
        ("kv_needed_gib", 4.0),
        ("kv_available_gib", 3.81),
        ("weights_gib", 2.81),
    ])
    .set("gpu_memory_utilization", "0.05");
    let e = case.evidence("gpu-mem.kv-too-small", "vllm", "0.25.1", "kv-cache");
    assert_eq!(to(&up_for_one_sequence(&e)), "0.06");
    // 0.92 + (9.63 + 0.5) / 119.7 = 1.0046: out of reach
    let case = Case::figures(&[
        ("kv_needed_gib", 18.35),
        ("kv_available_gib", 8.72),
        ("gpu_total_gib", 119.7),
    ]);
    let e = case.evidence("gpu-mem.kv-too-small", "vllm", "0.25.1", "kv-cache");
    assert_eq!(up_for_one_sequence(&e), Sum::Unfit);
}

#[test]
fn a_deficit_is_added() {
    // at least (15.0 - 2.12) / 0.1 = 128.8; 0.1 + (2.12 + 0.02 x 128.8 + 0.5) / 128.8 = 0.1403
    let case =
        Case::figures(&[("kv_available_gib", -2.12), ("weights_gib", 15.0)]).set("gpu_memory_utilization", "0.1");
    let e = case.evidence("gpu-mem.no-kv-blocks", "vllm", "0.25.1", "kv-cache");
    assert_eq!(to(&up_for_blocks(&e)), "0.15");
}

#[test]
fn raising_respects_what_is_free_and_what_the_version_leaves_out() {
    let figures = [
        ("kv_needed_gib", 4.0),
        ("kv_available_gib", 2.0),
        ("gpu_total_gib", 80.0),
    ];
    // 0.92 + 2.5 / 80 = 0.9513 -> 0.96: allowed from 0.20, where graphs are in the budget, and not before
    let case = Case::figures(&figures).set("gpu_memory_utilization", "0.92");
    let sum = |version| up_for_one_sequence(&case.evidence("gpu-mem.kv-too-small", "vllm", version, ""));
    assert_eq!(to(&sum("0.25.1")), "0.96");
    assert_eq!(sum("0.17.0"), Sum::Unfit);
    let mut case = Case::figures(&figures).set("gpu_memory_utilization", "0.92");
    case.figures.insert("gpu_free_gib".to_owned(), 75.0);
    let e = case.evidence("gpu-mem.kv-too-small", "vllm", "0.25.1", "");
    assert_eq!(up_for_one_sequence(&e), Sum::Unfit);
}

#[test]
fn a_unified_machine_keeps_some_for_the_system() {
    // (105 - 12) / 119.7 = 0.7769
    let case = Case::figures(&[("host_available_gib", 105.0), ("gpu_total_gib", 119.7)]).unified(true);
    assert_eq!(
        to(&for_unified(&case.evidence(
            "host-mem.oom-killer",
            "vllm",
            "0.25.1",
            ""
        ))),
        "0.77"
    );
}

#[test]
fn a_device_that_may_be_larger_is_not_called_too_small() {
    // At least (7.338 - 1.27) / 0.9 = 6.74 GiB: the activation peak is in neither figure.
    let case = Case::figures(&[("kv_available_gib", -1.27), ("weights_gib", 7.338)]);
    let e = case.evidence("gpu-mem.no-kv-blocks", "vllm", "0.10.2", "kv-cache");
    assert_eq!(up_for_blocks(&e), Sum::Missing("the device's total memory"));
}
