//! Whose failure it is and in which phase, where the line itself does not say; and that nothing is linked which the
//! log does not link.

mod common;

use common::{Text, examine, examine_texts, root_process};
use coroner::report::model::{Outcome, Report};

fn report(log: &str) -> Report {
    examine_texts(&[Text::new("launch.log".to_owned(), log.as_bytes().to_vec())])
}

/// Pid and rank of the root's process.
fn who(log: &str) -> (Option<i64>, Option<u32>) {
    let report = report(log);
    let root = report
        .root
        .as_ref()
        .unwrap_or_else(|| panic!("no root: {}", report.headline));
    let process = report
        .processes
        .iter()
        .find(|p| Some(&p.id) == root.place.process.as_ref());
    (
        process.and_then(|p| p.pid),
        root.place.rank.or(process.and_then(|p| p.rank)),
    )
}

fn phase(log: &str) -> Option<String> {
    report(log).phase
}

const NATIVE: &str = "\
[2026-05-25 17:27:08] server_args=ServerArgs(model_path='/models/demo', tp_size=2)
[2026-05-25 17:27:20 TP0] Load weight begin. avail mem=78.58 GB
Fatal Python error: Aborted

Thread 0x00007f54bb7ff6c0 (most recent call first):
  File \"/usr/lib/python3.12/threading.py\", line 1075 in _bootstrap_inner
";

#[test]
fn a_crash_without_a_prefix_is_of_the_process_that_its_parent_reports_crashed() {
    let parent = "[2026-05-25 17:27:22] Subprocess scheduler_0 (pid=22741) crashed with exit code -6. Triggering SIGQUIT for cleanup...\n";
    assert_eq!(who(&format!("{NATIVE}{parent}")).0, Some(22741));
    let second = parent.replace("scheduler_0 (pid=22741)", "scheduler_1 (pid=22742)");
    assert_eq!(
        who(&format!("{NATIVE}{parent}{second}")).0,
        None,
        "either may have printed it"
    );
}

const NCCL: &str = "\
node-a:9484:9484 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth9
node-a:9484:9484 [0] bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found
[rank0]: Traceback (most recent call last):
[rank0]:   File \"/usr/lib/python3/site-packages/torch/distributed/distributed_c10d.py\", line 3068, in all_reduce
[rank0]:     work = group.allreduce([tensor], opts)
[rank0]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3135, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9
[rank0]: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.
[rank0]: Last error:
[rank0]: Bootstrap : no socket interface found
";

#[test]
fn a_failure_told_under_one_pid_and_under_one_rank_is_of_one_process() {
    assert_eq!(who(NCCL), (Some(9484), Some(0)));
    let other = "node-a:9485:9485 [1] bootstrap.cc:114 NCCL WARN Bootstrap : no socket interface found\n";
    assert_eq!(who(&format!("{NCCL}{other}")).1.filter(|_| who(NCCL).0.is_none()), None);
    let both = who(&format!("{other}{NCCL}"));
    assert!(
        both.0.is_none() || both.1.is_none(),
        "two pids tell it, so no rank is known: {both:?}"
    );
}

const ELASTIC: &str = "\
W1129 14:13:20.228000 18 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 24 closing signal SIGTERM
E1129 14:13:27.590000 18 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 25) of binary: /usr/bin/python
";
const KERNEL: &str = "\
[ 2422.211010] python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[ 2422.211575] Memory cgroup out of memory: Killed process 26964 (python) total-vm:4692396kB, anon-rss:1547876kB, file-rss:276392kB, shmem-rss:0kB, UID:0 pgtables:4544kB oom_score_adj:0
";

#[test]
fn the_kernels_victim_is_the_one_process_that_the_log_reports_killed() {
    assert_eq!(who(&format!("{ELASTIC}{KERNEL}")).0, Some(25));
    let second = "E1129 14:13:27.590000 18 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 0 (pid: 24) of binary: /usr/bin/python\n";
    assert_eq!(
        who(&format!("{ELASTIC}{second}{KERNEL}")).0,
        Some(26964),
        "either may be the one"
    );
}

#[test]
fn what_names_its_own_pid_or_rank_is_known_by_it() {
    let uvicorn = "INFO:     Started server process [60858]\nINFO:     Waiting for application startup.\n\
        ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use\n";
    assert_eq!(who(uvicorn).0, Some(60858));
    let store = "Traceback (most recent call last):\n  File \"/usr/lib/python3/site-packages/torch/distributed/rendezvous.py\", line 189, in _create_c10d_store\n    return TCPStore(\ntorch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/4 clients joined.\n";
    assert_eq!(who(store).1, Some(0), "rank 0 keeps the store");
    let watchdog = "[2025-11-22 21:32:46 TP0] Watchdog timeout (self.watchdog_timeout=300)\n\
        [2025-11-22 21:32:46 TP0] Pyspy failed to dump PID 63544.   Error: /bin/sh: py-spy: command not found\n";
    assert_eq!(who(watchdog).0, Some(63544));
}

const SERVER: &str = "\
(APIServer pid=4234) INFO 11-29 14:15:33 [api_utils.py:339] vLLM server version 0.32.0, serving model /models/demo
(EngineCore pid=4301) INFO 11-29 14:15:40 [core.py:109] Initializing a V1 LLM engine (v0.32.0) with config: model='/models/demo'
";

#[test]
fn a_raw_traceback_that_begins_at_a_script_is_of_the_server() {
    let raw = |first: &str| {
        format!(
            "{SERVER}Traceback (most recent call last):\n  File \"/usr/bin/vllm\", line 8, in {first}\n    sys.exit(main())\n  \
             File \"/usr/lib/python3/site-packages/vllm/entrypoints/openai/api_server.py\", line 90, in build_app\n    f()\n\
             AttributeError: 'State' object has no attribute 'demo'\n"
        )
    };
    assert_eq!(who(&raw("<module>")).0, Some(4234));
    assert_eq!(
        who(&raw("_bootstrap")).0,
        None,
        "a child's, and which child it was is not told"
    );
}

