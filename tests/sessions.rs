//! Ray's session folders: with the driver's log beside them, several of them, and what their daemons say of each other.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use common::{Case, Text, cases, examine, examine_texts, root_process};
use coroner::report::model::{Outcome, Report};

/// Recorded launches on Ray, each with its session; they need not stand beside the package.
const RECORDED: &str = "../shared/cases/ray-local";

/// How much of a label a report meets: outcome, cause and phase, as far as the outcome lets them be judged.
fn met(case: &Case, report: &Report) -> u32 {
    let accepts = |want: Option<&str>, also: &[String], got: Option<&str>| {
        want.is_none() || want == got || also.iter().any(|also| Some(also.as_str()) == got)
    };
    let outcome = accepts(
        Some(&case.outcome),
        &case.acceptable_outcomes,
        Some(report.outcome.id()),
    );
    let failed = report.outcome == Outcome::Failed;
    let cause = report.cause.as_ref().map(|cause| cause.id.as_str());
    let cause = !failed || accepts(case.cause.as_deref(), &case.acceptable_causes, cause);
    let open = failed || report.outcome == Outcome::Running;
    let phase = !open || accepts(case.phase.as_deref(), &case.acceptable_phases, report.phase.as_deref());
    if outcome {
        1 + u32::from(cause) + u32::from(phase)
    } else {
        0
    }
}

fn pair_is_worse(case: &Case, log: PathBuf, folder: PathBuf) -> Option<String> {
    let pair = examine(&[log.clone(), folder.clone()]);
    let mut best = met(case, &examine(&[log]));
    if case.session_supports != Some(false) {
        best = best.max(met(case, &examine(&[folder])));
    }
    let worse = met(case, &pair) < best;
    worse.then(|| format!("{}: {:?} {:?} {}", case.id, pair.outcome, pair.phase, pair.headline))
}

#[test]
fn a_driver_and_its_session_are_no_worse_together_than_either_alone() {
    let mut pairs: Vec<(Case, PathBuf, PathBuf)> = Vec::new();
    for case in cases() {
        let (log, folder) = (case.path(".log"), case.path(".d"));
        pairs.push((case, log, folder));
    }
    let recorded = fs::read_dir(RECORDED).into_iter().flatten();
    for entry in recorded {
        let label = entry.unwrap().path();
        if label.extension().is_some_and(|e| e == "json") {
            let case = serde_json::from_str(&fs::read_to_string(&label).unwrap()).unwrap();
            pairs.push((case, label.with_extension("log"), label.with_extension("d")));
        }
    }
    pairs.retain(|(_, log, folder)| log.is_file() && folder.is_dir());
    assert!(!pairs.is_empty());
    let worse: BTreeSet<String> = pairs
        .into_iter()
        .filter_map(|(case, log, folder)| pair_is_worse(&case, log, folder))
        .collect();
    assert!(worse.is_empty(), "{worse:#?}");
}

/// Ray's own line, as its daemons print it.
fn line(time: &str, component: &str, pid: u32, level: char, message: &str) -> String {
    format!("[2026-11-29 {time} {level} {pid} {pid}] ({component}) main.cc:1: {message}\n")
}

fn raylet(time: &str, pid: u32, message: &str) -> String {
    line(time, "raylet", pid, 'I', message)
}

const STOP: &str = "received SIGTERM. Existing local drain request = None";
const GCS_STOP: &str = "GCS server received SIGTERM, shutting down...";
const JOINED: &str = "Raylet of id, 200d23fe started. Raylet consists of node_manager and object_manager. node_manager address: 10.0.0.1:0 object_manager address: 10.0.0.1:43033 hostname: h";
const FATE: &str = "The raylet exited immediately because one Ray agent failed, agent_name = dashboard_agent.";

