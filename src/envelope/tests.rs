//! Whole lines through the peeler: each transport, their nesting, and text that must stay as it is.

use super::*;
use crate::record::Stream;

/// An owned record, for comparison.
#[derive(Debug, Clone)]
struct Got {
    line: u64,
    text: String,
    shown: String,
    tag: Arc<crate::record::Tag>,
    stamp: Option<String>,
    repeated: u32,
}

fn peel_with(profile: Profile, log: &str) -> Vec<Got> {
    let mut peeler = Peeler::new(profile);
    let mut got = Vec::new();
    let mut out = |r: Record<'_>| {
        got.push(Got {
            line: r.line,
            text: r.text.into_owned(),
            shown: r.shown.into_owned(),
            tag: r.tag,
            stamp: r.stamp.map(|s| s.printed()),
            repeated: r.repeated,
        });
    };
    let mut byte = 0;
    for (i, line) in log.split('\n').enumerate() {
        peeler.line(i as u64 + 1, byte, line.as_bytes(), &mut out);
        byte += line.len() as u64 + 1;
    }
    peeler.finish(&mut out);
    got
}

fn peel(log: &str) -> Vec<Got> {
    peel_with(Profile::of(log.as_bytes()), log)
}

fn texts(log: &str) -> Vec<String> {
    peel(log).into_iter().map(|r| r.text).collect()
}

fn one(line: &str) -> Got {
    let mut got = peel(line);
    assert_eq!(got.len(), 1, "{line}");
    got.remove(0)
}

#[test]
fn program_text_stays() {
    for line in [
        "Traceback (most recent call last):",
        "  File \"/a/b.py\", line 3, in f",
        "    raise ValueError(\"x\")",
        "ValueError: CUDA out of memory",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "INFO 11-25 13:00:07 [core.py:1] x",
        "(EngineCore_DP0 pid=77) ERROR 11-25 13:00:07 [core.py:718] EngineCore failed to start.",
        "(VllmWorker rank=1 pid=191128) ERROR 05-28 18:58:32 [multiproc_executor.py:522] x",
        "[2026-11-25 13:00:07 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        "2026-11-25 13:00:07,123\tINFO worker.py:2038 -- Started a local Ray instance.",
        "[2026-11-25 13:00:07,123 E 123 456] (raylet) node_manager.cc:3199: x",
        "node-a:4565:6135 [5] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM",
        "[2026-11-25 13:00:07] node-a:1:2 [0] init.cc:1 NCCL WARN x",
        "[rank0]:[E1118 20:32:23.957487695 ProcessGroupNCCL.cpp:681] [Rank 0] x",
        "model: llama",
        "  tensor_parallel_size: 2",
        "3: foo",
        "[3] foo",
        "node-b: x",
        "name | x",
        "  | Traceback (most recent call last):",
        "{\"message\": \"CUDA out of memory\"}",
        "{'message': 'CUDA out of memory'}",
        "Process EngineCore_DP0:",
        "Nov 29 is a date",
        "> quoted",
        "&lt;unknown&gt;",
        "",
    ] {
        let got = one(line);
        assert_eq!((got.text.as_str(), got.shown.as_str()), (line, line));
        assert_eq!(*got.tag, crate::record::Tag::default(), "{line}");
        assert_eq!(got.stamp, None, "{line}");
    }
}

#[test]
fn a_cri_line_in_ray_keeps_every_layer() {
    let line = "2026-11-25T12:00:00.5Z stderr F \x1b[36mvllm-1  |\x1b[0m \x1b[36m(RayWorkerWrapper pid=12, ip=10.0.0.2)\x1b[0m   File \"a.py\", line 1, in f\x1b[32m [repeated 3x across cluster]\x1b[0m\r";
    let got = &peel(&[line; 3].join("\n"))[0];
    assert_eq!(got.text, "  File \"a.py\", line 1, in f");
    assert_eq!(
        got.shown,
        "2026-11-25T12:00:00.5Z stderr F vllm-1  | (RayWorkerWrapper pid=12, ip=10.0.0.2)   File \"a.py\", line 1, in f [repeated 3x across cluster]"
    );
    assert_eq!(
        (got.tag.stream, got.tag.container.as_deref()),
        (Some(Stream::Stderr), Some("vllm-1"))
    );
    let ray = got.tag.ray.as_ref().unwrap();
    assert_eq!(
        (&*ray.name, ray.pid, ray.ip.as_deref()),
        ("RayWorkerWrapper", Some(12), Some("10.0.0.2"))
    );
    assert_eq!(
        (got.repeated, got.stamp.as_deref()),
        (3, Some("2026-11-25T12:00:00.500"))
    );
}

