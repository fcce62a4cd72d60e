//! What the nodes of one launch do not have in common.
//!
//! Owns the list of settings that have to agree between nodes. Never says what follows from a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Launches;

/// What a difference in a setting means for a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The nodes form no group: they disagree about how many they are, or where they meet.
    Group,
    /// Their ranks do not do the same work.
    Work,
    /// They run other programs or speak otherwise, which as a rule breaks a launch.
    Grave,
    /// It may be right so on that machine.
    Local,
}

use Weight::{Grave, Group, Local, Work};

/// Settings that are compared, in words. What each node has for itself (addresses, ranks, shares of its memory, numbers of
/// its own engines) is not among them.
const COMPARED: &[(&str, &str, Weight)] = &[
    ("engine_version", "engine version", Grave),
    ("nccl_version", "NCCL version", Grave),
    ("node_ray_version", "Ray version", Grave),
    ("node_python_version", "Python version", Grave),
    ("model", "model", Grave),
    ("model_path", "model", Grave),
    ("dtype", "dtype", Work),
    ("quantization", "quantization", Work),
    ("kv_cache_dtype", "KV-cache dtype", Work),
    ("max_model_len", "maximum model length", Work),
    ("context_length", "context length", Work),
    ("block_size", "KV-cache block size", Work),
    ("page_size", "KV-cache page size", Work),
    ("enable_expert_parallel", "expert parallelism", Work),
    ("ep_size", "expert-parallel size", Work),
    ("enable_eplb", "expert load balancing", Work),
    ("all2all_backend", "all-to-all backend", Work),
    ("moe_a2a_backend", "all-to-all backend", Work),
    ("enable_dp_attention", "data-parallel attention", Work),
    ("disable_custom_all_reduce", "custom all-reduce being disabled", Work),
    ("tensor_parallel_size", "tensor-parallel size", Group),
    ("tp_size", "tensor-parallel size", Group),
    ("pipeline_parallel_size", "pipeline-parallel size", Group),
    ("pp_size", "pipeline-parallel size", Group),
    ("data_parallel_size", "data-parallel size", Group),
    ("dp_size", "data-parallel size", Group),
    ("nnodes", "node count", Group),
    ("min_nodes", "node count", Group),
    ("master_addr", "master address", Group),
    ("master_port", "master port", Group),
    ("dist_init_addr", "rendezvous address", Group),
    ("data_parallel_address", "data-parallel address", Group),
    ("data_parallel_rpc_port", "data-parallel port", Group),
    ("nccl_network", "NCCL network", Grave),
    ("nccl_interface", "NCCL interface", Local),
    ("nccl_socket_interface", "NCCL socket interface", Local),
    ("NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", Local),
    ("NCCL_IB_HCA", "NCCL_IB_HCA", Local),
    ("NCCL_IB_DISABLE", "NCCL_IB_DISABLE", Grave),
    ("NCCL_IB_GID_INDEX", "NCCL_IB_GID_INDEX", Local),
    ("NCCL_P2P_DISABLE", "NCCL_P2P_DISABLE", Local),
    ("NCCL_NET", "NCCL_NET", Grave),
    ("NCCL_COMM_ID", "NCCL_COMM_ID", Grave),
    ("cuda_driver_version", "CUDA driver version", Local),
];
/// Values by which a program chooses for itself: what it chose may be what another node was told.
const CHOSEN_BY_PROGRAM: [&str; 3] = ["auto", "None", ""];

/// Variables that NCCL reads before it has chosen its network, and names only where they are set; and whether it reads
/// them for InfiniBand only. Those of a network are not read where another is chosen by name.
const READ_FOR_A_NETWORK: &[(&str, bool)] = &[
    ("NCCL_SOCKET_IFNAME", false),
    ("NCCL_NET", false),
    ("NCCL_IB_DISABLE", false),
    ("NCCL_IB_HCA", true),
];
/// What NCCL prints of itself first, and what it prints once it has read them.
const FIRST: &str = "nccl_interface";
const NETWORK: &str = "nccl_network";