#[test]
fn the_phase_of_a_failure_is_told_by_what_stands_around_it() {
    // The markers between sizing the cache and warming up are cut off; the text itself can only be of the warm-up.
    let sampler = "(EngineCore_DP0 pid=44265) INFO 07-26 10:24:21 [kv_cache_utils.py:1314] GPU KV cache size: 45,968 tokens\n\
        (EngineCore_DP0 pid=44265) ERROR 07-26 10:24:28 [core.py:1100] RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering `max_num_seqs`\n";
    assert_eq!(phase(sampler).as_deref(), Some("warmup"));
    let capture = "RuntimeError: Runtime check failed at /sgl/jit_kernel/include/sgl_kernel/distributed/custom_all_reduce.cuh:37: CUDA error: invalid argument\n\
        Exception: Capture cuda graph failed\n";
    assert_eq!(phase(capture).as_deref(), Some("graph-capture"));
    let method = "(VllmWorkerProcess pid=205) ERROR 08-09 02:51:10 [multiproc_worker_utils.py:242] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB. GPU 2 has a total capacity of 14.62 GiB of which 3.31 MiB is free.\n\
        (VllmWorkerProcess pid=207) ERROR 08-09 02:51:10 [multiproc_worker_utils.py:242] Exception in worker VllmWorkerProcess while processing method load_model.\n";
    assert_eq!(phase(method).as_deref(), Some("weight-load"));
    let without = method
        .lines()
        .next()
        .map(|line| format!("{line}\n"))
        .unwrap_or_default();
    assert_eq!(phase(&without), None);
}

const BUILD: &str = "\
Building wheels for collected packages: demo
  Building wheel for demo (setup.py): started
