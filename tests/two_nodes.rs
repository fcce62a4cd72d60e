//! A launch on two nodes, one of which joins the other: as one stream, as a file for each node, with equal pids, with
//! restarts, with what the machines' own logs tell.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};

const ARGS: &str = "'model': '/m/a', 'master_addr': '10.0.0.1', 'nnodes': 2, 'tensor_parallel_size': 4";
const EXECUTOR: &str = "/usr/local/lib/python3.12/dist-packages/vllm/v1/executor/multiproc_executor.py";

/// Stamped lines of one node, by second of the launch.
#[derive(Clone, Default)]
struct Node(Vec<(u32, String)>);

fn clock(second: u32) -> String {
    format!("{:02}:{:02}:{:02}", 10 + second / 3600, second / 60 % 60, second % 60)
}

impl Node {
    fn say(mut self, second: u32, who: &str, level: &str, text: &str) -> Self {
        let line = format!("({who}) {level} 11-20 {} {text}", clock(second));
        self.0.push((second, line));
        self
    }

    /// What the node that leads the launch says until its workers join.
    fn leads(second: u32) -> Self {
        let api = "APIServer pid=1";
        Self::default()
            .say(second, api, "INFO", "[startup.py:96]   █▄█▀ █     █     █     █  version 0.33.0")
            .say(second, api, "INFO", &format!("[startup.py:71] non-default args: {{{ARGS}}}"))
            .say(second + 4, api, "INFO", "[model.py:741] Resolved architecture: LlamaForCausalLM")
            .say(
                second + 20,
                "EngineCore pid=214",
                "INFO",
                "[core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=4",
            )
    }

    /// What a node that joins it says until its workers join.
    fn joins(second: u32) -> Self {
        let main = "MainProcess pid=1";
        Self::default()
            .say(
                second,
                main,
                "INFO",
                "[model.py:741] Resolved architecture: LlamaForCausalLM",
            )
            .say(
                second + 1,
                main,
                "INFO",
                "[serve.py:212] Launching vLLM (v0.33.0) headless multiproc executor, with head node address \
                 10.0.0.1:29501 for torch.distributed process group.",
            )
    }

    /// Two workers, with the pids that containers give on every node.
    fn workers(mut self, second: u32, first: u32) -> Self {
        for local in 0..2 {
            let text = format!(
                "[parallel_state.py:1931] world_size=4 rank={} local_rank={local} \
                 distributed_init_method=tcp://10.0.0.1:29501 backend=nccl",
                first + local
            );
            self = self.say(second, &format!("Worker pid={}", 302 + local), "INFO", &text);
        }
        self
    }

    fn load(mut self, second: u32, first: u32) -> Self {
        for local in 0..2 {
            let who = format!("Worker_TP{} pid={}", first + local, 302 + local);
            self = self.say(
                second,
                &who,
                "INFO",
                "[gpu_model_runner.py:5702] Starting to load model /m/a...",
            );
        }
        self
    }

    /// A worker raises an exception in `init_device` or `load_model`.
    fn fails(mut self, second: u32, who: &str, method: &str, exception: &str) -> Self {
        for text in [
            "WorkerProc failed to start.",
            "Traceback (most recent call last):",
            &format!("  File \"{EXECUTOR}\", line 865, in worker_main"),
            "    worker = WorkerProc(*args, **kwargs)",
            &format!(
                "  File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py\", line 402, in {method}"
            ),
            "    raise",
            exception,
        ] {
            self = self.say(second, who, "ERROR", &format!("[multiproc_executor.py:898] {text}"));
        }
        self
    }

    fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    fn file(&self, name: &str) -> Text {
        Text::new(
            name,
            self.0.iter().map(|(_, line)| format!("{line}\n")).collect::<String>(),
        )
    }
}

/// Both nodes in one stream, each line behind the name of its node in this form.
fn stream(a: &Node, b: &Node, names: [&str; 2], form: fn(&str, &str) -> String) -> Text {
    let of = |node: &Node, name: &str| -> Vec<(u32, String)> {
        let named = |(second, line): &(u32, String)| (*second, form(name, line) + "\n");
        node.0.iter().map(named).collect()
    };
    let mut lines = [of(a, names[0]), of(b, names[1])].concat();
    lines.sort_by_key(|(second, _)| *second);
    Text::new("all.log", lines.into_iter().map(|(_, line)| line).collect::<String>())
}

fn compose(node: &str, line: &str) -> String {
    format!("{node}  | {line}")
}

