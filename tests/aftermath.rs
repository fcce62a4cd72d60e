//! Logs that hold only what a failure led to, or only how somebody else saw it: they tell that the launch failed, by the
//! exception or the end that stands there, and not of what.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};

fn report(log: &str) -> Report {
    examine_texts(&[Text::new("launch.log".to_owned(), log.as_bytes().to_vec())])
}

fn cause(report: &Report) -> Option<&str> {
    report.cause.as_ref().map(|c| c.id.as_str())
}

const STARTED: &str = "\
(APIServer pid=101) INFO 11-20 10:00:05 [api_server.py:1839] vLLM API server version 0.11.0
(EngineCore_DP0 pid=202) INFO 11-20 10:00:20 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='/models/demo', tensor_parallel_size=2
(Worker_TP0 pid=301) INFO 11-20 10:00:40 [gpu_model_runner.py:2602] Starting to load model /models/demo...
";

/// The traceback of a script that ends with an exception.
fn uncaught(exception: &str) -> String {
    format!("Traceback (most recent call last):\n  File \"/app/x.py\", line 9, in <module>\n    main()\n{exception}\n")
}

#[test]
fn an_exception_that_another_failure_led_to_still_ended_what_it_left() {
    for (exception, told) in [
        (
            "ray.exceptions.OwnerDiedError: Failed to retrieve object 00ff. The object's owner has exited.",
            "ray.worker-died",
        ),
        (
            "ray.exceptions.ObjectLostError: Failed to retrieve object 00ff. All copies of 00ff have been lost due to node failure.",
            "unknown.exception",
        ),
        (
            "torch.AcceleratorError: CUDA error: operation failed due to a previous error during capture",
            "cuda.capture-invalid",
        ),
        ("BrokenPipeError: [Errno 32] Broken pipe", "unknown.exception"),
    ] {
        for log in [format!("{STARTED}{}", uncaught(exception)), uncaught(exception)] {
            let ended = report(&log);
            assert_eq!(ended.outcome, Outcome::Failed, "{exception}");
            assert_eq!(cause(&ended), Some(told), "{exception}");
            let root = ended.root.as_ref().unwrap_or_else(|| panic!("{exception}"));
            assert_eq!(root.place.text, exception);
            assert!(ended.cause.as_ref().is_some_and(|c| c.confidence < 0.5), "{exception}");
        }
        // What the launch outlived ended nothing.
        let later =
            "(EngineCore_DP0 pid=202) INFO 11-20 10:02:00 [gpu_worker.py:298] Available KV cache memory: 20.11 GiB\n";
        let outlived = report(&format!("{STARTED}{}{later}", uncaught(exception)));
        assert_eq!(outlived.outcome, Outcome::Running, "{exception}");
    }
}

#[test]
fn the_engine_tells_of_it_before_who_only_waits_for_the_engine() {
    let owner = "\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] EngineCore failed to start.
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] Traceback (most recent call last):
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708]   File \"/x/vllm/v1/worker/gpu_model_runner.py\", line 3000, in capture_model
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] ray.exceptions.ObjectLostError: Failed to retrieve object 00ff. All copies of 00ff have been lost due to node failure.
(APIServer pid=101) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
";
    let lost = report(&format!("{STARTED}{owner}"));
    assert_eq!(cause(&lost), Some("unknown.exception"));
    assert_eq!(
        lost.exception.as_ref().map(|e| e.kind.as_str()),
        Some("ray.exceptions.ObjectLostError")
    );
    let process = lost.root.as_ref().and_then(|r| r.place.process.as_deref());
    assert!(process.is_some_and(|p| p.starts_with("EngineCore")), "{process:?}");
}

#[test]
fn a_warning_that_nccl_kept_says_nothing_of_the_call_that_failed() {
    for (text, told) in [
        ("unhandled cuda error", "nccl.cuda-error"),
        ("unhandled system error", "nccl.system-error"),
    ] {
        for kept in [
            "Cannot initialize CollNet, using point-to-point network instead",
            "NCCL_MAX_NCHANNELS value of 64 is too big. Limiting value to 32.",
            "RAS failed to establish a client listening socket at 127.0.0.1:28028",
        ] {
            let log = format!(
                "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"/app/train.py\", line 44, in <module>\n[rank1]:     dist.all_reduce(t)\n[rank1]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, {text} (run with NCCL_DEBUG=INFO for details), NCCL version 2.27.5\n[rank1]: ncclUnhandledCudaError: Call to CUDA function failed.\n[rank1]: Last error:\n[rank1]: {kept}\n"
            );
            assert_eq!(cause(&report(&log)), Some(told), "{kept}");
        }
    }
}