#[test]
fn partial_cri_lines_are_joined_by_stream() {
    let log = "2026-11-25T12:00:00.1Z stdout P INFO 11-25 \n\
               2026-11-25T12:00:00.1Z stderr P ERROR \n\
               2026-11-25T12:00:00.2Z stdout P 13:00:07 \n\
               2026-11-25T12:00:00.3Z stdout F [a.py:1] x\n\
               2026-11-25T12:00:00.4Z stderr F y\n\
               2026-11-25T12:00:00.5Z stderr P torn";
    let got = peel(log);
    let texts: Vec<_> = got.iter().map(|r| (r.line, r.text.as_str())).collect();
    assert_eq!(
        texts,
        [(1, "INFO 11-25 13:00:07 [a.py:1] x"), (2, "ERROR y"), (6, "torn")]
    );
    assert_eq!(got[1].tag.stream, Some(Stream::Stderr));
}

#[test]
fn docker_and_ci_stamps() {
    for (line, text) in [
        (
            "2026-11-25T12:00:00.123456789Z   File \"a.py\", line 1, in f",
            "  File \"a.py\", line 1, in f",
        ),
        ("2026-11-25T12:00:00.1234567Z plain", "plain"),
        ("2026-11-25T12:00:00.1234567Z 01E plain", "plain"),
        ("[2026-11-25T12:00:00Z]   indented", "  indented"),
        ("[2026-11-25T12:00:00Z] (EngineCore pid=1) x", "(EngineCore pid=1) x"),
    ] {
        let got = one(line);
        assert_eq!(got.text, text);
        assert!(got.stamp.is_some_and(|s| s.starts_with("2026-11-25T12:00:00")));
    }
}

#[test]
fn names_before_a_bar_are_compose_when_program_lines_follow() {
    let log = "vllm-1    | INFO 11-25 13:00:07 [a.py:1] x\nvllm-1    | INFO 11-25 13:00:07 [a.py:1] y\nrouter-1  | z\nvllm-1    |   File\nmetric | value\na | b\nc: d\ne\nf";
    let got = peel(log);
    assert_eq!(got[3].text, "  File");
    assert_eq!(got[2].tag.container.as_deref(), Some("router-1"));
    assert_eq!(got[4].text, "metric | value");
}

#[test]
fn a_numbered_container_needs_no_program_line() {
    assert_eq!(texts("vllm-1  | Killed"), ["Killed"]);
    assert_eq!(texts("metric  | value"), ["metric  | value"]);
}

#[test]
fn task_numbers_are_ranks_when_program_lines_follow() {
    let log = "0: INFO 11-25 13:00:07 [a.py:1] x\n1: INFO 11-25 13:00:07 [a.py:1] x\n1:   File\n0: Traceback (most recent call last):";
    let got = peel(log);
    assert_eq!((got[2].text.as_str(), got[2].tag.task), ("  File", Some(1)));
    assert_eq!(texts("1: a\n2: b\n3: c\n4: d")[0], "1: a");
}

#[test]
fn hosts_before_a_colon() {
    let log = "worker-0: worker-0:4565:6135 [5] NCCL INFO x\nworker-0: worker-0:4565:6135 [5] NCCL INFO y\nworker-17: ValueError: x\nValueError: y";
    let got = peel(log);
    assert_eq!(
        (got[2].text.as_str(), got[2].tag.node.as_deref()),
        ("ValueError: x", Some("worker-17"))
    );
    assert_eq!(got[3].text, "ValueError: y");
}