fn stern(pod: &str, line: &str) -> String {
    format!("{pod} vllm {line}")
}

fn srun(task: &str, line: &str) -> String {
    format!("{task}: {line}")
}

/// Cause, rank and node of the root, the number of attempts, and whose logs are missing.
fn told(report: &Report) -> (&str, Option<u32>, Option<&str>, usize, &[String]) {
    let root = report.root.as_ref().unwrap();
    (
        &report.cause.as_ref().unwrap().id,
        root.place.rank,
        root.place.node.as_deref(),
        report.attempts.len(),
        &report.log.missing,
    )
}

const OOM: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 768.00 MiB. GPU 1 has a total capacity \
                   of 79.11 GiB of which 120.00 MiB is free.";
const TIMED_OUT: &str =
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/4 clients joined.";

/// Rank 2, on the node that joins, runs out of memory while it loads.
fn out_of_memory(late: u32) -> [Node; 2] {
    let a = Node::leads(0).workers(33, 0).load(40, 0);
    let b = Node::joins(late).workers(34, 2).load(41, 2);
    [a, b.fails(60, "Worker_TP2 pid=302", "load_model", OOM)]
}

#[test]
fn one_stream_and_a_file_for_each_node_tell_the_same() {
    for late in [0, 7] {
        let [a, b] = out_of_memory(late);
        let want = ("gpu-oom.weights", Some(2), Some("node-b"), 1, &[][..]);
        let files = examine_texts(&[a.file("d/node-a.log"), b.file("d/node-b.log")]);
        assert_eq!(told(&files), want);
        assert_eq!(files.launch.nodes, Some(2));
        // Whichever node speaks first.
        for both in [
            stream(&a, &b, ["node-a", "node-b"], compose),
            stream(&b, &a, ["node-b", "node-a"], compose),
        ] {
            let streamed = examine_texts(&[both]);
            assert_eq!(told(&streamed), want);
            assert_eq!(streamed.launch.seconds_to_death, files.launch.seconds_to_death);
        }
    }
}

#[test]
fn equal_pids_of_other_ranks_are_other_processes() {
    let [a, b] = out_of_memory(7);
    // stern names pods; files of Slurm's tasks, and a mere concatenation, name nothing.
    let pods = examine_texts(&[stream(&a, &b, ["llm-0", "llm-0-1"], stern)]);
    assert_eq!(told(&pods), ("gpu-oom.weights", Some(2), Some("llm-0-1"), 1, &[][..]));
    let joined = a.clone().then(b.clone()).file("all.log");
    for inputs in [vec![a.file("job_0.out"), b.file("job_1.out")], vec![joined]] {
        let report = examine_texts(&inputs);
        assert_eq!(told(&report), ("gpu-oom.weights", Some(2), None, 1, &[][..]));
        let ranks: Vec<_> = report.processes.iter().filter_map(|p| p.rank).collect();
        assert_eq!(ranks.len(), 4, "{ranks:?}");
    }
}

#[test]
fn a_task_that_starts_workers_of_its_own_is_a_node_and_no_rank() {
    let [a, b] = out_of_memory(7);
    let report = examine_texts(&[stream(&a, &b, ["0", "1"], srun)]);
    assert_eq!(told(&report), ("gpu-oom.weights", Some(2), Some("task 1"), 1, &[][..]));
    let of = |label: &str| {
        let process = report.processes.iter().find(|p| p.id.starts_with(label)).unwrap();
        (process.rank, process.node.clone().unwrap())
    };
    assert_eq!(of("APIServer"), (None, "task 0".to_owned()));
    assert_eq!(of("MainProcess"), (None, "task 1".to_owned()));
    assert_eq!(of("Worker_TP1"), (Some(1), "task 0".to_owned()));
}

#[test]
fn a_pid_of_two_nodes_in_a_stream_that_names_none_has_no_rank() {
    let a = Node::leads(0).workers(30, 0);
    let b = Node::joins(2)
        .workers(31, 2)
        .fails(50, "Worker pid=303", "init_device", OOM);
    let report = examine_texts(&[stream(&a, &b, ["", ""], |_, line| line.to_owned())]);
    let (_, rank, _, _, missing) = told(&report);
    assert_eq!((rank, missing), (None, &[][..]), "{}", report.headline);
}