#[test]
fn the_rank_that_a_dump_signal_names_timed_out_first() {
    let log = "[rank0]:[E1118 20:32:23.957487695 ProcessGroupNCCL.cpp:1484] [PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from rank 5 and we will try our best to dump the debug info. Last enqueued NCCL work: 542, last completed NCCL work: 539.\n";
    let told = report(log);
    assert_eq!(cause(&told), Some("nccl.watchdog-timeout"));
    assert_eq!(told.root.as_ref().and_then(|r| r.place.rank), Some(5));
    // A server that answers is stuck from there on, unless it goes on to answer.
    let up = "(APIServer pid=101) INFO:     Application startup complete.\n(APIServer pid=101) INFO:     10.0.0.9:1234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
    let stuck = report(&format!("{STARTED}{up}{log}"));
    assert_eq!(stuck.outcome, Outcome::Failed);
    assert_eq!(cause(&stuck), Some("nccl.watchdog-timeout"));
    let answers = "(APIServer pid=101) INFO:     10.0.0.9:1250 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
    assert_eq!(
        report(&format!("{STARTED}{up}{log}{answers}")).outcome,
        Outcome::Healthy
    );
}

const NODE: &str = "\
2025-11-20 10:00:01,001\tINFO scripts.py:1234 -- Local node IP: 10.0.0.2
2025-11-20 10:00:08,001\tSUCC scripts.py:1251 -- Ray runtime started.
2025-11-20 10:00:08,001\tINFO scripts.py:1260 -- --block
";

#[test]
fn a_node_of_rays_that_was_lost_is_told_in_the_records_of_a_container_too() {
    for (daemon, told) in [
        ("raylet [exit code=1]", "ray.raylet-died"),
        ("gcs_server [exit code=-9]", "ray.gcs-unreachable"),
    ] {
        let log = format!(
            "{NODE}2025-11-20 10:45:13,002\tERR scripts.py:1275 -- Some Ray subprocesses exited unexpectedly:\n2025-11-20 10:45:13,002\tERR scripts.py:1279 --   {daemon}\n2025-11-20 10:45:13,002\tERR scripts.py:1284 -- Remaining processes will be killed.\n"
        );
        assert_eq!(cause(&report(&log)), Some(told));
    }
    let block = |ip: &str, time: &str, dead: &[&str]| {
        let line = |text: &str| format!("2025-11-20 {time},002\tERR scripts.py:1279 -- {text}\n");
        let dead: String = dead.iter().map(|daemon| line(&format!("  {daemon}"))).collect();
        let begin = line("Some Ray subprocesses exited unexpectedly:");
        format!(
            "{}{begin}{dead}{}",
            NODE.replace("10.0.0.2", ip),
            line("Remaining processes will be killed.")
        )
    };
    // A raylet that loses its head leaves with a code of its own.
    for dead in [
        ["gcs_server [exit code=-9]", "raylet [exit code=1]"],
        ["raylet [exit code=1]", "gcs_server [exit code=-9]"],
    ] {
        let head = report(&block("10.0.0.1", "10:45:13", &dead));
        assert_eq!(cause(&head), Some("ray.gcs-unreachable"), "{dead:?}");
        assert!(
            head.root.as_ref().is_some_and(|r| r.place.text.contains("gcs_server")),
            "{dead:?}"
        );
    }
    let own = report(&block(
        "10.0.0.1",
        "10:45:13",
        &["raylet [exit code=1]", "log_monitor [exit code=-9]"],
    ));
    assert_eq!(cause(&own), Some("ray.raylet-died"));
    let file = |name: &str, log: String| Text::new(name.to_owned(), log.into_bytes());
    let lost = "[2025-11-20 10:46:15,000 E 89 89] (raylet) gcs_client.cc:300: Failed to connect to GCS within 60 seconds. GCS may have been killed. It's either GCS is terminated by `ray stop` or is killed unexpectedly.\n";
    let worker = format!("{}{}", block("10.0.0.2", "10:46:13", &["raylet [exit code=1]"]), lost);
    assert_eq!(cause(&report(&worker)), Some("ray.gcs-unreachable"));
    let both = examine_texts(&[
        file("worker.log", worker),
        file(
            "head.log",
            block("10.0.0.1", "10:45:13", &["gcs_server [exit code=-9]"]),
        ),
    ]);
    assert_eq!(cause(&both), Some("ray.gcs-unreachable"));
    assert_eq!(both.root.as_ref().map(|r| r.place.input.as_str()), Some("head.log"));
    let gcs = |end: &str| {
        format!(
            "[2025-11-20 10:00:00,100 I 19 19] (gcs_server) gcs_server_main.cc:50: Ray cluster metadata ray_version=2.49.2 ray_commit=abc\n[2025-11-20 10:30:15,101 I 19 19] (gcs_server) gcs_node_manager.cc:450: Removing node, node name = 10.0.0.2, death reason = {end}\n"
        )
    };
    let lost = report(&gcs(
        "UNEXPECTED_TERMINATION, death message = health check failed due to missing too many heartbeats node_id=bb",
    ));
    assert_eq!(cause(&lost), Some("ray.node-died"));
    assert_eq!(
        lost.root.as_ref().and_then(|r| r.place.node.as_deref()),
        Some("10.0.0.2")
    );
    let left = report(&gcs(
        "EXPECTED_TERMINATION, death message = received SIGTERM node_id=bb",
    ));
    assert_ne!(left.outcome, Outcome::Failed);
}

