//! Nodes that were started with different settings or for different sizes: which of them differs from the others, or, of
//! two, that the log does not decide it.

mod common;

use common::{Text, examine_texts};
use coroner::report::model::Report;

/// A node of an SGLang launch that does not come together.
#[derive(Clone)]
struct Node {
    name: &'static str,
    rank: u32,
    tp: u32,
    nodes: u32,
    more: &'static str,
}

impl Node {
    fn new(name: &'static str, rank: u32, nodes: u32) -> Self {
        Self {
            name,
            rank,
            tp: 2 * nodes,
            nodes,
            more: "",
        }
    }

    /// Its lines, each with its time of day.
    fn lines(&self) -> Vec<(&'static str, String)> {
        let Self {
            rank, tp, nodes, more, ..
        } = self;
        let first = tp / nodes * rank;
        let arguments =
            format!("tp_size={tp}, dist_init_addr='10.7.0.21:5000', nnodes={nodes}, node_rank={rank}{more}");
        let mut out = vec![(
            "21:11:02",
            format!("[2026-03-05 21:11:02] server_args=ServerArgs(model_path='/m/a', {arguments})"),
        )];
        for tp in first..first + tp / nodes {
            out.push((
                "21:11:14",
                format!("[2026-03-05 21:11:14 TP{tp}] Init torch distributed begin."),
            ));
        }
        let raised = match rank {
            0 => format!("Timed out after 601 seconds waiting for clients. 2/{tp} clients joined."),
            _ => "The client socket has timed out after 600000ms while trying to connect to (10.7.0.21, 5000)."
                .to_owned(),
        };
        let at = if *rank == 0 { "21:21:15" } else { "21:21:16" };
        out.push((
            at,
            format!("[2026-03-05 {at} TP{first}] Scheduler hit an exception: Traceback (most recent call last):"),
        ));
        for line in [
            "  File \"/usr/lib/python3.12/dist-packages/torch/distributed/rendezvous.py\", line 189, in _create_c10d_store",
            "    return TCPStore(",
            &format!("torch.distributed.DistStoreError: {raised}"),
        ] {
            out.push((at, line.to_owned()));
        }
        out
    }
}

/// A file for each node.
fn files(nodes: &[Node]) -> Report {
    let file = |node: &Node| {
        let lines = node.lines().into_iter().map(|(_, line)| line + "\n");
        Text::new(format!("{}.log", node.name), lines.collect::<String>())
    };
    examine_texts(&nodes.iter().map(file).collect::<Vec<_>>())
}

/// One stream under the names of the containers.
fn stream(nodes: &[Node]) -> Report {
    let own = |node: &Node| {
        let name = node.name;
        let lines = node.lines().into_iter();
        lines
            .map(move |(at, line)| (at, format!("{name}-1  | {line}\n")))
            .collect::<Vec<_>>()
    };
    let mut lines: Vec<(&str, String)> = nodes.iter().flat_map(own).collect();
    lines.sort_by_key(|(at, _)| *at);
    examine_texts(&[Text::new(
        "all.log",
        lines.into_iter().map(|(_, line)| line).collect::<String>(),
    )])
}

fn four() -> Vec<Node> {
    let names = ["gpu-a", "gpu-b", "gpu-c", "gpu-d"];
    (0..4).zip(names).map(|(rank, name)| Node::new(name, rank, 4)).collect()
}

fn findings<'r>(report: &'r Report, id: &str) -> Vec<&'r str> {
    let found = report.findings.iter().filter(|f| f.id == id);
    found.map(|f| f.title.as_str()).collect()
}

#[test]
fn the_node_that_differs_from_most_is_the_news() {
    let mut nodes = four();
    nodes[2].tp = 4;
    let report = files(&nodes);
    assert_eq!(
        report.headline,
        "gpu-c was started with tensor-parallel size 4, the other nodes with 8"
    );
    assert_eq!(
        findings(&report, "nodes.misfit"),
        ["All nodes have to be started with one tensor-parallel size: it is 8 on gpu-a, gpu-b, gpu-d; 4 on gpu-c"]
    );
    let first = &report.remedies[0];
    assert_eq!(
        first.title,
        "Start all nodes with one tensor-parallel size: it is 8 on gpu-a, gpu-b, gpu-d; 4 on gpu-c"
    );
    // Who is to come is not known where the sizes are not.
    assert!(findings(&report, "arrival.absent").is_empty());
    assert!(report.log.missing.is_empty(), "{:?}", report.log.missing);
    assert_eq!(
        stream(&nodes).headline,
        "gpu-c-1 was started with tensor-parallel size 4, the other nodes with 8"
    );
}

#[test]
fn of_two_nodes_none_is_said_to_be_wrong() {
    let mut nodes = vec![Node::new("gpu-a", 0, 2), Node::new("gpu-b", 1, 2)];
    nodes[1].tp = 8;
    let report = files(&nodes);
    assert_eq!(
        report.headline,
        "gpu-b was started with tensor-parallel size 8, gpu-a with 4"
    );
    let told = findings(&report, "nodes.misfit");
    assert!(
        told[0].ends_with("which of them is right the log does not tell"),
        "{told:?}"
    );
}

