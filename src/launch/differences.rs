//! What the nodes of one launch do not have in common.
//!
//! Owns the list of settings that have to agree between nodes. Never says what follows from a difference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Launches;

/// Settings that are compared, in words, and whether a difference breaks a launch as a rule.
const COMPARED: &[(&str, &str, bool)] = &[
    ("engine_version", "engine version", true),
    ("nccl_version", "NCCL version", true),
    ("node_ray_version", "Ray version", true),
    ("node_python_version", "Python version", true),
    ("model", "model", true),
    ("model_path", "model", true),
    ("dtype", "dtype", true),
    ("tensor_parallel_size", "tensor-parallel size", true),
    ("tp_size", "tensor-parallel size", true),
    ("pipeline_parallel_size", "pipeline-parallel size", true),
    ("pp_size", "pipeline-parallel size", true),
    ("nnodes", "number of nodes", true),
    ("master_addr", "master address", true),
    ("master_port", "master port", true),
    ("dist_init_addr", "rendezvous address", true),
    ("nccl_network", "NCCL network", true),
    ("nccl_interface", "NCCL interface", false),
    ("nccl_socket_interface", "NCCL socket interface", false),
    ("NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", false),
    ("NCCL_IB_HCA", "NCCL_IB_HCA", false),
    ("NCCL_IB_DISABLE", "NCCL_IB_DISABLE", true),
    ("NCCL_IB_GID_INDEX", "NCCL_IB_GID_INDEX", false),
    ("NCCL_P2P_DISABLE", "NCCL_P2P_DISABLE", false),
    ("NCCL_NET", "NCCL_NET", true),
    ("NCCL_COMM_ID", "NCCL_COMM_ID", true),
    ("cuda_driver_version", "CUDA driver version", false),
];

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
    /// Whether such a difference breaks a launch as a rule.
    pub grave: bool,
    /// Each value with the nodes that have it.
    pub values: Vec<(Value, Vec<Arc<str>>)>,
}

/// The differences between the nodes of an attempt. A node that names several values of a setting is not compared.
pub fn differences(launches: &Launches, attempt: usize) -> Vec<Difference> {
    let mut told: Told<'_> = BTreeMap::new();
    let mut started: BTreeSet<&Arc<str>> = BTreeSet::new();
    for placed in launches.events_of(attempt) {
        let Some(node) = &launches.processes.get(placed.process).node else {
            continue;
        };
        for (name, value) in &placed.event.settings {
            if &**name == FIRST {
                started.insert(node);
            }
            let Some((known, ..)) = COMPARED.iter().find(|(n, ..)| *n == &**name) else {
                continue;
            };
            let values = told.entry(known).or_default().entry(node.clone()).or_default();
            values.insert(value.clone());
        }
    }
    // `model` and `model_path` are one thing under two names, so their words are found once.
    let mut out: Vec<Difference> = Vec::new();
    for (name, what, grave) in COMPARED {
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
                grave: *grave,
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
