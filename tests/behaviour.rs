//! What a build that only searches for words would get wrong: the root follows its process, a quoting observer is
//! believed less than the victim, nothing is named that no line states, and quoted text is no failure.

mod common;

use common::{Text, examine_texts, root_process};
use coroner::catalog::{Catalog, Strength};
use coroner::report::model::{Outcome, Report};

const C: &str = "corpus/flagship-c-graph-capture-oom.log";
const A_SGLANG: [&str; 2] = [
    "corpus/flagship-a-sglang-context-oom.d/node-a.log",
    "corpus/flagship-a-sglang-context-oom.d/node-b.log",
];
const A_VLLM: [&str; 2] = [
    "corpus/flagship-a-vllm-context-oom.d/node-a.log",
    "corpus/flagship-a-vllm-context-oom.d/node-b.log",
];
const B_255: [&str; 2] = [
    "corpus/flagship-b-ray255-monitor.d/node-a.log",
    "corpus/flagship-b-ray255-monitor.d/node-b/raylet.out",
];
const B_260: [&str; 2] = [
    "corpus/flagship-b-ray260-monitor.d/node-a.log",
    "corpus/flagship-b-ray260-monitor.d/node-b/raylet.out",
];

fn texts(paths: &[&str]) -> Vec<Text> {
    paths.iter().map(Text::read).collect()
}

fn cause(report: &Report) -> (&str, f64) {
    let cause = report
        .cause
        .as_ref()
        .unwrap_or_else(|| panic!("no cause: {}", report.headline));
    (&cause.id, cause.confidence)
}

/// Whether the report admits that it does not know: no strong cause, and a way to learn more.
fn admits_ignorance(report: &Report) {
    let catalog = Catalog::shared();
    if let Some(cause) = &report.cause {
        assert!(catalog.strength(&cause.id) < Strength::Strong, "{cause:?}");
        assert!(cause.confidence < 0.7, "{cause:?}");
    }
    assert!(
        matches!(report.outcome, Outcome::Failed | Outcome::Running),
        "{}",
        report.headline
    );
    assert!(
        !report.next_evidence.is_empty(),
        "nothing is asked for: {}",
        report.headline
    );
}

#[test]
fn the_root_follows_the_labels_of_two_ranks() {
    let log = Text::read(C);
    let before = examine_texts(std::slice::from_ref(&log));
    assert_eq!(
        (root_process(&before).pid, root_process(&before).rank),
        (Some(4114), Some(1))
    );
    let swapped = log.swap(&[
        ("4113", "4114"),
        ("Worker_TP0", "Worker_TP1"),
        ("rank 0", "rank 1"),
        ("rank=0", "rank=1"),
        ("[rank0]", "[rank1]"),
    ]);
    let after = examine_texts(&[swapped]);
    assert_eq!(cause(&after).0, cause(&before).0);
    assert_eq!(after.phase, before.phase);
    assert_eq!(
        (root_process(&after).pid, root_process(&after).rank),
        (Some(4113), Some(0))
    );
    let lines = |report: &Report| report.root.as_ref().map(|root| root.place.line);
    assert_eq!(lines(&after), lines(&before));
    assert!(after.headline.contains("ank 0"), "{}", after.headline);
}

#[test]
fn the_root_follows_the_swapped_nodes_of_a_launch() {
    for paths in [A_SGLANG, A_VLLM] {
        let logs = texts(&paths);
        let before = examine_texts(&logs);
        let exchanged = [
            Text::new(logs[0].name.clone(), logs[1].bytes.clone()),
            Text::new(logs[1].name.clone(), logs[0].bytes.clone()),
        ];
        let after = examine_texts(&exchanged);
        assert_eq!(cause(&before), cause(&after));
        assert_eq!(before.phase, after.phase);
        assert_eq!(root_process(&before).node.as_deref(), Some("node-b"));
        assert_eq!(root_process(&after).node.as_deref(), Some("node-a"));
    }
    let swapped: Vec<Text> = texts(&A_SGLANG)
        .iter()
        .map(|log| log.swap(&[(" TP0]", " TP1]")]))
        .collect();
    assert_eq!(root_process(&examine_texts(&swapped)).coords.tp, Some(0));
}

