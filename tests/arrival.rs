//! Who came to the meeting of the ranks: groups of several sizes, nodes without a log, heads that stopped short.

mod common;

use common::{Text, examine_texts, examine_texts_with};
use coroner::report::model::{Outcome, Report};

/// Two ranks of a torchrun node as NCCL tells of them, up to the start of their communicator.
struct Node {
    name: &'static str,
    first: u32,
    size: u32,
    comm: &'static str,
    variable: Option<&'static str>,
}

impl Node {
    fn new(name: &'static str, first: u32) -> Self {
        Self {
            name,
            first,
            size: 6,
            comm: "0x6f3c1d2e88a90b14",
            variable: None,
        }
    }

    fn lines(&self, met: bool) -> String {
        let mut out = String::new();
        for local in 0..2 {
            let (name, pid, rank, size) = (self.name, 5000 + local, self.first + local, self.size);
            let mut say = |text: &str| out.push_str(&format!("{name}:{pid}:{pid} [{local}] NCCL INFO {text}\n"));
            say(&format!("Bootstrap: Using eth0:10.4.0.{}<0>", 10 + self.first));
            say("NCCL version 2.27.5+cuda12.9");
            if let Some(variable) = self.variable {
                say(&format!("{variable} set by environment to 1."));
            }
            say("Using network IB");
            let comm = format!("comm 0x7f0{rank}00 rank {rank}");
            let id = self.comm;
            let device = format!("cudaDev {local} nvmlDev {local} busId 1b000 commId {id}");
            say(&format!(
                "ncclCommInitRankConfig {comm} nranks {size} {device} - Init START"
            ));
            if met {
                say(&format!(
                    "{comm} nRanks {size} nNodes 3 localRanks 2 localRank {local} MNNVL 0"
                ));
                say(&format!(
                    "ncclCommInitRankConfig {comm} nranks {size} {device} - Init COMPLETE"
                ));
            }
        }
        out
    }

    /// The same with the watchdog's report of every rank.
    fn timed_out(&self, met: bool) -> Text {
        let mut out = self.lines(met);
        for rank in self.first..self.first + 2 {
            out.push_str(&format!(
                "[rank{rank}]:[E1130 11:10:12.018123412 ProcessGroupNCCL.cpp:688] [Rank {rank}] Watchdog caught \
                 collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, \
                 Timeout(ms)=600000) ran for 600028 milliseconds before timing out.\n"
            ));
        }
        Text::new(format!("{}.log", self.name), out)
    }
}

fn finding<'r>(report: &'r Report, id: &str) -> Option<&'r str> {
    let found = report.findings.iter().find(|f| f.id == id);
    found.map(|f| f.title.as_str())
}

fn cause(report: &Report) -> Option<&str> {
    report.cause.as_ref().map(|cause| cause.id.as_str())
}

fn three() -> [Node; 3] {
    [Node::new("gx-a", 0), Node::new("gx-b", 2), Node::new("gx-c", 4)]
}

#[test]
fn sizes_that_disagree_are_no_missing_logs() {
    let mut nodes = three();
    nodes[2].size = 12;
    let report = examine_texts(&nodes.map(|node| node.timed_out(false)));
    assert_eq!(
        report.headline,
        "Ranks 4, 5 (gx-c) were started for a world of 12 ranks, ranks 0–3 (gx-a, gx-b) for 6"
    );
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
    let first = report.alternatives.first().unwrap();
    assert_eq!(first.id, "dist.world-size");
    assert_eq!(cause(&report), Some("nccl.watchdog-timeout"));
}

#[test]
fn sizes_of_several_groups_are_not_compared() {
    let mut nodes = three();
    nodes[2].size = 12;
    nodes[2].comm = "0x1111111111111111";
    let report = examine_texts(&nodes.map(|node| node.timed_out(false)));
    assert_eq!(finding(&report, "arrival.sizes"), None);
}

#[test]
fn a_node_without_a_log_is_missed_after_the_group_has_met() {
    let [a, b, _] = three();
    let report = examine_texts(&[a.timed_out(true), b.timed_out(true)]);
    assert_eq!(report.log.missing, ["ranks 4, 5"]);
    assert_eq!(
        finding(&report, "arrival.unlogged"),
        Some("The logs of ranks 4, 5 are not in the input; what stopped the others may stand there")
    );
    let whole = examine_texts(&three().map(|node| node.timed_out(true)));
    assert!(whole.log.missing.is_empty(), "{:?}", whole.log.missing);
    assert_eq!(finding(&whole, "arrival.unlogged"), None);
}

