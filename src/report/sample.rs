//! Reports built by hand, for the tests of the views.

use std::collections::BTreeMap;

use super::model::*;

/// A report without anything in it but its outcome.
pub fn quiet(outcome: Outcome, headline: &str) -> Report {
    Report {
        schema: SCHEMA,
        program: ProgramInfo {
            version: "0.1.0",
            catalog: "abc123".into(),
        },
        redaction: None,
        source: "launch.log".into(),
        outcome,
        headline: headline.into(),
        story: String::new(),
        engine: Engine {
            name: Some("vllm".into()),
            version: Some("0.25.1".into()),
        },
        phase: None,
        cause: None,
        alternatives: vec![],
        root: None,
        exception: None,
        evidence: vec![],
        findings: vec![],
        figures: BTreeMap::new(),
        measurements: vec![],
        memory: None,
        remedies: vec![],
        will_not_help: vec![],
        overruled_advice: vec![],
        retry: Retry {
            verdict: "unknown".into(),
            why: String::new(),
            same_node: None,
            after: None,
        },
        next_evidence: vec![],
        owner: String::new(),
        launch: Launch::default(),
        processes: vec![],
        timeline: vec![],
        attempt: 1,
        attempts: vec![],
        fingerprint: None,
        log: LogState::default(),
        examined: Examined {
            files: 1,
            bytes: 64_000,
            lines: 4_330,
            ..Examined::default()
        },
        snippet: vec![],
        rows: vec![],
        confidence_terms: vec![],
    }
}

