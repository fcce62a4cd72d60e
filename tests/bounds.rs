//! Recorded memory failures whose figures fix what a setting may be at most or must be at least: the suggestion lies
//! on that side and close to it, and where another process holds the memory, that comes first.

mod common;

use std::path::PathBuf;

use common::examine;
use coroner::report::model::{Remedy, Report};

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

struct Case {
    /// Name in the corpus.
    id: &'static str,
    /// Lines that state the figures, from 1, with a part of each.
    cited: &'static [(usize, &'static str)],
    /// What is set.
    flag: &'static str,
    bound: Bound,
    /// Furthest distance from the bound.
    step: f64,
    /// Another process holds the memory: to end it is the first remedy, the value the second.
    holder: bool,
}

const UTILIZATION: &str = "--gpu-memory-utilization";

const CASES: &[Case] = &[
    // 58.08 / 139.8 = 0.4155
    Case {
        id: "gpu-mem-occupied-half",
        cited: &[(
            54,
            "(58.08/139.8 GiB) on startup is less than desired GPU memory utilization (0.92, 128.62 GiB)",
        )],
        flag: UTILIZATION,
        bound: AtMost(0.4155),
        step: 0.04,
        holder: true,
    },
    // 9.81 / 139.8 = 0.0702
    Case {
        id: "gpu-mem-occupied-leftover-1b",
        cited: &[(
            54,
            "(9.81/139.8 GiB) on startup is less than desired GPU memory utilization (0.92, 128.62 GiB)",
        )],
        flag: UTILIZATION,
        bound: AtMost(0.0702),
        step: 0.04,
        holder: true,
    },
    // 9.3 / 139.8 = 0.0665
    Case {
        id: "gpu-mem-occupied-leftover",
        cited: &[(
            54,
            "(9.3/139.8 GiB) on startup is less than desired GPU memory utilization (0.5, 69.9 GiB)",
        )],
        flag: UTILIZATION,
        bound: AtMost(0.0665),
        step: 0.04,
        holder: true,
    },
    // 9.81 / 139.8 = 0.0702
    Case {
        id: "gpu-mem-occupied-pty",
        cited: &[(
            50,
            "(9.81/139.8 GiB) on startup is less than desired GPU memory utilization (0.92, 128.62 GiB)",
        )],
        flag: UTILIZATION,
        bound: AtMost(0.0702),
        step: 0.04,
        holder: true,
    },
    // The share in force was full: 0.92 - (20.00 - 13.56) MiB / 139.80 GiB = 0.91995. The neighbour alone would allow
    // (139.80 - 11.12) / 139.80 = 0.9205.
    Case {
        id: "gpu-oom-graph-capture-v2",
        cited: &[
            (
                148,
                "Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 13.56 MiB is free.",
            ),
            (148, "Process 1413 has 11.12 GiB memory in use."),
        ],
        flag: UTILIZATION,
        bound: AtMost(0.91995),
        step: 0.04,
        holder: true,
    },
    // (139.80 - 123.08) / 139.80 = 0.1196
    Case {
        id: "gpu-oom-profile",
        cited: &[
            (114, "GPU 0 has a total capacity of 139.80 GiB"),
            (114, "Process 1275 has 123.08 GiB memory in use."),
        ],
        flag: UTILIZATION,
        bound: AtMost(0.1196),
        step: 0.04,
        holder: true,
    },
    // 0.92 - (502.00 - 3.56) MiB / 139.80 GiB = 0.91652. The neighbour alone would allow (139.80 - 11.23) / 139.80
    // = 0.9197.
    Case {
        id: "gpu-oom-sampler-warmup-v1",
        cited: &[
            (
                69,
                "Tried to allocate 502.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 3.56 MiB is free.",
            ),
            (69, "Process 3811 has 11.23 GiB memory in use."),
        ],
        flag: UTILIZATION,
        bound: AtMost(0.91652),
        step: 0.04,
        holder: true,
    },
    // The share of 0.1 holds weights and what is left of it: the device has at least (15.0 - 2.12) / 0.1 = 128.8 GiB.
    // 0.1 + 2.12 / 128.8 = 0.1165
    Case {
        id: "gpu-mem-no-kv-blocks",
        cited: &[
            (7, "'gpu_memory_utilization': 0.1}"),
            (26, "Model loading took 15.0 GiB"),
            (28, "Available KV cache memory: -2.12 GiB"),
        ],
        flag: UTILIZATION,
        bound: AtLeast(0.1165),
        step: 0.04,
        holder: false,
    },
    // At least (2.81 + 3.81) / 0.05 = 132.4 GiB; 0.05 + (4.0 - 3.81) / 132.4 = 0.0514
    Case {
        id: "gpu-mem-kv-too-small",
        cited: &[
            (7, "'gpu_memory_utilization': 0.05,"),
            (25, "Model loading took 2.81 GiB"),
            (
                51,
                "(4.0 GiB KV cache is needed, which is larger than the available KV cache memory (3.81 GiB)",
            ),
        ],
        flag: UTILIZATION,
        bound: AtLeast(0.0514),
        step: 0.04,
        holder: false,
    },
    // The engine's own estimate.
    Case {
        id: "gpu-mem-kv-too-small",
        cited: &[(51, "the estimated maximum model length is 124784")],
        flag: "--max-model-len",
        bound: AtMost(124_784.0),
        step: 256.0,
        holder: false,
    },
    // 8.6 free at start - 0.01 of weights = 8.59 GiB = 9223442268 bytes; the activation peak was never measured.
    Case {
        id: "gpu-mem-profiling-race",
        cited: &[
            (27, "Model loading took 0.01 GiB"),
            (64, "Initial free memory 8.6 GiB, current free memory 8.74 GiB"),
        ],
        flag: "--kv-cache-memory-bytes",
        bound: AtMost(9_223_442_268.0),
        step: 1_500_000_000.0,
        holder: true,
    },
    // 4.10 / 23.54 = 0.17432
    Case {
        id: "ray-memory-monitor-kill",
        cited: &[(46, "was 4.10GB / 23.54GB (0.174323)")],
        flag: "RAY_memory_usage_threshold",
        bound: AtLeast(0.17432),
        step: 0.04,
        holder: false,
    },
];