#[test]
fn the_victim_of_a_kill_follows_its_pid() {
    for paths in [B_255, B_260] {
        let logs = texts(&paths);
        assert_eq!(root_process(&examine_texts(&logs)).pid, Some(1879), "{paths:?}");
        let renamed: Vec<Text> = logs.iter().map(|log| log.swap(&[("1879", "2954")])).collect();
        let after = examine_texts(&renamed);
        assert_eq!(cause(&after).0, "host-mem.ray-monitor");
        assert_eq!(root_process(&after).pid, Some(2954), "{paths:?}");
    }
}

#[test]
fn without_the_dead_workers_lines_its_observer_is_believed_less() {
    let log = Text::read(C);
    let whole = examine_texts(std::slice::from_ref(&log));
    let quoted = examine_texts(&[log.keep(|line| !line.contains("4114"))]);
    assert_eq!(cause(&quoted).0, cause(&whole).0);
    assert!(
        cause(&quoted).1 < cause(&whole).1,
        "{:?} {:?}",
        cause(&quoted),
        cause(&whole)
    );
    let root = &quoted.root.as_ref().unwrap().place;
    assert!(root.text.contains("Worker failed with error"), "{}", root.text);
    assert_eq!(root.rank, None, "the quote names no rank");
    assert!(!quoted.headline.contains("ank 1"), "{}", quoted.headline);
}

#[test]
fn without_the_raylets_record_the_driver_that_quotes_it_tells_the_same() {
    let logs = texts(&B_255);
    let (whole, quoted) = (examine_texts(&logs), examine_texts(&logs[..1]));
    assert_eq!(cause(&quoted).0, cause(&whole).0);
    assert_eq!(quoted.phase, whole.phase);
    assert_eq!(quoted.root.as_ref().unwrap().place.input, B_255[0]);
    assert_eq!(root_process(&quoted).pid, Some(1879), "the quote names the victim");
}

#[test]
fn without_any_line_that_states_the_cause_none_is_named() {
    let states = |line: &str| line.contains("out of memory") || line.contains("OutOfMemory");
    let logs = [Text::read(C).keep(|line| !states(line))];
    admits_ignorance(&examine_texts(&logs));

    for paths in [A_SGLANG, A_VLLM] {
        // The dead node's log is lost: all that is left is a peer that waits.
        admits_ignorance(&examine_texts(&texts(&paths[..1])));
        let logs: Vec<Text> = texts(&paths).iter().map(|log| log.keep(|line| !states(line))).collect();
        admits_ignorance(&examine_texts(&logs));
    }

    let kills = |line: &str| {
        [
            "low on memory",
            "memory pressure",
            "Killing 1 worker",
            "usage above threshold",
            "OOM",
            "Ray killed",
            "to kill",
        ]
        .iter()
        .any(|words| line.contains(words))
    };
    for paths in [B_255, B_260] {
        let logs: Vec<Text> = texts(&paths).iter().map(|log| log.keep(|line| !kills(line))).collect();
        admits_ignorance(&examine_texts(&logs));
        admits_ignorance(&examine_texts(&logs[..1]));
    }
}

#[test]
fn the_causes_own_words_in_quoted_text_are_no_failure() {
    let root = |paths: &[&str]| examine_texts(&texts(paths)).root.unwrap().place.text;
    let healthy = common::healthy_vllm();
    let before = examine_texts(std::slice::from_ref(&healthy));
    assert_eq!(before.outcome, Outcome::Healthy, "{}", before.headline);
    for words in [root(&[C]), root(&A_SGLANG), root(&A_VLLM), root(&B_255), root(&B_260)] {
        let words = words
            .rsplit("multiproc_executor.py:949] ")
            .next()
            .unwrap()
            .replace(['"', '\n'], " ");
        let quotes = [
            format!(
                "(APIServer pid=819) INFO:     127.0.0.1:42910 - \"GET /search?q={words} HTTP/1.1\" 404 Not Found\n"
            ),
            format!(
                "(APIServer pid=819) INFO 11-29 14:24:16 [logger.py:39] Received request cmpl-7: prompt: '{words}', \
                 params: SamplingParams(n=1), prompt_token_ids: None, lora_request: None.\n"
            ),
            format!(
                "(APIServer pid=819) INFO 11-29 14:24:16 [proxy.py:12] {{\"model\": \"m\", \"error\": \"{words}\"}}\n"
            ),
        ];
        for quote in quotes {
            let mut text = healthy.clone();
            text.bytes.extend(quote.bytes());
            let report = examine_texts(&[text]);
            assert_eq!(report.outcome, Outcome::Healthy, "{quote}{}", report.headline);
            assert!(report.cause.is_none() && report.root.is_none(), "{quote}");
        }
    }
}

