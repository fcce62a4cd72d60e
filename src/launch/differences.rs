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

/// One setting that nodes have different values of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The setting in words.
    pub what: &'static str,
    /// Whether such a difference breaks a launch as a rule.
    pub grave: bool,
    /// Each value with the nodes that have it.
    pub values: Vec<(Arc<str>, Vec<Arc<str>>)>,
}

/// The differences between the nodes of an attempt. A node that names several values of a setting is not compared.
pub fn differences(launches: &Launches, attempt: usize) -> Vec<Difference> {
    let mut told: BTreeMap<&str, BTreeMap<Arc<str>, BTreeSet<Arc<str>>>> = BTreeMap::new();
    for placed in launches.of_attempt(attempt).filter_map(|i| launches.events.get(i)) {
        let Some(node) = &launches.processes.get(placed.process).node else {
            continue;
        };
        for (name, value) in &placed.event.settings {
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
        let mut values: BTreeMap<&Arc<str>, Vec<Arc<str>>> = BTreeMap::new();
        for (node, of_node) in nodes {
            if let (Some(value), 1) = (of_node.first(), of_node.len()) {
                values.entry(value).or_default().push(node.clone());
            }
        }
        if values.len() > 1 && out.iter().all(|d| d.what != *what) {
            out.push(Difference {
                what,
                grave: *grave,
                values: values.into_iter().map(|(v, n)| (v.clone(), n)).collect(),
            });
        }
    }
    out
}
