//! Replicas in one stream: what one of them does says nothing of another.

mod common;

use common::{Text, examine_texts};

/// A server of SGLang's: its start, and its graph capture with what follows it.
fn server(end: &str) -> String {
    format!(
        "[2026-11-25 12:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=1, nnodes=1, node_rank=0, port=30000)\n\
         [2026-11-25 12:00:05] Init torch distributed begin.\n\
         [2026-11-25 12:00:07] Load weight begin. avail mem=77.90 GB\n\
         [2026-11-25 12:00:20] Capture cuda graph begin. This can take up to several minutes. avail mem=9.90 GB\n{end}"
    )
}

const READY: &str = "[2026-11-25 12:00:30] The server is fired up and ready to roll!\n";
const OOM: &str = "\
[2026-11-25 12:00:40] Scheduler hit an exception: Traceback (most recent call last):
  File \"/usr/local/lib/python3.12/dist-packages/sglang/srt/model_executor/cuda_graph_runner.py\", line 700, in capture
    self.capture_one_batch_size(bs, forward)
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 0 has a total capacity of 79.19 GiB of which 231.06 MiB is free.

";

/// Lines as a collector gives them, with this in front of each.
fn behind(prefix: &str, log: &str) -> String {
    log.lines().map(|line| format!("{prefix}{line}\n")).collect()
}

#[test]
fn a_dead_replica_is_found_before_and_behind_one_that_serves() {
    let prefixes = [
        ("[pod/llm-7d9c-aaaaa/server] ", "[pod/llm-7d9c-bbbbb/server] "),
        ("llm-1  | ", "llm-2  | "),
    ];
    for (first, second) in prefixes {
        for (one, other, dead) in [(READY, OOM, second), (OOM, READY, first)] {
            let stream = behind(first, &server(one)) + &behind(second, &server(other));
            let report = examine_texts(&[Text::new("pods.log", stream)]);
            let cause = report.cause.as_ref().map(|c| c.id.as_str());
            assert_eq!(
                (report.outcome.id(), cause, report.phase.as_deref()),
                ("failed", Some("gpu-oom.graph-capture"), Some("graph-capture")),
                "{dead}: {}",
                report.headline
            );
            let root = &report.root.as_ref().unwrap().place;
            let torch = root.text.contains("torch.OutOfMemoryError") || root.text.contains("CUDA out of memory");
            assert!(torch, "{}", root.text);
        }
        let both = behind(first, &server(READY)) + &behind(second, &server(READY));
        assert_eq!(examine_texts(&[Text::new("pods.log", both)]).outcome.id(), "healthy");
    }
}
