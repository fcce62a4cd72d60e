//! Restarts: in one log, in rotated ones, in a file for each; and launches that have nothing to do with each other.

mod common;

use common::{Text, examine, examine_texts, examine_texts_with};
use coroner::report::model::{Outcome, Report};
use coroner::{AttemptChoice, Options};

/// A vLLM launch of one GPU whose engine core has the pid, up to the loading of weights.
fn loading(api: u32, core: u32, at: &str) -> String {
    let (a, c) = (
        format!("(APIServer pid={api}) INFO {at}"),
        format!("(EngineCore pid={core}) INFO {at}"),
    );
    format!(
        "{a}:00 [api_utils.py:339]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.25.1\n\
         {a}:00 [api_utils.py:273] non-default args: {{'model': '/models/llama-8b', 'max_model_len': 4096}}\n\
         {a}:02 [model.py:619] Resolved architecture: LlamaForCausalLM\n\
         {c}:09 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: model='/models/llama-8b', tensor_parallel_size=1\n\
         {c}:12 [parallel_state.py:1607] world_size=1 rank=0 local_rank=0 distributed_init_method=tcp://192.0.2.2:45907 backend=nccl\n\
         {c}:14 [gpu_model_runner.py:5209] Starting to load model /models/llama-8b...\n"
    )
}

const SITE: &str = "/usr/local/lib/python3.12/dist-packages";

/// An attempt that nobody waits for any longer, and one that finds the first one's engine core on the GPU.
fn two_attempts() -> [String; 2] {
    let end = format!(
        "(APIServer pid=3300) Traceback (most recent call last):\n\
         (APIServer pid=3300)   File \"{SITE}/vllm/v1/engine/utils.py\", line 900, in wait_for_engine_startup\n\
         (APIServer pid=3300)     raise TimeoutError(\n\
         (APIServer pid=3300) TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).\n"
    );
    let e = "(EngineCore pid=4410) ERROR 11-25 12:20:14 [core.py:1231] ";
    let occupied = format!(
        "{e}EngineCore failed to start.\n\
         {e}Traceback (most recent call last):\n\
         {e}  File \"{SITE}/vllm/v1/worker/gpu_worker.py\", line 250, in init_device\n\
         {e}    raise ValueError(\n\
         {e}ValueError: Free memory on device cuda:0 (7.91/15.89 GiB) on startup is less than desired GPU memory utilization (0.9, 14.3 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n"
    );
    // Before weights are loaded, as the check does.
    let second: String = loading(4400, 4410, "11-25 12:20")
        .lines()
        .take(5)
        .map(|l| format!("{l}\n"))
        .collect();
    [loading(3300, 3341, "11-25 11:58") + &end, second + &occupied]
}

const LISTING: &str = "\
+-----------------------------------------------------------------------------------------+
| Processes:                                                                              |
|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |
|        ID   ID                                                               Usage      |
|=========================================================================================|
|    0   N/A  N/A            3341      C   VLLM::EngineCore                       7988MiB |
+-----------------------------------------------------------------------------------------+
";

#[test]
fn what_an_earlier_attempt_left_behind_is_named() {
    let [first, second] = two_attempts();
    let log = Text::new("serve.log", first + &second);
    let report = examine_texts(&[log, Text::new("nvidia-smi.txt", LISTING)]);
    assert_eq!(report.cause.map(|c| c.id).as_deref(), Some("gpu-mem.occupied"));
    let left = report.findings.iter().find(|f| f.id == "leftover.process");
    let left = left.map_or("", |f| &f.title);
    assert_eq!(
        left,
        "A leftover process of attempt 1, pid 3341 (EngineCore), holds 7.8 GiB"
    );
    assert!(report.findings.iter().all(|f| f.id != "leftover.suspected"));
    let first = report.remedies.first().map(|r| r.id.as_str());
    assert_eq!(first, Some("kill-leftover-processes"));
}

#[test]
fn an_attempt_that_died_just_before_is_suspected_where_no_line_names_a_holder() {
    let suspected = |first: &str, second: &str| {
        let report = examine_texts(&[Text::new("serve.log", format!("{first}{second}"))]);
        let found = report.findings.into_iter().find(|f| f.id == "leftover.suspected");
        found.map(|f| f.title)
    };
    let [first, second] = two_attempts();
    let told = suspected(&first, &second).unwrap_or_default();
    assert!(
        told.starts_with("Attempt 1 died") && told.contains("no line proves it"),
        "{told}"
    );
    // One that never came to the weights holds none, and one of yesterday is another matter.
    let early: String = first
        .lines()
        .filter(|l| !l.contains("Starting to load"))
        .map(|l| format!("{l}\n"))
        .collect();
    assert_eq!(suspected(&early, &second), None);
    assert_eq!(suspected(&first.replace("11-25", "11-24"), &second), None);
}