/// A launch of torchrun in which rank 2 lost its peer, and `rank` is told to have ended first, with `code`.
fn lost_peer(rank: u32, code: i32) -> Report {
    let log = format!(
        "INFO 03-11 08:00:01 [train.py:12] init_process_group rank=2 world=4\n\
         [rank2]: Traceback (most recent call last):\n\
         [rank2]:   File \"/srv/job/step.py\", line 9, in <module>\n\
         [rank2]:     dist.barrier()\n\
         [rank2]:   File \"/opt/py/site-packages/torch/distributed/distributed_c10d.py\", line 4100, in barrier\n\
         [rank2]:     work.wait()\n\
         [rank2]: RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer \
         [10.1.0.4]:4711\n\
         E0311 08:00:09.590000 18 torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: {code}) \
         local_rank: {rank} (pid: 31{rank}) of binary: /opt/py/bin/python\n\
         Traceback (most recent call last):\n  File \"/opt/py/bin/torchrun\", line 10, in <module>\n    sys.exit(main())\n\
         torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n\
         ============================================================\nstep.py FAILED\n\
         ------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  \
         time      : 2026-03-11_08:00:09\n  host      : node-a\n  rank      : {rank} (local_rank: {rank})\n  \
         exitcode  : {code} (pid: 31{rank})\n"
    );
    examine_texts(&[Text::new("job.log", log)])
}

#[test]
fn the_rank_that_left_is_what_its_peers_missed() {
    let left = lost_peer(1, 5);
    assert_eq!(cause(&left).0, "unknown.silent", "{}", left.headline);
    assert_eq!(left.root.as_ref().unwrap().place.rank, Some(1));
    let own = lost_peer(2, 1);
    assert_eq!(cause(&own).0, "dist.gloo", "{}", own.headline);
}

#[test]
fn a_try_without_its_end_is_believed_less_than_one_that_ended_the_launch() {
    let tries = "2026-05-02 10:00:00,634\tINFO worker.py:1660 -- Connecting to existing Ray cluster at address: \
                 10.9.0.1:6379...\n[2026-05-02 10:00:05,641 W 18 18] gcs_rpc_client.h:151: Failed to connect to GCS at \
                 address 10.9.0.1:6379 within 5 seconds.\n";
    let end = "Traceback (most recent call last):\n  File \"/srv/app.py\", line 3, in <module>\n    ray.init()\n\
               ConnectionError: Failed to connect to Ray cluster at 10.9.0.1:6379\n";
    let waiting = examine_texts(&[Text::new("driver.log", tries)]);
    let ended = examine_texts(&[Text::new("driver.log", format!("{tries}{end}"))]);
    assert_eq!(
        (cause(&waiting).0, cause(&ended).0),
        ("ray.gcs-unreachable", "ray.gcs-unreachable")
    );
    assert!(
        cause(&waiting).1 < 0.5 && cause(&ended).1 >= 0.5,
        "{:?} {:?}",
        cause(&waiting),
        cause(&ended)
    );
}

#[test]
fn a_harmless_line_above_does_not_make_a_schedulers_exception_harmless() {
    let log = "[2026-02-11 09:15:02 TP0] Compute capability below sm80. Use float16 due to lack of bfloat16 support.\n\
               [2026-02-11 09:15:02 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  \
               File \"/srv/sglang/srt/managers/scheduler.py\", line 9, in run_scheduler_process\n    \
               scheduler = Scheduler(\nValueError: Model architectures ['NoSuchForCausalLM'] are not supported for now.\n";
    let report = examine_texts(&[Text::new("server.log", log)]);
    assert_eq!(cause(&report).0, "config.unsupported-arch", "{}", report.headline);
}