#[test]
fn bare_stamps_go_when_the_source_has_them_throughout() {
    let ts = "Nov 25 13:00:07 INFO 11-25 13:00:07 [a.py:1] x\nNov 25 13:00:08 Process EngineCore_DP0:\nNov 25 13:00:08 Traceback (most recent call last):";
    assert_eq!(
        texts(ts),
        [
            "INFO 11-25 13:00:07 [a.py:1] x",
            "Process EngineCore_DP0:",
            "Traceback (most recent call last):"
        ]
    );
    let iso = "2026-11-25 13:00:07 INFO 11-25 13:00:07 [a.py:1] x\n2026-11-25 13:00:08   File \"a.py\", line 1, in f\n2026-11-25 13:00:08 ValueError: x";
    assert_eq!(texts(iso)[1..], ["  File \"a.py\", line 1, in f", "ValueError: x"]);
    let own = "2026-11-25 13:00:07 INFO router: x\n2026-11-25 13:00:08 INFO router: y";
    assert_eq!(texts(own)[0], "2026-11-25 13:00:07 INFO router: x");
    let rust = "2026-11-25T13:00:07.123456Z  INFO sglang_router_rs::server: x\n2026-11-25T13:00:07.123456Z  WARN sglang_router_rs::server: y";
    assert_eq!(texts(rust)[0], rust.lines().next().unwrap());
}

#[test]
fn syslog_without_pids() {
    let log = "Nov 25 13:00:07 node-a vllm: INFO x\nNov 25 13:00:08 node-a vllm:   File";
    let got = peel(log);
    assert_eq!(
        (got[1].text.as_str(), got[1].tag.unit.as_deref()),
        ("  File", Some("vllm"))
    );
}

#[test]
fn unknown_prefixes_of_one_shape() {
    let log = "5.9s 3 INFO 11-25 13:00:07 [a.py:1] x\n644.1s 813 Traceback (most recent call last):\n644.1s 814   File \"a.py\", line 1, in f\n644.1s 815 ValueError: x";
    assert_eq!(
        texts(log)[1..],
        [
            "Traceback (most recent call last):",
            "  File \"a.py\", line 1, in f",
            "ValueError: x"
        ]
    );
    let profile = Profile::of(log.as_bytes());
    assert_eq!(
        profile.notes(),
        ["a prefix of unknown origin, such as `5.9s 3`, was taken off the lines"]
    );
}

#[test]
fn json_lines_are_envelopes_only_throughout() {
    let line = r#"{"log":"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nValueError: x\n","stream":"stderr","time":"2026-11-25T12:00:00Z"}"#;
    let got = peel(&[line; 3].join("\n"));
    assert_eq!(got.len(), 9);
    assert_eq!(
        (got[4].line, got[4].text.as_str(), got[4].shown.as_str()),
        (2, "  File \"a.py\", line 1, in f", "  File \"a.py\", line 1, in f")
    );
    let quoted = format!(
        "INFO 11-25 13:00:07 [a.py:1] x\n{line}\nINFO 11-25 13:00:07 [a.py:1] x\nINFO 11-25 13:00:07 [a.py:1] x"
    );
    assert_eq!(texts(&quoted)[1], line);
}

#[test]
fn docker_parts_are_joined() {
    let record = |text: &str| {
        let text = serde_json::Value::from(text);
        format!("{{\"log\":{text},\"stream\":\"stderr\",\"time\":\"2026-11-25T12:00:00Z\"}}")
    };
    let whole = format!("INFO 11-25 13:00:07 [a.py:1] {}", "x".repeat(16 << 10));
    let (part, rest) = whole.split_at(16 << 10);
    let log = [record(part), record(&format!("{rest}\n"))].join("\n");
    assert_eq!(texts(&log), [whole]);
    // Other collectors write the same fields, and no line end into any text.
    let lines = ["INFO 11-25 13:00:07 [a.py:1] x", "INFO 11-25 13:00:08 [a.py:1] y"];
    assert_eq!(texts(&lines.map(record).join("\n")), lines);
}

#[test]
fn json_inside_cri() {
    let line = r#"2026-11-25T12:00:00.5Z stderr F {"asctime":"11-25 13:00:07","levelname":"error","name":"vllm.a","processName":"EngineCore","process":77,"message":"x"}"#;
    let got = one(line);
    assert_eq!(
        (got.text.as_str(), got.tag.level.as_deref(), got.tag.pid),
        ("(EngineCore pid=77) x", Some("ERROR"), Some(77))
    );
    assert_eq!(got.stamp.as_deref(), Some("2026-11-25T12:00:00.500"));
}