Traceback (most recent call last):
  File \"/home/user/vllm/setup.py\", line 238, in build_extensions
    subprocess.check_call([\"cmake\", *build_args], cwd=self.build_temp)
subprocess.CalledProcessError: Command '['cmake', '--build', '.']' returned non-zero exit status 1.
";

#[test]
fn a_failed_build_is_no_launch_and_hides_none() {
    let outcome = |log: &str| report(log).outcome;
    assert_eq!(outcome(BUILD), Outcome::NoLaunch);
    let bare: String = BUILD.lines().skip(2).map(|line| format!("{line}\n")).collect();
    assert_eq!(outcome(&bare), Outcome::NoLaunch, "the recipe alone tells a build");
    let tests = "============================= test session starts ==============================\n\
        Traceback (most recent call last):\n  File \"/home/user/demo/test_it.py\", line 3, in test_it\n    assert x\nKeyError: 'x'\n";
    assert_eq!(outcome(tests), Outcome::NoLaunch);
    let launch = "Traceback (most recent call last):\n  File \"/usr/lib/python3/site-packages/vllm/config/model.py\", line 9, in __post_init__\n    f()\nKeyError: 'x'\n";
    assert_eq!(outcome(&format!("{BUILD}{launch}")), Outcome::Failed);
    assert_eq!(outcome(&format!("{tests}{SERVER}{launch}")), Outcome::Failed);
}

/// One and the same message is named after the place where the memory was asked for.
#[test]
fn an_allocation_is_named_after_what_it_was_for() {
    let starting = "(APIServer pid=1) INFO 11-25 12:00:00 [api_server.py:1700] vLLM API server version 0.12.0\n";
    let ready = format!("{starting}(APIServer pid=1) INFO:     Application startup complete.\n");
    for (before, file, function, cause) in [
        (starting, "v1/worker/gpu_worker.py", "init_device", "gpu-oom.context"),
        (
            starting,
            "v1/worker/gpu_model_runner.py",
            "load_model",
            "gpu-oom.weights",
        ),
        (
            starting,
            "v1/worker/gpu_worker.py",
            "determine_available_memory",
            "gpu-oom.profile",
        ),
        (starting, "compilation/backends.py", "compile", "gpu-oom.compile"),
        (
            starting,
            "v1/worker/gpu_model_runner.py",
            "_allocate_kv_cache_tensors",
            "gpu-oom.kv-alloc",
        ),
        (
            starting,
            "v1/worker/gpu_model_runner.py",
            "capture_model",
            "gpu-oom.graph-capture",
        ),
        (
            &ready,
            "v1/worker/gpu_model_runner.py",
            "execute_model",
            "gpu-oom.serving",
        ),
    ] {
        let head = "(EngineCore_DP0 pid=12) ERROR 11-25 12:00:30 [core.py:700]";
        let log = format!(
            "{before}{head} EngineCore encountered an error.\n{head} Traceback (most recent call last):\n{head}   File \
             \"/usr/lib/python3.12/site-packages/vllm/{file}\", line 10, in {function}\n{head}     self.run()\n{head} \
             torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
             79.10 GiB of which 1.00 GiB is free.\n"
        );
        let report = report(&log);
        assert_eq!(report.cause.map(|c| c.id).as_deref(), Some(cause), "{file} {function}");
    }
}

/// A traceback of vLLM's worker through these functions of its model runner.
fn in_runner(functions: &[&str]) -> String {
    let head = "(Worker_TP2 pid=722) ERROR 11-20 08:00:00 [multiproc_executor.py:949]";
    let mut log = format!("{head} WorkerProc hit an exception.\n{head} Traceback (most recent call last):\n");
    for function in functions {
        log += &format!(
            "{head}   File \"/usr/lib/python3.12/dist-packages/vllm/v1/worker/gpu_model_runner.py\", line 10, in {function}\n\
             {head}     self.run()\n"
        );
    }
    log + &format!(
        "{head} torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 48.00 MiB. GPU 2 has a total capacity of \
         79.10 GiB of which 1.00 MiB is free.\n"
    )
}

#[test]
fn a_dummy_run_is_of_the_phase_that_called_for_it() {
    let sized = "(Worker_TP2 pid=722) INFO 11-20 07:59:50 [gpu_worker.py:400] Available KV cache memory: 12.01 GiB\n\
                 (EngineCore pid=640) INFO 11-20 07:59:51 [kv_cache_utils.py:1200] GPU KV cache size: 314,320 tokens\n\
                 (Worker_TP2 pid=722) Capturing CUDA graphs (mixed prefill-decode, PIECEWISE):   0%|          | 0/51\n";
    for (before, functions, expected) in [
        ("", &["_dummy_run"][..], "gpu-oom.profile"),
        ("", &["profile_run", "_dummy_run"], "gpu-oom.profile"),
        ("", &["_warmup_and_capture", "_dummy_run"], "gpu-oom.graph-capture"),
        (
            "",
            &["_capture_cudagraphs", "_warmup_and_capture", "_dummy_run"],
            "gpu-oom.graph-capture",
        ),
        (
            "",
            &["compile_or_warm_up_model", "_capture_cudagraphs"],
            "gpu-oom.graph-capture",
        ),
        (sized, &["_dummy_run"], "gpu-oom.graph-capture"),
    ] {
        let cause = report(&format!("{before}{}", in_runner(functions))).cause.map(|c| c.id);
        assert_eq!(cause.as_deref(), Some(expected), "{functions:?} after {before:?}");
    }
}

#[test]
fn torchs_allocator_serves_a_communicator_only_where_its_code_asks() {
    let job = |file: &str, function: &str, error: &str| {
        format!(
            "INFO 06-20 11:00:02 [infer.py:44] init_process_group rank=1 world=2 master=xe-a:29400\n\
             [rank1]: Traceback (most recent call last):\n[rank1]:   File \"/home/ml/infer.py\", line 88, in <module>\n\
             [rank1]:     main()\n[rank1]:   File \"{file}\", line 52, in {function}\n[rank1]:     w = torch.empty(shape)\n\
             [rank1]: {error}\n"
        )
    };
    let torchs = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 3 has a total capacity of 79.11 GiB of which 112.00 MiB is free.";
    let symmetric = "/opt/venv/lib/python3.12/site-packages/torch/distributed/_symmetric_memory/__init__.py";
    for (file, function, error, expected) in [
        ("/home/ml/infer.py", "build", torchs, "gpu-oom.other"),
        (symmetric, "empty", torchs, "gpu-oom.nccl"),
        (
            "/home/ml/infer.py",
            "build",
            "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:94, unhandled cuda error, NCCL version 2.27.5\n[rank1]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank1]: Last error:\n[rank1]: Cuda failure 2 'out of memory'",
            "gpu-oom.nccl",
        ),
    ] {
        let cause = report(&job(file, function, error)).cause.map(|c| c.id);
        assert_eq!(cause.as_deref(), Some(expected), "{function} {error}");
    }
}

/// A training job is at its work from its first step on, and never ready: ended before its end, it has failed.
#[test]
fn a_training_job_that_is_ended_at_a_step_failed_at_its_work() {
    let steps = "[rank0]:[W1129 14:07:47.884117098 ProcessGroupNCCL.cpp:1250] Warning: using GPU 0\n\
                 Epoch [1/10], Step [100/600], Loss: 0.8391\nEpoch [1/10], Step [200/600], Loss: 0.5120\n";
    let at_work = report(steps);
    assert_eq!(at_work.outcome, Outcome::Healthy);
    assert_eq!(at_work.phase.as_deref(), Some("serving"));
    let ended = report(&format!(
        "{steps}slurmstepd: error: *** STEP 4410.0 ON node-a CANCELLED AT 2026-11-29T14:46:02 ***\n"
    ));
    assert_eq!(ended.outcome, Outcome::Failed);
    assert_eq!(ended.phase.as_deref(), Some("serving"));
    assert_eq!(ended.cause.map(|c| c.id).as_deref(), Some("process.sigterm"));
}

#[test]
fn a_raylet_alone_does_not_know_what_an_engines_actor_was_doing() {
    for ray in ["255", "260"] {
        let report = examine(&[format!("corpus/flagship-b-ray{ray}-monitor.d/node-b/raylet.out").into()]);
        assert_eq!(
            report.cause.as_ref().map(|c| c.id.as_str()),
            Some("host-mem.ray-monitor")
        );
        assert_eq!(report.phase, None, "ray {ray}");
        let victim = root_process(&report);
        assert_eq!((victim.pid, victim.role.as_str()), (Some(1879), "worker"));
        assert!(victim.id.starts_with("RayWorkerWrapper"), "{}", victim.id);
    }
}

#[test]
fn the_executor_names_the_rank_that_is_gone() {
    let report = examine(&["corpus/flagship-b-ray260-monitor.d/node-a.log".into()]);
    let root = &report.root.as_ref().unwrap().place;
    assert_eq!(
        (root.line, root.rank, root.node.as_deref()),
        (160, Some(1), Some("node-b"))
    );
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("ray.worker-died"));
    assert_eq!(report.phase.as_deref(), Some("graph-capture"));
}

#[test]
fn a_crash_has_the_phase_that_any_of_its_dumps_shows() {
    let (worker, folder) = (
        "8b097bf983384e498c34677518d2717644b6ba9abdba0ca6b23a2eb0",
        "s/session_2026-11-29_13-55-40_1_1/logs",
    );
    let banner = "*** SIGBUS received at time=1795960576 on cpu 0 ***\n";
    let dump = "Fatal Python error: Bus error\n\n\
                Stack (most recent call first):\n  \
                File \"/home/user/launch/launch.py\", line 51 in load_model\n  \
                File \"/home/user/venv/lib/python3.12/site-packages/ray/_private/worker.py\", line 1069 in main_loop\n";
    let report = examine_texts(&[
        Text::new(
            format!("{folder}/python-core-worker-{worker}_190.log"),
            format!(
                "[2026-11-29 13:56:05,876 I 190 190] core_worker.cc:661: Adjusted worker niceness to 15\n[2026-11-29 13:56:16,729 E 190 190] logging.cc:474: {banner}"
            ),
        ),
        Text::new(
            format!("{folder}/worker-{worker}-ffffffff-190.err"),
            format!(":job_id:01000000\n:actor_name:RayWorkerWrapper\n{banner}{dump}"),
        ),
        Text::new(
            format!("{folder}/worker-{worker}-ffffffff-190.out"),
            ":actor_name:RayWorkerWrapper\nrank 1: init_device pid 190\n",
        ),
    ]);
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("process.bus-error"));
    assert_eq!(report.phase.as_deref(), Some("weight-load"));
    assert_eq!(root_process(&report).pid, Some(190));
}