#[test]
fn the_launcher_names_the_host_of_a_task() {
    let [a, b] = out_of_memory(0);
    let log = stream(&a, &b, ["0", "1"], srun);
    let ended = "srun: Terminating StepId=44122.0\nsrun: error: cn0411: task 0: Terminated\nsrun: error: cn0412: task 1: Exited with exit code 1\n";
    let report = examine_texts(&[Text::new("all.log", log.text().to_owned() + ended)]);
    assert_eq!(told(&report).2, Some("cn0412"), "{}", report.headline);
    assert_eq!(report.launch.ids.slurm_job.as_deref(), Some("44122"));
}

#[test]
fn a_node_that_comes_too_late_is_no_attempt_of_its_own() {
    let a = Node::leads(0)
        .workers(33, 0)
        .fails(634, "Worker pid=302", "init_device", TIMED_OUT);
    let b = Node::joins(760).workers(775, 2);
    let both = stream(&a, &b, ["node-a", "node-b"], compose);
    for inputs in [vec![both], vec![a.file("d/node-a.log"), b.file("d/node-b.log")]] {
        let report = examine_texts(&inputs);
        assert_eq!(
            told(&report),
            ("dist.rendezvous-timeout", Some(0), Some("node-a"), 1, &[][..])
        );
        assert_eq!(
            report.headline,
            "Ranks 2, 3 (node-b) came too late: ranks 0, 1 of 4 had given up waiting"
        );
    }
}

#[test]
fn a_node_that_restarts_alone_is_in_the_same_launch_again() {
    let occupied = "ValueError: Free memory on device cuda:0 (41.02/79.11 GiB) on startup is less than desired GPU memory \
                    utilization (0.92, 72.78 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.";
    let a = Node::leads(0)
        .workers(33, 0)
        .fails(634, "Worker pid=302", "init_device", TIMED_OUT);
    let b = Node::joins(7)
        .workers(34, 2)
        .fails(38, "Worker pid=302", "init_device", occupied)
        .then(Node::joins(67).workers(94, 2));
    let both = stream(&a, &b, ["node-a", "node-b"], compose);
    for inputs in [vec![both], vec![a.file("d/node-a.log"), b.file("d/node-b.log")]] {
        let report = examine_texts(&inputs);
        assert_eq!(told(&report), ("gpu-mem.occupied", Some(2), Some("node-b"), 1, &[][..]));
    }
}

#[test]
fn a_restart_of_all_begins_with_what_the_joining_node_says_first() {
    let first = |second: u32| {
        [
            Node::leads(second).workers(second + 33, 0).load(second + 40, 0),
            Node::joins(second + 7).workers(second + 34, 2).load(second + 41, 2),
        ]
    };
    let ([a, b], [c, d]) = (first(0), first(1200));
    let b = b.fails(60, "Worker_TP2 pid=302", "load_model", OOM);
    let (a, b) = (a.then(c), b.then(d));
    let report = examine_texts(&[a.file("d/node-a.log"), b.file("d/node-b.log")]);
    assert_eq!(report.attempts.len(), 2);
    assert_eq!(report.outcome, Outcome::Running);
    let main = report
        .processes
        .iter()
        .find(|p| p.id.starts_with("MainProcess"))
        .unwrap();
    assert_eq!(main.last_phase.as_deref(), Some("config"));
}

/// The kernel of a node kills a process.
fn killed(name: &str, head: &str, pid: u32, process: &str) -> Text {
    let kill = format!(
        "Out of memory: Killed process {pid} ({process}) total-vm:391204512kB, anon-rss:201204512kB, file-rss:912344kB, shmem-rss:118400kB, UID:0 pgtables:402212kB oom_score_adj:0\n"
    );
    Text::new(name, format!("{head} {kill}"))
}

/// A launch whose rank 3 vanishes while it loads: the others lose it.
fn vanished() -> [Node; 2] {
    let lost = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:41212";
    let a = Node::leads(0).workers(33, 0).load(40, 0);
    let b = Node::joins(7).workers(34, 2).load(41, 2);
    [a.fails(90, "Worker_TP0 pid=302", "load_model", lost), b]
}

