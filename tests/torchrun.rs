//! Jobs that torchrun starts on several nodes: ranks within a node, nodes that summaries name, one pid for all.

mod common;

use common::{Text, examine_texts, root_process};
use coroner::report::model::Report;

/// What an agent of torchrun prints of a node whose local rank 3 raises `raised`; each line behind what `prefix` gives
/// for it.
fn agent(node: u32, raised: &str, prefix: impl Fn(&str) -> String) -> String {
    let mut log = String::new();
    let mut say = |line: &str| log += &format!("{}{line}\n", prefix(line));
    for local in 0..8 {
        say(&format!("[default{local}]:building model"));
    }
    for line in [
        "Traceback (most recent call last):",
        "  File \"/home/ml/infer.py\", line 70, in main",
        "    x = model(x)",
        raised,
    ] {
        say(&format!("[default3]:{line}"));
    }
    let rank = 8 * node + 3;
    for line in [
        "[2024-05-02 10:04:32,120] torch.distributed.elastic.multiprocessing.api: [ERROR] failed (exitcode: 1) local_rank: 3 (pid: 703) of binary: /opt/venv/bin/python",
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
        "============================================================",
        "/home/ml/infer.py FAILED",
        "------------------------------------------------------------",
        "Root Cause (first observed failure):",
        "[0]:",
        "  time      : 2024-05-02_10:04:31",
        &format!("  host      : tj-{node}"),
        &format!("  rank      : {rank} (local_rank: 3)"),
        "  exitcode  : 1 (pid: 703)",
        "  error_file: <N/A>",
        "============================================================",
    ] {
        say(line);
    }
    log
}

const ECC: &str = "RuntimeError: CUDA error: uncorrectable ECC error encountered";

fn root(report: &Report) -> (Option<&str>, Option<u32>, Option<&str>, Option<i64>) {
    let place = &report.root.as_ref().unwrap().place;
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    (cause, place.rank, place.node.as_deref(), root_process(report).pid)
}

#[test]
fn the_number_that_torchrun_prints_is_the_rank_within_the_node() {
    let alone = examine_texts(&[Text::new("job.log", agent(1, ECC, |_| String::new()))]);
    assert_eq!(root(&alone), (Some("cuda.ecc"), Some(11), Some("tj-1"), Some(703)));
    assert_eq!(alone.processes.iter().filter(|p| p.rank == Some(11)).count(), 1);
}

#[test]
fn the_pid_of_the_service_is_none_of_the_ranks_that_write_to_it() {
    let lines = [
        "Aug 14 05:59:00 xe-b python3[704]: init_process_group rank=8 world_size=16 backend=nccl",
        "Aug 14 05:59:00 xe-b python3[704]: init_process_group rank=11 world_size=16 backend=nccl",
        "Aug 14 06:00:00 xe-b python3[704]: [rank11]: Traceback (most recent call last):",
        "Aug 14 06:00:00 xe-b python3[704]: [rank11]:   File \"/home/ml/infer.py\", line 70, in main",
        "Aug 14 06:00:00 xe-b python3[704]: [rank11]:     x = model(x)",
        "Aug 14 06:00:00 xe-b python3[704]: [rank11]: RuntimeError: CUDA error: uncorrectable ECC error encountered",
    ];
    let report = examine_texts(&[Text::new("job.log", lines.join("\n") + "\n")]);
    assert_eq!(root(&report), (Some("cuda.ecc"), Some(11), Some("xe-b"), None));
}

/// What a node loses when the one that it talks to is gone.
const LOST: &str = "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1333, remote process exited or there was a network error, NCCL version 2.20.5\n\
[default3]:ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.\n\
[default3]:Last error:\n\
[default3]:NET/IB : Got completion from peer 10.8.0.2<41822> with error 12, opcode 0, len 0, vendor err 129";

#[test]
fn pods_that_are_printed_one_below_the_other_are_in_no_order() {
    let pod = |node: u32, raised: &str| {
        let prefix = move |_: &str| format!("[pod/tj-{node}/ml] ");
        let begin = format!(
            "[pod/tj-{node}/ml] [2024-05-02 10:00:01,120] torch.distributed.run: [WARNING] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
        );
        begin
            + &agent(
                node,
                &raised.replace("\n[default3]:", &format!("\n[pod/tj-{node}/ml] [default3]:")),
                prefix,
            )
    };
    let (lost, failed) = (pod(0, LOST), pod(1, ECC));
    for log in [format!("{lost}{failed}"), format!("{failed}{lost}")] {
        let report = examine_texts(&[Text::new("pods.log", log)]);
        assert_eq!(
            root(&report),
            (Some("cuda.ecc"), Some(11), Some("tj-1"), Some(703)),
            "{}",
            report.headline
        );
    }
}
