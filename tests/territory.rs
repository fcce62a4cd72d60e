//! Counting the lines outside territory changes no verdict: each log of the corpus, put between hours of serving.

mod common;

use std::fs;

use common::{Case, cases, examine_with};
use coroner::Options;
use coroner::report::model::Report;
use rayon::prelude::*;

/// Bytes that are more than both ends of a source in which every line is read.
const HOURS: usize = 300 << 10;

#[test]
fn the_same_verdict_whether_every_line_is_read_or_not() {
    let serving: String = (0..HOURS / 90)
        .map(|n| {
            format!(
                "(APIServer pid=7) INFO:     10.0.{}.{}:51234 - \"POST /v1/completions HTTP/1.1\" 200 OK\n",
                n / 250 % 250,
                n % 250
            )
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let fault = |case: Case| {
        let log = fs::read(case.log()?).unwrap();
        let log = [log.as_slice(), b"\n"].concat();
        let path = folder.path().join(format!("{}.log", case.id));
        let text = [&log, serving.as_bytes(), &log, serving.as_bytes()].concat();
        fs::write(&path, text).unwrap();
        let said = [false, true].map(|plain| {
            let options = Options {
                plain,
                ..Options::default()
            };
            said(&examine_with(std::slice::from_ref(&path), &options))
        });
        (said[0] != said[1]).then(|| format!("{}: {} – read in full: {}", case.id, said[0], said[1]))
    };
    let faults: Vec<String> = cases().into_par_iter().filter_map(fault).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// While a launch is under way, what repeats is not read, and the whole report is the same.
#[test]
fn the_same_report_on_a_start_up_of_many_ranks() {
    let mut log = String::from(
        "(APIServer pid=1) INFO 11-25 11:58:00 [api_utils.py:273] non-default args: {'model': '/models/m', \
         'tensor_parallel_size': 48}\n",
    );
    let mut below = numbers();
    for line in 0..12_000 {
        let (rank, other) = (below(48), below(48));
        let (node, device) = (rank / 8, rank % 8);
        let head = format!("node-{node}:{}:{} [{device}] NCCL", 4100 + device, 5100 + device);
        let text = match below(400) {
            0 => format!(
                "INFO ncclCommInitRank comm 0x5{rank:x}0 rank {rank} nranks 48 cudaDev {device} nvmlDev {device} busId {device}a000 commId 0x9cf1 - Init START"
            ),
            1 => format!("INFO NCCL_IB_HCA set by environment to mlx5_{device}"),
            2 => {
                format!("INFO comm 0x5{rank:x}0 rank {rank} nRanks 48 nNodes 6 localRanks 8 localRank {device} MNNVL 0")
            }
            3 if line > 9_000 => {
                format!("WARN socketStartConnect: Connect to 10.0.0.{node}<4321> failed : Connection refused")
            }
            4 if line > 9_000 => "INFO misc/socket.cc:432 -> 2".to_owned(),
            5 => format!("INFO Failed to open libibverbs.so[.{}]", below(3)),
            6..100 => format!("INFO Trees [0] {other}/-1/-1->{rank}->-1 [1] {other}/-1/-1->{rank}->-1"),
            100..200 => format!("INFO NET/IB : GPU Direct RDMA Enabled for HCA {device} 'mlx5_{device}'"),
            200..220 => "INFO P2P Chunksize set to 131072".to_owned(),
            _ => format!(
                "INFO Channel {:02}/0 : {rank}[{device}] -> {other}[{}] via P2P/CUMEM",
                below(24),
                other % 8
            ),
        };
        log += &match line % 997 {
            0 => format!(
                "(EngineCore pid=200) ERROR 11-25 11:58:{:02} [core.py:1] stalled\n",
                below(60)
            ),
            1 => format!("2026-11-25T11:58:59Z {head} {text}\n"),
            2 => "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n".to_owned(),
            _ => format!("{head} {text}\n"),
        };
    }
    same_report(&log, "nccl.bootstrap-net");
}

/// While a launch is under way, bars that are shown again and settings that are printed again are not taken apart, and
/// the whole report is the same.
#[test]
fn the_same_report_on_bars_and_settings_without_end() {
    let mut below = numbers();
    let dump = |rank: u64| {
        let options: String = (0..200).map(|n| format!(", some_option_{n}='value {n}'")).collect();
        format!(
            "[2026-11-25 11:58:0{rank}] server_args=ServerArgs(model_path='/models/m', tp_size=2, mem_fraction_static=0.9, rank={rank}{options})\n"
        )
    };
    let mut log = dump(0);
    for line in 0..700 {
        log += &match below(60) {
            n @ 0..4 => dump(n),
            4 => format!(
                "[2026-11-25 11:59:00 TP{}] Load weight begin. avail mem=77.90 GB\n",
                below(2)
            ),
            5 if line > 400 => "[2026-11-25 11:59:00 TP1] Watchdog timeout is near\n".to_owned(),
            6 => format!("[2026-11-25 12:00:00 TP1] ERROR: {}\n", "prompt ".repeat(100)),
            kind => {
                let (front, label, steps) = match kind % 4 {
                    0 => ("\r", "Capturing batches (bs=8 avail_mem=12.40 GB)", 24),
                    1 => ("", "Capturing batches (bs=8 avail_mem=12.40 GB)", 23),
                    2 => ("\r", "Loading pt checkpoint shards", 24),
                    _ => ("(Worker_TP0 pid=11) ", "Capturing CUDA graphs", 24),
                };
                let end = match below(50) {
                    0 => "Killed",
                    1 => "[2026-11-25 12:00:00 TP1] Scheduler hit an exception: RuntimeError: x",
                    _ => "",
                };
                let states: Vec<String> = (0..steps)
                    .map(|step| {
                        format!(
                            "{label}: {:3}%|##        | {step}/24 [00:0{}<00:09,  2.{}it/s]",
                            step * 4,
                            below(10),
                            below(10)
                        )
                    })
                    .collect();
                format!("{front}{}{end}\n", states.join("\r"))
            }
        };
    }
    same_report(&log, "process.sigkill");
}

/// A small generator of numbers that are the same everywhere.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 7_u64;
    move |n| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    }
}

/// Examines a long log of a start-up both ways, which died of this cause.
fn same_report(log: &str, cause: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("start.log");
    fs::write(&path, log).unwrap();
    let [fast, plain] = [false, true].map(|plain| {
        let options = Options {
            plain,
            ..Options::default()
        };
        serde_json::to_string_pretty(&examine_with(std::slice::from_ref(&path), &options)).unwrap()
    });
    assert!(log.len() > HOURS * 2);
    assert!(plain.contains(&format!("\"{cause}\"")), "{plain}");
    for (fast, plain) in fast.lines().zip(plain.lines()) {
        assert_eq!(fast, plain);
    }
    assert_eq!(fast.len(), plain.len());
}

/// What must not depend on it.
fn said(report: &Report) -> String {
    let root = report.root.as_ref().map(|r| r.place.line);
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    format!(
        "{} {:?} {cause:?} at {root:?}, {} lines",
        report.outcome.id(),
        report.phase,
        report.examined.lines
    )
}