#[test]
fn progress_bars() {
    let got = peel(
        "(EngineCore pid=3) \rLoading:   0%|  | 0/2 [00:00<?, ?it/s]\rLoading: 100%|██| 2/2 [00:02<00:00,  1.00s/it](EngineCore pid=3) ERROR 11-25 13:00:07 [core.py:1] x",
    );
    let texts: Vec<_> = got.iter().map(|r| r.text.as_str()).collect();
    assert_eq!(
        texts,
        [
            "(EngineCore pid=3) Loading: 100%|██| 2/2 [00:02<00:00,  1.00s/it]",
            "(EngineCore pid=3) ERROR 11-25 13:00:07 [core.py:1] x"
        ]
    );
    let got = peel("(RayWorkerWrapper pid=3) a: 100%|██| 2/2 [00:02<00:00,  1.00s/it](RayWorkerWrapper pid=4) Killed");
    assert_eq!(
        (got[1].text.as_str(), got[1].tag.ray.as_ref().unwrap().pid),
        ("Killed", Some(4))
    );
    assert_eq!(
        got[0].shown,
        "(RayWorkerWrapper pid=3) a: 100%|██| 2/2 [00:02<00:00,  1.00s/it]"
    );
}

#[test]
fn worker_files_name_their_writer() {
    let got = peel(":job_id:01000000\n:actor_name:RayWorkerWrapper\nINFO 11-25 13:00:07 [a.py:1] x");
    assert_eq!(got.len(), 1);
    assert_eq!(
        (got[0].line, &*got[0].tag.ray.as_ref().unwrap().name),
        (3, "RayWorkerWrapper")
    );
}

#[test]
fn tags_are_shared() {
    let got = peel("(raylet) a\n(raylet) b");
    assert!(Arc::ptr_eq(&got[0].tag, &got[1].tag));
}

#[test]
fn a_long_line_is_cut_only_for_showing() {
    let line = "é".repeat(3000);
    let got = one(&line);
    assert_eq!((got.text.len(), got.shown.len()), (6000, 4096));
}

#[test]
fn newest_first() {
    let log = "2026-11-25T12:00:03.1234567Z d\n2026-11-25T12:00:02.1234567Z c\n2026-11-25T12:00:01.1234567Z b\n2026-11-25T12:00:00.1234567Z a";
    assert!(Profile::of(log.as_bytes()).newest_first());
}

#[test]
fn newest_first_objects_by_the_stamp_of_the_record() {
    let line = |s: u32| {
        format!(
            r#"{{"receiveTimestamp":"2026-11-25T12:00:0{}Z","textPayload":"x{s}","timestamp":"2026-11-25T12:00:0{s}Z"}}"#,
            s + 2
        )
    };
    let log: Vec<String> = (0..6).rev().map(line).collect();
    assert!(Profile::of(log.join("\n").as_bytes()).newest_first());
}

#[test]
fn tables_keep_the_place_of_every_line() {
    let log = "timestamp,host,message\n2026-11-25T12:00:01Z,node-b,\"Traceback (most recent call last):\n  File \"\"a.py\"\", line 1, in f\nValueError: x\"\n2026-11-25T12:00:02Z,node-b,(raylet) y\n";
    let got = peel(log);
    let texts: Vec<_> = got.iter().map(|r| (r.line, r.text.as_str())).collect();
    assert_eq!(
        texts,
        [
            (2, "Traceback (most recent call last):"),
            (3, "  File \"a.py\", line 1, in f"),
            (4, "ValueError: x"),
            (5, "y")
        ]
    );
    assert_eq!(
        (got[3].tag.node.as_deref(), got[3].stamp.as_deref()),
        (Some("node-b"), Some("2026-11-25T12:00:02"))
    );
}

#[test]
fn journal_export() {
    let log = "__CURSOR=s=b\n__REALTIME_TIMESTAMP=1795962823312510\n_HOSTNAME=node-a\nPRIORITY=6\nSYSLOG_IDENTIFIER=vllm\nMESSAGE=(raylet)   File\n_PID=24\n\n";
    let got = one(log);
    assert_eq!(
        (got.line, got.text.as_str(), got.tag.unit.as_deref(), got.tag.pid),
        (6, "  File", Some("vllm"), Some(24))
    );
}

#[test]
fn hard_wrapped_lines_count_where_they_begin() {
    let log = "INFO 11-25 13:00:07 [core.py:1] Initializing a V1 LLM engine wit\nh config: model='x', speculative_config=None, tokenizer='x', sk_\nip_tokenizer_init=False\n(raylet) 2 Workers killed due to memory pressure, use `ray logs \nraylet.out`\nINFO 11-25 13:00:07 [core.py:1] Initializing a V1 LLM engine wit\nh config\n(raylet) x";
    let got = peel(log);
    assert_eq!(got.iter().map(|r| r.line).collect::<Vec<_>>(), [1, 4, 6, 8]);
    assert_eq!(
        got[1].text,
        "2 Workers killed due to memory pressure, use `ray logs raylet.out`"
    );
}