#[test]
fn the_input_that_tells_the_end_shows_whether_it_was_cut() {
    let node = |name: &str| Text::read(format!("corpus/flagship-a-vllm-context-oom.d/node-{name}.log"));
    let cut = |name: &str| {
        let mut text = node(name);
        text.bytes.truncate(text.bytes.len() - 20);
        text
    };
    let tail = |files: &[Text]| examine_texts(files).log.tail;
    assert_eq!(tail(&[node("a"), node("b")]).as_deref(), Some("exit"));
    // The head's lines go on after the other node has died.
    assert_eq!(tail(&[cut("a"), node("b")]).as_deref(), Some("mid-line"));
    assert_eq!(tail(&[node("a"), cut("b")]).as_deref(), Some("exit"));
    assert_eq!(
        tail(&[node("a"), node("b"), Text::new("notes.txt", "half a")]).as_deref(),
        Some("exit")
    );
}

#[test]
fn slurms_tasks_are_not_an_engines_ranks() {
    let log = "(EngineCore_DP0 pid=210) INFO 11-25 12:00:09 [core.py:114] Initializing a V1 LLM engine (v0.11.0) with config: model='/models/m', tensor_parallel_size=2\n\
               (Worker_TP0 pid=301) INFO 11-25 12:00:14 [gpu_model_runner.py:2602] Starting to load model /models/m...\n\
               (Worker_TP1 pid=302) INFO 11-25 12:00:14 [gpu_model_runner.py:2602] Starting to load model /models/m...\n\
               (EngineCore_DP0 pid=210) ERROR 11-25 12:01:30 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n\
               slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\n\
               srun: error: gpu07: task 0: Out Of Memory\n";
    let report = report(log);
    assert_eq!(
        report.cause.as_ref().map(|c| c.id.as_str()),
        Some("host-mem.oom-killer")
    );
    let row = |rank: u32| report.rows.iter().find(|r| r.who.starts_with(&format!("rank {rank} ")));
    // Task 0 is the whole engine. The executor's VllmWorker-1 calls itself Worker_TP1.
    assert!(
        row(0).is_some_and(|r| !r.same && !r.victim && r.said.is_none()),
        "{:?}",
        row(0)
    );
    assert!(row(1).is_some_and(|r| r.said.is_some() || r.victim), "{:?}", row(1));
    assert!(!report.processes.iter().any(|p| p.id.contains("VllmWorker")));
}

#[test]
fn a_kill_of_a_foreign_process_is_not_what_a_launch_died_of() {
    let oom = "[2026-11-25 12:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=2)\n\
               [2026-11-25 12:00:13 TP1] Load weight begin. avail mem=77.90 GB\n\
               [2026-11-25 12:00:41 TP1] Scheduler hit an exception: Traceback (most recent call last):\n  \
                 File \"/usr/lib/python3/sglang/srt/model_executor/model_runner.py\", line 700, in load_model\n    \
                   self.model = get_model(\n\
               torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 462.00 MiB. GPU 1 has a total capacity of 79.19 GiB of which 231.06 MiB is free.\n\n";
    let kernel = |name: &str| {
        let text = format!(
            "[Wed Nov 25 12:00:39 2026] Out of memory: Killed process 77 ({name}) total-vm:1000kB, anon-rss:900kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1kB oom_score_adj:0\n"
        );
        Text::new("dmesg.txt", text)
    };
    let cause = |files: &[Text]| examine_texts(files).cause.map(|c| c.id);
    let log = Text::new("serve.log", oom);
    assert_eq!(
        cause(&[log.clone(), kernel("java")]).as_deref(),
        Some("gpu-oom.weights")
    );
    // Nor does a line of the kernel's start the launch.
    let mut earlier = kernel("java");
    earlier.bytes = earlier.text().replace("12:00:39", "09:00:39").into_bytes();
    let report = examine_texts(&[log.clone(), earlier]);
    assert_eq!(report.launch.seconds_to_death, Some(41.0));
    assert_eq!(cause(&[kernel("java")]).as_deref(), Some("host-mem.oom-killer"));
    let own = Text::new(
        "serve.log",
        oom.lines().take(2).map(|l| format!("{l}\n")).collect::<String>(),
    );
    assert_eq!(
        cause(&[own, kernel("sglang::schedul")]).as_deref(),
        Some("host-mem.oom-killer")
    );
}

#[test]
fn a_dying_child_is_known_by_the_header_above_its_traceback() {
    let begin = "\
(EngineCore_DP0 pid=311) INFO 11-25 12:00:05 [core.py:10] Initializing a V1 LLM engine (v0.31.0) with config: model='/m', tokenizer='/m'
(EngineCore_DP1 pid=312) INFO 11-25 12:00:05 [core.py:10] Initializing a V1 LLM engine (v0.31.0) with config: model='/m', tokenizer='/m'
";
    let raw = "\
Traceback (most recent call last):
  File \"/usr/lib/python3.12/multiprocessing/process.py\", line 314, in _bootstrap
    self.run()
  File \"/usr/local/lib/python3.12/dist-packages/vllm/model_executor/model_loader/default_loader.py\", line 314, in load_weights
    x = y
ValueError: something odd about the weights
";
    let named = format!("{begin}Process EngineCore_DP1:\n{raw}");
    assert_eq!(who(&named).0, Some(312));
    // A line between, a name that multiprocessing gives by itself, and no header at all say nothing.
    for nobodys in [
        "Process EngineCore_DP1:\nsomething else\n",
        "Process SpawnProcess-2:\n",
        "",
    ] {
        let report = report(&format!("{begin}{nobodys}{raw}"));
        assert_eq!(report.root.unwrap().place.attribution, "none", "{nobodys:?}");
    }
}

