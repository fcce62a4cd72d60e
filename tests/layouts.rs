//! Whose a file is: sessions, nodes and pods, by the folders and names in which people collect their logs; and whose
//! log is not among them.

mod common;

use std::collections::BTreeSet;
use std::path::PathBuf;

use common::{Text, examine, examine_texts, root_process};
use coroner::report::model::Report;

fn nodes(report: &Report) -> BTreeSet<&str> {
    report.processes.iter().filter_map(|p| p.node.as_deref()).collect()
}

/// The two nodes of an incident an hour earlier.
fn earlier(text: &str) -> String {
    text.replace("05-19 22:", "05-19 21:").replace("[W519 22:", "[W519 21:")
}

#[test]
fn a_dump_of_pods_holds_the_attempts_of_each() {
    let uid = "2f7e5a08-3f7c-4f6e-9d0a-5b0f5c3e9a1";
    let kubelet = |pod: usize, n: usize| format!("d/pods/default_llm-{pod}_{uid}{pod}/vllm/{n}.log");
    let gathered = |pod: usize, n: usize| {
        let part = ["previous", "current"][n];
        format!("d/namespaces/default/pods/llm-{pod}/vllm/vllm/logs/{part}.log")
    };
    let by_hand = |pod: usize, n: usize| format!("d/llm-{pod}{}.log", ["-previous", ""][n]);
    let name: [&dyn Fn(usize, usize) -> String; 3] = [&kubelet, &gathered, &by_hand];
    let log = ["a", "b"].map(|n| Text::read(format!("corpus/flagship-a-vllm-context-oom.d/node-{n}.log")));
    for name in name {
        let mut files = Vec::new();
        for (pod, log) in log.iter().enumerate() {
            files.push(Text::new(name(pod, 0), earlier(log.text())));
            files.push(Text::new(name(pod, 1), log.text()));
        }
        let report = examine_texts(&files);
        let causes: Vec<_> = report.attempts.iter().map(|a| a.cause.as_deref()).collect();
        assert_eq!(causes, [Some("gpu-oom.context"); 2], "{}", files[0].name);
        assert_eq!(nodes(&report), BTreeSet::from(["llm-0", "llm-1"]), "{}", files[0].name);
        assert_eq!(root_process(&report).node.as_deref(), Some("llm-1"));
        assert_eq!(report.root.as_ref().unwrap().place.input, name(1, 1));
    }
}

#[test]
fn files_of_one_name_are_of_several_nodes_where_their_folders_differ() {
    for [a, b] in [
        ["10.0.0.1", "10.0.0.2"],
        ["gpu-worker-7", "gpu-worker-8"],
        ["rack1", "rack2"],
    ] {
        let log = |node: &str| {
            let label = if node == a { "a" } else { "b" };
            Text::read(format!("corpus/flagship-a-vllm-context-oom.d/node-{label}.log")).bytes
        };
        // A folder for each node, and a file for each.
        for ending in ["/serve.log", ".log"] {
            let report = examine_texts(&[a, b].map(|node| Text::new(format!("{node}{ending}"), log(node))));
            assert_eq!(nodes(&report), BTreeSet::from([a, b]));
            assert_eq!(root_process(&report).node.as_deref(), Some(b));
        }
    }
}

#[test]
fn the_folder_of_a_session_is_that_of_its_node() {
    let raylet = |ip: &str, pid: u32, more: &str| {
        format!(
            "[2026-11-29 14:11:0{pid},100 I {pid} {pid}] (raylet) main.cc:283: Setting cluster ID to: e0e4485264375dc4955845c8e025ee275345e7aaa92c74ec7e5ad6c5\n\
             [2026-11-29 14:11:0{pid},200 I {pid} {pid}] (raylet) node_manager.cc:211: Initializing NodeManager node_id=50cc05cf1da70f42fa51a59280b2f03ad39a7171c2aff6542e209b63 {ip}\n{more}"
        )
    };
    let session = "session_2026-11-29_14-11-02_112233_1/logs";
    let agent = "Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL by the user or system OOM killer, (2) Invalid memory access from Raylet causing SIGSEGV or SIGBUS, (3) Other termination signals. Last 20 lines of the Raylet logs:\n";
    let report = examine_texts(&[
        Text::new(format!("dump/gpu7/{session}/raylet.out"), raylet("", 7, "")),
        Text::new(format!("dump/gpu8/{session}/raylet.out"), raylet("", 8, "")),
        Text::new(format!("dump/gpu8/{session}/runtime_env_agent.err"), agent),
        Text::new(format!("dump/gpu8/{session}/agent-424238335.out"), "started\n"),
    ]);
    assert_eq!(report.root.as_ref().unwrap().place.node.as_deref(), Some("gpu8"));
    assert!(
        nodes(&report).is_subset(&BTreeSet::from(["gpu7", "gpu8"])),
        "{:?}",
        nodes(&report)
    );
}