#[test]
fn a_kernel_tells_of_its_own_node() {
    let dmesg = "[Fri Nov 20 10:01:20 2026]";
    let [a, b] = vanished();
    for (names, kernel, head) in [
        (["d/node-a.log", "d/node-b.log"], "d/node-b.dmesg", dmesg),
        (["d/node-a.log", "d/node-b.log"], "d/dmesg-node-b.txt", dmesg),
        (
            ["d/node-a/serve.log", "d/node-b/serve.log"],
            "d/node-b/dmesg.txt",
            dmesg,
        ),
        (
            ["d/node-a.log", "d/node-b.log"],
            "d/kern.log",
            "Nov 20 10:01:20 node-b kernel:",
        ),
    ] {
        for (pid, process, rank) in [(303, "VLLM::Worker_TP", Some(3)), (48_211, "VLLM::Worker_TP", None)] {
            let report = examine_texts(&[a.file(names[0]), b.file(names[1]), killed(kernel, head, pid, process)]);
            assert_eq!(
                told(&report),
                ("host-mem.oom-killer", rank, Some("node-b"), 1, &[][..]),
                "{kernel} {pid}"
            );
            assert_eq!(report.launch.nodes, Some(2), "{kernel} {pid}");
        }
    }
}

#[test]
fn what_a_kernel_tells_of_long_before_is_none_of_the_launch() {
    let [a, b] = out_of_memory(7);
    let old = [
        killed("d/node-b/dmesg.txt", "[Tue Nov 17 02:11:00 2026]", 99_123, "python3"),
        killed("d/node-b/dmesg.txt", "[Fri Nov 20 02:11:00 2026]", 99_123, "python3"),
        Text::new(
            "d/node-b/dmesg.txt",
            "[Tue Nov 17 02:11:00 2026] NVRM: Xid (PCI:0000:5d:00): 79, pid=1777, name=python3, GPU has fallen off the bus.\n",
        ),
    ];
    for dmesg in old {
        let report = examine_texts(&[
            a.file("d/node-a/serve.log"),
            b.file("d/node-b/serve.log"),
            dmesg.clone(),
        ]);
        assert_eq!(
            told(&report),
            ("gpu-oom.weights", Some(2), Some("node-b"), 1, &[][..]),
            "{}",
            dmesg.text()
        );
        // One server that serves beside it goes before it.
        let report = examine_texts(&[common::healthy_vllm(), dmesg.clone()]);
        assert_eq!(report.outcome, Outcome::Healthy, "{}", dmesg.text());
    }
}