#[test]
fn a_node_without_a_log_is_named_by_those_that_lost_it() {
    let [a, b, _] = three();
    let lost = |node: &Node| {
        let text = format!(
            "{}{}:5000:5000 [0] NCCL WARN socketProgress: Connection closed by remote peer gx-c<41223>\n",
            node.lines(true),
            node.name,
        );
        Text::new(format!("{}.log", node.name), text)
    };
    let report = examine_texts(&[lost(&a), lost(&b)]);
    assert_eq!(cause(&report), Some("nccl.peer-died"));
    assert_eq!(report.log.missing, ["ranks 4, 5 (gx-c)"]);
}

#[test]
fn a_variable_set_on_one_node_only_is_a_difference() {
    let mut nodes = three();
    nodes[1].variable = Some("NCCL_IB_DISABLE");
    let report = examine_texts(&nodes.map(|node| node.timed_out(false)));
    assert_eq!(
        finding(&report, "nodes.differ"),
        Some("The nodes differ in NCCL_IB_DISABLE: 1 on gx-b; not set on gx-a, gx-c")
    );
}

#[test]
fn a_node_whose_start_is_cut_off_is_not_said_to_lack_a_variable() {
    let mut nodes = three();
    nodes[1].variable = Some("NCCL_IB_DISABLE");
    let [a, b, c] = nodes.map(|node| node.timed_out(false));
    let cut = |text: &Text| text.keep(|line| !line.contains("Bootstrap: Using"));
    let report = examine_texts(&[cut(&a), b, cut(&c)]);
    assert_eq!(finding(&report, "nodes.differ"), None);
}

const HEAD: &str = "\
(APIServer pid=2992) INFO 11-29 14:53:51 [api_utils.py:273] non-default args: {'model': '/models/m', 'master_port': 29555, 'nnodes': 2, 'tensor_parallel_size': 2}
(APIServer pid=2992) INFO 11-29 14:53:51 [model.py:619] Resolved architecture: LlamaForCausalLM
(EngineCore pid=3100) INFO 11-29 14:54:08 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: model='/models/m', tensor_parallel_size=2, pipeline_parallel_size=1
(EngineCore pid=3100) INFO 11-29 14:54:08 [multiproc_executor.py:140] DP group leader: node_rank=0, node_rank_within_dp=0, master_addr=10.30.7.11, mq_connect_ip=127.0.0.1 (local), world_size=2, local_world_size=1
";
const HEADLESS: &str = "\
INFO 11-29 14:54:01 [model.py:619] Resolved architecture: LlamaForCausalLM
INFO 11-29 14:54:01 [model.py:1776] Using max model len 4096
INFO 11-29 14:54:01 [arg_utils.py:2026] Inferred data_parallel_rank 0 from node_rank 1
INFO 11-29 14:54:01 [serve.py:212] Launching vLLM (v0.25.1) headless multiproc executor, with head node address 10.30.7.11:29555 for torch.distributed process group.
";