#[test]
fn what_standard_output_says_within_a_traceback_is_heard() {
    let log = "INFO 05-17 18:31:50 [api_server.py:9] vLLM API server version 0.9.1\nTraceback (most recent call last):\n  \
               File \"/opt/py/site-packages/transformers/dynamic_module_utils.py\", line 7, in resolve_trust_remote_code\n\
               The repository for /models/own contains custom code which must be executed to correctly load the model. \
               You can inspect the repository content at https://hf.co//models/own.\n\n    answer = input(\n\
               EOFError: EOF when reading a line\n";
    let report = examine_texts(&[Text::new("server.log", log)]);
    assert_eq!(cause(&report).0, "config.trust-remote-code", "{}", report.headline);
}

#[test]
fn a_weak_verdict_names_what_it_often_turns_out_to_be() {
    let log = "(EngineCore_DP0 pid=77) INFO 11-29 14:00:06 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: \
               model='/models/m'\nRuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)\n";
    let report = examine_texts(&[Text::new("server.log", log)]);
    assert_eq!(cause(&report).0, "nccl.system-error");
    let ids: Vec<&str> = report.alternatives.iter().map(|a| a.id.as_str()).collect();
    assert!(
        ids.contains(&"nccl.bootstrap-net") && ids.contains(&"host-mem.shm"),
        "{ids:?}"
    );
}

#[test]
fn the_terms_of_a_confidence_sum_up_to_it() {
    for paths in [&[C][..], &A_SGLANG, &B_255] {
        let report = examine_texts(&texts(paths));
        let sum: f64 = report.confidence_terms.iter().map(|(_, value)| value).sum();
        assert!((sum - cause(&report).1).abs() < 0.005, "{sum} {:?}", cause(&report));
        assert!(report.confidence_terms.len() >= 3);
    }
}

fn of(log: &str) -> Report {
    examine_texts(&[Text::new("launch.log", log)])
}

/// A server of SGLang's that is ready, without anything that a report would remark.
const SGLANG_READY: &str = "\
[2026-03-03 08:15:31] server_args=ServerArgs(model_path='x/y', tp_size=1, mem_fraction_static=0.88)
[2026-03-03 08:15:32] Load weight begin. avail mem=77.62 GB
[2026-03-03 08:16:27] Memory pool end. avail mem=6.70 GB
[2026-03-03 08:16:57] INFO:     Started server process [11]
[2026-03-03 08:16:57] INFO:     Application startup complete.
[2026-03-03 08:17:02] The server is fired up and ready to roll!
";