#[test]
fn what_daemons_miss_after_a_stop_is_the_stop() {
    let at = |stop: &str, fate: &str| {
        examine_texts(&[
            Text::new(
                "s/logs/raylet.out",
                raylet("14:11:02,100", 91, JOINED) + &raylet(stop, 91, STOP),
            ),
            Text::new("s/logs/raylet.err", line(fate, "raylet", 91, 'E', FATE)),
        ])
    };
    assert_eq!(at("14:15:14,619", "14:15:14,683").outcome, Outcome::Stopped);
    // An agent that ended before the node was told to stop is what ended it.
    let before = at("14:15:14,900", "14:15:14,683");
    assert_eq!(before.cause.as_ref().unwrap().id, "ray.raylet-died");
    assert!(before.headline.starts_with("The raylet died"), "{}", before.headline);
    // A stop of the head is one of the whole cluster; that of another node is not.
    let two = |folder: &str, message: &str, component: &str| {
        examine_texts(&[
            Text::new("s/logs/raylet.out", raylet("14:11:02,100", 91, JOINED)),
            Text::new(
                format!("s/logs/{folder}{component}.out"),
                line("14:15:14,619", component, 20, 'I', message),
            ),
            Text::new("s/logs/raylet.err", line("14:15:14,683", "raylet", 91, 'E', FATE)),
        ])
    };
    assert_eq!(two("", GCS_STOP, "gcs_server").outcome, Outcome::Stopped);
    assert_eq!(two("node-b/", STOP, "raylet").outcome, Outcome::Failed);
}

#[test]
fn a_cluster_that_is_told_to_end_before_any_node_is_up_has_failed() {
    let gcs = line("14:07:49,356", "gcs_server", 19, 'I', GCS_STOP);
    let never = examine_texts(&[Text::new("s/logs/gcs_server.out", gcs.clone())]);
    assert_eq!(never.cause.as_ref().unwrap().id, "process.sigterm");
    assert_eq!(never.phase.as_deref(), Some("cluster-join"));
    let up = examine_texts(&[
        Text::new("s/logs/gcs_server.out", gcs),
        Text::new("s/logs/raylet.out", raylet("14:07:40,100", 91, JOINED)),
    ]);
    assert_eq!(up.outcome, Outcome::Stopped);
}

#[test]
fn a_program_that_says_nothing_of_its_end_is_not_stopped_by_its_cluster() {
    let driver = "2026-11-29 14:09:56,886\tINFO worker.py:1660 -- Connecting to existing Ray cluster at address: 10.0.0.1:6379...\n";
    let gcs = line("14:10:30,334", "gcs_server", 21, 'I', GCS_STOP);
    let report = examine_texts(&[
        Text::new("x.log", driver),
        Text::new("x.d/gcs_server.out", gcs),
        Text::new(
            "x.d/raylet.out",
            raylet("14:09:20,100", 107, JOINED) + &raylet("14:10:30,333", 107, STOP),
        ),
    ]);
    assert_eq!(report.outcome, Outcome::Running);
    assert_eq!(report.phase.as_deref(), Some("cluster-join"));
}

#[test]
fn a_signal_that_a_logger_prints_again_below_was_sent_then() {
    let driver = "\
2026-11-29 14:33:16,538\tINFO worker.py:2038 -- Started a local Ray instance.
*** SIGTERM received at time=1795962905 on cpu 1 ***
PC: @     0x7fa1f82a3f16  (unknown)  (unknown)
[2026-11-29 14:35:05,484 E 18 18] logging.cc:474: *** SIGTERM received at time=1795962905 on cpu 1 ***
";
    let setup = "2026-11-29 14:34:40,100\tERROR uv.py:120 -- Failed to create runtime env: error: Failed to fetch: `https://pypi.org/simple/einops/`\n";
    let failed = "[2026-11-29 14:34:41,100 E 89 89] (raylet) worker_pool.cc:1: Failed to create runtime env for job 01000000, error message: Failed to install pip packages.\n";
    let report = examine_texts(&[
        Text::new("x.log", driver),
        Text::new("x.d/runtime_env_setup-01000000.log", setup),
        Text::new("x.d/raylet.err", failed),
    ]);
    assert_eq!(
        report.cause.as_ref().unwrap().id,
        "ray.runtime-env",
        "{}",
        report.headline
    );
}