#[test]
fn what_the_first_attempt_died_of_is_changed_beside_the_leftover() {
    let [_, second] = two_attempts();
    let c = "(EngineCore pid=3341) INFO 11-25 11:58";
    let e = "(EngineCore pid=3341) ERROR 11-25 11:59:14 [core.py:1231] ";
    let first = loading(3300, 3341, "11-25 11:58")
        + &format!(
            "{c}:40 [gpu_model_runner.py:5300] Model loading took 9.50 GiB memory and 6.123456 seconds\n\
             {e}EngineCore failed to start.\n{e}Traceback (most recent call last):\n\
             {e}  File \"{SITE}/vllm/v1/worker/gpu_model_runner.py\", line 5900, in capture_model\n{e}    self._capture_cudagraphs()\n\
             {e}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 15.89 GiB of which 10.00 MiB is free.\n"
        );
    let log = |first: &str| {
        examine_texts(&[
            Text::new("serve.log", format!("{first}{second}")),
            Text::new("nvidia-smi.txt", LISTING),
        ])
    };
    let ids =
        |report: &coroner::report::model::Report| report.remedies.iter().map(|r| r.id.clone()).collect::<Vec<_>>();
    let report = log(&first);
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("gpu-mem.occupied"));
    assert_eq!(ids(&report)[..2], ["kill-leftover-processes", "utilization-down"]);
    assert!(
        report.story.contains("Attempt 1 died of gpu-oom.graph-capture"),
        "{}",
        report.story
    );
    // 9.50 GiB of weights do not fit beside the leftover, whatever the share.
    assert!(
        !ids(&report).contains(&"utilization-to-free-memory".to_owned()),
        "{:?}",
        ids(&report)
    );
    // Who was only waited for in vain may be in time next.
    let [waited, _] = two_attempts();
    let report = log(&waited);
    assert!(!report.story.contains("Attempt 1 died"), "{}", report.story);
}

#[test]
fn what_is_suspected_of_an_attempt_holds_through_a_loop_of_restarts() {
    let [first, second] = two_attempts();
    let third = second
        .replace("12:20:", "12:25:")
        .replace("pid=4400", "pid=5500")
        .replace("pid=4410", "pid=5510");
    let report = examine_texts(&[Text::new("serve.log", [first, second, third].concat())]);
    assert_eq!(report.attempts.len(), 3);
    let suspected = report.findings.iter().find(|f| f.id == "leftover.suspected");
    let title = &suspected.unwrap().title;
    assert!(
        title.starts_with("Attempt 1 died") && title.contains("before attempt 2 began"),
        "{title}"
    );
}

#[test]
fn a_process_that_the_supervisor_found_left_is_named_with_its_unit() {
    let [first, second] = two_attempts();
    let unit = "systemd[1]: vllm.service: Main process exited, code=exited, status=1/FAILURE\n\
                systemd[1]: vllm.service: Unit process 3341 (VLLM::EngineCor) remains running after unit stopped.\n\
                systemd[1]: vllm.service: Found left-over process 3341 (VLLM::EngineCor) in control group while starting unit. Ignoring.\n";
    let journal = |log: &str, pid: &str| -> String {
        log.lines()
            .map(|line| format!("Nov 25 12:20:00 gpu7 {pid}{line}\n"))
            .collect()
    };
    let log = journal(&first, "vllm[3300]: ") + &journal(unit, "") + &journal(&second, "vllm[4400]: ");
    let report = examine_texts(&[Text::new("journal.txt", log)]);
    let titles: Vec<&str> = report.findings.iter().map(|f| f.title.as_str()).collect();
    let named = "A leftover process of attempt 1, pid 3341 (EngineCore), still ran when this one was started, as its supervisor says";
    assert!(titles.contains(&named), "{titles:?}");
    assert_eq!(report.cause.unwrap().tags, ["leftover"]);
    let remedy = report.remedies.first().unwrap();
    assert_eq!(
        remedy.title,
        "End what an earlier attempt left behind, pid 3341, then start again"
    );
    assert_eq!(
        remedy.change.last().map(|c| c.name.as_str()),
        Some("KillMode of vllm.service")
    );
    assert!(report.next_evidence.iter().all(|n| n.what != "Who holds the memory"));
}

