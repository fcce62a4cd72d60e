//! What the kernel, a service manager, a container runtime or a cluster's daemons tell of others than the launch: it is
//! none of its failures, and what hit the launch itself still is.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};

fn report(log: &str) -> Report {
    examine_texts(&[Text::new("launch.log".to_owned(), log.as_bytes().to_vec())])
}

fn cause(report: &Report) -> Option<&str> {
    report.cause.as_ref().map(|c| c.id.as_str())
}

/// Whose failure the root is.
fn who(report: &Report) -> Option<&str> {
    report.root.as_ref().and_then(|r| r.place.process.as_deref())
}

const STARTED: &str = "\
(APIServer pid=101) INFO 11-20 10:00:05 [api_server.py:1839] vLLM API server version 0.11.0
(EngineCore_DP0 pid=202) INFO 11-20 10:00:20 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='/models/demo', tensor_parallel_size=2
(Worker_TP0 pid=301) INFO 11-20 10:00:40 [gpu_model_runner.py:2602] Starting to load model /models/demo...
(Worker_TP1 pid=302) INFO 11-20 10:00:40 [gpu_model_runner.py:2602] Starting to load model /models/demo...
";
const READY: &str = "\
(APIServer pid=101) INFO 11-20 10:02:30 [api_server.py:1912] Starting vLLM API server 0 on http://0.0.0.0:8000
(APIServer pid=101) INFO:     Application startup complete.
";
const ANSWERED: &str = "(APIServer pid=101) INFO:     10.0.0.9:1234 - \"POST /v1/chat/completions HTTP/1.1\" 200 OK\n";
const OUT_OF_MEMORY: &str = "\
(Worker_TP1 pid=302) ERROR 11-20 10:00:50 [multiproc_executor.py:597] WorkerProc failed to start.
(Worker_TP1 pid=302) ERROR 11-20 10:00:50 [multiproc_executor.py:597] Traceback (most recent call last):
(Worker_TP1 pid=302) ERROR 11-20 10:00:50 [multiproc_executor.py:597]   File \"/usr/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py\", line 2610, in load_model
(Worker_TP1 pid=302) ERROR 11-20 10:00:50 [multiproc_executor.py:597] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.20 GiB is free.
(EngineCore_DP0 pid=202) ERROR 11-20 10:00:52 [core.py:708] EngineCore failed to start.
";

/// Lines as journald prints those of the unit.
fn journal(log: &str) -> String {
    let line = |(i, line): (usize, &str)| format!("Nov 20 10:{:02}:{:02} node-a vllm[4711]: {line}\n", i / 60, i % 60);
    log.lines().enumerate().map(line).collect()
}

const UNIT: &str = "Nov 20 09:59:50 node-a systemd[1]: Started vllm.service - vLLM.\n";
const OTHER_UNITS: [&str; 4] = [
    "systemd[1]: jupyter.service: A process of this unit has been killed by the OOM killer.",
    "systemd[1]: snapd.service: Failed with result 'oom-kill'.",
    "systemd[1]: backup.service: Main process exited, code=killed, status=9/KILL",
    "systemd-oomd[812]: Killed /user.slice/user-1000.slice/app-firefox.scope due to memory pressure for /user.slice being 92.31% > 60.00% for > 20s with reclaim activity",
];

#[test]
fn what_befell_another_unit_is_none_of_the_launch() {
    let unit = "Nov 20 10:10:00 node-a systemd[1]: vllm.service: Main process exited, code=exited, status=1/FAILURE\n";
    for other in OTHER_UNITS {
        let healthy = format!(
            "{UNIT}{}Nov 20 10:09:30 node-a {other}\n",
            journal(&format!("{STARTED}{READY}{ANSWERED}"))
        );
        assert_eq!(report(&healthy).outcome, Outcome::Healthy, "{other}");
        for at in ["Nov 20 09:59:40", "Nov 20 10:00:03"] {
            let launch = journal(&format!("{STARTED}{OUT_OF_MEMORY}"));
            let failed = report(&format!("{at} node-a {other}\n{UNIT}{launch}{unit}"));
            assert_eq!(cause(&failed), Some("gpu-oom.weights"), "{at} {other}");
        }
    }
}