#[test]
fn the_raylet_that_died_is_named_and_not_who_missed_it() {
    let gone = "Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL by the user or system OOM killer, (2) Invalid memory access from Raylet causing SIGSEGV or SIGBUS, (3) Other termination signals. Last 20 lines of the Raylet logs:\n";
    let report = examine_texts(&[
        Text::new("s/logs/raylet.out", raylet("14:11:02,100", 91, JOINED)),
        Text::new("s/logs/node-b/raylet.out", raylet("14:11:04,100", 226, JOINED)),
        Text::new("s/logs/node-b/runtime_env_agent.err", gone),
    ]);
    let root = root_process(&report);
    assert_eq!((root.pid, root.node.as_deref()), (Some(226), Some("node-b")));
    assert_eq!(root.role, "ray-daemon");
    assert_eq!(
        report.headline,
        "The raylet (node-b) died, and with it all Ray workers of its node"
    );
}

#[test]
fn raylets_in_one_folder_are_of_the_nodes_that_they_name_themselves() {
    let start = |ip: &str| JOINED.replace("10.0.0.1", ip);
    let fate = line("14:15:24,683", "raylet", 226, 'E', FATE);
    let flat = |first: &str, second: &str| {
        let one = raylet("14:11:02,100", 91, first) + &raylet("14:15:14,619", 91, STOP);
        examine_texts(&[
            Text::new("s/logs/raylet.out", one),
            Text::new("s/logs/raylet.1.out", raylet("14:11:04,100", 226, second) + &fate),
        ])
    };
    // The stop of one node is none of the other's.
    let report = flat(&start("10.0.0.1"), &start("10.0.0.2"));
    let root = root_process(&report);
    assert_eq!((root.pid, root.node.as_deref()), (Some(226), Some("10.0.0.2")));
    assert_eq!(
        report.headline,
        "The raylet (10.0.0.2) died, and with it all Ray workers of its node"
    );
    // Whose logs do not say where they ran, and who runs twice on one host, has no name of a node.
    for second in [start("10.0.0.1"), "Starting raylet".to_owned()] {
        let report = flat(&start("10.0.0.1"), &second);
        assert!(report.processes.iter().all(|p| p.node.is_none()));
    }
}

/// A line of an event file, whose message has its line ends spelled out.
fn event(pid: u32, used: &str, name: &str) -> String {
    format!(
        r#"{{"custom_fields":{{"node_id":"8673b0c7"}},"event_id":"88bc","host_name":"node-a","label":"Out of Memory","message":"Task was killed due to the node running low on memory.\\nMemory on the node (IP: 10.0.0.1, ID: 8673b0c7) where the task (actor ID: 7369fd08, name={name}, pid={pid}, memory used={used}GB) was running was 2.47GB / 2.51GB (0.982181), which exceeds the memory usage threshold of 0.95. Ray killed this worker (ID: ca383c9c) because it was the most recently scheduled task","pid":"96","severity":"ERROR","source_type":"RAYLET","timestamp":1795961780}}"#
    ) + "\n"
}

#[test]
fn the_victim_of_the_memory_monitor_is_the_worker_and_not_the_raylet() {
    let worker = Text::new(
        format!("s/logs/worker-{}-01000000-271.out", "ca383c9c".repeat(7)),
        ":job_id:01000000\n:actor_name:RayWorkerWrapper\nrank 1: init_device pid 271\nrank 1: Loading shard 1\n",
    );
    let report = examine_texts(&[
        Text::new(
            "s/logs/events/event_RAYLET.log",
            event(271, "1.98", "RayWorkerWrapper.__init__"),
        ),
        worker.clone(),
    ]);
    assert_eq!(root_process(&report).pid, Some(271), "{}", report.headline);
    assert_eq!(report.figures.get("node_used_gib").copied(), Some(2.47));
    // An idle worker goes first, and the launch goes on without it.
    let report = examine_texts(&[
        Text::new(
            "s/logs/events/event_RAYLET.log",
            event(145, "0.05", "bundle_reservation_check_func") + &event(271, "1.98", "RayWorkerWrapper.__init__"),
        ),
        worker,
    ]);
    assert_eq!(root_process(&report).pid, Some(271), "{}", report.headline);
}