#[test]
fn a_local_rank_is_the_global_one_only_where_the_log_proves_it() {
    let failed = |local: u32, pid: u32| {
        format!(
            "E1129 15:05:14.755000 18 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: {local} (pid: {pid}) of binary: /usr/bin/python\n"
        )
    };
    // Of the second node of several no line says which rank its first process has.
    let second = format!(
        "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/srv/train.py\", line 3, in <module>\n[rank3]: torch.distributed.DistBackendError: [../torch/csrc/distributed/c10d/ProcessGroupGloo.cpp:1] connection closed by peer\n{}",
        failed(0, 24)
    );
    assert_eq!(who(&second), (Some(24), None));
    // Rank 0 is on the node whose local ranks are counted from it.
    let first = second
        .replace("rank3", "rank0")
        .replace("local_rank: 0", "local_rank: 1");
    assert_eq!(who(&first), (Some(24), Some(1)));
    // Alone, it may be of any node.
    assert_eq!(who(&failed(0, 24)), (Some(24), None));
}

#[test]
fn a_scheduler_that_the_kernel_killed_is_the_rank_that_its_parent_misses() {
    let log = "\
[2026-11-25 11:58:00] server_args=ServerArgs(model_path='/models/m', tp_size=2)
[2026-11-25 11:58:01 TP0] Init torch distributed begin.
[2026-11-25 11:58:01 TP1] Init torch distributed begin.
[2026-11-25 11:58:09 TP0] Load weight begin. avail mem=77.90 GB
[2026-11-25 11:58:09 TP1] Load weight begin. avail mem=77.90 GB
";
    let kernel = "[Wed Nov 25 11:59:08 2026] Out of memory: Killed process 4242 (sglang::schedul) total-vm:123456kB, anon-rss:99999999kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:1000kB oom_score_adj:0\n";
    let report = |told: &str| {
        let log = Text::new("serve.log", format!("{log}{told}"));
        examine_texts(&[log, Text::new("dmesg.txt", kernel)])
    };
    // In a container the pid is another than the kernel's.
    for pid in [4242, 77] {
        let report = report(&format!(
            "[2026-11-25 11:59:09] Subprocess scheduler_1 (pid={pid}) crashed with exit code -9. Triggering SIGQUIT for cleanup...\n"
        ));
        let victim = root_process(&report);
        assert_eq!(
            (victim.rank, victim.pid, victim.exit.as_deref()),
            (Some(1), Some(pid), Some("signal 9"))
        );
        assert_eq!(
            report
                .processes
                .iter()
                .filter(|p| p.rank == Some(1) || p.pid.is_some())
                .count(),
            1
        );
    }
    // Where nobody says which of them is gone, the kernel's name fits both.
    assert_eq!(root_process(&report("")).rank, None);
}

/// Whoever calls a server may print where the server does.
#[test]
fn a_client_of_the_server_that_fails_is_no_failure_of_the_server() {
    let raised = |name: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/home/u/client.py\", line 12, in <module>\n    call()\n  \
             File \"/usr/local/lib/python3.12/dist-packages/requests/adapters.py\", line 713, in send\n    raise\n{name}\n"
        )
    };
    for name in [
        "requests.exceptions.ReadTimeout: Read timed out.",
        "KeyError: 'choices'",
        "KeyboardInterrupt",
    ] {
        let log = common::healthy_vllm().text().to_owned() + &raised(name);
        let report = examine_texts(&[Text::new("serve.log", log)]);
        assert_eq!(report.outcome, Outcome::Healthy, "{name}: {}", report.headline);
    }
}

/// What an exception with these frames, innermost last, is called.
fn cause_at(frames: &[(&str, &str)], exception: &str) -> Option<String> {
    let head = "(Worker_TP0 pid=60) ERROR 08-01 10:00:56 [multiproc_executor.py:959]";
    let mut log = format!(
        "(APIServer pid=1) INFO 08-01 10:00:00 [api_server.py:1700] vLLM API server version 0.25.1\n\
         {head} WorkerProc hit an exception.\n{head} Traceback (most recent call last):\n"
    );
    for (file, function) in frames {
        log += &format!(
            "{head}   File \"/usr/lib/python3/site-packages/{file}\", line 7, in {function}\n{head}     call()\n"
        );
    }
    for line in exception.lines() {
        log += &format!("{head} {line}\n");
    }
    report(&log).cause.map(|c| c.id)
}