#[test]
fn the_number_of_a_model_is_no_pod() {
    let log = Text::read("corpus/flagship-a-vllm-context-oom.d/node-b.log");
    let kernel = "[1764072000.123456] systemd[1]: Started Session 4.\n";
    for [name, other] in [
        ["qwen-2.log", "dmesg.txt"],
        ["qwen-2.log", "qwen-3.log"],
        ["qwen-2/serve.log", "phi-4/serve.log"],
    ] {
        let beside = if other == "dmesg.txt" {
            Text::new(other, kernel)
        } else {
            Text::new(other, log.text())
        };
        let report = examine_texts(&[Text::new(name, log.text()), beside]);
        let named = nodes(&report)
            .into_iter()
            .filter(|node| name.contains(node) || other.contains(node));
        assert_eq!(named.count(), 0, "{name} {other}");
    }
}

#[test]
fn a_rank_is_one_process_by_its_label_and_by_its_pid() {
    let node = |at: u32| {
        let mut out = format!(
            "[2026-11-25 11:58:00] server_args=ServerArgs(model_path='/models/m', tp_size=4, nnodes=2, node_rank={at}, dist_init_addr='10.1.0.1:5000')\n"
        );
        for rank in [2 * at, 2 * at + 1] {
            out.push_str(&format!(
                "[2026-11-25 11:58:01 TP{rank}] Init torch distributed begin.\n\
                 node-{at}:410{rank}:410{rank} [{}] NCCL INFO ncclCommInitRankConfig comm 0x8fe0500 rank {rank} nranks 4 cudaDev {} nvmlDev 0 busId 60 commId 0x8c180c9194a90f0e - Init START\n\
                 [2026-11-25 11:58:09 TP{rank}] Load weight begin. avail mem=77.90 GB\n",
                rank % 2,
                rank % 2,
            ));
        }
        Text::new(format!("node-{at}.log"), out)
    };
    let report = examine_texts(&[node(0), node(1)]);
    let of_rank: Vec<_> = report.processes.iter().filter(|p| p.rank == Some(3)).collect();
    assert_eq!(of_rank.len(), 1, "{of_rank:?}");
    assert_eq!(
        (of_rank[0].pid, of_rank[0].node.as_deref()),
        (Some(4103), Some("node-1"))
    );
    assert_eq!(of_rank[0].last_phase.as_deref(), Some("weight-load"));
}

/// The files of a folder of the corpus but for one node's.
fn without(folder: &str, node: &str) -> Report {
    let entries = std::fs::read_dir(format!("corpus/{folder}.d")).unwrap();
    let paths = entries.map(|e| e.unwrap().path());
    let mut left: Vec<PathBuf> = paths.filter(|p| p.file_stem().unwrap() != node).collect();
    left.sort();
    examine(&left)
}

#[test]
fn who_has_no_log_is_named_as_far_as_the_others_tell() {
    for (folder, node, missing) in [
        ("flagship-a-sglang-context-oom", "node-a", "rank 0"),
        ("flagship-a-sglang-context-oom", "node-b", "rank 1"),
        ("flagship-a-vllm-context-oom", "node-a", "node 0 (192.168.100.10)"),
        ("flagship-a-vllm-context-oom", "node-b", "rank 1"),
        ("flagship-b-ray255-monitor", "node-a", "the engine's own log"),
        ("flagship-b-ray260-monitor", "node-a", "the engine's own log"),
        ("flagship-b-ray255-monitor", "node-b", "Ray's files of node-b"),
        ("flagship-b-ray260-monitor", "node-b", "Ray's files of node-b"),
        ("torchrun-4-nodes-one-absent", "node-b", "ranks 1, 3"),
    ] {
        assert_eq!(without(folder, node).log.missing, [missing], "{folder} without {node}");
    }
    for whole in [
        "flagship-a-sglang-context-oom",
        "flagship-a-vllm-context-oom",
        "flagship-b-ray260-monitor",
    ] {
        assert!(without(whole, "none").log.missing.is_empty(), "{whole}");
    }
}