#[test]
fn what_docker_says_of_an_end_counts() {
    let state = |oom: bool, code: u32| {
        format!(
            "            \"Status\": \"exited\",\n            \"OOMKilled\": {oom},\n            \"ExitCode\": {code},\n"
        )
    };
    assert_eq!(
        cause(&report(&format!("{STARTED}{}", state(false, 137)))),
        Some("process.sigkill")
    );
    assert_eq!(
        cause(&report(&format!("{STARTED}{}", state(true, 137)))),
        Some("host-mem.oom-killer")
    );
    assert_eq!(
        report(&format!("{STARTED}{}", state(false, 0))).outcome,
        Outcome::Running
    );
    let composed = "\
vllm-1  | INFO 11-20 10:00:40 [gpu_model_runner.py:2602] Starting to load model /models/demo...
NAME      IMAGE     COMMAND   SERVICE   CREATED   STATUS                       PORTS
vllm-1    vllm/vllm-openai   \"vllm serve\"   vllm   5 minutes ago   Exited (137) 2 minutes ago
";
    assert_eq!(cause(&report(composed)), Some("process.sigkill"));
}

#[test]
fn the_detail_of_an_exit_tells_that_a_worker_was_asked_to_end() {
    let detail = "(raylet) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Lease ID: 01 Worker ID: ab Node ID: cd Worker IP address: 10.0.0.1 Worker port: 10005 Worker PID: 301 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly. Worker exits with an exit code 15. The process receives a SIGTERM.\n";
    assert_eq!(cause(&report(&format!("{STARTED}{detail}"))), Some("process.sigterm"));
}

#[test]
fn ranks_that_disagree_on_the_world_say_so_in_each_form() {
    for words in [
        "mismatch in rank count from procs 8 : 16",
        "mismatch in info from procs, nranks 8 vs 16, nroots 1 vs 1, iroot 0 vs 0",
        "mismatch in info from procs, nranks 8 : 16",
    ] {
        let log = format!(
            "node-b:4002:4101 [1] NCCL INFO NCCL version 2.27.5+cuda12.9\nnode-b:4002:4101 [1] bootstrap.cc:401 NCCL WARN Bootstrap Root : {words}\n"
        );
        assert_eq!(cause(&report(&log)), Some("dist.world-size"), "{words}");
    }
}

#[test]
fn what_a_daemon_says_of_itself_comes_before_that_it_is_gone() {
    let log = "\
2026-11-29 14:07:11,314\tINFO worker.py:2038 -- Started a local Ray instance.
(raylet) [2026-11-29 14:08:00,100 C 89 89] (raylet) local_object_manager.cc:190:  Check failed: it != pinned_objects_.end()
(RayWorkerWrapper pid=191) rank 0: init_device pid 191
ray.exceptions.LocalRayletDiedError: The task's local raylet died. Check raylet.out for more information.
";
    let broke = report(log);
    assert_eq!(cause(&broke), Some("unknown.exception"));
    assert_eq!(broke.root.as_ref().map(|r| r.place.line), Some(2));
}