/// What a cluster leaves behind: its head's GCS and raylet, and a worker that caught an exception of its own.
fn session(folder: &str, id: &str, minute: u32) -> Vec<Text> {
    let at = |second: u32| format!("14:{minute:02}:{second:02},100");
    let gcs = line(
        &at(1),
        "gcs_server",
        19,
        'I',
        &format!("Generated new cluster ID. cluster_id={id}"),
    ) + &line(&at(50), "gcs_server", 19, 'I', GCS_STOP);
    let node = raylet(&at(3), 89, &format!("Setting cluster ID to: {id}"))
        + &raylet(&at(4), 89, JOINED)
        + &raylet(&at(49), 89, STOP);
    let worker = "\
:job_id:01000000
:actor_name:RayWorkerWrapper
Failed to import custom kernels: No module named 'fast_ops'
Traceback (most recent call last):
  File \"/home/user/launch/launch.py\", line 83, in warm_up
    1 / 0
ZeroDivisionError: division by zero
";
    vec![
        Text::new(format!("{folder}/gcs_server.out"), gcs),
        Text::new(format!("{folder}/raylet.out"), node),
        Text::new(
            format!("{folder}/worker-{}-01000000-190.err", "64ce4e9b".repeat(7)),
            worker,
        ),
    ]
}

/// The same with a worker that the memory monitor killed.
fn killed(folder: &str, id: &str, minute: u32) -> Vec<Text> {
    let mut files = session(folder, id, minute);
    let killing = "Killing 1 worker(s), kill details: Memory on the node (IP: 10.0.0.1, ID: 5f3a9c0d) was 2.39GB used / 2.51GB limit (0.952274)";
    let selected = "Selected to kill: (Actor(1b2c): job ID=01000000, lease ID=01, task name=RayWorkerWrapper.__init__, required resources={CPU: 1}, pid=190, actual memory used=1.90GB, worker ID=aa11)\n";
    let at = format!("14:{minute:02}:40,100");
    files[1]
        .bytes
        .extend((raylet(&at, 89, killing) + selected).into_bytes());
    files[2].bytes.truncate(0);
    files[2]
        .bytes
        .extend(b":job_id:01000000\n:actor_name:RayWorkerWrapper\nrank 1: Loading shard 0\n");
    files
}

const A: &str = "5795afe1a7829469c775957ef0035c2bc62b43d9a5d5dc01695e99ea";
const B: &str = "c5ac7bbdbca1dc22d2ab2209b22682bfbd801fcbf33abd0f4cec5f05";

fn attempts(report: &Report) -> Vec<(&str, Option<&str>)> {
    report
        .attempts
        .iter()
        .map(|a| (a.outcome.id(), a.cause.as_deref()))
        .collect()
}

#[test]
fn sessions_one_after_the_other_are_attempts() {
    for folders in [
        ["ray/session_A/logs", "ray/session_B/logs"],
        [
            "ray/session_2026-11-29_14-06-53_948219_18/logs",
            "ray/session_2026-11-29_14-20-11_100200_18/logs",
        ],
        ["a.d", "b.d"],
    ] {
        let files = [session(folders[0], A, 6), killed(folders[1], B, 20)].concat();
        let report = examine_texts(&files);
        assert_eq!(
            attempts(&report),
            [("stopped", None), ("failed", Some("host-mem.ray-monitor"))],
            "{folders:?}"
        );
        let root = report.root.as_ref().unwrap();
        assert!(root.place.input.starts_with(folders[1]), "{}", root.place.input);
        // Each container counts its own pids.
        assert_eq!(root_process(&report).id, "RayWorkerWrapper pid=190");
        assert!(
            report.processes.iter().all(|p| p.node.as_deref() != Some("a.d")),
            "{folders:?}"
        );
        // The other way round, the last one did its work.
        let files = [killed(folders[0], A, 6), session(folders[1], B, 20)].concat();
        let report = examine_texts(&files);
        assert_eq!(
            attempts(&report),
            [("failed", Some("host-mem.ray-monitor")), ("stopped", None)],
            "{folders:?}"
        );
    }
}

