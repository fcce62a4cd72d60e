//! Processes that end without a word of their own: another one tells how, and is not taken for them.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};

const VLLM: &str = "/usr/local/lib/python3.12/dist-packages/vllm";
const SGLANG: &str = "/sgl-workspace/sglang/python/sglang/srt";

/// An engine core that loads weights when the API server hears of its end.
fn engine_core(status: i32) -> Text {
    Text::new(
        "serve.log",
        format!(
            "(APIServer pid=90) INFO 11-29 21:00:01 [api_utils.py:339]   █▄█▀ █     █     █     █  version 0.33.0\n\
             (APIServer pid=90) INFO 11-29 21:00:05 [model.py:640] Resolved architecture: Qwen3MoeForCausalLM\n\
             (EngineCore pid=120) INFO 11-29 21:00:20 [core.py:140] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=1\n\
             (EngineCore pid=120) INFO 11-29 21:00:25 [parallel_state.py:1607] world_size=1 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:55121 backend=nccl\n\
             (EngineCore pid=120) INFO 11-29 21:00:33 [model_runner.py:281] Loading model from scratch...\n\
             Traceback (most recent call last):\n  File \"/usr/local/bin/vllm\", line 10, in <module>\n    sys.exit(main())\n\
             \x20 File \"{VLLM}/v1/engine/utils.py\", line 1120, in wait_for_engine_startup\n    raise RuntimeError(\n\
             RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {{'EngineCore': {status}}}\n"
        ),
    )
}

/// A scheduler of two that loads weights when the main process, which says so with `lines`, hears of its end.
fn scheduler(lines: &str) -> Text {
    let mut log = String::new();
    for rank in 0..2 {
        log += &format!(
            "[2026-11-28 03:10:00 TP{rank}] Init torch distributed begin.\n\
             [2026-11-28 03:10:29 TP{rank}] Load weight begin. avail mem=77.01 GB\n"
        );
    }
    Text::new("sglang.log", log + lines)
}

fn told(report: &Report) -> (Option<&str>, Option<&str>, Option<u32>, Option<&str>) {
    let root = report.root.as_ref().unwrap();
    let ended = report.processes.iter().filter(|p| p.exit.is_some());
    let ended: Vec<_> = ended.map(|p| (p.rank, p.exit.as_deref())).collect();
    let [(rank, exit)] = ended[..] else {
        panic!("{ended:?} ended")
    };
    assert_eq!(root.place.rank, rank);
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    (cause, report.phase.as_deref(), rank, exit)
}

#[test]
fn an_engine_core_that_was_killed_is_the_root_and_not_who_waited_for_it() {
    for (status, cause, exit) in [
        (-9, "process.sigkill", "signal 9"),
        (-11, "process.segfault", "signal 11"),
        (-7, "process.bus-error", "signal 7"),
        (-6, "process.abort", "signal 6"),
    ] {
        let report = examine_texts(&[engine_core(status)]);
        assert_eq!(told(&report), (Some(cause), Some("weight-load"), Some(0), Some(exit)));
    }
}

#[test]
fn a_scheduler_that_was_killed_is_the_root_in_every_form_in_which_it_is_told() {
    let raised = format!(
        "Traceback (most recent call last):\n  File \"/x/launch_server.py\", line 14, in <module>\n    launch_server(server_args)\n\
         \x20 File \"{SGLANG}/entrypoints/engine.py\", line 1020, in _wait_for_scheduler_ready\n    raise RuntimeError(\n\
         RuntimeError: Rank 1 scheduler died during initialization (exit code: -9). If exit code is -9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check.\n"
    );
    let logged = "[2026-11-28 03:11:15] Rank 1 scheduler is dead. Please check if there are relevant logs.\n\
                  [2026-11-28 03:11:16] Exit code: -9\n";
    for lines in [&raised, logged] {
        let report = examine_texts(&[scheduler(lines)]);
        let killed = (Some("process.sigkill"), Some("weight-load"), Some(1), Some("signal 9"));
        assert_eq!(told(&report), killed);
    }
}

#[test]
fn a_code_of_its_own_says_nothing_of_why_a_process_ended() {
    let report = examine_texts(&[engine_core(1)]);
    assert_eq!(report.outcome.id(), "failed");
    let cause = report.cause.as_ref().unwrap();
    assert!(cause.id.starts_with("unknown."), "{}", cause.id);
}

/// A kernel's log in which it kills a process of this name.
fn kernel(at: &str, name: &str) -> Text {
    let killed = format!(
        "[Sun Nov 29 {at} 2026] Out of memory: Killed process 44123 ({name}) total-vm:281234560kB, anon-rss:63211520kB, file-rss:102400kB, shmem-rss:2048kB, UID:0 pgtables:210000kB oom_score_adj:0\n"
    );
    Text::new("dmesg.log", killed)
}