#[test]
fn what_befell_the_unit_of_the_launch_ended_it() {
    let own = "Nov 20 10:00:30 node-a systemd[1]: vllm.service: A process of this unit has been killed by the OOM killer.\n\
               Nov 20 10:00:31 node-a systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL\n";
    let killed = report(&format!("{UNIT}{}{own}", journal(STARTED)));
    assert_eq!(cause(&killed), Some("host-mem.oom-killer"));
    // Nothing tells the launch's unit from one of another name.
    let nameless = format!(
        "{}{}",
        journal(STARTED),
        own.replace("vllm.service", "inference.service")
    );
    assert_eq!(cause(&report(&nameless)), Some("host-mem.oom-killer"));
}

#[test]
fn the_kernel_kills_and_faults_of_other_programs_end_no_server() {
    for other in [
        "[1234.100000] traps: chrome[555] trap int3 ip:55 sp:7ff error:0",
        "[1234.100000] gnome-shell[5559]: segfault at 0 ip 00007f3a4c1b2d30 sp 00007ffd3c error 4 in libc.so.6[7f3a4b000000+5000000]",
        "[99123.112233] NVRM: Xid (PCI:0000:5b:00): 31, pid=99112, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS faulted @ 0x7f_aaaa0000.",
    ] {
        assert_eq!(
            report(&format!("{STARTED}{READY}{other}\n")).outcome,
            Outcome::Healthy,
            "{other}"
        );
    }
    // One that may be the launch's by its name: the server answers behind it.
    let kill = "[99123.112233] Out of memory: Killed process 99412 (python3) total-vm:9176420kB, anon-rss:57344kB, file-rss:0kB, shmem-rss:0kB, UID:0\n";
    assert_eq!(
        report(&format!("{STARTED}{READY}{kill}{ANSWERED}")).outcome,
        Outcome::Healthy
    );
    assert_eq!(
        cause(&report(&format!("{STARTED}{READY}{kill}"))),
        Some("host-mem.oom-killer")
    );
    let died = "(EngineCore_DP0 pid=202) ERROR 11-20 10:03:30 [multiproc_executor.py:154] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.\n";
    let failed = report(&format!("{STARTED}{READY}{kill}{ANSWERED}{died}"));
    assert_eq!(
        cause(&failed),
        Some("host-mem.oom-killer"),
        "answered what was under way"
    );
}

#[test]
fn another_service_of_a_composition_ends_none_of_the_launch() {
    let vllm = |log: &str| log.lines().map(|l| format!("vllm-1      | {l}\n")).collect::<String>();
    let served = vllm(&format!("{STARTED}{READY}{ANSWERED}"));
    let database = "postgres-1  | LOG:  database system is ready to accept connections\n";
    for end in ["postgres-1 exited with code 1", "open-webui-1 exited with code 137"] {
        assert_eq!(
            report(&format!("{database}{served}{end}\n")).outcome,
            Outcome::Healthy,
            "{end}"
        );
    }
    let own = report(&format!("{database}{served}vllm-1 exited with code 137\n"));
    assert_eq!(cause(&own), Some("process.sigkill"));
}

const JOINED: &str = "\
(EngineCore_DP0 pid=202) (RayWorkerWrapper pid=301) INFO 11-20 10:00:35 [parallel_state.py:1208] rank 0 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 0, EP rank 0
(EngineCore_DP0 pid=202) (RayWorkerWrapper pid=709, ip=10.0.0.2) INFO 11-20 10:00:35 [parallel_state.py:1208] rank 1 in world size 2 is assigned as DP rank 0, PP rank 0, TP rank 1, EP rank 1
(EngineCore_DP0 pid=202) (RayWorkerWrapper pid=301) INFO 11-20 10:00:40 [gpu_model_runner.py:2602] Starting to load model /models/demo...
(EngineCore_DP0 pid=202) (RayWorkerWrapper pid=709, ip=10.0.0.2) INFO 11-20 10:00:40 [gpu_model_runner.py:2602] Starting to load model /models/demo...
";
const ACTOR_DIED: &str = "\
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] EngineCore failed to start.
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] Traceback (most recent call last):
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708]   File \"/usr/lib/python3.12/site-packages/ray/_private/worker.py\", line 929, in get_objects
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708]     raise value
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] \tclass_name: RayWorkerWrapper
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] \tactor_id: c869e36d57cdca8c2aaeb9f601000000
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] \tpid: 709
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] \tnamespace: 7a1b
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] \tip: 10.0.0.2
(EngineCore_DP0 pid=202) ERROR 11-20 10:01:30 [core.py:708] The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.
";

