//! Ray's prefixes on several nodes: who has no address in its prefix is on the driver's node, whatever its pid.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::Report;

const OTHER: &str = "10.9.0.12";
const PIDS: [u32; 2] = [3100, 3107];

fn started(rank: usize) -> String {
    format!(
        "INFO 11-27 06:00:4{rank} [parallel_state.py:1607] world_size=4 rank={rank} local_rank={} distributed_init_method=tcp://10.9.0.11:41523 backend=nccl",
        rank % 2
    )
}

const RAISED: &str = "\
ERROR 11-27 06:04:40 [worker_base.py:320] Error executing method 'determine_available_memory'. This might cause deadlock in distributed execution.
ERROR 11-27 06:04:40 [worker_base.py:320] Traceback (most recent call last):
ERROR 11-27 06:04:40 [worker_base.py:320]   File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu_worker.py\", line 318, in determine_available_memory
ERROR 11-27 06:04:40 [worker_base.py:320] torch.AcceleratorError: CUDA error: an illegal memory access was encountered
";

/// The output of a driver whose workers on both nodes have the same pids; that of `dead` raises.
fn driver(dead: usize) -> Text {
    let mut log = String::from(
        "(APIServer pid=501) INFO 11-27 06:00:00 [api_utils.py:339]   █▄█▀ █     █     █     █  version 0.32.1\n",
    );
    let prefix = |rank: usize| match rank / 2 {
        0 => format!("(RayWorkerWrapper pid={}) ", PIDS[rank]),
        _ => format!("(RayWorkerWrapper pid={}, ip={OTHER}) ", PIDS[rank - 2]),
    };
    for rank in 0..4 {
        log += &format!("{}{}\n", prefix(rank), started(rank));
    }
    for line in RAISED.lines() {
        log += &format!("{}{line}\n", prefix(dead));
    }
    Text::new("driver.log", log)
}

/// The files of both nodes' sessions.
fn sessions() -> Vec<Text> {
    let mut files = Vec::new();
    for (node, ip) in [("node-a", "10.9.0.11"), ("node-b", OTHER)] {
        let logs = format!("{node}/session_2026-11-27_05-50-00_123456_90/logs");
        files.push(Text::new(
            format!("{logs}/raylet.out"),
            format!(
                "[2026-11-27 05:50:02,101 I 90 90] (raylet) main.cc:290: Setting cluster ID to: 2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1\n\
                 [2026-11-27 05:50:02,931 I 90 90] (raylet) raylet.cc:91: Raylet of id, 820d5d8baf762ec66dcd56fed15c78bf2798d4f9bd492f4553e99b46 started. Raylet consists of node_manager and object_manager. node_manager address: {ip}:42000 object_manager address: {ip}:42001\n"
            ),
        ));
        for (local, pid) in PIDS.iter().enumerate() {
            let rank = local + 2 * usize::from(ip == OTHER);
            files.push(Text::new(
                format!(
                    "{logs}/worker-{rank}b8efa5a3bf104413a725c6ff0459a6be12b1fd33314cbb138745baf-01000000-{pid}.err"
                ),
                format!(":job_id:01000000\n:actor_name:RayWorkerWrapper\n{}\n", started(rank)),
            ));
        }
    }
    files
}

/// The ranks of the workers, and that of the root.
fn ranks(report: &Report) -> (Vec<u32>, Option<u32>) {
    let mut ranks: Vec<u32> = report.processes.iter().filter_map(|p| p.rank).collect();
    ranks.sort_unstable();
    (ranks, report.root.as_ref().and_then(|root| root.place.rank))
}

#[test]
fn workers_of_two_nodes_with_one_pid_are_two() {
    for dead in 0..4 {
        let report = examine_texts(&[driver(dead)]);
        assert_eq!(ranks(&report), (vec![0, 1, 2, 3], u32::try_from(dead).ok()));
        let root = &report.root.as_ref().unwrap().place;
        assert_eq!(root.node.as_deref() == Some(OTHER), dead >= 2, "{:?}", root.node);
        assert!(
            report.log.missing.iter().all(|missing| !missing.contains("rank")),
            "{:?}",
            report.log.missing
        );
    }
}

#[test]
fn a_worker_is_one_process_in_the_drivers_output_and_in_its_own_file() {
    for dead in 0..4 {
        let mut inputs = sessions();
        inputs.push(driver(dead));
        let report = examine_texts(&inputs);
        assert_eq!(ranks(&report), (vec![0, 1, 2, 3], u32::try_from(dead).ok()));
        let node = if dead < 2 { "node-a" } else { "node-b" };
        assert_eq!(report.root.as_ref().unwrap().place.node.as_deref(), Some(node));
    }
}