/// The recorded log: of the corpus, or of the collection beside the checkout.
fn log(id: &str) -> Option<PathBuf> {
    let found = ["corpus", "../shared/cases/vllm-h200"]
        .iter()
        .map(|folder| PathBuf::from(folder).join(format!("{id}.log")))
        .find(|path| path.is_file());
    if found.is_none() {
        println!("{id} is not at hand: skipped");
    }
    found
}

/// The first remedy that sets this, its place, and the value.
fn suggestion<'a>(report: &'a Report, flag: &str) -> Option<(&'a Remedy, f64)> {
    report.remedies.iter().find_map(|remedy| {
        let change = remedy.change.iter().find(|change| change.name == flag)?;
        Some((remedy, change.to.as_deref()?.parse().ok()?))
    })
}

/// The process that holds the memory is ended (or awaited): a command that lists who is on the device.
fn ends_the_holder(remedy: &Remedy) -> bool {
    let lists = |name: &str| name.contains("--query-compute-apps");
    remedy
        .change
        .iter()
        .any(|change| change.kind == "command" && lists(&change.name))
}

#[test]
fn suggestions_lie_on_the_right_side_of_what_the_figures_fix() {
    for case in CASES {
        let Some(path) = log(case.id) else { continue };
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.split('\n').collect();
        for (line, part) in case.cited {
            assert!(lines[line - 1].contains(part), "{}:{line}: {part}", case.id);
        }
        let report = examine(&[path]);
        let Some((remedy, value)) = suggestion(&report, case.flag) else {
            panic!("{}: no value for {}: {:#?}", case.id, case.flag, report.remedies);
        };
        let distance = match case.bound {
            AtMost(most) => most - value,
            AtLeast(least) => value - least,
        };
        assert!(
            (0.0..=case.step).contains(&distance),
            "{}: {} {value} against {:?}",
            case.id,
            case.flag,
            case.bound
        );
        assert!(remedy.arithmetic.is_some(), "{}: no sum", case.id);
        if case.holder {
            assert!(
                ends_the_holder(&report.remedies[0]),
                "{}: {:?}",
                case.id,
                report.remedies[0]
            );
            assert_eq!(remedy.rank, 2, "{}: {}", case.id, remedy.title);
        }
    }
}

/// Where the log has no figure for a bound, the holder still comes first and no number is made up.
#[test]
fn without_figures_the_holder_comes_first_and_no_number_follows() {
    for id in [
        "gpu-oom-context",
        "nccl-ctx-oom",
        "torch-ctx-oom",
        "torch-cublas-oom",
        "torch-alloc-oom",
    ] {
        let Some(path) = log(id) else { continue };
        let report = examine(&[path]);
        assert!(
            ends_the_holder(&report.remedies[0]),
            "{id}: {:?}",
            report.remedies.first()
        );
        assert!(suggestion(&report, UTILIZATION).is_none(), "{id}");
    }
}