#[test]
fn the_kernels_victim_is_a_process_of_the_launch_only_where_its_name_can_be_one() {
    let launch = (Some("weight-load"), Some(0), Some("signal 9"));
    let told = |dmesg: Text| {
        let report = examine_texts(&[engine_core(-9), dmesg]);
        let (cause, phase, rank, exit) = told(&report);
        (cause.map(ToOwned::to_owned), (phase, rank, exit) == launch)
    };
    let of = |cause: &str| (Some(cause.to_owned()), true);
    assert_eq!(told(kernel("21:00:40", "VLLM::EngineCor")), of("host-mem.oom-killer"));
    assert_eq!(told(kernel("21:00:40", "python3")), of("host-mem.oom-killer"));
    assert_eq!(told(kernel("21:00:40", "java")), of("process.sigkill"));
    assert_eq!(told(kernel("14:00:40", "java")), of("process.sigkill"));
}

#[test]
fn a_kill_long_before_the_launch_is_none_of_its_failures() {
    let mut loading = engine_core(-9).text().to_owned();
    loading.truncate(loading.find("Traceback").unwrap());
    let report = examine_texts(&[Text::new("serve.log", loading), kernel("14:00:40", "java")]);
    assert_eq!(report.outcome.id(), "running", "{}", report.headline);
}

#[test]
fn what_stands_directly_below_a_traceback_is_read() {
    let noise = "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear \
                 to be 1 leaked semaphore objects to clean up at shutdown\n  warnings.warn('resource_tracker: There appear \
                 to be %d '\n";
    for told in [
        "slurmstepd: error: Detected 1 oom_kill event in StepId=771234.batch. Some of the step tasks have been OOM Killed.\n",
        "[Sun Nov 29 21:00:40 2026] Memory cgroup out of memory: Killed process 120 (VLLM::EngineCor) total-vm:391204512kB, anon-rss:201204512kB, file-rss:912344kB, shmem-rss:118400kB, UID:0 pgtables:402212kB oom_score_adj:0\n",
    ] {
        for between in ["", noise, "\n", "$ dmesg -T | tail -1\n"] {
            let log = engine_core(-9).text().to_owned() + between + told;
            let report = examine_texts(&[Text::new("serve.log", log)]);
            let cause = report.cause.as_ref().unwrap();
            assert_eq!(cause.id, "host-mem.oom-killer", "{between:?} {told}");
        }
    }
}

#[test]
fn a_kernels_kill_of_the_very_process_that_is_told_to_have_crashed_is_the_root() {
    let crashed = "[2026-11-28 03:11:15] Subprocess scheduler_1 (pid=8123) crashed with exit code -9. Triggering SIGQUIT for cleanup...\n";
    let report = examine_texts(&[scheduler(crashed)]);
    assert_eq!(report.cause.as_ref().unwrap().id, "process.sigkill");
    let kill = "[Sat Nov 28 03:11:14 2026] Out of memory: Killed process 8123 (sglang::schedul) total-vm:391204512kB, anon-rss:201204512kB, file-rss:912344kB, shmem-rss:118400kB, UID:0 pgtables:402212kB oom_score_adj:0\n";
    for inputs in [
        vec![scheduler(crashed), Text::new("dmesg.txt", kill)],
        vec![scheduler(&(crashed.to_owned() + kill))],
    ] {
        let report = examine_texts(&inputs);
        assert_eq!(report.cause.as_ref().unwrap().id, "host-mem.oom-killer");
        assert_eq!(report.phase.as_deref(), Some("weight-load"));
        assert_eq!(report.root.as_ref().unwrap().place.rank, Some(1));
    }
}

#[test]
fn a_death_that_is_known_to_come_first_goes_before_the_transport_that_missed_it() {
    let lost = |at: &str| {
        let text = "transport/net_ib/p2p.cc:470 NCCL WARN NET/IB: Got completion from peer 10.0.0.2<40112> with \
                    status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) reqSize=65536 vendor_err=129 req_type=Send hca mlx5_0";
        let log = format!(
            "[2026-11-28 03:10:00 TP0] Init torch distributed begin.\n\
             [2026-11-28 03:10:29 TP0] Load weight begin. avail mem=77.01 GB\n\
             [2026-11-28 {at}] node-a:500:777 [0] {text}\n"
        );
        Text::new("d/node-a.log", log)
    };
    let killed = "[2026-11-28 03:10:00 TP1] Init torch distributed begin.\n\
                  [2026-11-28 03:10:29 TP1] Load weight begin. avail mem=77.01 GB\n\
                  [2026-11-28 03:11:15] Subprocess scheduler_0 (pid=8123) crashed with exit code -9. Triggering SIGQUIT for cleanup...\n";
    for (at, cause) in [("03:11:42", "process.sigkill"), ("03:10:50", "nccl.ib")] {
        let report = examine_texts(&[lost(at), Text::new("d/node-b.log", killed)]);
        assert_eq!(report.cause.as_ref().unwrap().id, cause, "{at}");
    }
}