#[test]
fn the_parts_of_a_rotated_log_hold_one_launch_after_the_other() {
    let [first, second] = two_attempts();
    let report = examine_texts(&[Text::new("serve.log", second), Text::new("serve.log.1", first)]);
    let told: Vec<_> = report.attempts.iter().map(|a| a.cause.as_deref()).collect();
    assert_eq!(told, [Some("process.startup-timeout"), Some("gpu-mem.occupied")]);
}

#[test]
fn two_streams_of_one_program_are_one_output() {
    let uncaught = format!(
        "Traceback (most recent call last):\n  \
         File \"/usr/local/bin/vllm\", line 8, in <module>\n    \
         sys.exit(main())\n  \
         File \"{SITE}/vllm/entrypoints/cli/main.py\", line 73, in main\n    \
         args.dispatch_function(args)\n\
         OSError: [Errno 28] No space left on device: '/tmp/metrics'\n"
    );
    let caught = uncaught.replace(
        "/usr/local/bin/vllm\", line 8, in <module>",
        "/usr/lib/python3/foo.py\", line 12, in probe",
    );
    let loading = loading(3300, 3341, "11-25 11:58");
    let ready = loading.clone()
        + "(APIServer pid=3300) INFO 11-25 11:58:48 [api_server.py:616] Starting vLLM server on http://0.0.0.0:8000\n\
           (APIServer pid=3300) INFO:     Started server process [3300]\n\
           (APIServer pid=3300) INFO:     Application startup complete.\n";
    let said = |out: &str, err: &str| {
        let report = examine_texts(&[Text::new("job-7.err", err), Text::new("job-7.out", out)]);
        (report.outcome.id(), report.phase, report.attempts.len())
    };
    assert_eq!(said(&loading, &uncaught).0, "failed");
    // Without a stamp it may have been caught before the server was up; one that left the program ended it.
    assert_eq!(said(&ready, &caught).0, "healthy");
    assert_eq!(said(&ready, &uncaught), ("failed", Some("serving".to_owned()), 1));
}

/// A launch of the corpus as it would have run at another hour or on another day.
fn moved(file: &str, name: &str, day: &str, hour: &str) -> Text {
    let text = Text::read(format!("corpus/{file}.log"));
    let text = text
        .text()
        .replace("11-29 14:", &format!("{day} {hour}:"))
        .replace("1129 14:", &format!("{} {hour}:", day.replace('-', "")))
        .replace("pid=", &format!("pid={hour}"));
    Text::new(name, text)
}

fn told(report: &Report) -> Vec<(Option<&str>, u64, Option<&str>)> {
    let attempts = report.attempts.iter();
    attempts
        .map(|a| (a.input.as_deref(), a.first_line, a.cause.as_deref()))
        .collect()
}

#[test]
fn a_file_for_each_attempt_is_as_good_as_one_for_all() {
    let run = |n: usize| {
        moved(
            "safetensors-truncated",
            &format!("run{n}.log"),
            "11-29",
            &(13 + n).to_string(),
        )
    };
    let files = [run(1), run(2), run(3)];
    let apart = examine_texts(&files);
    let cause = Some("model.corrupt");
    assert_eq!(
        told(&apart),
        [
            (Some("run1.log"), 3, cause),
            (Some("run2.log"), 3, cause),
            (Some("run3.log"), 3, cause)
        ]
    );
    let page = |report: &Report| coroner::report::terminal::render(report, &coroner::report::Style::default());
    let flat = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let root = apart.root.as_ref().unwrap();
    assert_eq!((root.place.input.as_str(), root.place.line), ("run3.log", 142));
    // Names of files that hold attempts are no names of nodes.
    assert!(
        apart.processes.iter().all(|p| p.node.is_none()),
        "{:?}",
        apart.processes
    );
    assert!(flat(page(&apart)).contains("attempt 3 of 3, all failed in weight-load"));

    let joined: String = files.iter().map(Text::text).collect::<Vec<_>>().concat();
    let one = examine_texts(&[Text::new("serve.log", joined)]);
    assert_eq!(one.attempts.len(), 3);
    assert_eq!(one.headline, apart.headline);

    let second = Options {
        attempt: AttemptChoice::Number(2),
        ..Options::default()
    };
    let second = examine_texts_with(&files, &second);
    assert_eq!(second.attempt, 2);
    assert_eq!(second.root.as_ref().unwrap().place.input, "run2.log");
    assert!(flat(page(&second)).contains("attempt 2 of 3, all failed in weight-load"));
}