/// Ray's count for a node, once in a minute.
fn counted(killed: u32, crashed: u32, ip: &str) -> String {
    format!(
        "(raylet, ip={ip}) {killed} Workers (tasks / actors) killed due to memory pressure (OOM), {crashed} Workers crashed due to other reasons at node (ID: 4f0e, IP: {ip}) over the last time period.\n"
    )
}

#[test]
fn a_count_of_the_dead_of_a_node_is_of_whom_the_log_tells_there() {
    let start = &STARTED.lines().take(2).map(|l| format!("{l}\n")).collect::<String>();
    for (summary, told) in [
        (counted(1, 0, "10.0.0.2"), "host-mem.ray-monitor"),
        (counted(0, 1, "10.0.0.2"), "ray.worker-died"),
    ] {
        let died = report(&format!("{start}{JOINED}{summary}{ACTOR_DIED}"));
        assert_eq!(cause(&died), Some(told));
        assert!(who(&died).is_some_and(|p| p.contains("709")), "{:?}", who(&died));
        assert_eq!(died.root.as_ref().and_then(|r| r.place.rank), Some(1));
    }
    let elsewhere = report(&format!("{start}{JOINED}{}{ACTOR_DIED}", counted(1, 0, "10.0.0.7")));
    assert_eq!(cause(&elsewhere), Some("ray.worker-died"), "another node's dead");
    // Two dead of the node, and one of another: the count is still of these.
    let joined = |pid: u32, rank: u32, ip: &str| {
        format!(
            "(EngineCore_DP0 pid=202) (RayWorkerWrapper pid={pid}, ip={ip}) INFO 11-20 10:00:35 [parallel_state.py:1208] rank {rank} in world size 4 is assigned as DP rank 0, PP rank 0, TP rank {rank}, EP rank {rank}\n"
        )
    };
    let died = |pid: u32, ip: &str| ACTOR_DIED.replace("709", &pid.to_string()).replace("10.0.0.2", ip);
    let several = report(&format!(
        "{start}{JOINED}{}{}{}{ACTOR_DIED}{}{}",
        joined(710, 2, "10.0.0.2"),
        joined(811, 3, "10.0.0.3"),
        counted(2, 0, "10.0.0.2"),
        died(710, "10.0.0.2"),
        died(811, "10.0.0.3"),
    ));
    assert_eq!(cause(&several), Some("host-mem.ray-monitor"));
}

#[test]
fn daemons_of_a_cluster_tell_of_other_jobs_too() {
    let start = format!(
        "{}{JOINED}{READY}",
        STARTED.lines().take(2).map(|l| format!("{l}\n")).collect::<String>()
    );
    let died = "(raylet, ip=10.0.0.2) A worker died or was killed while executing a task by an unexpected system error. To troubleshoot the problem, check the logs for the dead worker. Lease ID: 01 Worker ID: ab Node ID: cd Worker IP address: 10.0.0.2 Worker port: 10005 Worker PID: PID Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.\n";
    let others = [
        "(raylet) [2025-11-20 10:00:59,000 E 89 89] (raylet) worker_pool.cc:660: Some workers of the worker process(412) have not registered within the timeout. The process is still alive, probably it's hanging during start.\n".to_owned(),
        "(autoscaler +5m2s) Error: No available node types can fulfill resource request {'GPU': 1.0}. Add suitable node types to this cluster to resolve this issue.\n".to_owned(),
        counted(1, 0, "10.0.0.2"),
        counted(0, 1, "10.0.0.2"),
        died.replace("PID: PID", "PID: 555"),
        "(raylet) Task preprocess failed. There are 2 retries remaining, so the task will be retried. Error: A worker died or was killed while executing a task by an unexpected system error.\n".to_owned(),
    ];
    for other in &others {
        assert_eq!(
            report(&format!("{start}{other}{ANSWERED}")).outcome,
            Outcome::Healthy,
            "{other}"
        );
    }
    let own = report(&format!("{start}{}{ANSWERED}", died.replace("PID: PID", "PID: 709")));
    assert_eq!(cause(&own), Some("ray.worker-died"), "a worker of the launch");
}

