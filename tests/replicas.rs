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

#[test]
fn nothing_of_one_replica_is_said_of_another() {
    // The one that dies was begun later, and never loaded anything.
    let dead = "[2026-11-25 12:00:10] server_args=ServerArgs(model_path='/models/m', tp_size=1, nnodes=1, node_rank=0, port=30000)\n\
         [2026-11-25 12:00:15] Init torch distributed begin.\n\
         [2026-11-25 12:00:16] Scheduler hit an exception: Traceback (most recent call last):\n  \
           File \"/usr/local/lib/python3.12/dist-packages/sglang/srt/model_executor/model_runner.py\", line 700, in init_torch_distributed\n    \
             torch.get_device_module(self.device).set_device(self.gpu_id)\n\
         torch.AcceleratorError: CUDA error: out of memory\n\n";
    let whole = [
        ("llm-a", server(READY)),
        ("llm-b", dead.to_owned()),
        ("llm-c", server(READY)),
    ];
    let files: Vec<Text> = whole
        .iter()
        .map(|(name, log)| Text::new(format!("{name}-0.log"), log.as_str()))
        .collect();
    let stream = |(name, log): &(&str, String)| behind(&format!("[pod/{name}-0/server] "), log);
    let stream: String = whole.iter().map(stream).collect();
    for (inputs, kind) in [(files, "files"), (vec![Text::new("pods.log", stream)], "stream")] {
        let report = examine_texts(&inputs);
        let root = report.root.as_ref().unwrap();
        assert_eq!(root.place.node.as_deref(), Some("llm-b-0"), "{kind}");
        assert_eq!(report.attempts.len(), 1, "{kind}");
        assert_eq!(report.launch.seconds_to_death, Some(6.0), "{kind}");
        assert_eq!(report.launch.nodes, Some(1), "{kind}");
        let phases: Vec<&str> = report.timeline.iter().map(|e| e.phase.as_str()).collect();
        assert!(!phases.contains(&"weight-load"), "{kind}: {phases:?}");
        assert!(!report.figures.contains_key("load_avail_gib"), "{kind}");
        let told = "2 other servers in these logs serve (llm-a-0, llm-c-0).";
        assert!(report.story.ends_with(told), "{kind}: {}", report.story);
    }
}

#[test]
fn a_prefill_and_a_decode_server_are_parts_of_one_service_and_their_router_is_none() {
    let server =
        |part: &str, end: &str| server(end).replace("port=30000", &format!("port=30000, disaggregation_mode='{part}'"));
    // The decode server begins when the prefill server is under way, and its clock is right.
    let decode = server("decode", READY).replace(" 12:00:", " 12:01:");
    let stream = behind("[pod/prefill-0/sglang] ", &server("prefill", OOM))
        + &behind("[pod/decode-0/sglang] ", &decode)
        + "[pod/router-0/router] 2026-11-25 12:00:00  INFO sglang_router_rs::server: src/server.rs:123: Router ready\n";
    let report = examine_texts(&[Text::new("pods.log", stream)]);
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.launch.nodes, Some(1));
    let told = "The prefill server failed; the decode server, decode-0, serves.";
    assert!(report.story.ends_with(told), "{}", report.story);
}