#[test]
fn a_request_that_raised_is_no_end_of_the_server() {
    let logged = "\
[2026-03-03 08:18:20] INFO:     127.0.0.1:40124 - \"POST /v1/chat/completions HTTP/1.1\" 500 Internal Server Error
[2026-03-03 08:18:20] ERROR:    Exception in ASGI application
Traceback (most recent call last):
  File \"/opt/venv/lib/python3.12/site-packages/uvicorn/protocols/http/httptools_impl.py\", line 409, in run_asgi
    result = await app(
  File \"/sgl-workspace/sglang/python/sglang/srt/entrypoints/openai/serving_chat.py\", line 300, in _apply_jinja_template
    prompt_ids = self.tokenizer_manager.tokenizer.apply_chat_template(
TypeError: can only concatenate str (not \"NoneType\") to str
";
    let report = of(&format!("{SGLANG_READY}{logged}"));
    assert_eq!(report.outcome, Outcome::Healthy);
    let raised = logged.replace("ERROR:    Exception in ASGI application", "Something else was going on");
    assert_eq!(of(&format!("{SGLANG_READY}{raised}")).outcome, Outcome::Failed);
}

#[test]
fn a_script_that_runs_the_engine_itself_ends_the_launch_by_what_it_raises() {
    let served = "\
INFO 10-14 08:12:01 [__init__.py:216] Automatically detected platform cuda.
(EngineCore_DP0 pid=272) INFO 10-14 08:12:19 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='x/y', \
dtype=torch.float16, max_seq_len=2048
";
    let offline = "Processed prompts: 100%|██████████| 4/4 [00:00<00:00, 40.11it/s, est. speed input: 241.11 toks/s]\n";
    let server = "INFO:     Started server process [11]\nINFO:     Application startup complete.\n";
    let raised = "\
Traceback (most recent call last):
  File \"/home/me/run.py\", line 20, in <module>
    print(out.text)
AttributeError: 'RequestOutput' object has no attribute 'text'
";
    let report = of(&format!("{served}{offline}{raised}"));
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    assert_eq!((report.outcome, cause), (Outcome::Failed, Some("unknown.exception")));
    assert_eq!(of(&format!("{served}{server}{raised}")).outcome, Outcome::Healthy);
}

#[test]
fn a_parent_s_traceback_says_that_the_launch_failed_where_nothing_else_does() {
    let report = of("\
[2026-03-03 08:15:31] server_args=ServerArgs(model_path='x/y', tp_size=1, mem_fraction_static=0.88)
[2026-03-03 08:15:32 TP0] Load weight begin. avail mem=77.62 GB
Traceback (most recent call last):
  File \"/sgl-workspace/sglang/python/sglang/srt/entrypoints/engine.py\", line 700, in _launch_subprocesses
    data = scheduler_pipe_readers[i].recv()
  File \"/usr/lib/python3.10/multiprocessing/connection.py\", line 383, in _recv
    raise EOFError
EOFError
");
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    assert_eq!((report.outcome, cause), (Outcome::Failed, Some("unknown.exception")));
}

#[test]
fn an_allocation_that_fails_in_the_estimate_of_the_graphs_is_one_of_the_graphs() {
    let log = "\
(Worker_TP1 pid=612) INFO 05-14 08:13:46 [gpu_model_runner.py:5876] Profiling CUDA graph memory: PIECEWISE=51 (largest=512)
(Worker_TP1 pid=612) ERROR 05-14 08:13:48 [multiproc_executor.py:949] torch.OutOfMemoryError: CUDA out of memory. Tried to \
allocate 210.00 MiB. GPU 1 has a total capacity of 23.99 GiB of which 90.00 MiB is free.
";
    let cause = |log: &str| of(log).cause.map(|c| c.id);
    assert_eq!(cause(log).as_deref(), Some("gpu-oom.graph-capture"));
    let over = log.replace(
        "ERROR",
        "INFO 05-14 08:13:47 [x.py:1] Estimated CUDA graph memory: 3.65 GiB total\n\
                                     (Worker_TP1 pid=612) ERROR",
    );
    assert_eq!(cause(&over).as_deref(), Some("gpu-oom.profile"));
}

#[test]
fn the_driver_s_line_goes_before_what_its_library_says_of_it() {
    let report = of("\
(EngineCore_DP0 pid=272) INFO 10-14 08:13:46 [kv_cache_utils.py:1087] GPU KV cache size: 832,512 tokens
(EngineCore_DP0 pid=272) ERROR 10-14 08:13:55 [core.py:708] torch.AcceleratorError: CUDA error: unknown error

[ 8123.112233] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
");
    assert_eq!(report.root.as_ref().map(|root| root.place.line), Some(4));
}

#[test]
fn a_shell_s_word_that_a_process_was_killed_comes_after_what_that_process_raised() {
    let report = of("\
INFO 05-14 08:12:20 [core.py:58] Initializing a V1 LLM engine (v0.8.5) with config: model='x/y', dtype=torch.bfloat16
Traceback (most recent call last):
  File \"/opt/venv/lib/python3.12/site-packages/vllm/distributed/device_communicators/pynccl_wrapper.py\", line 279, in NCCL_CHECK
    raise RuntimeError(f\"NCCL error: {error_str}\")
RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)
Killed
");
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    assert_eq!(cause, Some("nccl.system-error"));
}