#[test]
fn pasted_logs() {
    assert_eq!(texts("I get:\n```\n(raylet) a\n```"), ["I get:", "a"]);
    assert_eq!(texts("> (raylet) a\n> (raylet)   b\n> c"), ["a", "  b", "c"]);
    assert_eq!(
        texts("(raylet) in &lt;module&gt;\n(raylet) &quot;"),
        ["in <module>", "\""]
    );
}

#[test]
fn loki_output() {
    let got = one("2026-11-25T12:00:00Z {app=\"vllm\", pod=\"vllm-0\"} (raylet)   File");
    assert_eq!((got.text.as_str(), got.tag.node.as_deref()), ("  File", Some("vllm-0")));
}

/// Pieces of every transport; put together at random they reach the joins between the layers.
const FRAGMENTS: [&[u8]; 40] = [
    b"2026-11-25T12:00:00.123456789Z stderr F ",
    b"2026-11-25T12:00:00.1Z stdout P ",
    b"2026-11-25T12:00:00.1234567Z ",
    b"2026-11-25 12:00:00 ",
    b"Nov 25 13:00:07 node-a vllm[24]: ",
    b"Nov 25 13:00:07 ",
    b"<14>1 2026-11-29T14:23:40Z node-a vllm 24 - [a b=\"\\]\"] ",
    b"[12345.678901] ",
    b"[Sun Nov 29 14:23:40 2026] ",
    b"vllm-1  | ",
    b"14:24:12 head.1   | ",
    b"[pod/vllm-0/server] ",
    b"[1,3]<stderr>:",
    b"[default1]:",
    b"[rank0]: ",
    b"0: ",
    b"[3] ",
    b"node-b: ",
    b"\x1b[36m(RayWorkerWrapper pid=12, ip=10.0.0.2)\x1b[0m ",
    b"(raylet) ",
    b"(EngineCore_0 pid=1159) ",
    b" [repeated 3x across cluster]",
    b"INFO 11-25 13:00:07 [a.py:1] x",
    b"  File \"a.py\", line 1, in f",
    b"Traceback (most recent call last):",
    b"Loading:  50%|\xe2\x96\x88 | 1/2 [00:01<00:01,  1.00s/it]",
    b"\r",
    b"node-a:1:2 [0] NCCL INFO x",
    b"{\"log\":\"a\\nb\",\"stream\":\"stderr\",\"time\":\"2026-11-25T12:00:00Z\"}",
    b"{\"message\":\"x\",\"level\":\"info\"}",
    b"timestamp,message",
    b"2026-11-25T12:00:01Z,\"x",
    b"\"",
    b"{",
    b"  },",
    b"\"textPayload\": \"x\",",
    b"__CURSOR=x",
    b"MESSAGE",
    b"> ",
    b"&lt;#033[0m",
];

fn fragment() -> impl proptest::strategy::Strategy<Value = Vec<u8>> {
    use proptest::prelude::*;
    prop_oneof![
        4 => proptest::sample::select(FRAGMENTS.as_slice()).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ]
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived_in_order(
        lines in proptest::collection::vec(proptest::collection::vec(fragment(), 0..6), 0..40),
        repeat in 1usize..4,
    ) {
        let log: Vec<u8> = lines.iter().map(|line| line.concat()).collect::<Vec<_>>().join(&b'\n').repeat(repeat);
        let profile = Profile::of(&log);
        let mut lines: Vec<_> = log.split(|&b| b == b'\n').zip(1u64..).collect();
        if profile.newest_first() {
            lines.reverse();
        }
        let newest_first = profile.newest_first();
        let mut peeler = Peeler::new(profile);
        let mut numbers = Vec::new();
        let mut out = |r: Record<'_>| numbers.push(r.line);
        for (line, no) in &lines {
            peeler.line(*no, 0, line, &mut out);
        }
        peeler.finish(&mut out);
        proptest::prop_assert!(newest_first || numbers.is_sorted(), "{numbers:?}");
    }
}