/// A head that waits for the GPUs of a node, and what `ray start` said on that node.
fn kept_out(said: &str) -> Report {
    let head = "\
(APIServer pid=55) INFO 11-19 06:00:00 [api_utils.py:339]   █▄█▀ █     █     █     █  version 0.33.0
(EngineCore pid=301) INFO 11-19 06:00:12 [core.py:114] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=16
(EngineCore pid=301) 2026-11-19 06:00:12,111	INFO worker.py:2013 -- Connecting to existing Ray cluster at address: 10.77.3.4:6379...
(EngineCore pid=301) INFO 11-19 06:02:04 [ray_utils.py:230] Waiting for creating a placement group of specs for 70 seconds. specs=[{'GPU': 1.0, 'node:10.77.3.4': 0.001}, {'GPU': 1.0}]. Check `ray status` and `ray list nodes` to see if you have enough resources.
(EngineCore pid=301) ERROR 11-19 06:30:14 [core.py:1231] EngineCore failed to start.
(EngineCore pid=301) ERROR 11-19 06:30:14 [core.py:1231] Traceback (most recent call last):
(EngineCore pid=301) ERROR 11-19 06:30:14 [core.py:1231]   File \"/usr/local/lib/python3.12/dist-packages/vllm/v1/executor/ray_utils.py\", line 250, in _wait_until_pg_ready
(EngineCore pid=301) ERROR 11-19 06:30:14 [core.py:1231]     raise ValueError(
(EngineCore pid=301) ERROR 11-19 06:30:14 [core.py:1231] ValueError: Cannot provide a placement group requiring 16 GPUs (placement_group_specs=[{'GPU': 1.0}]) within 1800 seconds.
";
    let start = format!("2026-11-19 05:59:40,120	INFO scripts.py:1231 -- Local node IP: 10.77.3.5\n{said}");
    examine_texts(&[Text::new("node-a.log", head), Text::new("node-b.log", start)])
}

#[test]
fn a_node_that_could_not_join_the_cluster_is_why_the_launch_finds_no_place() {
    let raised = "Traceback (most recent call last):
  File \"/usr/local/bin/ray\", line 8, in <module>
    sys.exit(main())
  File \"/usr/local/lib/python3.12/dist-packages/ray/scripts/scripts.py\", line 1200, in start
";
    let refused = "[2026-11-19 05:59:45,210 W 41 41] rpc_client.h:153: Failed to connect to GCS at address 10.77.3.4:6379 within 5 seconds.\n";
    let gcs = format!(
        "{refused}{raised}RuntimeError: Unable to connect to GCS (ray head) at 10.77.3.4:6379. Check that (1) Ray with matching version started successfully at the specified address\n"
    );
    let version = format!(
        "{raised}RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.60.0\n    Python: 3.12.3\nThis process on node 10.77.3.5 was started with:\n    Ray: 2.51.0\n    Python: 3.12.3\n"
    );
    for (said, cause) in [(&gcs, "ray.gcs-unreachable"), (&version, "ray.version-mismatch")] {
        let report = kept_out(said);
        assert_eq!(
            report.cause.as_ref().map(|c| c.id.as_str()),
            Some(cause),
            "{}",
            report.headline
        );
        let root = report.root.as_ref().unwrap();
        assert_eq!(
            root.place.node.as_deref(),
            Some("node-b"),
            "{cause}: whose traceback it is"
        );
    }
}

#[test]
fn a_driver_is_on_one_of_the_nodes_whose_sessions_are_there() {
    let alone = examine_texts(&[driver(3)]);
    assert_eq!(alone.launch.nodes, Some(2), "its own and the one that Ray names");
    let mut beside = sessions();
    beside.push(driver(3));
    assert_eq!(examine_texts(&beside).launch.nodes, Some(2), "with both sessions");
    let other: Vec<Text> = (beside.into_iter())
        .filter(|text| !text.name.starts_with("node-a"))
        .collect();
    assert_eq!(
        examine_texts(&other).launch.nodes,
        Some(2),
        "with that of the other node alone"
    );
    assert_eq!(examine_texts(&sessions()).launch.nodes, Some(2), "both sessions alone");
}

#[test]
fn a_node_is_counted_once_whether_an_address_or_a_name_tells_of_it() {
    let raylet = "[2026-11-27 05:50:02,931 I 90 90] (raylet) raylet.cc:91: Raylet of id, 820d5d8b started. Raylet consists of node_manager and object_manager. node_manager address: 10.9.0.11:42000 object_manager address: 10.9.0.11:42001 hostname: gpu-a\n";
    let event = r#"{"event_id": "4Fe11ECA5355C55475Ba1F902dde3FbB4dA8", "source_type": "AUTOSCALER", "source_hostname": "gpu-a", "source_pid": 52, "label": "", "message": "Error: No available node types can fulfill resource request", "severity": "ERROR", "timestamp": "1795759300"}"#;
    let report = examine_texts(&[
        Text::new("s/logs/raylet.out", raylet),
        Text::new("s/logs/events/event_AUTOSCALER.log", format!("{event}\n")),
    ]);
    assert_eq!(report.launch.nodes, Some(1));
}

#[test]
fn a_worker_that_the_engine_calls_by_its_rank_is_the_one_whose_file_is_there() {
    let pid = PIDS[1];
    let file = |rank: usize| {
        Text::new(
            format!(
                "s/session_2026-11-27_05-50-00_123456_90/logs/worker-{rank}b8efa5a3bf104413a725c6ff0459a6be12b1fd33314cbb138745baf-01000000-{pid}.err"
            ),
            format!("{}\n", started(rank)),
        )
    };
    // The driver's own node has a worker of the same pid.
    let near = format!("(RayWorkerProc pid={pid}) {}\n", started(1));
    let told = "(EngineCore pid=640) ERROR 11-27 06:04:40 [ray_executor_v2.py:320] RayWorkerProc rank=[3] died unexpectedly, shutting down executor.\n";
    let report = examine_texts(&[Text::new("s.log", format!("{near}{told}")), file(3)]);
    let ranks: Vec<Option<u32>> = (report.processes.iter())
        .filter(|p| p.pid == Some(pid.into()))
        .map(|p| p.rank)
        .collect();
    assert_eq!((ranks.len(), report.processes.len()), (2, 3), "{ranks:?}");
    let root = report.root.as_ref().unwrap();
    assert_eq!(root.place.rank, Some(3));
    assert!(root.place.process.as_ref().unwrap().contains(&format!("pid={pid}")));
}
