//! The rank whose device a kernel's log tells of: by the place on the bus that NCCL prints with it.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::Report;

/// A node with two ranks, each on a device of its own.
fn node(name: &str, first: u32) -> Text {
    let mut log = String::new();
    for local in 0..2 {
        let (rank, pid) = (first + local, 400 + 10 * first + local);
        let at = format!("{name}:{pid}:{pid} [{local}]");
        let comm = format!(
            "ncclCommInitRankConfig comm 0x7f{rank}00 rank {rank} nranks 4 cudaDev {local} nvmlDev {local} busId {}b000 commId \
             0x6f3c1d2e88a90b14",
            local + 1
        );
        log += &format!(
            "{at} NCCL INFO NCCL version 2.27.5+cuda12.9\n{at} NCCL INFO {comm} - Init START\n{at} NCCL INFO {comm} - Init COMPLETE\n"
        );
    }
    for rank in first..first + 2 {
        log += &format!(
            "[rank{rank}]:[E1130 11:10:12.018123412 ProcessGroupNCCL.cpp:688] [Rank {rank}] Watchdog caught collective \
             operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for \
             600028 milliseconds before timing out.\n"
        );
    }
    Text::new(format!("{name}.log"), log)
}

/// The journal of a node's kernel.
fn kernel(node: &str, told: &str) -> Text {
    Text::new("kernel.log", format!("Nov 30 11:10:10 {node} kernel: {told}\n"))
}

const XID: &str = "NVRM: Xid (PCI:0000:2b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
const OFF: &str = "NVRM: GPU 0000:2b:00.0: GPU has fallen off the bus.";

fn judged(report: &Report) -> (Option<&str>, Option<&str>) {
    let root = report.root.as_ref().unwrap();
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    (cause, root.place.process.as_deref())
}

#[test]
fn a_device_without_a_process_is_of_the_rank_that_nccl_counts_on_it() {
    for told in [XID, OFF] {
        let nodes = [node("gx-a", 0), node("gx-b", 2), kernel("gx-b", told)];
        let report = examine_texts(&nodes);
        assert_eq!(
            judged(&report),
            (Some("cuda.xid"), Some("rank 3 pid=421 @gx-b")),
            "{told}"
        );
        let stream: String = nodes.iter().map(|text| text.text().to_owned()).collect();
        let report = examine_texts(&[Text::new("all.log", stream)]);
        assert_eq!(
            judged(&report),
            (Some("cuda.xid"), Some("rank 3 pid=421 @gx-b")),
            "{told}"
        );
    }
}

#[test]
fn a_device_of_a_node_that_the_launch_does_not_know_is_of_no_rank() {
    let report = examine_texts(&[node("gx-a", 0), node("gx-b", 2), kernel("other", XID)]);
    let (cause, process) = judged(&report);
    assert!(
        cause != Some("cuda.xid") || !process.unwrap_or("").starts_with("rank"),
        "{process:?}"
    );
}

#[test]
fn a_device_that_no_rank_has_ended_none_of_them() {
    let elsewhere = XID.replace("2b:00", "9c:00");
    let report = examine_texts(&[node("gx-a", 0), node("gx-b", 2), kernel("gx-b", &elsewhere)]);
    assert_eq!(judged(&report).0, Some("nccl.watchdog-timeout"));
    // Where a rank does not say which device is its own, it may be that one.
    let silent = node("gx-b", 2)
        .text()
        .replace("rank 3 nranks 4 cudaDev 1 nvmlDev 1 busId 2b000", "rank 3 nranks 4");
    let report = examine_texts(&[
        node("gx-a", 0),
        Text::new("gx-b.log", silent),
        kernel("gx-b", &elsewhere),
    ]);
    let (cause, process) = judged(&report);
    assert_eq!(cause, Some("cuda.xid"));
    assert!(!process.unwrap_or("").starts_with("rank"), "{process:?}");
}
