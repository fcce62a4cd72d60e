//! The peer that all who failed on the way to it name.
//!
//! Owns the comparison. One process that names a peer may itself be at fault; several on nodes of their own that name
//! the same one are not.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::launch::Launches;
use crate::verdict::Verdict;

use super::waits::{Waits, finding};

/// Causes of which each end of a connection may be the reason.
const OF_A_CONNECTION: [&str; 2] = ["nccl.ib", "nccl.peer-died"];
/// The setting by which NCCL names the other end.
const PEER: &str = "nccl_peer";

/// Tells of the one peer that processes on several nodes name.
pub(super) fn tell(launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    let Some(cause) = verdict.cause.as_deref().filter(|cause| OF_A_CONNECTION.contains(cause)) else {
        return;
    };
    let mut peers: BTreeSet<Arc<str>> = BTreeSet::new();
    let mut tellers = BTreeSet::new();
    let mut nodes: BTreeSet<&Arc<str>> = BTreeSet::new();
    for failure in verdict.failures.iter().filter(|f| f.cause.as_deref() == Some(cause)) {
        let Some(placed) = launches.events.get(failure.event) else {
            continue;
        };
        if let Some(peer) = placed.event.setting(PEER) {
            peers.insert(launches.processes.node_at(peer).clone());
            tellers.insert(failure.teller);
            nodes.extend(&launches.processes.get(failure.teller).node);
        }
    }
    let mut all = peers.iter();
    if let (Some(peer), None) = (all.next(), all.next())
        && nodes.len() > 1
        && !nodes.contains(peer)
    {
        let told = format!(
            "{} ranks on {} nodes lost one and the same peer, {peer}",
            tellers.len(),
            nodes.len()
        );
        out.findings.insert(0, finding("peer.common", "warning", &told));
        out.sentence = Some(format!("{told}: it is the likelier one to be at fault."));
        out.headline = Some(told);
    }
}