#[test]
fn nodes_of_one_launch_are_no_attempts_of_it() {
    // The second node was started after the first had given up.
    let head = moved("gpu-oom-context", "head.log", "11-29", "14");
    let late = moved("gpu-oom-context", "worker-1.log", "11-29", "15");
    assert_eq!(examine_texts(&[head.clone(), late]).attempts.len(), 1);
    // What looks like half a day may be another time zone; a whole day is another launch, whatever its file is called.
    for (day, hour, attempts) in [("11-29", "23", 1), ("11-30", "14", 2), ("12-30", "14", 2)] {
        let other = moved("gpu-oom-context", "worker-1.log", day, hour);
        let report = examine_texts(&[other, head.clone()]);
        assert_eq!(report.attempts.len(), attempts, "{day} {hour}");
        let root = report.root.unwrap().place.input;
        assert!(attempts == 1 || root == "worker-1.log", "{day}: {root}");
    }
    for folder in ["flagship-a-sglang-context-oom.d", "flagship-a-vllm-context-oom.d"] {
        assert_eq!(
            examine(&[format!("corpus/{folder}").into()]).attempts.len(),
            1,
            "{folder}"
        );
    }
}

#[test]
fn what_shows_no_launch_goes_with_the_attempt_that_was_under_way() {
    let mut first = moved("safetensors-truncated", "run1.log", "11-29", "14");
    // It was killed before it could say anything.
    first.bytes.truncate(first.text().find("ERROR").unwrap());
    let second = moved("safetensors-truncated", "run2.log", "11-29", "15");
    let kill = "[2026-11-29T14:14:31.000+00:00] kernel: Out of memory: Killed process 142598 (VLLM::EngineCor) \
                total-vm:1000kB, anon-rss:900kB, file-rss:0kB, shmem-rss:0kB\n\
                [2026-11-29T15:59:00.000+00:00] kernel: eth0: link is up\n";
    let report = examine_texts(&[first, second, Text::new("dmesg.txt", kill)]);
    let told: Vec<_> = report.attempts.iter().map(|a| a.cause.as_deref()).collect();
    assert_eq!(told, [Some("host-mem.oom-killer"), Some("model.corrupt")]);
}

#[test]
fn a_folder_of_unrelated_launches_is_told_in_a_few_lines() {
    let mut files: Vec<Text> = (1..10)
        .map(|month| {
            moved(
                "gpu-oom-context",
                &format!("logs/serve-{month}.log"),
                &format!("0{month}-12"),
                "14",
            )
        })
        .collect();
    files.push(moved("safetensors-truncated", "logs/last.log", "10-12", "14"));
    files.push(moved("healthy-8b-graphs", "logs/well.log", "11-12", "14"));
    // Neither says which of them it belongs to.
    files.push(Text::new("logs/notes.txt", "ask Kim about the disk\n"));
    files.push(Text::new(
        "logs/pasted.txt",
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n",
    ));
    let report = examine_texts(&files);
    assert_eq!(report.root.as_ref().unwrap().place.input, "logs/last.log");
    let finding = report.findings.iter().find(|f| f.id == "inputs.unrelated").unwrap();
    let first = "The inputs hold 12 unrelated launches, and this report is on one of them, the last one that failed. ";
    assert!(finding.title.starts_with(first), "{}", finding.title);
    assert!(finding.title.contains("`coroner scan`"), "{}", finding.title);
    assert!(finding.title.len() < 700, "{}", finding.title);
    // Each stands in the JSON report; a page for people names a few.
    assert_eq!(report.examined.skipped.len(), 12);
    let page = coroner::report::terminal::render(&report, &coroner::report::Style::default());
    let notices = page.matches("logs/serve-").count();
    assert!(notices <= 3, "{notices}: {page}");
    assert!(
        page.contains("it is last.log") || page.contains("It is last.log"),
        "{page}"
    );

    let forced = Options {
        one_incident: true,
        ..Options::default()
    };
    let launches: Vec<Text> = files.into_iter().take(10).collect();
    let forced = examine_texts_with(&launches, &forced);
    assert_eq!(forced.attempts.len(), 10);
    assert_eq!(forced.cause.map(|c| c.id).as_deref(), Some("model.corrupt"));
}