/// An MPI job of two nodes whose ranks join, and what mpirun says of its end.
fn mpi_job(end: &str) -> Text {
    let mut log = String::new();
    for rank in 0..4 {
        let (node, pid, device) = (["c1", "c2"][rank / 2], 7100 + rank, rank % 2);
        log += &format!(
            "[1,{rank}]<stdout>:{node}:{pid}:{pid} [{device}] NCCL INFO Bootstrap: Using eth0:10.8.0.{}<0>\n\
             [1,{rank}]<stdout>:{node}:{pid}:7900 [{device}] NCCL INFO ncclCommInitRankConfig comm 0x55d rank {rank} nranks 4 cudaDev {device} nvmlDev {device} busId 1b000 commId 0x7a1f - Init START\n",
            rank / 2 + 1,
        );
    }
    Text::new("job.out", log + end)
}

#[test]
fn mpirun_names_the_rank_that_ended_and_how_in_every_form() {
    let said = [
        "Primary job  terminated normally, but 1 process returned\na non-zero exit code. Per user-direction, the job has been aborted.\n\
         mpirun noticed that process rank 3 with PID 7103 on node c2 exited on signal 9 (Killed).\n",
        "prterun noticed that process rank 3 with PID 7103 on node c2 exited on\nsignal 9 (Killed).\n",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 7103 RUNNING AT c2\n=   EXIT CODE: 9\n\
         =   CLEANING UP REMAINING PROCESSES\nYOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 7103 RUNNING AT c2\n=   KILLED BY SIGNAL: 9 (Killed)\n",
    ];
    for end in said {
        let report = examine_texts(&[mpi_job(end)]);
        let killed = (
            Some("process.sigkill"),
            Some("distributed-init"),
            Some(3),
            Some("signal 9"),
        );
        assert_eq!(told(&report), killed, "{end}");
        assert_eq!(report.root.unwrap().place.node.as_deref(), Some("c2"), "{end}");
    }
}

#[test]
fn mpi_s_own_signal_handler_names_rank_signal_and_library() {
    let report = examine_texts(&[mpi_job(
        "[1,3]<stderr>:[c2:07103] *** Process received signal ***\n\
         [1,3]<stderr>:[c2:07103] Signal: Segmentation fault (11)\n\
         [1,3]<stderr>:[c2:07103] Failing at address: 0x18\n\
         [1,3]<stderr>:[c2:07103] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x42520)[0x7f2b9e842520]\n\
         [1,3]<stderr>:[c2:07103] [ 1] /usr/lib/libnccl.so.2(+0x6a3b0)[0x7f2b9f66a3b0]\n\
         [1,3]<stderr>:[c2:07103] *** End of error message ***\n\
         mpirun noticed that process rank 3 with PID 7103 on node c2 exited on signal 11 (Segmentation fault).\n",
    )]);
    let crashed = (
        Some("process.segfault"),
        Some("distributed-init"),
        Some(3),
        Some("signal 11"),
    );
    assert_eq!(told(&report), crashed);
    assert_eq!(
        report.headline,
        "Rank 3 (c2) crashed with a segmentation fault in libnccl.so.2"
    );
    assert!(report.next_evidence.iter().all(|e| !e.command.contains("segfault")));
}

#[test]
fn a_rank_that_ended_by_a_code_of_its_own_is_named_by_mpirun() {
    for end in [
        "mpirun detected that one or more processes exited with non-zero status, thus causing\nthe job to be terminated. The first process to do so was:\n\n  Process name: [[5311,1],3]\n  Exit code:    2\n",
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 2.\n",
    ] {
        let report = examine_texts(&[mpi_job(end)]);
        let ended = (
            Some("unknown.silent"),
            Some("distributed-init"),
            Some(3),
            Some("exit 2"),
        );
        assert_eq!(told(&report), ended, "{end}");
    }
}