#[test]
fn an_excerpt_of_nothing_but_the_drivers_errors_is_read() {
    let xid = |text: &str| format!("NVRM: Xid (PCI:0000:5d:00): {text}\n");
    let lines = [
        xid("79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus."),
        xid("154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
        xid("45, pid=88123, name=VLLM::Worker_TP, Ch 00000012"),
        xid("45, pid=88123, name=VLLM::Worker_TP, Ch 00000013"),
    ];
    for head in ["[Fri Aug 14 21:41:50 2026] ", "Aug 14 21:41:50 gpu-3 kernel: ", ""] {
        let text: String = lines.iter().map(|line| format!("{head}{line}")).collect();
        let report = examine_texts(&[Text::new("xid.txt", text)]);
        let cause = report.cause.as_ref().map(|c| c.id.as_str());
        assert_eq!((report.outcome, cause), (Outcome::Failed, Some("cuda.xid")), "{head:?}");
    }
}

#[test]
fn the_kernels_pid_is_the_process_to_which_others_say_the_same_happened() {
    let led = Node::leads(0).workers(30, 0).load(40, 0);
    let joined = Node::joins(2).workers(30, 2).load(40, 2);
    let raised = "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered";
    let failed = joined
        .clone()
        .fails(65, "Worker_TP3 pid=303", "determine_available_memory", raised);
    let crashed = joined.clone().say(
        64,
        "MainProcess pid=1",
        "ERROR",
        "[multiproc_executor.py:277] Worker proc VllmWorker-3 died unexpectedly (exit code: -11), shutting down executor.",
    );
    // Older versions do not say how it ended, and only one of the node's ranks has lines under its name.
    let gone = Node::joins(2)
        .workers(30, 2)
        .say(
            40,
            "Worker_TP2 pid=302",
            "INFO",
            "[gpu_model_runner.py:5702] Starting to load model /m/a...",
        )
        .say(
            40,
            "Worker pid=303",
            "INFO",
            "[topk_topp_sampler.py:49] Using FlashInfer for top-p & top-k sampling.",
        )
        .say(
            64,
            "MainProcess pid=1",
            "ERROR",
            "[multiproc_executor.py:154] Worker proc VllmWorker-3 died unexpectedly, shutting down executor.",
        );
    for (node, line, cause, phase) in [
        (
            &failed,
            "NVRM: Xid (PCI:0000:5d:00): 48, pid=88123, name=VLLM::Worker_TP, An uncorrectable double bit error (DBE) \
             has been detected on GPU in the framebuffer at partition 4, subpartition 1.",
            "cuda.ecc",
            "memory-profile",
        ),
        (
            &crashed,
            "VLLM::Worker_TP[88123]: segfault at 18 ip 00007f3a1c5d2b10 sp 00007ffd3b1f0a40 error 4 in \
             libnccl.so.2[7f3a1c400000+9a00000]",
            "process.segfault",
            "weight-load",
        ),
        (
            &gone,
            "Memory cgroup out of memory: Killed process 88123 (VLLM::Worker_TP) total-vm:98304000kB, \
             anon-rss:65011712kB, file-rss:412kB, shmem-rss:12kB, UID:0 pgtables:242688kB oom_score_adj:0",
            "host-mem.oom-killer",
            "distributed-init",
        ),
    ] {
        let kernel = Text::new("node-b.dmesg", format!("Nov 20 10:01:04 node-b kernel: {line}\n"));
        let report = examine_texts(&[led.file("node-a.log"), node.file("node-b.log"), kernel]);
        let (id, rank, on, _, _) = told(&report);
        assert_eq!((id, rank, on), (cause, Some(3), Some("node-b")), "{}", report.headline);
        assert_eq!(report.phase.as_deref(), Some(phase), "{cause}");
        assert!(
            report.processes.iter().all(|p| p.pid != Some(88123)),
            "{cause}: one process, not two"
        );
    }
}

#[test]
fn a_file_may_be_named_for_its_job_and_its_host() {
    let [a, b] = out_of_memory(0);
    let ended = Text::new(
        "vllm-884213-gx12.err",
        "slurmstepd: error: *** STEP 884213.0 ON gx12 CANCELLED AT 2026-11-20T10:01:32 ***\n",
    );
    let other = Text::new(
        "vllm-884213-gx13.err",
        "srun: error: gx13: task 1: Exited with exit code 1\n",
    );
    let files = [
        a.file("vllm-884213-gx12.out"),
        b.file("vllm-884213-gx13.out"),
        ended,
        other,
    ];
    let report = examine_texts(&files);
    assert_eq!(told(&report).2, Some("gx13"), "{}", report.headline);
    let nodes: Vec<Option<&str>> = report.processes.iter().map(|p| p.node.as_deref()).collect();
    assert!(nodes.iter().all(Option::is_some), "{nodes:?}");
}

/// A node of data-parallel engines: the one that leads, or one that joins it.
fn data_parallel(settings: Option<&str>, rank: u32) -> Text {
    let api = "APIServer pid=1";
    let node = match settings {
        Some(settings) => Node::default().say(
            0,
            api,
            "INFO",
            &format!("[startup.py:71] non-default args: {{{settings}}}"),
        ),
        None => Node::default().say(
            0,
            "MainProcess pid=1",
            "INFO",
            "[serve.py:164] Launching 1 data parallel engine(s) in headless mode, with head node address \
             tcp://10.0.0.1:29550.",
        ),
    };
    let engine =
        "[core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=1";
    node.say(20, &format!("EngineCore_DP{rank} pid=214"), "INFO", engine)
        .file("")
}

#[test]
fn nodes_of_data_parallel_engines_are_counted_by_what_they_state() {
    const HEAD: &str = "'model': '/m/a', 'data_parallel_size': 2, 'data_parallel_size_local': 1";
    const SECOND: &str = "'model': '/m/a', 'data_parallel_size': 2, 'data_parallel_size_local': 1, \
                          'data_parallel_start_rank': 1, 'headless': True";
    let nodes = |files: &[(&str, Option<&str>, u32)]| {
        let texts: Vec<Text> = (files.iter())
            .map(|(name, settings, rank)| Text::new(*name, data_parallel(*settings, *rank).bytes))
            .collect();
        examine_texts(&texts).launch.nodes
    };
    assert_eq!(nodes(&[("a.log", Some(HEAD), 0), ("b.log", Some(SECOND), 1)]), Some(2));
    assert_eq!(nodes(&[("a.log", Some(HEAD), 0), ("b.log", None, 1)]), Some(2));
    assert_eq!(
        nodes(&[("x/0.log", Some(HEAD), 0), ("y/0.log", None, 1)]),
        Some(2),
        "names that say nothing"
    );
    assert_eq!(nodes(&[("b.log", None, 1)]), Some(2), "the head's log is missing");
    const ALL: &str = "'model': '/m/a', 'data_parallel_size': 2, 'data_parallel_size_local': 2";
    assert_eq!(nodes(&[("a.log", Some(ALL), 0)]), Some(1));
}