/// What a node of a torchrun job prints of its own end: `rank` raised `error`.
fn agent(node: usize, rank: u32, at: &str, error: &str) -> Text {
    // The agent of one node has the pid of another node's rank.
    let (pid, local) = (900 + 10 * node, rank % 2);
    Text::new(
        format!("gpu{node}.log"),
        format!(
            "[rank{rank}]: Traceback (most recent call last):\n\
             [rank{rank}]:   File \"/app/train.py\", line 51, in main\n\
             [rank{rank}]:     step(batch)\n\
             [rank{rank}]: {error}\n\
             E1125 {at}.000000 {agent} torch/distributed/elastic/multiprocessing/api.py:874] failed (exitcode: 1) local_rank: {local} (pid: {pid}) of binary: /usr/bin/python3\n\
             Traceback (most recent call last):\n  \
               File \"/usr/lib/python3/torch/distributed/launcher/api.py\", line 270, in launch_agent\n    \
                 raise ChildFailedError(\n\
             torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n\
             ============================================================\n\
             /app/train.py FAILED\n\
             ------------------------------------------------------------\n\
             Root Cause (first observed failure):\n\
             [0]:\n  \
               time      : 2026-11-25_{at}\n  \
               host      : gpu{node}\n  \
               rank      : {rank} (local_rank: {local})\n  \
               exitcode  : 1 (pid: {pid})\n  \
               error_file: <N/A>\n\
             ============================================================\n",
            agent = pid - 10,
        ),
    )
}

#[test]
fn agents_that_end_one_after_the_other_are_one_attempt() {
    let peer = "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.27.5";
    let report = examine_texts(&[
        agent(0, 0, "12:03:05", peer),
        agent(1, 2, "12:03:09", peer),
        agent(
            2,
            5,
            "12:03:01",
            "ValueError: could not broadcast input array from shape (4,) into shape (8,)",
        ),
        agent(3, 6, "12:03:13", peer),
    ]);
    assert_eq!(report.attempts.len(), 1);
    let root = &report.root.as_ref().unwrap().place;
    assert_eq!((root.rank, root.node.as_deref()), (Some(5), Some("gpu2")));
    // The table below the exception names the pid of the first rank too.
    let victim: Vec<_> = report.processes.iter().filter(|p| p.rank == Some(5)).collect();
    assert_eq!(victim.len(), 1, "{victim:?}");
    assert_eq!(victim[0].pid, Some(920));
    let ended = report.processes.iter().filter(|p| p.exit.as_deref() == Some("exit 1"));
    let ended: Vec<_> = ended.map(|p| (p.rank, p.node.as_deref())).collect();
    let each = [
        (Some(0), Some("gpu0")),
        (Some(2), Some("gpu1")),
        (Some(5), Some("gpu2")),
        (Some(6), Some("gpu3")),
    ];
    assert_eq!(ended, each);
}

#[test]
fn one_stream_of_several_pods_is_one_attempt_until_a_pod_begins_again() {
    let start = |n: usize, at: &str| {
        format!(
            "[pod/llm-{n}/sglang] [2026-11-25 {at}:00] server_args=ServerArgs(model_path='/models/m', tp_size=3, nnodes=3, node_rank={n}, dist_init_addr='llm-0.llm:5000')\n\
             [pod/llm-{n}/sglang] [2026-11-25 {at}:05 TP{n}] Init torch distributed begin.\n"
        )
    };
    let end = |at: &str| {
        format!(
            "[pod/llm-0/sglang] [2026-11-25 {at}:05 TP0] Scheduler hit an exception: Traceback (most recent call last):\n\
             [pod/llm-0/sglang]   File \"{SITE}/sglang/srt/model_executor/model_runner.py\", line 520, in init_torch_distributed\n\
             [pod/llm-0/sglang]     init_distributed_environment(\n\
             [pod/llm-0/sglang] torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/3 clients joined.\n"
        )
    };
    let launch = |at: &str, later: &str| (0..3).map(|n| start(n, at)).collect::<String>() + &end(later);
    let once = launch("12:00", "12:10");
    let attempts = |text: String| examine_texts(&[Text::new("pods.log", text)]).attempts.len();
    assert_eq!(attempts(once.clone()), 1);
    assert_eq!(attempts(once + &launch("12:11", "12:21")), 2);
}