const WORKERS: &str = "\
INFO 11-29 14:06:53 [launch.py:119] Initializing engine: ranks=4 address=None
2026-11-29 14:07:11,314\tINFO worker.py:2038 -- Started a local Ray instance.
(RayWorkerWrapper pid=191) rank 0: init_device pid 191
(RayWorkerWrapper pid=190) rank 1: init_device pid 190
(RayWorkerWrapper pid=257) rank 2: init_device pid 257
";
const SWEPT: &str = "(RayWorkerWrapper pid=257) *** SIGTERM received at time=1795960525 on cpu 0 ***\n";

#[test]
fn a_worker_that_ray_swept_away_did_not_fail_first() {
    let crashed = |at: u64| {
        format!(
            "(RayWorkerWrapper pid=190) *** SIGSEGV received at time={at} on cpu 0 ***\n(RayWorkerWrapper pid=190) Fatal Python error: Segmentation fault\n"
        )
    };
    let raised = "\
Traceback (most recent call last):
  File \"/home/user/launch/launch.py\", line 155, in main
    ray.get(refs)
ray.exceptions.RayTaskError(RuntimeError): ray::RayWorkerWrapper.load_model() (pid=190, ip=10.0.0.1, actor_id=aa, repr=x)
  File \"/home/user/launch/launch.py\", line 60, in load_model
RuntimeError: weights are corrupt
";
    let first = report(&format!("{WORKERS}{SWEPT}{}", crashed(1795960520)));
    assert_eq!(cause(&first), Some("process.segfault"));
    let after = report(&format!("{WORKERS}{SWEPT}{}", crashed(1795960526)));
    assert_eq!(
        cause(&after),
        Some("process.sigterm"),
        "crashed while it was being ended"
    );
    let quoted = report(&format!("{WORKERS}{SWEPT}{raised}"));
    assert_eq!(cause(&quoted), Some("unknown.exception"));
    assert_eq!(cause(&report(&format!("{WORKERS}{SWEPT}"))), Some("process.sigterm"));
}

/// A torchrun node: its rank's lines below its agent's.
fn node(name: &str, lines: &str) -> Text {
    Text::new(format!("{name}.log"), lines.as_bytes().to_vec())
}

#[test]
fn a_peer_that_does_not_answer_had_died_before() {
    let start = |node: &str, rank: u32| {
        format!(
            "2026-01-01 10:00:00 {node}:400{rank}:400{rank} [0] NCCL INFO comm 0x7f rank {rank} nRanks 4 nNodes 2 localRanks 2 localRank 1 MNNVL 0\n2026-01-01 10:00:01 {node}:400{rank}:400{rank} [0] NCCL INFO ncclCommInitRank comm 0x7f rank {rank} nranks 4 cudaDev 1 nvmlDev 1 busId 1000 commId 0x1 - Init COMPLETE\n"
        )
    };
    let gone = [
        "E0101 10:00:05.000000 33 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: -11) local_rank: 1 (pid: 4003) of binary: /usr/bin/python3\n",
        "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/app/train.py\", line 44, in <module>\n[rank3]:     x = float('x')\n[rank3]: ValueError: could not convert string to float: 'x'\nE0101 10:00:05.000000 33 torch/distributed/elastic/multiprocessing/api.py:984] failed (exitcode: 1) local_rank: 1 (pid: 4003) of binary: /usr/bin/python3\n",
    ];
    let missed = [
        "NET/IB: Got completion from peer 10.0.0.2<40000> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) vendor_err=129 hca mlx5_0",
        "Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:10.0.0.1, remote GID ::ffff:10.0.0.2",
        "ncclOsSocketPollConnect: connect to 10.0.0.2<40001> returned Connection refused, exceeded error retry count after 35 attempts",
    ];
    for dead in gone {
        for lost in missed {
            let line = format!("2026-01-01 10:00:30 node-a:4001:4100 [0] misc/x.cc:49 NCCL WARN {lost}\n");
            let first = examine_texts(&[
                node("node-a", &format!("{}{line}", start("node-a", 1))),
                node("node-b", &format!("{}{dead}", start("node-b", 3))),
            ]);
            assert_eq!(
                first.root.as_ref().and_then(|r| r.place.node.as_deref()),
                Some("node-b"),
                "{dead} {lost}"
            );
            assert!(!cause(&first).is_some_and(|c| c.starts_with("nccl.")), "{dead} {lost}");
            let alone = examine_texts(&[node("node-a", &format!("{}{line}", start("node-a", 1)))]);
            assert!(cause(&alone).is_some_and(|c| c.starts_with("nccl.")), "{lost}");
        }
    }
    // Neither has a stamp, so that nothing tells the order; what ran out of memory did so of its own.
    let bare = |node: &str, rank: u32| {
        start(node, rank)
            .replace("2026-01-01 10:00:00 ", "")
            .replace("2026-01-01 10:00:01 ", "")
    };
    let full = "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"/app/train.py\", line 44, in <module>\n[rank3]:     x = plan(cfg)\n[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.20 GiB is free.\n";
    let [lost, ..] = missed;
    let line = format!("node-a:4001:4100 [0] transport/net_ib.cc:1804 NCCL WARN {lost}\n");
    let full = examine_texts(&[
        node("node-a", &format!("{}{line}", bare("node-a", 1))),
        node("node-b", &format!("{}{full}", bare("node-b", 3))),
    ]);
    assert_eq!(cause(&full), Some("gpu-oom.other"));
    assert_eq!(full.root.as_ref().and_then(|r| r.place.rank), Some(3));
}

