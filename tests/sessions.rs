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