#[test]
fn a_rank_whose_log_is_missing_is_not_said_to_be_absent() {
    let headline = |node: &str| without("nccl-64-ranks-one-absent", node).headline;
    // Rank 37 is known not to have come: the rest of its node is heard.
    assert_eq!(
        headline("node-a"),
        "Rank 37 (node-e) never joined: 55 of 64 ranks waited for it, the logs of 8 are not in the input"
    );
    assert_eq!(
        headline("node-e"),
        "56 of 64 ranks waited in vain; the logs of ranks 32–39 are not in the input"
    );
    let report = without("nccl-64-ranks-one-absent", "node-a");
    assert_eq!(report.log.missing, ["ranks 0–7", "rank 37 (node-e)"]);
    let told = "whether ranks 0–7 came is not known: their logs are not in the input";
    assert!(report.story.contains(told), "{}", report.story);
    // The store counted, so that nothing is left open.
    assert!(
        without("torchrun-4-nodes-one-absent", "none")
            .headline
            .starts_with("Rank 3 never joined")
    );
}

#[test]
fn nodes_and_outputs_that_a_session_proves_are_named_where_they_have_no_log() {
    let at = "[2026-11-29 14:31:50,611 I";
    let raylet = |pid: u32, ip: &str| {
        format!(
            "{at} {pid} {pid}] (raylet) node_manager.cc:355: Raylet of id, 200d23fe started. Raylet consists of node_manager and object_manager. node_manager address: {ip}:0 object_manager address: {ip}:43033 hostname: h\n"
        )
    };
    let joined = |ip: &str| {
        format!(
            "{at} 20 36] (gcs_server) gcs_node_manager.cc:111: Registering new node. node_id=200d23fe node_name={ip} node_address={ip}\n"
        )
    };
    let head = [
        Text::new("s/logs/raylet.out", raylet(107, "10.0.0.1")),
        Text::new("s/logs/gcs_server.out", joined("10.0.0.1") + &joined("10.0.0.2")),
    ];
    let missing = |files: &[Text]| examine_texts(files).log.missing;
    assert_eq!(missing(&head), ["the driver's output", "Ray's files of 10.0.0.2"]);
    let [a, b] = head;
    let second = Text::new("s/logs/node-b/raylet.out", raylet(224, "10.0.0.2"));
    assert_eq!(missing(&[a, b, second]), ["the driver's output"]);
}

#[test]
fn a_placement_group_that_never_came_is_told_with_what_it_asked_for() {
    let gcs = "[2026-11-29 15:04:38,198 I 79 79] (gcs_server) gcs_placement_group_manager.cc:366: Registering placement group, placement group id = bb6f, name = , strategy = 0\n\
               [2026-11-29 15:05:04,540 W 79 79] (gcs_server) gcs_placement_group_manager.cc:596: Failed to waiting for placement group until ready, placement group id = bb6f, cause: NotFound: Placement group is removed before it is created.\n";
    let monitor = "Pending Demands:\n {'CPU': 1.0, 'GPU': 1.0} * 4 (PACK): 1+ pending placement groups\n2026-11-29 15:04:41,228\tINFO autoscaler.py:469 -- The autoscaler took 0.004 seconds to complete the update iteration.\n";
    let stopped = "[2026-11-29 15:05:06,134 I 88 88] (raylet) main.cc:1174: received SIGTERM. Existing local drain request = None\n";
    let report = examine_texts(&[
        Text::new("s/logs/gcs_server.out", gcs),
        Text::new("s/logs/monitor.log", monitor),
        Text::new("s/logs/raylet.out", stopped),
    ]);
    assert_eq!(
        report.cause.map(|c| c.id).as_deref(),
        Some("ray.insufficient-resources")
    );
    assert_eq!(report.phase.as_deref(), Some("cluster-join"));
    assert!(
        report.headline.starts_with("The launch cannot be placed"),
        "{}",
        report.headline
    );
    assert!(
        report.story.contains("{'CPU': 1.0, 'GPU': 1.0} * 4 (PACK)"),
        "{}",
        report.story
    );
    // A demand alone is no failure: the group may still come.
    let waiting = examine_texts(&[Text::new("s/logs/monitor.log", monitor)]);
    assert_ne!(waiting.outcome.id(), "failed");
}