#[test]
fn a_spawned_process_that_a_signal_ended_tells_which() {
    let log = |end: &str| {
        uncaught(&format!(
            "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with {end}"
        ))
    };
    assert_eq!(cause(&report(&log("signal SIGKILL"))), Some("process.sigkill"));
    assert_eq!(cause(&report(&log("signal SIGSEGV"))), Some("process.segfault"));
}

#[test]
fn the_queue_that_is_cancelled_tells_of_a_worker_that_died() {
    let log = format!(
        "{STARTED}(EngineCore_DP0 pid=202) ERROR 11-20 10:01:29 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] EngineCore failed to start.\n\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] Traceback (most recent call last):\n\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708]   File \"/x/vllm/distributed/device_communicators/shm_broadcast.py\", line 490, in acquire_read\n\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708]     raise RuntimeError(\"cancelled\")\n\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] RuntimeError: cancelled\n"
    );
    let died = report(&log);
    assert_ne!(cause(&died), Some("unknown.exception"));
    assert_eq!(died.root.as_ref().map(|r| r.place.line), Some(4));
}

#[test]
fn sockets_between_nodes_that_have_infiniband_are_a_degraded_launch() {
    let node = |name: &str, network: &str| {
        format!(
            "{name}:4000:4000 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>\n{name}:4000:4000 [0] NCCL INFO Using network {network}\n"
        )
    };
    let job = |a: &str, b: &str| report(&format!("{a}{b}step 1 loss 3.2\nstep 2 loss 3.1\n"));
    let slow = job(&node("node-a", "Socket"), &node("node-b", "Socket"));
    assert_eq!(slow.outcome, Outcome::Degraded);
    assert!(slow.findings.iter().any(|f| f.id == "nccl.sockets-despite-ib"));
    assert_eq!(
        job(&node("node-a", "IB"), &node("node-b", "IB")).outcome,
        Outcome::Healthy
    );
    assert_eq!(
        job(&node("node-a", "Socket"), "").outcome,
        Outcome::Healthy,
        "one node needs no network"
    );
}

/// What Ray's core worker writes of an actor that is ended because its owner is gone, at a level and for an exit type.
fn owner_gone(level: char, exit: &str) -> String {
    let head = "[2026-11-29 14:07:16,100 I 190 190] core_worker_process.cc:107: Constructing CoreWorkerProcess. pid: 190\n[2026-11-29 14:07:17,881 I 190 190] core_worker.cc:3400: Creating actor: actor_id=09a17f942b6724541aa5445301000000\n";
    format!(
        "{head}[2026-11-29 14:15:41,881 {level} 190 230] core_worker.cc:4630: Force kill actor request has received. exiting immediately... The actor is dead because its owner has died. Owner Id: 01000000ffff Owner Ip address: 10.0.0.1 Owner worker exit type: {exit} Worker exit detail: Owner's worker process has crashed.\n"
    )
}

#[test]
fn an_actor_whose_owner_has_done_its_work_has_not_failed() {
    for (level, exit) in [
        ('I', "INTENDED_USER_EXIT"),
        ('W', "INTENDED_USER_EXIT"),
        ('E', "INTENDED_SYSTEM_EXIT"),
        // The record of one who is told of it, and goes in order.
        ('I', "SYSTEM_ERROR"),
    ] {
        let told = report(&owner_gone(level, exit));
        assert_ne!(told.outcome, Outcome::Failed, "{level} {exit}");
    }
    let lost = report(&owner_gone('E', "SYSTEM_ERROR"));
    assert_eq!(lost.outcome, Outcome::Failed);
}

#[test]
fn an_effect_that_is_only_warned_of_tells_of_no_failure() {
    let job = |level: char| {
        format!(
            "node-a:4000:4000 [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n[rank0]:[{level}1130 11:20:12.018123412 ProcessGroupNCCL.cpp:1496] NCCL communicator was aborted on rank 0.\n"
        )
    };
    assert_eq!(report(&job('W')).outcome, Outcome::Running);
    assert_eq!(cause(&report(&job('E'))), Some("nccl.peer-died"));
}