/// Two ranks, one out of memory while it captures graphs.
pub fn graph_capture() -> Report {
    let root = place(412, Some("Worker_TP1 pid=311"), Some(1), OOM_LINE);
    let mut report = quiet(
        Outcome::Failed,
        "Rank 1 (node-b) ran out of GPU memory during CUDA graph capture",
    );
    report.story = "Weights and KV cache were in place, 139.6 of 139.8 GiB were taken, and graph capture on rank 1 \
                    asked for 20 MiB more than was left. Rank 0 then waited for its peer and was ended by the engine."
        .into();
    report.phase = Some("graph-capture".into());
    report.cause = Some(Cause {
        id: "gpu-oom.graph-capture".into(),
        title: "Out of GPU memory during CUDA graph capture".into(),
        confidence: 0.93,
        tags: vec![],
    });
    report.alternatives = vec![Alternative {
        id: "nccl.peer-died".into(),
        title: "A peer closed its connection".into(),
        confidence: 0.2,
        why: "Line 430 reports a closed socket.".into(),
        why_not: "line 430 came 4 s after rank 1 died".into(),
    }];
    report.root = Some(Root {
        place: root.clone(),
        also_in: vec![],
    });
    report.exception = Some(ExceptionReport {
        kind: "torch.OutOfMemoryError".into(),
        message: "CUDA out of memory. Tried to allocate 20.00 MiB.".into(),
        frames: vec![FrameReport {
            file: "vllm/v1/worker/gpu_model_runner.py".into(),
            line: 5500,
            function: "capture_model".into(),
        }],
        chain: vec![],
        origin: Some("engine".into()),
    });
    report.evidence = vec![
        evidence(0, "root", root, None),
        evidence(
            1,
            "consequence",
            place(430, Some("Worker_TP0 pid=310"), Some(0), NCCL_LINE),
            Some("its peer, rank 1, had died 4 s before"),
        ),
        evidence(
            2,
            "exit",
            place(4330, Some("APIServer pid=290"), None, WRAPPER_LINE),
            Some("the front end gives up"),
        ),
    ];
    report.figures = BTreeMap::from([
        ("gpu_free_gib".to_owned(), 0.01),
        ("gpu_total_gib".to_owned(), 139.8),
        ("tried_to_allocate_gib".to_owned(), 0.02),
    ]);
    report.remedies = vec![
        Remedy {
            rank: 1,
            id: "lower-gpu-memory-utilization".into(),
            title: "Lower --gpu-memory-utilization from 0.90 to 0.86 on every node".into(),
            why: "Graphs and other allocations outside the KV cache need the room that the setting gives to it.".into(),
            change: vec![Change {
                kind: "flag".into(),
                name: "--gpu-memory-utilization".into(),
                from: Some("0.90".into()),
                to: Some("0.86".into()),
            }],
            patch: vec![Patch {
                form: "shell".into(),
                place: "the launch command, in place of the flag if it is there".into(),
                text: "--gpu-memory-utilization 0.86".into(),
            }],
            cost: "About 5.6 GiB less KV cache per GPU.".into(),
            risk: "low".into(),
            verify: "“Available KV cache memory” is lower and “Graph capturing finished” appears".into(),
            arithmetic: Some("floor(0.90 − 4.9 GiB / 139.8 GiB) = 0.86".into()),
            evidence: vec![0],
            pair_with: None,
        },
        Remedy {
            rank: 2,
            id: "fewer-capture-sizes".into(),
            title: "Capture fewer and smaller graphs".into(),
            why: "Every captured size keeps its own buffers.".into(),
            change: vec![Change {
                kind: "flag".into(),
                name: "--max-num-seqs".into(),
                from: None,
                to: Some("128".into()),
            }],
            patch: vec![],
            cost: "Batches above the largest captured size run without graphs.".into(),
            risk: "low".into(),
            verify: "The progress bar counts fewer sizes".into(),
            arithmetic: None,
            evidence: vec![],
            pair_with: Some("lower-gpu-memory-utilization".into()),
        },
        Remedy {
            rank: 3,
            id: "enforce-eager".into(),
            title: "Run without CUDA graphs".into(),
            why: "No capture, no allocation.".into(),
            change: vec![Change {
                kind: "flag".into(),
                name: "--enforce-eager".into(),
                from: None,
                to: None,
            }],
            patch: vec![],
            cost: "Decoding is slower for good.".into(),
            risk: "medium".into(),
            verify: "No “Capturing CUDA graphs” line".into(),
            arithmetic: None,
            evidence: vec![],
            pair_with: None,
        },
    ];
    report.will_not_help = vec![NoHelp {
        title: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True".into(),
        why: "The device is full, not fragmented: 0.01 GiB are reserved and unused.".into(),
    }];
    report.overruled_advice = vec![Overruled {
        input: "node-b.log".into(),
        line: 412,
        text: "try setting expandable_segments:True".into(),
        why: "the allocator holds next to nothing it does not use".into(),
    }];
    report.retry = Retry {
        verdict: "pointless".into(),
        why: "The same figures add up to the same shortage.".into(),
        same_node: None,
        after: None,
    };
    report.next_evidence = vec![NextEvidence {
        what: "Other processes on GPU 1 of node-b".into(),
        why: "the log names none".into(),
        command: "nvidia-smi --query-compute-apps=pid,used_memory --format=csv".into(),
    }];
    report.owner = "launch-config".into();
    report.launch.seconds_to_death = Some(312.4);
    report.processes = vec![
        process("APIServer pid=290", "api-server", None, "config", Some("exit 1")),
        process(
            "Worker_TP0 pid=310",
            "worker",
            Some(0),
            "graph-capture",
            Some("signal 15"),
        ),
        process("Worker_TP1 pid=311", "worker", Some(1), "graph-capture", Some("exit 1")),
    ];
    report.timeline = [
        ("APIServer pid=290", "process-start", 1, 0.0),
        ("APIServer pid=290", "config", 12, 3.1),
        ("Worker_TP0 pid=310", "distributed-init", 40, 21.0),
        ("Worker_TP1 pid=311", "distributed-init", 41, 21.2),
        ("Worker_TP1 pid=311", "weight-load", 60, 30.0),
        ("Worker_TP1 pid=311", "compile", 200, 180.5),
        ("Worker_TP1 pid=311", "kv-cache", 300, 260.0),
        ("Worker_TP1 pid=311", "graph-capture", 402, 291.7),
    ]
    .map(|(process, phase, line, seconds)| TimelineEntry {
        process: process.into(),
        phase: phase.into(),
        input: "node-b.log".into(),
        line,
        time: None,
        seconds: Some(seconds),
    })
    .into();
    report.fingerprint = Some("f1:0123abcd".into());
    report.log.missing = vec!["node-c".into()];
    report.snippet = [
        (
            410,
            "(Worker_TP1 pid=311) ERROR 11-25 13:00:07 [multiproc_executor.py:800]     graph.capture_end()",
            "",
        ),
        (
            411,
            "(Worker_TP1 pid=311) ERROR 11-25 13:00:07 [multiproc_executor.py:800]     ^^^^^^^^^^^^^^^^^^^",
            "",
        ),
        (412, OOM_LINE, "root"),
        (413, "", ""),
        (430, NCCL_LINE, "consequence"),
        (4330, WRAPPER_LINE, "exit"),
    ]
    .map(|(line, text, role)| SnippetLine {
        input: "node-b.log".into(),
        line,
        text: text.into(),
        role,
    })
    .into();
    report.confidence_terms = vec![("specific message".into(), 0.6), ("phase agrees".into(), 0.1)];
    report
}