/// A value; `None` where it is known that the setting has none.
pub type Value = Option<Arc<str>>;

/// One setting that nodes have different values of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The setting in words.
    pub what: &'static str,
    /// What it means.
    pub weight: Weight,
    /// Each value with the nodes that have it.
    pub values: Vec<(Value, Vec<Arc<str>>)>,
}

/// The differences between the nodes of an attempt. A node that names several values of a setting is not compared.
pub fn differences(launches: &Launches, attempt: usize) -> Vec<Difference> {
    let mut told: Told<'_> = BTreeMap::new();
    let mut started: BTreeSet<&Arc<str>> = BTreeSet::new();
    // Servers of their own may be set up each in its own way.
    let shared = |index: &usize| !launches.is_of_one_alone(*index);
    let placed = || {
        let events = launches.of_attempt(attempt).filter(shared);
        let events = events.filter_map(|index| launches.events.get(index));
        events.filter_map(|placed| Some((launches.processes.get(placed.process).place()?, placed)))
    };
    // Most launches have one node, which differs from none.
    let mut nodes = placed().map(|(node, _)| node);
    let first = nodes.next();
    if nodes.all(|node| Some(node) == first) {
        return Vec::new();
    }
    for (node, placed) in placed() {
        for (name, value) in &placed.event.settings {
            if &**name == FIRST {
                started.insert(node);
            }
            let Some((known, ..)) = COMPARED.iter().find(|(n, ..)| *n == &**name) else {
                continue;
            };
            if CHOSEN_BY_PROGRAM.contains(&&**value) {
                continue;
            }
            // The type of a dump is spelled with its module, that of an argument without.
            let value = value.strip_prefix("torch.").map_or_else(|| value.clone(), Into::into);
            let values = told.entry(known).or_default().entry(node.clone()).or_default();
            values.insert(value);
        }
    }
    // `model` and `model_path` are one thing under two names, so their words are found once.
    let mut out: Vec<Difference> = Vec::new();
    for (name, what, weight) in COMPARED {
        let Some(nodes) = told.get(name) else { continue };
        let mut values: BTreeMap<Option<&Arc<str>>, Vec<Arc<str>>> = BTreeMap::new();
        for (node, of_node) in nodes {
            if let (Some(value), 1) = (of_node.first(), of_node.len()) {
                values.entry(Some(value)).or_default().push(node.clone());
            }
        }
        let unset = started.iter().filter(|node| !nodes.contains_key(**node));
        for node in unset.filter(|node| is_read(name, node, &told)) {
            values.entry(None).or_default().push((*node).clone());
        }
        if values.len() > 1 && out.iter().all(|d| d.what != *what) {
            out.push(Difference {
                what,
                weight: *weight,
                values: values.into_iter().rev().map(|(v, n)| (v.cloned(), n)).collect(),
            });
        }
    }
    out
}

/// What each node says of each setting.
type Told<'a> = BTreeMap<&'a str, BTreeMap<Arc<str>, BTreeSet<Arc<str>>>>;

/// Whether NCCL has read a variable on a node, so that its silence says that it is not set.
fn is_read(name: &str, node: &Arc<str>, told: &Told<'_>) -> bool {
    let Some((_, of_ib)) = READ_FOR_A_NETWORK.iter().find(|(n, _)| *n == name) else {
        return false;
    };
    let of_node = |setting: &str| told.get(setting).and_then(|nodes| nodes.get(node));
    let Some(network) = of_node(NETWORK) else {
        return false;
    };
    let chosen = name != "NCCL_NET" && name != "NCCL_SOCKET_IFNAME" && of_node("NCCL_NET").is_some();
    !chosen && (!of_ib || network.iter().all(|n| n.starts_with("IB")))
}