#[test]
fn what_ray_hands_on_is_of_a_launch_where_the_head_of_its_log_is_cut_off() {
    let handed_on = "  File \"/x/site-packages/ray/_private/worker.py\", line 3009, in get\n    values, debugger_breakpoint = worker.get_objects(\n  File \"/x/site-packages/ray/_private/worker.py\", line 1053, in get_objects\n    raise value.as_instanceof_cause()\nray.exceptions.RayTaskError(OSError): ray::RayWorkerWrapper.load_model() (pid=185, ip=10.0.0.1, actor_id=09a1, repr=<launch.RayWorkerWrapper object at 0x7fac>)\n  File \"/home/user/launch/launch.py\", line 67, in load_model\n    h.write(b\"\\0\" * (1 << 20))\nOSError: [Errno 28] No space left on device\n";
    let step = "(RayWorkerWrapper pid=185) rank 1: init_device pid 185\n";
    let sink = "[*** LOG ERROR #0001 ***] [2026-11-29 13:57:16] [ray_log_sink] Failed flush to file /tmp/ray/session_2026-11-29_13-57-08_056713_18/logs/python-core-driver-01_18.log: No space left on device\n";
    for log in [
        format!("{handed_on}{step}{sink}"),
        format!("{handed_on}{sink}"),
        handed_on.to_owned(),
    ] {
        let full = report(&log);
        assert_eq!(full.outcome, Outcome::Failed);
        assert_eq!(cause(&full), Some("env.disk-full"));
    }
}

#[test]
fn a_process_that_its_parent_misses_ended_the_launch() {
    let gone = "(EngineCore_DP0 pid=202) ERROR 11-20 10:00:52 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n";
    let up = "(APIServer pid=101) INFO:     Application startup complete.\n";
    for log in [format!("{STARTED}{gone}"), format!("{STARTED}{up}{gone}")] {
        let died = report(&log);
        assert_eq!(died.outcome, Outcome::Failed);
        assert!(
            matches!(cause(&died), Some("unknown.silent" | "process.sigkill")),
            "{:?}",
            cause(&died)
        );
        assert!(
            died.root
                .as_ref()
                .is_some_and(|r| r.place.text.contains("died unexpectedly"))
        );
    }
    // A server that is told to end takes its processes along.
    let core = "(APIServer pid=101) ERROR 11-20 10:30:00 [core_client.py:564] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.\n";
    let down = "(APIServer pid=101) INFO:     Shutting down\n(APIServer pid=101) INFO:     Waiting for application shutdown.\n(APIServer pid=101) INFO:     Application shutdown complete.\n";
    assert_eq!(report(&format!("{STARTED}{up}{core}{down}")).outcome, Outcome::Stopped);
}

#[test]
fn what_the_tracker_of_shared_memory_prints_ended_nobody() {
    let tracker = "Traceback (most recent call last):\n  File \"/usr/lib/python3.12/multiprocessing/resource_tracker.py\", line 239, in main\n    cache[rtype].remove(name)\nKeyError: '/psm_0a1b2c3d'\n";
    let ready = "(APIServer pid=101) INFO:     Application startup complete.\n";
    let healthy = report(&format!("{STARTED}{ready}{tracker}"));
    assert_eq!(healthy.outcome, Outcome::Healthy);
    // Who calls it is another process.
    let caller = tracker.replace("line 239, in main", "line 180, in register");
    assert_eq!(report(&format!("{STARTED}{caller}")).outcome, Outcome::Failed);
}

#[test]
fn a_collective_that_timed_out_after_ready_is_a_failure_unless_the_server_answers() {
    let up = "(APIServer pid=101) INFO:     Application startup complete.\n(APIServer pid=101) INFO:     10.0.0.9:1234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
    let caught = "[rank1]:[E1120 11:00:52.123456789 ProcessGroupNCCL.cpp:683] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=120, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600027 milliseconds before timing out.\n";
    let timed_out = report(&format!("{STARTED}{up}{caught}"));
    assert_eq!(cause(&timed_out), Some("nccl.watchdog-timeout"));
    let answered = "(APIServer pid=101) INFO:     10.0.0.9:1235 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
    assert_eq!(
        report(&format!("{STARTED}{up}{caught}{answered}")).outcome,
        Outcome::Healthy
    );
}