#[test]
fn whom_the_kernel_kills_is_known_by_no_containers_name() {
    let kill = |name: &str| {
        format!(
            "[99123.112233] Out of memory: Killed process 99412 ({name}) total-vm:9176420kB, anon-rss:57344000kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
        )
    };
    for prefix in ["vllm-1  | ", "[pod/llama-7d9f8b6c5d-x2k4p/engine] ", "node-a | "] {
        let log: String = STARTED.lines().map(|l| format!("{prefix}{l}\n")).collect();
        for name in ["python3", "VLLM::Worker_TP", "pt_main_thread", "ray::RayWorkerW"] {
            let killed = report(&format!("{log}{}", kill(name)));
            assert_eq!(cause(&killed), Some("host-mem.oom-killer"), "{prefix} {name}");
        }
    }
    let xid = "[99123.112233] NVRM: Xid (PCI:0000:5b:00): 94, pid=4711, name=VLLM::Worker_TP, Ch 00000008\n";
    let log: String = STARTED.lines().map(|l| format!("vllm-1  | {l}\n")).collect();
    assert_eq!(cause(&report(&format!("{log}{xid}"))), Some("cuda.ecc"));
}

#[test]
fn a_fault_of_a_process_that_is_named_for_an_engine_ends_its_server() {
    let fault = "[99123.112233] NVRM: Xid (PCI:0000:5b:00): 31, pid=88412, name=VLLM::Worker_TP, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS faulted @ 0x7f_aaaa0000.\n";
    assert_eq!(
        cause(&report(&format!("{STARTED}{READY}{fault}"))),
        Some("cuda.illegal-access")
    );
}