#[test]
fn a_replica_that_dies_has_failed_though_the_others_serve() {
    let replica = |n: usize, end: &str| {
        Text::new(
            format!("replica-{n}.log"),
            format!(
                "[2026-11-25 12:00:0{n}] server_args=ServerArgs(model_path='/models/m', tp_size=1, nnodes=1, node_rank=0, port=3000{n})\n\
                 [2026-11-25 12:00:05] Init torch distributed begin.\n\
                 [2026-11-25 12:00:07] Load weight begin. avail mem=77.90 GB\n{end}"
            ),
        )
    };
    let ready = "[2026-11-25 12:00:30] The server is fired up and ready to roll!\n";
    let oom = format!(
        "[2026-11-25 12:00:20] Scheduler hit an exception: Traceback (most recent call last):\n  \
           File \"{SITE}/sglang/srt/model_executor/model_runner.py\", line 700, in load_model\n    \
             self.model = get_model(\n\
         torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 1 has a total capacity of 79.19 GiB of which 231.06 MiB is free.\n\n"
    );
    let report = examine_texts(&[replica(0, ready), replica(1, &oom), replica(2, ready)]);
    assert_eq!((report.outcome.id(), report.attempts.len()), ("failed", 1));
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("gpu-oom.weights"));
    assert_eq!(report.root.as_ref().unwrap().place.input, "replica-1.log");
    assert_eq!(report.phase.as_deref(), Some("weight-load"));
    let well = examine_texts(&[replica(0, ready), replica(1, ready)]);
    assert_eq!(well.outcome.id(), "healthy");
}

#[test]
fn nodes_whose_logs_stand_one_behind_the_other_in_a_stream_ran_beside_each_other() {
    for (folder, rank) in [
        ("flagship-a-sglang-context-oom.d", Some(1)),
        ("flagship-a-vllm-context-oom.d", None),
    ] {
        let node = |name: &str| Text::read(format!("corpus/{folder}/{name}.log")).text().to_owned();
        let marked = |name: &str| -> String {
            let mark = |line: &str| format!("[pod/llm-{}/engine] {line}\n", &name[5..]);
            node(name).lines().map(mark).collect()
        };
        let streams = [
            node("node-a") + &node("node-b"),
            node("node-b") + &node("node-a"),
            marked("node-a") + &marked("node-b"),
            marked("node-b") + &marked("node-a"),
        ];
        for (n, stream) in streams.into_iter().enumerate() {
            let report = examine_texts(&[Text::new("pods.log", stream)]);
            assert_eq!(report.attempts.len(), 1, "{folder} {n}");
            assert_eq!(
                report.cause.map(|c| c.id).as_deref(),
                Some("gpu-oom.context"),
                "{folder} {n}"
            );
            let root = report.root.unwrap().place;
            assert!(rank.is_none() || root.rank == rank, "{folder} {n}: {:?}", root.rank);
            assert!(
                n < 2 || root.node.as_deref() == Some("llm-b"),
                "{folder} {n}: {:?}",
                root.node
            );
        }
    }
    // A later run in front of an earlier one is no node of it.
    let run = |n: usize| {
        moved("safetensors-truncated", "run.log", "11-29", &(13 + n).to_string())
            .text()
            .to_owned()
    };
    let report = examine_texts(&[Text::new("serve.log", run(2) + &run(1))]);
    assert_eq!(report.attempts.len(), 2);
}

/// A start with two workers of which the first is killed; the pids of its processes begin with `pids`.
fn killed_worker(pids: u32, at: &str) -> String {
    let worker = |name: &str, last: u32| format!("({name} pid={pids}{last}) INFO {at}");
    let core = format!("(EngineCore pid={pids}20)");
    let started = loading(pids * 100, pids * 100 + 20, at);
    let mut text: String = started.lines().take(4).map(|l| format!("{l}\n")).collect();
    for rank in 0..2 {
        let (early, late) = (
            worker("Worker", 41 + rank),
            worker(&format!("Worker_TP{rank}"), 41 + rank),
        );
        text += &format!(
            "{early}:20 [parallel_state.py:1607] world_size=2 rank={rank} local_rank={rank} distributed_init_method=tcp://192.0.2.2:45907 backend=nccl\n\
             {late}:24 [gpu_model_runner.py:5209] Starting to load model /models/llama-8b...\n"
        );
    }
    text + &format!(
        "{core} ERROR {at}:50 [multiproc_executor.py:301] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.\n\
         {core} ERROR {at}:50 [core.py:1231] EngineCore failed to start.\n\
         Traceback (most recent call last):\n  File \"/usr/local/bin/vllm\", line 10, in <module>\n    sys.exit(main())\n\
         RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{'EngineCore': 1}}\n"
    )
}