#[test]
fn a_failed_registration_is_a_failure_of_its_own_but_an_effect_of_a_stop() {
    let failed = "[2026-11-29 15:04:05,123 E 311 311] core_worker.cc:201: Failed to register worker 0100ffff to Raylet. IOError: [RayletClient] Unable to register worker with raylet. No such file or directory\n";
    let alone = examine_texts(&[Text::new("driver.log", failed)]);
    let cause = alone.cause.unwrap();
    assert_eq!(cause.id, "ray.worker-start");
    assert!(cause.confidence < 0.7, "{}", cause.confidence);
    let stop = "[2026-11-29 15:04:04,134 I 88 88] (raylet) main.cc:1174: received SIGTERM. Existing local drain request = None\n";
    let stopped = examine_texts(&[
        Text::new("s/logs/raylet.out", stop),
        Text::new("s/logs/python-core-worker-0100ffff_311.log", failed),
    ]);
    assert_eq!(stopped.outcome.id(), "stopped");
}

#[test]
fn a_worker_that_dies_in_its_own_start_is_the_root_and_not_the_wait_for_it() {
    let raylet = "\
Traceback (most recent call last):
  File \"/usr/lib/python3/site-packages/ray/_private/workers/default_worker.py\", line 8, in <module>
    import ray
  File \"/usr/lib/python3/site-packages/referencing/typing.py\", line 22, in <module>
    D = TypeVar(\"D\", default=Any)
TypeError: 'default' is an invalid keyword argument for typevar()
[2026-11-29 14:06:04,134 E 89 89] (raylet) worker_pool.cc:660: Some workers of the worker process(255) have not registered within the timeout. The process is dead, probably it crashed during start.
";
    let report = examine_texts(&[Text::new("s/logs/raylet.err", raylet)]);
    assert_eq!(report.root.unwrap().place.line, 6);
    assert_eq!(report.cause.map(|c| c.id).as_deref(), Some("ray.worker-start"));
}

#[test]
fn a_rank_is_one_process_by_its_label_its_pid_and_its_number() {
    let log = "[2026-11-27 06:00:01] server_args=ServerArgs(model_path='/m/a', tp_size=2, dp_size=1)\n\
        [2026-11-27 06:00:10 TP0] Init torch distributed begin.\n\
        [2026-11-27 06:00:10 TP1] Init torch distributed begin.\n\
        gpu-a:410:410 [0] NCCL INFO ncclCommInitRankConfig comm 0x8fe0500 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 60 commId 0x8c180c9194a90f0e - Init START\n\
        gpu-a:411:411 [1] NCCL INFO ncclCommInitRankConfig comm 0x8fe0500 rank 1 nranks 2 cudaDev 1 nvmlDev 0 busId 60 commId 0x8c180c9194a90f0e - Init START\n\
        [2026-11-27 06:00:20 TP1] Load weight begin. avail mem=77.90 GB\n\
        [rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n";
    let report = examine_texts(&[Text::new("a.log", log)]);
    let ids: BTreeSet<&str> = report.processes.iter().map(|p| p.id.as_str()).collect();
    assert_eq!(ids, BTreeSet::from(["main", "TP0 pid=410", "TP1 pid=411"]));
    assert_eq!(root_process(&report).id, "TP1 pid=411");
    // Two pids of one rank: which of them the label is of is not known.
    let two = log.replacen("[2026-11-27 06:00:20", "gpu-a:577:577 [1] NCCL INFO ncclCommInitRankConfig comm 0x9fe0500 rank 1 nranks 2 cudaDev 1 nvmlDev 0 busId 60 commId 0x9c180c9194a90f0e - Init START\n[2026-11-27 06:00:20", 1);
    let report = examine_texts(&[Text::new("a.log", two)]);
    assert!(report.processes.iter().any(|p| p.id == "TP1"), "{:?}", report.processes);
}