#[test]
fn a_listing_of_kubernetes_says_whose_end_it_tells() {
    let log = |pod: &str, rank: u32| {
        format!(
            "[pod/{pod}/vllm] (Worker_TP{rank} pid=720) INFO 11-20 08:00:40 [gpu_model_runner.py:5702] Starting to load model /m/a...\n"
        )
    };
    let logs = Text::new("logs.txt", log("qwen-0", 0) + &log("qwen-0-1", 1));
    let described = "Name:             qwen-0-1\nNamespace:        llm\nNode:             gpu-h13/10.4.0.13\nContainers:\n  vllm:\n    \
                     Last State:     Terminated\n      Reason:       OOMKilled\n      Exit Code:    137\n";
    let listed = |pod: &str, reason: &str, code: u8| {
        format!(
            "  {{\n   \"kind\": \"Pod\",\n   \"metadata\": {{\n    \"name\": \"{pod}\",\n    \"namespace\": \"llm\"\n   }},\n   \
             \"status\": {{\n    \"lastState\": {{\n     \"terminated\": {{\n      \"exitCode\": {code},\n      \
             \"reason\": \"{reason}\"\n     }}\n    }}\n   }}\n  }}"
        )
    };
    let pods = [listed("qwen-0", "Error", 1), listed("qwen-0-1", "OOMKilled", 137)].join(",\n");
    let pods = Text::new(
        "pods.json",
        format!("{{\n \"kind\": \"List\",\n \"items\": [\n{pods}\n ]\n}}\n"),
    );
    let described = Text::new("describe.txt", described);
    for inputs in [
        vec![logs.clone(), described.clone()],
        vec![logs.clone(), pods.clone()],
        vec![pods, described, logs],
    ] {
        let report = examine_texts(&inputs);
        let root = report.root.as_ref().unwrap();
        assert_eq!(
            report.cause.as_ref().unwrap().id,
            "host-mem.oom-killer",
            "{}",
            report.headline
        );
        assert_eq!(root.place.node.as_deref(), Some("qwen-0-1"), "{}", report.headline);
        assert!(
            report.findings.iter().all(|f| f.id != "order.unknown"),
            "one end, told twice"
        );
        assert_eq!(report.launch.ids.pod.as_deref(), Some("qwen-0-1"));
    }
}

const READY: &str = "[2026-08-14 06:02:20] INFO:     Application startup complete.\n\
     [2026-08-14 06:02:25] The server is fired up and ready to roll!\n";

/// SGLang's start in a pod, and what the kubelet's events say of it.
fn probed(end: &str, events: &str) -> Report {
    let log = "[2026-08-14 06:00:05] server_args=ServerArgs(model_path='/m/a', tp_size=1, nnodes=1)\n\
         [2026-08-14 06:00:20 TP0] Init torch distributed begin.\n\
         [2026-08-14 06:00:24 TP0] Load weight begin. avail mem=78.01 GB\n";
    let events: String = events
        .split(' ')
        .zip(["40", "50", "55"])
        .map(|(event, second)| {
            let (kind, event) = match event {
                "probe" => (
                    "Warning Unhealthy",
                    "Startup probe failed: HTTP probe failed with statuscode: 503",
                ),
                _ => (
                    "Normal Killing",
                    "Container sglang failed startup probe, will be restarted",
                ),
            };
            format!("2026-08-14T06:00:{second}Z {kind} pod/sgl-0 {event}\n")
        })
        .collect();
    examine_texts(&[
        Text::new("sgl-0.log", format!("{log}{end}")),
        Text::new("events.txt", events),
    ])
}

#[test]
fn a_probe_that_fails_ends_nothing_until_the_kubelet_kills() {
    let load = "[2026-08-14 06:01:49 TP0] Load weight end. elapsed=85.0 s, type=LlamaForCausalLM, avail mem=60.00 GB, mem usage=18.00 GB.\n\
         [2026-08-14 06:01:50 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=20.00 GB\n";
    for (end, events, outcome) in [
        ("", "probe probe", Outcome::Running),
        (load, "probe", Outcome::Running),
        ("", "probe kill", Outcome::Failed),
        // What was to be ended and goes on was not: the container that serves may be the next.
        (load, "probe kill", Outcome::Running),
        // It has 30 seconds to end.
        (&load.replace(" 06:01:", " 06:00:"), "kill", Outcome::Failed),
        (&format!("{load}{READY}"), "probe kill", Outcome::Healthy),
    ] {
        assert_eq!(probed(end, events).outcome, outcome, "{events} {end}");
    }
    let terminated = "Terminated\n";
    let report = probed(terminated, "probe");
    assert_eq!(report.cause.unwrap().id, "process.startup-timeout");
}

#[test]
fn what_a_description_without_times_tells_above_a_log_is_not_before_it() {
    let described = "Events:\n  Type     Reason     Age                  From               Message\n           ----     ------     ----                 ----               -------\n           Warning  Unhealthy  2m (x30 over 11m)    kubelet            Startup probe failed: HTTP probe failed with statuscode: 503\n           Normal   Killing    2m                   kubelet            Container sglang failed startup probe, will be restarted\n";
    let log = "[2026-08-14 06:00:24 TP0] Load weight begin. avail mem=78.01 GB\n\
         [2026-08-14 06:01:49 TP0] Load weight end. elapsed=85.0 s, type=LlamaForCausalLM, avail mem=60.00 GB, mem usage=18.00 GB.\n";
    let report = examine_texts(&[Text::new("pasted.log", format!("{described}{log}"))]);
    assert_eq!(report.cause.unwrap().id, "process.startup-timeout");
}