#[test]
fn a_restart_has_processes_of_its_own_under_the_names_of_the_old_ones() {
    let log = killed_worker(33, "11-25 11:58") + &killed_worker(44, "11-25 12:02");
    for (attempt, pids) in [(0, 33), (1, 44)] {
        let choice = Options {
            attempt: AttemptChoice::Number(attempt + 1),
            ..Options::default()
        };
        let report = examine_texts_with(&[Text::new("a.log", log.clone())], &choice);
        let root = report.root.as_ref().unwrap();
        assert_eq!(
            (root.place.rank, report.phase.as_deref()),
            (Some(0), Some("weight-load")),
            "{}",
            report.headline
        );
        let ends: Vec<_> = report
            .processes
            .iter()
            .filter_map(|p| Some((p.pid?, p.exit.as_deref()?)))
            .collect();
        assert_eq!(ends, [(pids * 100 + 20, "exit 1"), (pids * 100 + 41, "signal 9")]);
    }
}

#[test]
fn each_attempt_has_its_own_engine() {
    let first = Text::read("corpus/flagship-c-graph-capture-oom.log");
    let second = "[2026-11-29 23:10:00] server_args=ServerArgs(model_path='/models/a', tp_size=1)\n\
                  [2026-11-29 23:10:12 TP0] Init torch distributed begin.\n\
                  [2026-11-29 23:10:29 TP0] Load weight begin. avail mem=77.01 GB\n";
    let report = examine_texts(&[Text::new("serve.log", first.text().to_owned() + second)]);
    assert_eq!(report.attempts.len(), 2);
    assert_eq!(report.engine.name.as_deref(), Some("sglang"));
    assert_eq!(
        report.headline,
        "The log of SGLang ends in weight-load without a failure"
    );
}

/// What torchrun's agent prints, at the level of information or of warnings alone, of a job of two ranks that is started
/// anew twice, or once if the second try gets to its end.
fn torchrun(verbose: bool, finished: bool) -> String {
    let api = |level: &str, at: &str| {
        format!("{level}0620 {at}.302000 900 torch/distributed/elastic/agent/server/api.py:913]")
    };
    let group = |minute: u32, count: u32| {
        let at = format!("10:0{minute}:01");
        let info = api("I", &at);
        let agent = match verbose {
            true => format!(
                "{info} [default] Rendezvous complete for workers. Result:\n{info} [default]   restart_count={count}\n\
                 {info} [default] Starting worker group\n"
            ),
            false => String::new(),
        };
        let rank = |n: u32| {
            format!("INFO 06-20 10:0{minute}:03 [infer.py:44] init_process_group rank={n} world=2 master=xe-a:29400\n")
        };
        agent + &rank(0) + &rank(1)
    };
    let failed = |minute: u32, code: i32, pid: u32| {
        format!(
            "E0620 10:0{minute}:31.202000 900 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: {code}) \
             local_rank: 1 (pid: {pid}) of binary: /opt/venv/bin/python3.12\n"
        )
    };
    let again = |minute: u32, left: u32| match verbose {
        true => format!(
            "{} [default] Worker group FAILED. {left}/2 attempts left; will restart worker group\n",
            api("I", &format!("10:0{minute}:32"))
        ),
        false => String::new(),
    };
    let raised = "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ml/infer.py\", line 52, in load_shard\n\
         [rank1]:     w = torch.empty(shape)\n\
         [rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacity of 79.11 GiB of which 112.00 MiB is free.\n";
    let start = match verbose {
        true => {
            "I0620 10:00:00.100000 900 torch/distributed/launcher/api.py:152] Starting elastic_operator with launch configs:\n"
        }
        false => {
            "W0620 10:00:00.100000 900 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
        }
    };
    let mut log = format!(
        "{start}{}{}{}{}",
        group(0, 0),
        failed(0, -9, 4201),
        again(0, 2),
        group(1, 1)
    );
    if finished {
        log += &format!(
            "{} Local worker group finished (WorkerState.SUCCEEDED). Waiting 300 seconds for other agents to finish\n",
            api("I", "10:05:08")
        );
    } else {
        log += &format!(
            "{raised}{}{}{}{raised}{}",
            failed(1, 1, 5201),
            again(1, 1),
            group(2, 2),
            failed(2, 1, 6201)
        );
    }
    log
}