#[test]
fn a_code_that_says_too_little_is_named_after_the_place_that_got_it() {
    let peers = "vllm/distributed/device_communicators/custom_all_reduce.py";
    let invalid = "RuntimeError: CUDA error: invalid argument\nCUDA kernel errors might be asynchronously reported.";
    let ops = [
        ("vllm/_custom_ops.py", "get_graph_buffer_ipc_meta"),
        ("torch/_ops.py", "__call__"),
    ];
    let inner: Vec<_> = [(peers, "register_graph_buffers")].into_iter().chain(ops).collect();
    assert_eq!(cause_at(&inner, invalid).as_deref(), Some("dist.custom-allreduce"));
    // A kernel that fails while the context of the all-reduce is open is not the all-reduce's.
    let within = [(peers, "capture"), ("vllm/model_executor/models/demo.py", "forward")];
    assert_eq!(cause_at(&within, invalid).as_deref(), Some("cuda.launch-failure"));
    let shared = [("torch/multiprocessing/reductions.py", "rebuild_cuda_tensor")];
    assert_eq!(cause_at(&shared, invalid).as_deref(), Some("nccl.p2p"));

    let unknown = "torch.AcceleratorError: CUDA error: unknown error";
    let running = [("vllm/v1/worker/gpu_worker.py", "determine_available_memory")];
    assert_eq!(cause_at(&running, unknown).as_deref(), Some("cuda.xid"));
    let first = [
        ("vllm/v1/worker/gpu_worker.py", "init_device"),
        ("torch/cuda/__init__.py", "set_device"),
    ];
    assert_eq!(cause_at(&first, unknown).as_deref(), Some("cuda.no-device"));

    let load = [
        ("vllm/v1/worker/gpu_model_runner.py", "load_model"),
        ("torch/serialization.py", "load"),
    ];
    let absent = "FileNotFoundError: [Errno 2] No such file or directory: '/ckpt/part_3'";
    assert_eq!(cause_at(&load, absent).as_deref(), Some("model.no-weights"));
    assert_eq!(cause_at(&load, "ValueError: odd").as_deref(), Some("model.corrupt"));

    let own = [("transformers_modules/acme/9f/configuration_acme.py", "<module>")];
    assert_eq!(
        cause_at(&own, "KeyError: 'dynamic'").as_deref(),
        Some("model.custom-code")
    );
    let called = [own[0], ("json/decoder.py", "raw_decode")];
    assert_ne!(
        cause_at(&called, "KeyError: 'dynamic'").as_deref(),
        Some("model.custom-code")
    );
}

#[test]
fn a_compiler_that_was_killed_in_a_build_wanted_memory() {
    let place = [("flashinfer/jit/cpp_ext.py", "run_ninja")];
    let build = "RuntimeError: Ninja build failed. Ninja output:\n[1/9] nvcc -c a.cu -o a.o\nFAILED: a.o\nnvcc -c a.cu -o a.o\n";
    let killed = format!("{build}Killed\nninja: build stopped: subcommand failed.");
    assert_eq!(cause_at(&place, &killed).as_deref(), Some("host-mem.oom-killer"));
    let failed = format!("{build}a.cu(3): error: x is undefined\nninja: build stopped: subcommand failed.");
    assert_eq!(cause_at(&place, &failed).as_deref(), Some("env.kernel-compile"));
    // What a shell says behind the build is of the launch.
    let after = format!("{failed}\nKilled");
    assert_eq!(cause_at(&place, &after).as_deref(), Some("env.kernel-compile"));
}

/// A start with two ranks in three pieces: up to the meeting of the ranks, its weights, and how it comes up or dies.
const MET: &str = "\
(APIServer pid=1) INFO 07-01 08:00:00 [api_server.py:1839] vLLM API server version 0.25.1
(EngineCore pid=188) INFO 07-01 08:00:20 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: model='/m', tensor_parallel_size=2
(Worker pid=60) INFO 07-01 08:00:24 [parallel_state.py:1607] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:40609 backend=nccl
(Worker pid=61) INFO 07-01 08:00:24 [parallel_state.py:1607] world_size=2 rank=1 local_rank=1 distributed_init_method=tcp://127.0.0.1:40609 backend=nccl
";
const LOADED: &str = "\
(Worker_TP0 pid=60) INFO 07-01 08:00:31 [gpu_model_runner.py:4211] Starting to load model /m...
(Worker_TP1 pid=61) INFO 07-01 08:00:31 [gpu_model_runner.py:4211] Starting to load model /m...
";
const OUT_OF_MEMORY: &str = "\
(Worker_TP1 pid=61) ERROR 07-01 08:00:41 [multiproc_executor.py:898] WorkerProc failed to start.
(Worker_TP1 pid=61) ERROR 07-01 08:00:41 [multiproc_executor.py:898] Traceback (most recent call last):
(Worker_TP1 pid=61) ERROR 07-01 08:00:41 [multiproc_executor.py:898]   File \"/usr/lib/python3/site-packages/vllm/v1/worker/gpu_worker.py\", line 213, in load_model
(Worker_TP1 pid=61) ERROR 07-01 08:00:41 [multiproc_executor.py:898]     self.model_runner.load_model()
(Worker_TP1 pid=61) ERROR 07-01 08:00:41 [multiproc_executor.py:898] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 250.00 MiB. GPU 1 has a total capacity of 79.18 GiB of which 100.00 MiB is free.
";
const SERVES: &str = "(APIServer pid=1) INFO:     Application startup complete.\n";

fn outcome_and_cause(log: &str) -> (Outcome, Option<String>) {
    let report = report(log);
    (report.outcome, report.cause.map(|c| c.id))
}

#[test]
fn what_a_launch_outlived_is_not_what_it_died_of() {
    let tolerated = [
        "node-a:60:60 [0] ras/client_support.cc:160 NCCL WARN Call to bind failed: Address already in use",
        "node-a:60:60 [0] nccl_net_ofi_create_plugin:231 NCCL WARN NET/OFI Couldn't open a fabric provider. RC: -61, ERROR: No data available",
        "(raylet) Task load failed due to oom. There are infinite oom retries remaining, so the task will be retried. Error: Task was killed due to the node running low on memory.",
        "[W701 08:00:30.237125492 TCPStore.cpp:340] [c10d] TCP client failed to connect/validate to host 10.0.0.1:29500 - retrying (try=0, timeout=600000ms, delay=61274ms): Interrupted system call",
        "[W701 08:00:30.237125492 socket.cpp:767] [c10d] The IPv6 network addresses of (head, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
        "(EngineCore pid=188) ERROR 07-01 08:00:30 [registry.py:66] Error in inspecting model architecture 'DemoForCausalLM'",
    ];
    for line in tolerated {
        let begun = format!("{MET}{line}\n");
        let cut = outcome_and_cause(&format!("{begun}{LOADED}"));
        assert_eq!(cut, (Outcome::Running, None), "{line}");
        let served = outcome_and_cause(&format!("{begun}{LOADED}{SERVES}"));
        assert_eq!(served.1, None, "{line}");
        let died = outcome_and_cause(&format!("{begun}{LOADED}{OUT_OF_MEMORY}"));
        assert_eq!(died.1.as_deref(), Some("gpu-oom.weights"), "{line}");
        // Where nothing shows that the launch got further, a real failure still says more.
        let stuck = outcome_and_cause(&format!("{begun}{OUT_OF_MEMORY}"));
        assert_eq!(stuck.1.as_deref(), Some("gpu-oom.weights"), "{line}");
    }
    // The last word of a log that stands still, and a socket of NCCL's own work, are what is known.
    for line in tolerated.iter().skip(1).take(4) {
        assert_eq!(
            outcome_and_cause(&format!("{MET}{line}\n")).0,
            Outcome::Failed,
            "{line}"
        );
    }
    let socket = "node-a:60:60 [0] misc/socket.cc:160 NCCL WARN Call to bind failed: Address already in use\n";
    let died = outcome_and_cause(&format!("{MET}{socket}"));
    assert_eq!(died.1.as_deref(), Some("nccl.bootstrap-net"));
}