/// The same report with `text` wherever words of the log can stand.
pub fn hostile(text: &str) -> Report {
    let mut report = graph_capture();
    let put = || text.to_owned();
    for line in &mut report.snippet {
        line.text = put();
        line.input = put();
    }
    for evidence in &mut report.evidence {
        evidence.place.text = put();
        evidence.place.input = put();
        evidence.place.node = Some(put());
        evidence.place.process = Some(put());
        evidence.why = Some(put());
    }
    if let Some(root) = &mut report.root {
        root.place.text = put();
        root.place.input = put();
        root.place.node = Some(put());
        root.place.process = Some(put());
        root.also_in = vec![put()];
    }
    if let Some(exception) = &mut report.exception {
        exception.kind = put();
        exception.message = put();
    }
    for remedy in &mut report.remedies {
        remedy.title = put();
        remedy.arithmetic = Some(put());
        remedy.change.push(Change {
            kind: "flag".into(),
            name: put(),
            from: Some(put()),
            to: Some(put()),
        });
    }
    report.headline = put();
    report.story = put();
    report.source = put();
    report.engine.version = Some(put());
    report.launch.model = Some(put());
    report.launch.settings.insert(put(), serde_json::Value::String(put()));
    report.figures.insert(put(), 1.0);
    report.log.missing = vec![put()];
    report.findings = vec![Finding {
        id: "x".into(),
        title: put(),
        severity: "warning".into(),
        evidence: vec![],
    }];
    report.examined.skipped = vec![SkippedReport {
        input: put(),
        why: put(),
    }];
    report
}

const OOM_LINE: &str = "(Worker_TP1 pid=311) ERROR 11-25 13:00:07 [multiproc_executor.py:800] \
    torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 1 has a total capacity of 139.80 GiB \
    of which 11.06 MiB is free.";
const NCCL_LINE: &str = "node-a:310:1201 [0] NCCL INFO [Service thread] Connection closed by localRank 1";
const WRAPPER_LINE: &str = "(APIServer pid=290) RuntimeError: Engine core initialization failed. See root cause above. \
    Failed core proc(s): {}";

fn place(line: u64, process: Option<&str>, rank: Option<u32>, text: &str) -> PlaceReport {
    PlaceReport {
        input: "node-b.log".into(),
        line,
        byte: line * 100,
        time_local: Some("11-25T13:00:07".into()),
        time_after: None,
        process: process.map(str::to_owned),
        attribution: "prefix".into(),
        rank,
        node: rank.map(|rank| if rank == 1 { "node-b".into() } else { "node-a".into() }),
        text: text.into(),
        ..PlaceReport::default()
    }
}

fn evidence(n: usize, role: &str, place: PlaceReport, why: Option<&str>) -> Evidence {
    Evidence {
        n,
        role: role.into(),
        signature: None,
        place,
        explained_by: (n > 0).then_some(0),
        why: why.map(str::to_owned),
    }
}

fn process(id: &str, role: &str, rank: Option<u32>, last_phase: &str, exit: Option<&str>) -> Process {
    Process {
        id: id.into(),
        role: role.into(),
        rank,
        coords: CoordsReport::default(),
        node: None,
        pid: None,
        last_phase: Some(last_phase.into()),
        exit: exit.map(str::to_owned),
    }
}