#[test]
fn what_is_chosen_by_the_program_or_alike_is_no_difference() {
    let mut nodes = vec![Node::new("gpu-a", 0, 2), Node::new("gpu-b", 1, 2)];
    nodes[0].more =
        ", quantization=None, kv_cache_dtype='auto', dtype='bfloat16', mem_fraction_static=0.8, host='10.0.0.1'";
    nodes[1].more = ", quantization='fp8', kv_cache_dtype='fp8_e5m2', dtype='torch.bfloat16', mem_fraction_static=0.7, host='10.0.0.2'";
    for report in [files(&nodes), stream(&nodes)] {
        assert!(findings(&report, "nodes.differ").is_empty(), "{:?}", report.findings);
        assert!(findings(&report, "nodes.misfit").is_empty(), "{:?}", report.findings);
    }
    nodes[0].more = ", kv_cache_dtype='fp8_e4m3', context_length=4096";
    nodes[1].more = ", kv_cache_dtype='fp8_e5m2', context_length=8192";
    // They do the work otherwise, and meet all the same.
    let report = files(&nodes);
    assert!(findings(&report, "nodes.misfit").is_empty(), "{:?}", report.findings);
    assert_eq!(
        findings(&report, "nodes.differ"),
        [
            "The nodes differ in KV-cache dtype: fp8_e5m2 on gpu-b; fp8_e4m3 on gpu-a",
            "The nodes differ in context length: 8192 on gpu-b; 4096 on gpu-a"
        ]
    );
}