#[test]
fn what_a_script_says_before_the_launch_is_not_what_the_launch_died_of() {
    let banner = "(APIServer pid=1) INFO 07-01 08:00:00 [api_server.py:1839] vLLM API server version 0.25.1\n";
    let probe = |module: &str| {
        format!("Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n{module}")
    };
    let before = [
        "/entrypoint.sh: line 3: nvidia-smi: command not found".to_owned(),
        "bash: /opt/notify.sh: Permission denied".to_owned(),
        "Terminated".to_owned(),
        "Killed".to_owned(),
        "Failed to initialize NVML: Unknown Error".to_owned(),
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.".to_owned(),
        probe("ModuleNotFoundError: No module named 'deep_ep'"),
        probe("AssertionError"),
    ];
    for line in &before {
        let running = outcome_and_cause(&format!("{line}\n{MET}{LOADED}"));
        assert_eq!(running, (Outcome::Running, None), "{line}");
        let died = outcome_and_cause(&format!("{line}\n{MET}{LOADED}{OUT_OF_MEMORY}"));
        assert_eq!(died.1.as_deref(), Some("gpu-oom.weights"), "{line}");
        // With nothing but a banner below it, or alone, it is all that is known.
        assert_eq!(
            outcome_and_cause(&format!("{line}\n{banner}")).0,
            Outcome::Failed,
            "{line}"
        );
    }
    // What was to be fetched is missing later, and a script of the engine's own is a launch that failed.
    let fetch = probe("OSError: [Errno 28] No space left on device");
    let died = outcome_and_cause(&format!("{fetch}\n{MET}{LOADED}"));
    assert_eq!(died.1.as_deref(), Some("env.disk-full"));
    // Another node's script is of that node's start.
    let other = "node-b  | bash: vllm: command not found\n";
    let head: String = MET
        .lines()
        .chain(LOADED.lines())
        .map(|l| format!("node-a  | {l}\n"))
        .collect();
    let died = outcome_and_cause(&format!("{other}{head}"));
    assert_eq!(died.1.as_deref(), Some("process.exec-failed"));
}

#[test]
fn what_one_rank_logs_for_all_counts_for_those_that_have_finished_loading() {
    let died = "[rank1]:[E701 08:01:30.123456789 ProcessGroupNCCL.cpp:2057] [PG ID 2 PG GUID 3 Rank 1] Process group watchdog thread terminated with exception: CUDA error: uncorrectable NVLink error detected during the execution\n";
    let loaded = |label: &str, pid: u32| {
        format!(
            "({label} pid={pid}) INFO 07-01 08:00:41 [gpu_model_runner.py:4308] Model loading took 7.60 GiB memory and 11.200000 seconds\n"
        )
    };
    let compiles =
        "(Worker_TP0 pid=60) INFO 07-01 08:00:47 [backends.py:1148] Dynamo bytecode transform time: 6.12 s\n";
    let first = format!("{MET}{LOADED}{}", loaded("Worker_TP0", 60));
    let both = format!("{first}{}{compiles}{died}", loaded("Worker_TP1", 61));
    assert_eq!(phase(&both).as_deref(), Some("compile"));
    let one = format!("{first}{compiles}{died}");
    assert_eq!(
        phase(&one).as_deref(),
        Some("weight-load"),
        "rank 1 may still be loading"
    );
}

#[test]
fn a_start_that_took_too_long_was_as_far_as_those_that_were_waited_for() {
    let waited = "\
(APIServer pid=1) Traceback (most recent call last):
(APIServer pid=1)   File \"/usr/lib/python3/site-packages/vllm/v1/engine/core_client.py\", line 610, in __init__
(APIServer pid=1)     raise TimeoutError(
(APIServer pid=1) TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S). To increase the timeout, set the environment variable: VLLM_ENGINE_READY_TIMEOUT_S=<seconds>
";
    assert_eq!(phase(&format!("{MET}{LOADED}{waited}")).as_deref(), Some("weight-load"));
    assert_eq!(phase(&format!("{MET}{waited}")).as_deref(), Some("distributed-init"));
}

#[test]
fn a_container_and_an_import_that_fail_come_before_everything_else() {
    for line in [
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].\n",
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container: unknown.\n",
    ] {
        assert_eq!(phase(line).as_deref(), Some("process-start"), "{line}");
    }
    let check = |caller: &str, function: &str| {
        format!(
            "Traceback (most recent call last):\n  File \"/usr/bin/vllm\", line 4, in <module>\n    main()\n  \
             File \"/usr/lib/python3/site-packages/{caller}\", line 20, in {function}\n    import flashinfer\n  \
             File \"/usr/lib/python3/site-packages/flashinfer/__init__.py\", line 9, in <module>\n    from .jit import env\n  \
             File \"/usr/lib/python3/site-packages/flashinfer/jit/env.py\", line 80, in _check_version\n    raise RuntimeError(\n\
             RuntimeError: flashinfer-cubin version (0.5.0) does not match flashinfer version (0.6.3). Please install the same version of both packages.\n"
        )
    };
    let imported = check("vllm/v1/attention/backends/flashinfer.py", "<module>");
    assert_eq!(phase(&imported).as_deref(), Some("process-start"));
    let late = check("vllm/v1/worker/gpu_model_runner.py", "load_model");
    assert_eq!(phase(&late).as_deref(), Some("weight-load"));
}