#[test]
fn a_head_that_is_heard_is_no_missing_log() {
    let refused = "\
(Worker pid=2801) INFO 11-29 14:54:38 [parallel_state.py:1607] world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://10.30.7.11:29555 backend=nccl
(Worker pid=2801) ERROR 11-29 14:54:39 [multiproc_executor.py:870] WorkerProc failed to start.
(Worker pid=2801) ERROR 11-29 14:54:39 [multiproc_executor.py:870] Traceback (most recent call last):
(Worker pid=2801) ERROR 11-29 14:54:39 [multiproc_executor.py:870]   File \"/usr/lib/python3/dist-packages/torch/distributed/rendezvous.py\", line 189, in _create_c10d_store
(Worker pid=2801) ERROR 11-29 14:54:39 [multiproc_executor.py:870]     return TCPStore(
(Worker pid=2801) ERROR 11-29 14:54:39 [multiproc_executor.py:870] torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (10.30.7.11, 29555). The client socket has failed to connect to 10.30.7.11:29555 (errno: 111 - Connection refused).
";
    let head = Text::new("head.log", HEAD);
    let worker = Text::new("worker.log", format!("{HEADLESS}{refused}"));
    let report = examine_texts(&[head, worker]);
    assert_eq!(cause(&report), Some("dist.store-unreachable"));
    assert_eq!(report.headline, "Rank 1 (worker) could not reach the rendezvous store");
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
}

#[test]
fn the_process_that_the_others_wait_for_is_the_first_of_the_silent() {
    let joins = "\
(Worker pid=3200) INFO 11-29 14:54:27 [parallel_state.py:1607] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://10.30.7.11:29555 backend=nccl
";
    let options = coroner::Options {
        now: Some(coroner::time::Stamp::dated("2026-11-29T15:20:00".parse().unwrap())),
        ..coroner::Options::default()
    };
    let head = Text::new("h.log", format!("{HEAD}{joins}"));
    let report = examine_texts_with(&[head, Text::new("w.log", HEADLESS)], &options);
    assert_eq!(report.outcome, Outcome::Running);
    let silent = finding(&report, "stuck.silent").unwrap();
    assert!(
        silent.starts_with("Main in w.log: last line at 11-29T14:54:01"),
        "{silent}"
    );
    assert!(silent.contains("it may be the one of rank 1"), "{silent}");
}

#[test]
fn ranks_of_a_node_without_a_log_are_named_where_nobody_states_how_many_nodes_there_are() {
    let heard = |first: &[(&'static str, u32)]| -> Vec<Text> {
        let node = |(name, first): &(&'static str, u32)| {
            let node = Node {
                size: 8,
                ..Node::new(name, *first)
            };
            node.timed_out(true).keep(|line| !line.contains("nNodes"))
        };
        first.iter().map(node).collect()
    };
    let report = examine_texts(&heard(&[("node-a", 0), ("node-b", 2), ("node-d", 6)]));
    assert_eq!(cause(&report), Some("nccl.watchdog-timeout"));
    assert_eq!(report.log.missing, ["ranks 4, 5"]);
    // One node alone does not show how ranks lie on the others.
    let report = examine_texts(&heard(&[("node-a", 0)]));
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
}

#[test]
fn engines_that_other_nodes_are_to_start_are_named() {
    let head = "(APIServer pid=7) INFO 11-21 08:00:00 [startup.py:96]   █▄█▀ █     █     █     █  version 0.33.0\n\
                (APIServer pid=7) INFO 11-21 08:00:00 [startup.py:71] non-default args: {'model': '/m/a', 'data_parallel_size': 4, \
                'data_parallel_size_local': 2, 'data_parallel_address': '10.0.0.1'}\n\
                (EngineCore_DP0 pid=120) INFO 11-21 08:00:15 [core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a'\n\
                (EngineCore_DP1 pid=121) INFO 11-21 08:00:15 [core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a'\n";
    let report = examine_texts(&[Text::new("node-a.log", head)]);
    assert_eq!(report.outcome, Outcome::Running);
    assert_eq!(report.log.missing, ["DP ranks 2, 3"]);
}

/// A node of SGLang that was started for two nodes, and the end of its wait.
fn sglang_node(name: &str, rank: u32, address: &str) -> Text {
    let mut log = format!(
        "[2026-03-05 21:11:02] server_args=ServerArgs(model_path='/m/a', tp_size=4, dist_init_addr='{address}', nnodes=2, node_rank={rank})\n"
    );
    for local in 0..2 {
        log += &format!(
            "[2026-03-05 21:11:14 TP{}] Init torch distributed begin.\n",
            2 * rank + local
        );
    }
    let raised = match rank {
        0 => "Timed out after 601 seconds waiting for clients. 2/4 clients joined.".to_owned(),
        _ => format!(
            "The client socket has timed out after 600000ms while trying to connect to ({}).",
            address.replace(':', ", ")
        ),
    };
    log += &format!(
        "[2026-03-05 21:21:15 TP{}] Scheduler hit an exception: Traceback (most recent call last):\n\
         \x20 File \"/usr/lib/python3.12/dist-packages/torch/distributed/rendezvous.py\", line 189, in _create_c10d_store\n\
         \x20   return TCPStore(\ntorch.distributed.DistStoreError: {raised}\n",
        2 * rank
    );
    Text::new(format!("{name}.log"), log)
}

fn first_change(report: &Report) -> (&str, &str, Option<&str>, Option<&str>) {
    let remedy = &report.remedies[0];
    let change = &remedy.change[0];
    (&remedy.id, &change.name, change.from.as_deref(), change.to.as_deref())
}

#[test]
fn a_node_that_looks_for_the_head_elsewhere_is_the_news() {
    let head = || sglang_node("gpu-a", 0, "10.7.0.21:5000");
    let report = examine_texts(&[head(), sglang_node("gpu-b", 1, "10.7.0.12:5000")]);
    assert_eq!(
        report.headline,
        "gpu-b looks for the head at 10.7.0.12:5000, and the head (gpu-a) is at 10.7.0.21:5000"
    );
    let changed = (
        "same-head-address",
        "--dist-init-addr on gpu-b",
        Some("10.7.0.12:5000"),
        Some("10.7.0.21:5000"),
    );
    assert_eq!(first_change(&report), changed);
    assert_eq!(report.retry.verdict, "after-change");
    assert!(report.next_evidence.iter().all(|e| !e.what.contains("never joined")));
    let same = examine_texts(&[head(), sglang_node("gpu-b", 1, "10.7.0.21:5000")]);
    assert!(
        same.findings.iter().all(|f| f.id != "nodes.misfit"),
        "{:?}",
        same.findings
    );
}

#[test]
fn vllms_ranks_of_another_node_must_meet_where_rank_0_does() {
    let node = |name: &str, pid: u32, rank: u32, address: &str, raised: &str| {
        Text::new(
            format!("{name}.log"),
            format!(
                "(Worker pid={pid}) INFO 11-20 08:00:25 [parallel_state.py:1607] world_size=4 rank={rank} local_rank=0 distributed_init_method=tcp://{address} backend=nccl\n\
                 (Worker pid={pid}) ERROR 11-20 08:10:27 [multiproc_executor.py:898] torch.distributed.DistStoreError: {raised}\n"
            ),
        )
    };
    let waited = "Timed out after 601 seconds waiting for clients. 2/4 clients joined.";
    let refused = "The client socket has timed out after 600000ms while trying to connect to (10.4.0.21, 29501).";
    let head = || node("gpu-a", 720, 0, "10.4.0.12:29501", waited);
    let report = examine_texts(&[head(), node("gpu-b", 309, 2, "10.4.0.21:29501", refused)]);
    let changed = (
        "same-head-address",
        "--master-addr on gpu-b",
        Some("10.4.0.21"),
        Some("10.4.0.12"),
    );
    assert_eq!(first_change(&report), changed);
    // Each of two replicas has its own rank 0, and meets at a place of its own.
    let replicas = examine_texts(&[head(), node("gpu-b", 309, 0, "10.4.0.21:29501", waited)]);
    assert!(
        replicas.findings.iter().all(|f| f.id != "nodes.misfit"),
        "{:?}",
        replicas.findings
    );
}

#[test]
fn nodes_of_one_rank_are_named_and_no_log_is_missing() {
    let report = examine_texts(&[
        sglang_node("gpu-a", 0, "10.7.0.21:5000"),
        sglang_node("gpu-b", 0, "10.7.0.21:5000"),
    ]);
    assert_eq!(report.headline, "gpu-a and gpu-b were both started with node rank 0");
    assert_eq!(first_change(&report).0, "one-rank-per-node");
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
}

#[test]
fn the_node_whose_interface_leads_nowhere_is_named_with_that_of_the_others() {
    let node = |name: &str, interface: &str, address: &str, last: &str| {
        Text::new(
            format!("{name}.log"),
            format!("{name}:7000:7000 [0] NCCL INFO Bootstrap: Using {interface}:{address}<0>\n{last}"),
        )
    };
    let refused = |at: &str| {
        format!(
            "dgx01:7000:7407 [0] misc/socket.cc:518 NCCL WARN socketPollConnect: connect to {at}<41233> returned Connection refused, exceeded error retry count (35)\n"
        )
    };
    let report = examine_texts(&[
        node("dgx01", "bond0", "10.8.0.1", &refused("172.17.0.1")),
        node("dgx02", "docker0", "172.17.0.1", ""),
    ]);
    assert!(
        report.headline.starts_with("dgx02 offers its peers docker0"),
        "{}",
        report.headline
    );
    let changed = ("nccl-socket-ifname", "NCCL_SOCKET_IFNAME", Some("unset"), Some("bond0"));
    assert_eq!(first_change(&report), changed);
    assert!(report.next_evidence.is_empty(), "{:?}", report.next_evidence);
    // Two names of real networks may lead to each other.
    let named = examine_texts(&[
        node("dgx01", "bond0", "10.8.0.1", &refused("10.8.0.2")),
        node("dgx02", "eth0", "10.8.0.2", ""),
    ]);
    assert!(
        named.findings.iter().all(|f| f.id != "nodes.misfit"),
        "{:?}",
        named.findings
    );
}

#[test]
fn a_rank_that_nccls_own_report_sets_apart_is_named() {
    let log: String = (0..2)
        .map(|rank| format!("dgx01:{}:7900 [{rank}] NCCL INFO ncclCommInitRankConfig comm 0x7f0{rank}00 rank {rank} nranks 2 cudaDev {rank} nvmlDev {rank} busId 1b000 commId 0x5c1f - Init COMPLETE\n", 7200 + rank))
        .collect();
    let ras = |apart: &str| {
        let report = format!(
            "NCCL version 2.27.7 compiled with CUDA 12.9\nJob summary\n===========\n\n#0-0 (5c1ffe21a7e4d3b0) MISMATCH\n\
             \x20 Communicator ranks have different AllReduce operation counts\n  1 rank has launched up to operation 117\n{apart}"
        );
        examine_texts(&[Text::new("dgx01.log", log.clone()), Text::new("ncclras.txt", report)])
    };
    let report = ras("  Rank 1 -- GPU 1 managed by process 7201 on node 10.8.0.3\n");
    assert_eq!(report.outcome, Outcome::Running);
    assert!(
        report.headline.contains("rank 1 (pid 7201 on 10.8.0.3)"),
        "{}",
        report.headline
    );
    assert!(report.findings.iter().any(|f| f.id == "ras.apart"));
    assert!(ras("").findings.iter().all(|f| f.id != "ras.apart"));
}

/// The second node of SGLang's, up to the capture of graphs or to its end.
fn second_node(eager: bool, captured: bool, end: &str) -> Report {
    let mut log = format!(
        "[2026-08-14 06:00:01] server_args=ServerArgs(model_path='/m/a', tp_size=4, dist_init_addr='10.0.0.1:5000', nnodes=2, \
         node_rank=1, disable_cuda_graph={})\n",
        if eager { "True" } else { "False" }
    );
    for rank in 2..4 {
        log += &format!(
            "[2026-08-14 06:00:10 TP{rank}] Init torch distributed begin.\n\
             [2026-08-14 06:00:20 TP{rank}] Load weight begin. avail mem=78.01 GB\n\
             [2026-08-14 06:01:50 TP{rank}] Memory pool end. avail mem=9.02 GB\n"
        );
        if !eager {
            log += &format!(
                "[2026-08-14 06:01:55 TP{rank}] Capture cuda graph begin. This can take up to several minutes. avail mem=8.90 GB\n"
            );
        }
        if captured {
            log += &format!(
                "[2026-08-14 06:02:37 TP{rank}] Capture cuda graph end. Time elapsed: 41.80 s. mem usage=1.60 GB. avail mem=7.30 GB.\n"
            );
        }
    }
    examine_texts(&[Text::new("node-b.log", log + end)])
}

#[test]
fn a_node_that_does_not_lead_has_met_the_others_once_it_loads_and_never_says_that_it_serves() {
    for (eager, captured) in [(false, true), (true, false)] {
        let report = second_node(eager, captured, "");
        assert_eq!(report.outcome, Outcome::Running);
        assert!(
            report.headline.starts_with("Node 1 has done its part of the start"),
            "{}",
            report.headline
        );
        assert!(finding(&report, "arrival.absent").is_none() && report.alternatives.is_empty());
        assert_eq!(report.log.missing, ["node 0 (10.0.0.1)"]);
    }
    // While it captures, it may still hang.
    let report = second_node(false, false, "");
    assert!(finding(&report, "arrival.absent").is_none() && finding(&report, "node.follows").is_none());
}

#[test]
fn a_node_that_does_not_lead_is_ended_in_good_order_once_its_workers_have_done_their_part() {
    let end = "[2026-08-14 08:33:38] Scheduler or DataParallelController 431 terminated with -15\n";
    assert_eq!(second_node(false, true, end).outcome, Outcome::Stopped);
    assert_eq!(second_node(true, false, end).outcome, Outcome::Stopped);
    let early = second_node(false, false, end);
    assert_eq!(
        (early.outcome, cause(&early)),
        (Outcome::Failed, Some("process.sigterm"))
    );
}

#[test]
fn agents_of_several_nodes_tell_how_many_of_them_came() {
    let agent = |node: u32| {
        Text::new(
            format!("k{node}.log"),
            "INFO:torch.distributed.launcher.api:Starting elastic_operator with launch configs:\n  \
             entrypoint               : infer.py\n  min_nodes                : 4\n  max_nodes                : 4\n  nproc_per_node           : 8\n\
             I0620 10:00:00.200000 9100 torch/distributed/elastic/agent/server/api.py:677] [default] Rendezvous'ing worker group\n\
             Traceback (most recent call last):\n  File \"/opt/venv/bin/torchrun\", line 8, in <module>\n    sys.exit(main())\n  \
             File \"/opt/venv/lib/python3.12/site-packages/torch/distributed/elastic/rendezvous/dynamic_rendezvous.py\", line 675, in run\n    raise RendezvousTimeoutError\n\
             torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError\n",
        )
    };
    let report = examine_texts(&[agent(1), agent(2), agent(3)]);
    assert_eq!(cause(&report), Some("dist.rendezvous-timeout"));
    assert!(
        report.headline.starts_with("1 of 4 nodes never came: "),
        "{}",
        report.headline
    );
    assert_eq!((report.launch.nodes, report.launch.world_size), (Some(4), Some(32)));
    assert_eq!(report.log.missing, ["1 of 4 nodes"]);
    let report = examine_texts(&[agent(1)]);
    assert!(
        report.headline.starts_with("Not all of 3 of 4 nodes came"),
        "{}",
        report.headline
    );
}

#[test]
fn the_rank_that_set_out_for_fewer_collectives_is_what_the_others_waited_for() {
    let timed_out = |rank: u32| {
        format!(
            "[rank{rank}]:[E611 12:40:10.100000000 ProcessGroupNCCL.cpp:688] [Rank {rank}] Watchdog caught collective operation timeout: \
             WorkNCCL(SeqNum=412, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600028 milliseconds before timing out.\n\
             [rank{rank}]:[E611 12:40:10.200000000 ProcessGroupNCCL.cpp:2252] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by \
             watchdog at work sequence id: 412 PG status: last enqueued work: 413, last completed work: 411\n"
        )
    };
    let behind = |enqueued: u32| {
        format!(
            "[rank3]:[E611 12:40:11.300000000 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump signal due to \
             a collective timeout from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: {enqueued}, last \
             completed NCCL work: 411.\n"
        )
    };
    let log = |enqueued: u32| (0..3).map(timed_out).collect::<String>() + &behind(enqueued);
    let report = examine_texts(&[Text::new("job.log", log(411))]);
    assert_eq!(cause(&report), Some("nccl.watchdog-timeout"));
    let told = "Rank 3 had set out for 411 collectives when the others had for 413 or more: 3 ranks waited for it";
    assert_eq!(report.headline, told);
    // With as many as the others it is not behind.
    let report = examine_texts(&[Text::new("job.log", log(413))]);
    assert!(finding(&report, "ranks.behind").is_none());
}

#[test]
fn the_rank_that_did_not_come_to_a_step_of_all_others_is_named_also_after_the_failure() {
    let mut log = String::from(
        "(APIServer pid=41) INFO 11-20 08:00:00 [api_utils.py:273] non-default args: {'model': '/m/a', 'tensor_parallel_size': 4}\n\
         (EngineCore pid=64) INFO 11-20 08:00:05 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with config: model='/m/a', tensor_parallel_size=4\n",
    );
    for rank in 0..4 {
        log += &format!(
            "(Worker_TP{rank} pid={}) INFO 11-20 08:00:10 [parallel_state.py:1607] world_size=4 rank={rank} local_rank={rank} distributed_init_method=tcp://127.0.0.1:1 backend=nccl\n",
            300 + rank
        );
        log += &format!(
            "(Worker_TP{rank} pid={}) INFO 11-20 08:00:20 [gpu_model_runner.py:5209] Starting to load model /m/a...\n",
            300 + rank
        );
    }
    for rank in [0, 1, 3] {
        log += &format!(
            "(Worker_TP{rank} pid={}) INFO 11-20 08:01:20 [gpu_model_runner.py:5300] Model loading took 7.7100 GiB and 34.790847 seconds\n",
            300 + rank
        );
    }
    log += "(EngineCore pid=64) ERROR 11-20 08:12:30 [core.py:1231] EngineCore failed to start.\n\
            (EngineCore pid=64) ERROR 11-20 08:12:30 [core.py:1231] TimeoutError: RPC call to determine_available_memory timed out.\n";
    let report = examine_texts(&[Text::new("serve.log", log)]);
    assert_eq!(cause(&report), Some("process.rpc-timeout"));
    let told = "Rank 2 fell silent in weight-load, a step before 3 others: they waited for it";
    assert_eq!(finding(&report, "ranks.behind"), Some(told));
    assert_eq!(report.next_evidence.first().unwrap().command, "py-spy dump --pid 302");
}

#[test]
fn a_hang_after_all_have_met_is_no_failure_to_meet() {
    let met: Vec<Text> = three()
        .iter()
        .map(|node| Text::new(format!("{}.log", node.name), node.lines(true)))
        .collect();
    let report = examine_texts(&met);
    assert_eq!(report.outcome, Outcome::Running);
    let named: Vec<&str> = report.alternatives.iter().map(|a| a.id.as_str()).collect();
    assert!(
        !named.contains(&"dist.rendezvous-timeout") && !named.contains(&"nccl.bootstrap-net"),
        "{named:?}"
    );
}

#[test]
fn a_log_that_names_no_rank_is_not_missing_after_the_others_have_given_up() {
    let args = |node: u32| {
        format!(
            "[2026-03-09 21:11:00] server_args=ServerArgs(model_path='/m/a', tp_size=4, dist_init_addr='10.0.0.1:5000', nnodes=2, node_rank={node})\n"
        )
    };
    let head = args(0)
        + "[2026-03-09 21:11:10 TP0] Init torch distributed begin.\n[2026-03-09 21:11:10 TP1] Init torch distributed begin.\n\
           [2026-03-09 21:21:15 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  \
             File \"/sgl-workspace/sglang/python/sglang/srt/model_executor/model_runner.py\", line 700, in init_torch_distributed\n    init_distributed_environment(\n\
           torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/4 clients joined.\n\n";
    let other = args(1) + "[2026-03-09 21:11:03] Attention backend not specified. Use fa3 backend by default.\n";
    let report = examine_texts(&[Text::new("node-0.log", head), Text::new("node-1.log", other)]);
    assert_eq!(cause(&report), Some("dist.rendezvous-timeout"));
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
    let stopped = finding(&report, "arrival.stopped").unwrap();
    assert!(
        stopped.contains("node-1") && stopped.contains("21:11:03 in config"),
        "{stopped}"
    );
    assert!(stopped.ends_with("it may be of ranks 2, 3"), "{stopped}");
}

#[test]
fn an_agent_that_lists_all_ranks_of_its_node_shows_which_are_elsewhere() {
    let mut log = String::from(
        "W0620 11:00:02.500000 4100 torch/distributed/run.py:792] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n",
    );
    for rank in 0..2 {
        log += &format!("INFO 06-20 11:00:05 [infer.py:44] init_process_group rank={rank} world=4 master=xe-a:29400\n");
        log += &format!(
            "[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error, NCCL version 2.27.5\n"
        );
    }
    let table = |listed: u32| {
        let mut table = String::from(
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n============================================================\ninfer.py FAILED\n------------------------------------------------------------\nFailures:\n",
        );
        for rank in 0..listed {
            table += &format!(
                "[{rank}]:\n  time      : 2026-06-20_11:02:31\n  host      : xe-a\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : 1 (pid: {})\n  error_file: <N/A>\n",
                4200 + rank
            );
        }
        table + "============================================================\n"
    };
    let report = examine_texts(&[Text::new("xe-a.log", log.clone() + &table(2))]);
    assert_eq!(cause(&report), Some("nccl.peer-died"));
    assert_eq!(report.log.missing, ["ranks 2, 3"]);
    // Ranks that the agent does not list may be of this node.
    let report = examine_texts(&[Text::new("xe-a.log", log + &table(1))]);
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
}

#[test]
fn the_peer_that_ranks_on_several_nodes_name_is_the_suspect() {
    let node = |n: u32, peer: &str| {
        let (name, pid) = (format!("r{n}"), 7000 + n);
        let at = format!("{name}:{pid}:{pid} [0]");
        let failed = match peer {
            "" => String::new(),
            peer => format!(
                "[2026-06-11 12:40:2{n}] {at} transport/net_ib.cc:2310 NCCL WARN NET/IB: Got completion from peer {peer}<52817> with \
                 status=12 opcode=0 len=0 vendor err 129 (Send) hca mlx5_3\n"
            ),
        };
        Text::new(
            format!("{name}.log"),
            format!(
                "{at} NCCL INFO Bootstrap: Using eth0:10.8.0.{n}<0>\n\
                 {at} NCCL INFO ncclCommInitRankConfig comm 0x7f0{n} rank {n} nranks 4 cudaDev 0 nvmlDev 0 busId 1b000 commId 0x6f3c - Init START\n{failed}"
            ),
        )
    };
    let told = |peers: [&str; 4]| {
        let all: Vec<Text> = peers.iter().zip(0..).map(|(peer, n)| node(n, peer)).collect();
        let report = examine_texts(&all);
        assert_eq!(cause(&report), Some("nccl.ib"));
        report.headline
    };
    let common = told(["10.8.0.2", "10.8.0.2", "", "10.8.0.2"]);
    assert_eq!(common, "3 ranks on 3 nodes lost one and the same peer, r2");
    // Two that name each other say nothing of a third, nor of which of them it is.
    assert!(!told(["10.8.0.1", "10.8.0.0", "", ""]).contains("same peer"));
    assert!(!told(["10.8.0.2", "", "", ""]).contains("same peer"));
}

#[test]
fn an_engine_core_without_workers_is_the_rank_that_it_says() {
    let core = "(EngineCore_DP0 pid=140)";
    let log = format!(
        "(APIServer pid=40) INFO 11-24 12:00:00 [startup.py:71] non-default args: {{'model': '/m/a', 'data_parallel_size': 2, 'data_parallel_rank': 0, 'data_parallel_address': 'node-a'}}\n\
         {core} INFO 11-24 12:00:20 [parallel_state.py:1615] world_size=2 rank=0 local_rank=0 distributed_init_method=tcp://node-a:29601 backend=nccl\n\
         {core} ERROR 11-24 12:10:21 [core.py:1231] EngineCore failed to start.\n\
         {core} ERROR 11-24 12:10:21 [core.py:1231] Traceback (most recent call last):\n\
         {core} ERROR 11-24 12:10:21 [core.py:1231]   File \"/usr/local/lib/python3.12/dist-packages/vllm/distributed/parallel_state.py\", line 1626, in init_distributed_environment\n\
         {core} ERROR 11-24 12:10:21 [core.py:1231]     torch.distributed.init_process_group(\n\
         {core} ERROR 11-24 12:10:21 [core.py:1231] torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.\n"
    );
    let report = examine_texts(&[Text::new("serve.log", log)]);
    assert_eq!(cause(&report), Some("dist.rendezvous-timeout"));
    assert_eq!(report.log.missing, ["rank 1"], "{}", report.headline);
}

#[test]
fn a_node_that_joins_alone_waits_for_the_head_whose_log_is_missing() {
    let vllm = "(MainProcess pid=1) INFO 11-27 06:00:09 [model.py:741] Resolved architecture: LlamaForCausalLM\n\
        (MainProcess pid=1) INFO 11-27 06:00:10 [serve.py:212] Launching vLLM (v0.33.0) headless multiproc executor, with head node address 10.0.0.1:29500 for torch.distributed process group.\n\
        (Worker pid=302) INFO 11-27 06:00:30 [parallel_state.py:1931] world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://10.0.0.1:29500 backend=nccl\n";
    let engines = "(MainProcess pid=1) INFO 11-27 06:00:10 [serve.py:164] Launching 1 data parallel engine(s) in headless mode, with head node address tcp://10.0.0.1:29550.\n\
        (EngineCore_DP1 pid=302) INFO 11-27 06:00:30 [core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=1\n";
    let sglang = "[2026-11-27 06:00:01] server_args=ServerArgs(model_path='/m/a', tp_size=4, nnodes=2, node_rank=1, dist_init_addr='10.0.0.1:29500')\n\
        [2026-11-27 06:00:10 TP2] Init torch distributed begin.\n\
        [2026-11-27 06:00:10 TP3] Init torch distributed begin.\n";
    for (log, who, head) in [
        (vllm, "A node that joins another one's server", "10.0.0.1:29500"),
        (
            engines,
            "A node that joins another one's server",
            "tcp://10.0.0.1:29550",
        ),
        (sglang, "Node 1", "10.0.0.1:29500"),
    ] {
        let report = examine_texts(&[Text::new("worker.log", log)]);
        assert_eq!(report.outcome, Outcome::Running);
        let told = format!("{who} waits for the head at {head}, whose log is not in the input");
        assert_eq!(report.headline, told);
        assert!(report.findings.iter().any(|f| f.id == "node.joins"));
    }
    // Of four nodes, the head need not be the one that is missed.
    let of_four = sglang.replace("nnodes=2", "nnodes=4").replace("tp_size=4", "tp_size=8");
    let report = examine_texts(&[Text::new("worker.log", of_four)]);
    assert!(!report.headline.contains("the head"), "{}", report.headline);
    assert!(report.findings.iter().any(|f| f.id == "node.joins"));
}