#[test]
fn a_pod_is_compared_with_pods_and_a_container_with_containers() {
    let in_pod = |log: &str| {
        let line = |l: &str| format!("[pod/llama-7d9f8b6c5d-x2k4p/engine] {l}\n");
        log.lines().map(line).collect::<String>()
    };
    let row = |pod: &str| format!("{pod}   0/1     OOMKilled   3 (41s ago)   6m12s\n");
    let own = report(&format!("{}{}", in_pod(STARTED), row("llama-7d9f8b6c5d-x2k4p")));
    assert_eq!(cause(&own), Some("host-mem.oom-killer"));
    let other = report(&format!(
        "{}{}",
        in_pod(&format!("{STARTED}{READY}{ANSWERED}")),
        row("fluentd-abcde")
    ));
    assert_eq!(other.outcome, Outcome::Healthy);
    let running = "vllm-7c9d4b8f6-x2k5p   1/1     Running     0               6m12s\n";
    let listed = |pod: &str| report(&format!("{STARTED}{READY}{ANSWERED}{running}{}", row(pod)));
    assert_eq!(listed("fluentd-abcde").outcome, Outcome::Healthy);
    assert_eq!(cause(&listed("vllm-7c9d4b8f6-q7z2m")), Some("host-mem.oom-killer"));
    // A launch that did not come up is as likely the pod that died as one that is named so.
    let died = report(&format!("{STARTED}{running}{}", row("llama-serve-0")));
    assert_eq!(cause(&died), Some("host-mem.oom-killer"));
    let led = |pod: &str, told: &str| {
        let log: String = STARTED.lines().map(|l| format!("[pod/{pod}/engine] {l}\n")).collect();
        cause(&report(&format!("{log}{}", row(told)))).map(str::to_owned)
    };
    for (leader, worker) in [
        ("vllm-0", "vllm-0-1"),
        ("rc-llama-head-x7k2p", "rc-llama-gpu-group-worker-5hj2k"),
    ] {
        assert_eq!(led(leader, worker).as_deref(), Some("host-mem.oom-killer"), "{worker}");
    }
    for (container, outcome) in [("istio-proxy", Outcome::Running), ("engine", Outcome::Failed)] {
        let probed = format!(
            "{}2m   Normal   Killing   pod/llama-7d9f8b6c5d-x2k4p   Container {container} failed startup probe, will be restarted\n",
            in_pod(STARTED)
        );
        assert_eq!(report(&probed).outcome, outcome, "{container}");
    }

    let composed = |log: &str| log.lines().map(|l| format!("vllm_1  | {l}\n")).collect::<String>();
    for end in [
        "proj_vllm_1 exited with code 137",
        "proj-vllm-1   vllm/vllm-openai   \"vllm serve\"   vllm   5 minutes ago   Exited (137) 2 minutes ago",
    ] {
        let ended = report(&format!("{}{end}\n", composed(STARTED)));
        assert_eq!(cause(&ended), Some("process.sigkill"), "{end}");
    }
    for end in ["nginx-vllm-1 exited with code 1", "embed-1 exited with code 137"] {
        let served = format!("{STARTED}{READY}{ANSWERED}")
            .lines()
            .map(|l| format!("vllm-1  | {l}\n"))
            .collect::<String>();
        assert_eq!(report(&format!("{served}{end}\n")).outcome, Outcome::Healthy, "{end}");
    }
    // A worker's container of the launch has a name of its own.
    let leader: String = STARTED
        .lines()
        .map(|l| format!("[pod/vllm-0/vllm-leader] {l}\n"))
        .collect();
    let probed = format!(
        "{leader}2m   Normal   Killing   pod/vllm-0-1   Container vllm-worker failed startup probe, will be restarted\n"
    );
    assert_eq!(cause(&report(&probed)), Some("process.startup-timeout"));
}

#[test]
fn a_unit_is_anothers_only_where_the_engine_speaks_under_its_own() {
    let as_program = |name: &str| journal(STARTED).replace("vllm[4711]", &format!("{name}[4711]"));
    let killed = |unit: &str| {
        format!(
            "Nov 20 10:00:50 node-a systemd[1]: {unit}: A process of this unit has been killed by the OOM killer.\n"
        )
    };
    let started = |unit: &str| format!("Nov 20 09:50:00 node-a systemd[1]: Started {unit} - other.\n");
    let hash = "4f2a9c1be0d7a6f8c3e5b2914d7f60ab5c8e9d1234567890abcdef1234567890";
    for (beside, name, own) in [
        // Nothing ties the engine to the unit that is named for one.
        ("ray-head.service", "python3", "qwen72b.service".to_owned()),
        ("vllm-exporter.service", "serve", "serve@qwen.service".to_owned()),
        ("ray-metrics.service", "openai-api", "openai-api.service".to_owned()),
        // The runtime, and the scope of a container, in which the unit's engine runs.
        ("vllm.service", "docker", "docker.service".to_owned()),
        ("vllm.service", "vllm", format!("libpod-{hash}.scope")),
        ("vllm.service", "vllm", format!("docker-{hash}.scope")),
    ] {
        let log = format!("{}{}{}", started(beside), as_program(name), killed(&own));
        assert_eq!(cause(&report(&log)), Some("host-mem.oom-killer"), "{own}");
    }
    let session = format!("{}{STARTED}{}", started("ray.service"), killed("session-3.scope"));
    assert_eq!(cause(&report(&session)), Some("host-mem.oom-killer"), "a shell's");
    let other = report(&format!("{UNIT}{}{}", journal(STARTED), killed("user@1000.service")));
    assert_eq!(other.outcome, Outcome::Running);
    let told = other.findings.iter().find(|f| f.id == "look-alike");
    assert!(
        told.is_some_and(|f| f.title.contains("tells of another unit")),
        "{told:?}"
    );
}