#[test]
fn a_traceback_of_a_labelled_process_ends_where_a_shortened_paste_goes_on_with_another_exception() {
    let worker = "(Worker_TP6 pid=311) ERROR 11-20 08:00:47 [multiproc_executor.py:898]";
    let log = [
        "WorkerProc failed to start.",
        "Traceback (most recent call last):",
        "  File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py\", line 371, in load_model",
        "    self.model_runner.load_model(load_dummy_weights=load_dummy_weights)",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 2 has a total capacity of 79.18 GiB of which 1.06 GiB is free.",
    ]
    .map(|line| format!("{worker} {line}\n"))
    .concat();
    let wrapper = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n";
    for gap in ["", "...\n", "[...]\n", "\n"] {
        let report = report(&format!("{log}{gap}{wrapper}"));
        let cause = report.cause.as_ref().map(|c| c.id.as_str());
        assert_eq!(cause, Some("gpu-oom.weights"), "{gap:?}: {}", report.headline);
        assert_eq!(root_process(&report).rank, Some(6), "{gap:?}");
    }
}

#[test]
fn a_traceback_in_torchruns_table_is_read_and_is_of_its_row() {
    let row = |rank: u32, code: &str, traceback: &str| {
        format!(
            "[{rank}]:\n  time      : 2026-06-20_10:55:31\n  host      : xe-a\n  rank      : {rank} (local_rank: {rank})\n\
             \x20 exitcode  : {code}\n  error_file: /tmp/torchelastic_x/{rank}/error.json\n  traceback : {traceback}\n"
        )
    };
    let recorded = "Traceback (most recent call last):\n    File \"/opt/venv/lib/python3.12/site-packages/torch/distributed/elastic/multiprocessing/errors/__init__.py\", line 357, in wrapper\n      return f(*args, **kwargs)\n             ^^^^^^^^^^^^^^^^^^\n    File \"/home/ml/infer.py\", line 52, in load_shard\n      w = f.get_tensor(name)\n  safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n  ";
    let log = format!(
        "Traceback (most recent call last):\n  File \"/opt/venv/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n\
         torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\n\
         infer.py FAILED\n------------------------------------------------------------\nFailures:\n{}\
         ------------------------------------------------------------\nRoot Cause (first observed failure):\n{}\
         ============================================================\n",
        row(
            0,
            "-15 (pid: 4200)  (SIGTERM)",
            "Signal 15 (SIGTERM) received by PID 4200"
        ),
        row(1, "1 (pid: 4201)", recorded),
    );
    let report = report(&log);
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("model.corrupt"));
    assert_eq!(who(&log), (Some(4201), Some(1)));
    assert_eq!(report.root.unwrap().place.node.as_deref(), Some("xe-a"));
}

/// Schedulers of SGLang's with these labels, of which `last` raises an exception.
fn schedulers(settings: &str, labels: &[&str], last: &str) -> String {
    let mut log = format!("[2026-05-11 03:00:01] server_args=ServerArgs(model_path='/m/a', {settings})\n");
    for label in labels {
        log += &format!("[2026-05-11 03:00:17 {label}] Load weight begin. avail mem=77.9 GB\n");
    }
    let file = "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py";
    log + &format!(
        "[2026-05-11 03:00:40 {last}] Scheduler hit an exception: Traceback (most recent call last):\n  \
         File \"{file}\", line 3100, in run_scheduler_process\n    scheduler = Scheduler(\n\
         torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 1 has a total capacity of 79.18 GiB.\n"
    )
}

#[test]
fn the_rank_of_a_scheduler_follows_from_its_place_where_there_is_one_world() {
    let rank = |settings: &str, labels: &[&str], last: &str| who(&schedulers(settings, labels, last)).1;
    let staged = ["PP0 TP0", "PP0 TP1", "PP1 TP0", "PP1 TP1"];
    assert_eq!(rank("tp_size=2, pp_size=2", &staged, "PP1 TP0"), Some(2));
    let attention = ["DP0 TP0", "DP0 TP1", "DP1 TP2", "DP1 TP3"];
    assert_eq!(rank("tp_size=4, dp_size=2", &attention, "DP1 TP2"), Some(2));
    // Replicas have a world each, and the ranks of one come again in the other.
    let replicas = ["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"];
    assert_eq!(rank("tp_size=2, dp_size=2", &replicas, "DP1 TP0"), None);
}

#[test]
fn what_torch_says_of_a_rank_is_of_the_replica_that_states_the_same() {
    let log = schedulers(
        "tp_size=2, dp_size=2",
        &["DP0 TP0", "DP0 TP1", "DP1 TP0", "DP1 TP1"],
        "DP1 TP1",
    );
    let (head, raised) = log.split_once("[2026-05-11 03:00:40").unwrap();
    let raised = raised.replace(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 1 has a total capacity of 79.18 GiB.",
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    );
    let watchdog = "[rank1]:[E511 03:00:39.123456789 ProcessGroupNCCL.cpp:2068] [PG ID 2 PG GUID 3 Rank 1] Process group \
                    watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered\n";
    let report = report(&format!("{head}{watchdog}[2026-05-11 03:00:40{raised}"));
    assert_eq!(report.cause.as_ref().unwrap().id, "cuda.illegal-access");
    assert_eq!(root_process(&report).id, "DP1 TP1");
}