/// The head of two data-parallel engines that refuses the other one's settings.
const HEAD: &str = "\
(APIServer pid=7) INFO 11-21 08:00:00 [startup.py:71] non-default args: {'model': '/m/a', 'data_parallel_size': 2, 'data_parallel_size_local': 1, 'data_parallel_address': '10.0.0.1', 'enable_eplb': True}
(EngineCore_DP0 pid=120) INFO 11-21 08:00:15 [core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=1
(APIServer pid=7) Traceback (most recent call last):
(APIServer pid=7)   File \"/usr/lib/python3/dist-packages/vllm/v1/engine/utils.py\", line 1100, in wait_for_engine_startup
(APIServer pid=7)     raise RuntimeError(
(APIServer pid=7) RuntimeError: Configuration mismatch detected for engine 1. All DP workers must have identical configurations for parameters that affect collective communication (e.g., enable_eplb, eplb_config.log_balancedness).
";
const OTHER: &str = "\
INFO 11-21 08:00:00 [startup.py:71] non-default args: {'model': '/m/a', 'headless': True, 'data_parallel_size': 2, 'data_parallel_size_local': 1, 'data_parallel_start_rank': 1, 'data_parallel_address': '10.0.0.1', 'enable_eplb': False}
(EngineCore_DP1 pid=220) INFO 11-21 08:00:15 [core.py:135] Initializing a V1 LLM engine (v0.33.0) with config: model='/m/a', tensor_parallel_size=1
";

fn root(report: &Report) -> Option<&str> {
    report.root.as_ref().and_then(|root| root.place.process.as_deref())
}

#[test]
fn the_engine_that_the_front_end_refuses_is_the_one_that_differs() {
    let alone = examine_texts(&[Text::new("node-a.log", HEAD)]);
    assert_eq!(
        alone.headline,
        "EngineCore_DP1 was started with other settings than its peers"
    );
    let both = examine_texts(&[Text::new("node-a.log", HEAD), Text::new("node-b.log", OTHER)]);
    assert_eq!(root(&both), Some("EngineCore_DP1 pid=220 @node-b"));
    assert_eq!(
        both.headline,
        "node-a was started with expert load balancing True, node-b with False"
    );
}

/// A rank that comes to NCCL's meeting, and what the root of the meeting says if it is there.
fn nccl(name: &str, rank: u32, size: u32, other: Option<u32>) -> Text {
    let at = format!("{name}:7{rank}:7{rank} [0]");
    let mut log = format!(
        "{at} NCCL INFO NCCL version 2.27.5+cuda12.9\n{at} NCCL INFO ncclCommInitRankConfig comm 0x7f{rank}00 rank {rank} nranks \
         {size} cudaDev 0 nvmlDev 0 busId 1b000 commId 0x6f3c1d2e88a90b14 - Init START\n"
    );
    if let Some(other) = other {
        log += &format!(
            "\n[2026-03-05 21:11:03] {name}:7{rank}:90 [0] bootstrap.cc:430 NCCL WARN Bootstrap Root : mismatch in info from procs, \
             nranks {size} vs {other}, nroots 1 vs 1, iroot 0 vs 0\n"
        );
    }
    Text::new(format!("{name}.log"), log)
}

#[test]
fn who_came_with_which_size_goes_before_who_noticed() {
    let most = [
        nccl("gx-a", 0, 4, Some(8)),
        nccl("gx-b", 1, 4, None),
        nccl("gx-c", 2, 8, None),
        nccl("gx-d", 3, 4, None),
    ];
    let report = examine_texts(&most);
    assert_eq!(report.cause.as_ref().map(|c| c.id.as_str()), Some("dist.world-size"));
    assert_eq!(
        report.headline,
        "Rank 2 (gx-c) was started for a world of 8 ranks, ranks 0, 1, 3 (gx-a, gx-b, gx-d) for 4"
    );
    assert!(report.alternatives.iter().all(|a| a.id != "dist.world-size"));
    let pair = examine_texts(&[nccl("gx-a", 0, 2, Some(4)), nccl("gx-b", 1, 4, None)]);
    let told = findings(&pair, "arrival.sizes");
    assert!(
        told[0].ends_with("which size is right the log does not tell"),
        "{told:?}"
    );
}

#[test]
fn ranks_that_give_up_at_one_barrier_tell_the_sizes_they_were_started_for() {
    let rank = |rank: u32, size: u32| {
        format!(
            "[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]:   File \"/usr/lib/python3/dist-packages/torch/distributed/\
             distributed_c10d.py\", line 500, in _store_based_barrier\n[rank{rank}]:     raise DistStoreError(\n[rank{rank}]: \
             torch.distributed.DistStoreError: Timed out initializing process group in store based barrier on rank {rank}, for \
             key: store_based_barrier_key:1 (world_size={size}, num_workers_joined=3, timeout=0:30:00)\n"
        )
    };
    let job = |sizes: [u32; 3]| {
        let ranks = sizes.iter().zip(0..).map(|(size, own)| rank(own, *size));
        examine_texts(&[Text::new("job.log", ranks.collect::<String>())])
    };
    assert_eq!(
        job([4, 4, 6]).headline,
        "Rank 2 was started for a world of 6 ranks, ranks 0, 1 for 4"
    );
    assert!(findings(&job([4, 4, 4]), "arrival.sizes").is_empty());
}

/// The start of one node of one of several servers that share the work of a service.
fn server_node(mode: &str, address: &str, count: u32, rank: u32, end: &str) -> String {
    let tp = 2 * count;
    let first = 2 * rank;
    format!(
        "[2026-03-05 21:11:02] server_args=ServerArgs(model_path='/m/a', tp_size={tp}, dist_init_addr={address}, nnodes={count}, node_rank={rank}, disaggregation_mode='{mode}')\n\
         [2026-03-05 21:11:14 TP{first}] Init torch distributed begin.\n[2026-03-05 21:11:14 TP{}] Init torch distributed begin.\n{end}",
        first + 1
    )
}

const UP: &str = "[2026-03-05 21:13:01] INFO:     Application startup complete.\n[2026-03-05 21:13:02] The server is fired up and ready to roll!\n";
const GAVE_UP: &str = "[2026-03-05 21:21:15 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File \"/usr/lib/python3.12/dist-packages/torch/distributed/rendezvous.py\", line 189, in _create_c10d_store\n    return TCPStore(\ntorch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/4 clients joined.\n";

#[test]
fn servers_that_share_the_work_of_a_service_have_a_first_node_each() {
    let file = |name: &str, log: String| Text::new(format!("{name}.log"), log);
    let decode = |rank: u32, end: &str| server_node("decode", "'10.7.0.30:5000'", 2, rank, end);
    let alone = examine_texts(&[
        file("prefill-0", server_node("prefill", "None", 1, 0, UP)),
        file("decode-0", decode(0, GAVE_UP)),
    ]);
    assert_eq!(alone.headline, "Ranks 2, 3 never joined: 2 of 4 ranks waited for them");
    let prefill = |rank: u32, end: &str| server_node("prefill", "'10.7.0.20:5000'", 2, rank, end);
    let both = examine_texts(&[
        file("prefill-0", prefill(0, UP)),
        file("prefill-1", prefill(1, "")),
        file("decode-0", decode(0, GAVE_UP)),
        file("decode-1", decode(1, "")),
    ]);
    for report in [&alone, &both] {
        assert!(findings(report, "nodes.misfit").is_empty(), "{:?}", report.findings);
        assert_eq!(
            report.root.as_ref().and_then(|r| r.place.node.as_deref()),
            Some("decode-0")
        );
        assert!(
            report.remedies.iter().all(|r| !r.title.contains("rank of its own")),
            "{:?}",
            report.remedies
        );
    }
    assert_eq!(both.launch.nodes, Some(2), "those of the server that failed");
}

#[test]
fn a_name_may_stand_for_any_address() {
    let pair = |first: &'static str, second: &'static str| {
        let node = |address: &str, rank: u32| server_node("null", address, 2, rank, [GAVE_UP, ""][rank as usize]);
        examine_texts(&[
            Text::new("n0.log", node(first, 0)),
            Text::new("n1.log", node(second, 1)),
        ])
    };
    let by_name = pair("'10.7.0.20:5000'", "'head-0.svc:5000'");
    assert!(findings(&by_name, "nodes.misfit").is_empty(), "{:?}", by_name.findings);
    let elsewhere = pair("'10.7.0.20:5000'", "'10.7.0.21:5000'");
    assert_eq!(findings(&elsewhere, "nodes.misfit").len(), 1);
}