#[test]
fn what_listings_of_containers_hold_of_others_alarms_nobody() {
    let healthy = format!("{STARTED}{READY}{ANSWERED}");
    let health = "            \"Status\": \"running\",\n            \"ExitCode\": 0,\n                        \"ExitCode\": 7,\n";
    for listing in [
        health,
        "9b1c2d3e4f50   hello-world   \"/hello\"   3 weeks ago   Exited (1) 3 weeks ago             angry_bell\n",
        "9b1c2d3e4f50   postgres:16   \"docker-entrypoint.s…\"   2 hours ago   Exited (137) 2 minutes ago             db\n",
        "open-webui-1   open-webui   \"bash start.sh\"   open-webui   3 days ago   Exited (137) 2 days ago\n",
    ] {
        assert_eq!(
            report(&format!("{healthy}{listing}")).outcome,
            Outcome::Healthy,
            "{listing}"
        );
        assert_eq!(
            report(&format!("{STARTED}{listing}")).outcome,
            Outcome::Running,
            "{listing}"
        );
    }
    let own = "            \"Status\": \"exited\",\n            \"ExitCode\": 137,\n";
    let beside = "            \"Status\": \"running\",\n            \"ExitCode\": 0,\n";
    for all in [own.to_owned(), format!("{own}{beside}"), format!("{beside}{own}")] {
        assert_eq!(
            cause(&report(&format!("{STARTED}{all}"))),
            Some("process.sigkill"),
            "{all}"
        );
    }
    // The server that answers is the one that a listing shows to run.
    let up = "1a2b3c4d5e6f   vllm/vllm-openai   \"vllm serve /models/a\"   2 hours ago   Up 2 hours   vllm-server\n";
    let embed = "9b1c2d3e4f50   vllm/vllm-openai   \"vllm serve /models/b\"   2 hours ago   Exited (137) 2 minutes ago   vllm-embed\n";
    assert_eq!(report(&format!("{healthy}{up}{embed}")).outcome, Outcome::Healthy);
    assert_eq!(cause(&report(&format!("{STARTED}{embed}"))), Some("process.sigkill"));
}

#[test]
fn the_first_worker_to_be_ended_goes_before_what_its_peers_lost() {
    let start = &STARTED.lines().take(2).map(|l| format!("{l}\n")).collect::<String>();
    let banner = "(EngineCore_DP0 pid=202) (RayWorkerWrapper pid=709, ip=10.0.0.2) *** SIGTERM received at time=1763632890 on cpu 0 ***\n";
    let lost = "(EngineCore_DP0 pid=202) (RayWorkerWrapper pid=301) Traceback (most recent call last):\n\
                (EngineCore_DP0 pid=202) (RayWorkerWrapper pid=301)   File \"/usr/lib/python3.12/site-packages/torch/distributed/distributed_c10d.py\", line 2911, in all_reduce\n\
                (EngineCore_DP0 pid=202) (RayWorkerWrapper pid=301) RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.2]:39211\n";
    let swept = report(&format!("{start}{JOINED}{banner}{lost}"));
    assert_eq!(cause(&swept), Some("process.sigterm"));
    assert!(who(&swept).is_some_and(|p| p.contains("709")), "{:?}", who(&swept));
}

#[test]
fn a_host_s_line_below_a_log_of_another_zone_is_not_earlier() {
    let log = format!("{STARTED}{READY}");
    for told in [
        "Nov 20 05:02:40 gpu-07 systemd[1]: vllm.service: Main process exited, code=killed, status=9/KILL\n",
        "Nov 20 05:02:40 gpu-07 kernel: Out of memory: Killed process 88412 (VLLM::EngineCor) total-vm:9176420kB, anon-rss:57344000kB, file-rss:0kB, shmem-rss:0kB, UID:0\n",
    ] {
        assert_eq!(report(&format!("{log}{told}")).outcome, Outcome::Failed, "{told}");
    }
}