#[test]
fn a_kernel_log_without_a_date_is_of_the_session_beside_which_it_lies() {
    let kernel = "\
[ 2654.682560] ray::RayWorkerW invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=1000
[ 2654.685198] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/launch,task_memcg=/launch,task=ray::RayWorkerW,pid=5719,uid=0
[ 2654.685263] Memory cgroup out of memory: Killed process 5719 (ray::RayWorkerW) total-vm:3614096kB, anon-rss:2075616kB, file-rss:42424kB, shmem-rss:0kB, UID:0 pgtables:4452kB oom_score_adj:1000
";
    let own = [session("a.d", A, 6), vec![Text::new("a.d/dmesg.txt", kernel)]].concat();
    assert_eq!(examine_texts(&own).cause.unwrap().id, "host-mem.oom-killer");
    let report = examine_texts(&[own, session("b.d", B, 20)].concat());
    assert_eq!(
        attempts(&report),
        [("failed", Some("host-mem.oom-killer")), ("stopped", None)]
    );
}

#[test]
fn the_log_of_a_driver_is_of_the_session_during_which_it_was_written() {
    let mut files = [session("ray/session_A/logs", A, 6), killed("ray/session_B/logs", B, 20)].concat();
    let driver = "\
INFO 11-29 14:20:00 [launch.py:119] Initializing engine: ranks=2 address=None
2026-11-29 14:20:05,410\tINFO worker.py:2038 -- Started a local Ray instance.
INFO 11-29 14:20:09 [launch.py:154] Step load_model
ERROR 11-29 14:20:41 [launch.py:162] EngineCore failed to start.
";
    files.push(Text::new("ray/run.log", driver));
    let report = examine_texts(&files);
    assert_eq!(report.attempts.len(), 2);
    assert_eq!(report.cause.as_ref().unwrap().id, "host-mem.ray-monitor");
    assert_eq!(report.phase.as_deref(), Some("weight-load"));
    assert_eq!(attempts(&report)[0], ("stopped", None));
}

#[test]
fn clusters_beside_each_other_are_launches_of_their_own() {
    let report = examine_texts(&[session("prefill/logs", A, 6), killed("decode/logs", B, 6)].concat());
    assert_eq!(report.attempts.len(), 1);
    assert_eq!(report.cause.as_ref().unwrap().id, "host-mem.ray-monitor");
    assert!(report.findings.iter().any(|f| f.id == "inputs.unrelated"));
    assert!(report.examined.skipped.iter().all(|s| s.input.starts_with("prefill/")));
    assert_eq!(report.examined.skipped.len(), 3);
}

#[test]
fn nodes_of_one_cluster_are_one_launch_whatever_their_folders_are_called() {
    let mut files = session("gpu7/session_A/logs", A, 6);
    let second =
        raylet("14:06:05,100", 224, &format!("Setting cluster ID to: {A}")) + &raylet("14:06:06,100", 224, JOINED);
    files.push(Text::new("gpu8/session_A/logs/raylet.out", second));
    let report = examine_texts(&files);
    assert_eq!((report.attempts.len(), report.examined.skipped.len()), (1, 0));
    let nodes: BTreeSet<&str> = report.processes.iter().filter_map(|p| p.node.as_deref()).collect();
    assert_eq!(nodes, BTreeSet::from(["gpu7", "gpu8"]));
}