/// The families of the causes of all attempts.
fn families(report: &Report) -> Vec<&str> {
    let causes = report.attempts.iter().map(|a| a.cause.as_deref().unwrap_or(""));
    causes.map(|id| id.split('.').next().unwrap_or("")).collect()
}

#[test]
fn an_agent_that_starts_its_ranks_anew_begins_another_attempt() {
    for verbose in [true, false] {
        let report = examine_texts(&[Text::new("job.log", torchrun(verbose, false))]);
        assert_eq!(
            families(&report),
            ["process", "gpu-oom", "gpu-oom"],
            "verbose: {verbose}"
        );
        let root = report.root.unwrap();
        let last = torchrun(verbose, false).lines().count() as u64 - 1;
        assert_eq!((root.place.line, root.place.rank), (last, Some(1)));
    }
    let report = examine_texts(&[Text::new("job.log", torchrun(true, true))]);
    assert_eq!(report.outcome, Outcome::Stopped);
    assert_eq!(told(&report).len(), 2);
}

#[test]
fn a_folder_of_each_try_of_an_agent_holds_processes_of_its_own() {
    let rank = |attempt: u32, local: u32, end: &str| {
        let (first, rank) = (10 + attempt, 2 + local);
        [
            (
                "stdout",
                format!(
                    "INFO 06-20 {first}:00:03 [infer.py:44] init_process_group rank={rank} world=4 master=xe-a:29400\n"
                ),
            ),
            ("stderr", end.to_owned()),
        ]
        .map(|(name, text)| Text::new(format!("logs/42_k2/attempt_{attempt}/{local}/{name}.log"), text))
    };
    let bus = "Fatal Python error: Bus error\n\nCurrent thread 0x00007f (most recent call first):\n  File \"/home/ml/infer.py\", line 52 in load_shard\n";
    let oom = "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"/home/ml/infer.py\", line 52, in load_shard\n\
         [rank2]:     w = torch.empty(shape)\n[rank2]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 79.11 GiB of which 112.00 MiB is free.\n";
    let failed = |hour: u32, code: i32, local: u32, pid: u32| {
        format!(
            "E0620 {hour}:02:30.202000 5100 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: {code}) local_rank: {local} (pid: {pid}) of binary: /opt/venv/bin/python3.12\n"
        )
    };
    let table = "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n\
         ============================================================\ninfer.py FAILED\n\
         ------------------------------------------------------------\nFailures:\n[1]:\n  time      : 2026-06-20_11:02:30\n  host      : xe-b\n  \
         rank      : 3 (local_rank: 1)\n  exitcode  : -15 (pid: 6201)\n  error_file: <N/A>\n\
         ------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n  time      : 2026-06-20_11:02:30\n  host      : xe-b\n  \
         rank      : 2 (local_rank: 0)\n  exitcode  : 1 (pid: 6200)\n  error_file: <N/A>\n============================================================\n";
    let mut all = vec![Text::new(
        "logs/torchrun.log",
        failed(10, -7, 1, 5201) + &failed(11, 1, 0, 6200) + table,
    )];
    for (attempt, ends) in [(0, ["", bus]), (1, [oom, ""])] {
        for (local, end) in ends.iter().enumerate() {
            all.extend(rank(attempt, local as u32, end));
        }
    }
    let report = examine_texts(&all);
    assert_eq!(families(&report), ["process", "gpu-oom"]);
    let of = |report: &Report| report.root.as_ref().map(|root| root.place.process.clone().unwrap());
    assert_eq!(of(&report).as_deref(), Some("rank 2 pid=6200"));
    let options = Options {
        attempt: AttemptChoice::Number(1),
        ..Options::default()
    };
    let first = examine_texts_with(&all, &options);
    assert_eq!(of(&first).as_deref(), Some("rank 3 pid=5201"));
}