#[test]
fn a_head_alone_tells_of_the_node_that_it_lost() {
    let id = "1aa5200afcde11752ad46bc7c5d22d85";
    let joined = |ip: &str| format!("Registering new node. node_id={id} node_name={ip} node_address={ip}");
    let lost = format!(
        "Health check failed for node {id}, remaining checks 4, status 14, response status 0, status message failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.2:40275: Failed to connect to remote host: Connection refused, status details "
    );
    let gcs = |time: &str, message: &str| line(time, "gcs_server", 20, 'I', message);
    let up = gcs("14:28:00,100", &joined("10.0.0.1")) + &gcs("14:28:02,100", &joined("10.0.0.2"));
    let driver = "[2026-11-29 14:29:05,343 I 324 324] raylet_ipc_client.cc:133: RayletIpcClient::Disconnect, exit_type=INTENDED_USER_EXIT, exit_detail=Shutdown by ray.shutdown()., has creation_task_exception_pb_bytes=0\n";
    let head = |time: &str| {
        examine_texts(&[
            Text::new("s/logs/gcs_server.out", up.clone() + &gcs(time, &lost)),
            Text::new("s/logs/raylet.out", raylet("14:28:01,100", 91, JOINED)),
            Text::new("s/logs/python-core-driver-01000000ffff_324.log", driver),
        ])
    };
    let report = head("14:29:03,914");
    assert_eq!(report.cause.as_ref().unwrap().id, "ray.node-died");
    assert_eq!(
        report.headline,
        "A node of the Ray cluster (10.0.0.2) died or lost contact"
    );
    assert!(
        report.log.missing.contains(&"Ray's files of 10.0.0.2".to_owned()),
        "{:?}",
        report.log.missing
    );
    // What goes down after the driver has ended, goes down with it.
    assert_eq!(head("14:29:06,914").outcome, Outcome::Stopped);
    // The head alone knows of jobs; while one is under way, a node that is lost is missed.
    let begins = |time: &str, job: u32| gcs(time, &format!("Registering job. job_id=0{job}000000 driver_pid=324"));
    let ended = |time: &str, job: u32| gcs(time, &format!("Marking job as finished. job_id=0{job}000000"));
    let of_jobs = |jobs: String| {
        let report = examine_texts(&[
            Text::new(
                "s/logs/gcs_server.out",
                up.clone() + &jobs + &gcs("14:31:00,100", &lost),
            ),
            Text::new("s/logs/raylet.out", raylet("14:28:01,100", 91, JOINED)),
        ]);
        report.outcome
    };
    let done = begins("14:28:10,100", 1) + &ended("14:29:10,100", 1);
    assert_ne!(of_jobs(done.clone()), Outcome::Failed);
    assert_eq!(of_jobs(done + &begins("14:30:10,100", 2)), Outcome::Failed);
    let beside = begins("14:28:10,100", 1) + &begins("14:28:20,100", 2) + &ended("14:29:10,100", 2);
    assert_eq!(of_jobs(beside), Outcome::Failed);
}

#[test]
fn a_cluster_outlasts_the_drivers_that_end() {
    let gone = "Health check failed for node 1aa5200a, remaining checks 4, status 14, response status 0, status message failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.2:40275: Failed to connect to remote host: Connection refused, status details ";
    let driver = "[2026-11-29 14:29:05,343 I 324 324] raylet_ipc_client.cc:133: RayletIpcClient::Disconnect, exit_type=INTENDED_USER_EXIT, exit_detail=Shutdown by ray.shutdown()., has creation_task_exception_pb_bytes=0\n";
    let next = "INFO 11-29 14:29:40 [launch.py:154] Step load_model\n";
    let gcs = line("14:30:01,100", "gcs_server", 20, 'I', gone);
    let mut files = vec![
        Text::new("s/logs/gcs_server.out", gcs),
        Text::new("s/logs/raylet.out", raylet("14:28:01,100", 91, JOINED)),
        Text::new("s/logs/python-core-driver-01000000ffff_324.log", driver),
    ];
    assert_eq!(examine_texts(&files).outcome, Outcome::Stopped);
    files.push(Text::new("run.log", next));
    assert_eq!(examine_texts(&files).outcome, Outcome::Failed);
}
