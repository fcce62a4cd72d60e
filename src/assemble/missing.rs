//! Whose log is not among the inputs.
//!
//! Owns what the logs that are at hand tell of others: ranks and nodes of the launch of which they hold no line, and the
//! files of a node on which Ray's worker died. Names only what some line shows to exist.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use crate::catalog::{Catalog, Strength};
use crate::launch::Launches;
use crate::launch::arrival::{Absent, Arrival};
use crate::launch::machine::Engine;
use crate::launch::nodes::Nodes;
use crate::launch::processes::{Process, ProcessId, ProcessRole};
use crate::verdict::Verdict;

use super::waits::ranks_in_words;

/// Who has no log.
pub fn missing(catalog: &Catalog, launches: &Launches, verdict: &Verdict, arrival: Option<&Arrival>) -> Vec<String> {
    let mut out = arrival.map(|a| unheard_ranks(a.unheard())).unwrap_or_default();
    let strength = verdict.cause.as_deref().map(|cause| catalog.strength(cause));
    // A cause that the log states needs no further log but the victim's own.
    let open = strength.is_none_or(|strength| strength == Strength::Weak);
    // The other end of a connection may say more of it.
    let of_transport = verdict.cause.as_deref().is_some_and(|cause| cause.starts_with("nccl."));
    if let Some(arrival) = arrival.filter(|a| a.absent.is_empty() && (open || of_transport)) {
        out = unheard_ranks(arrival.unlogged.iter());
    }
    if out.is_empty() {
        out = unheard_nodes(launches, verdict.attempt);
    }
    if out.is_empty() && open {
        out.extend(unheard_engines(launches, verdict.attempt));
    }
    out.extend(of_ray(launches, verdict, open));
    out
}

fn unheard_ranks<'a>(unheard: impl Iterator<Item = &'a Absent>) -> Vec<String> {
    let mut by_node: BTreeMap<Option<&str>, Vec<u32>> = BTreeMap::new();
    for absent in unheard {
        by_node.entry(absent.node.as_deref()).or_default().push(absent.rank);
    }
    let told = by_node.into_iter().map(|(node, ranks)| {
        let node = node.map_or_else(String::new, |n| format!(" ({n})"));
        format!("{}{node}", ranks_in_words(&ranks))
    });
    told.collect()
}

/// The nodes of a launch that says how many it has, and which one each log is of.
fn unheard_nodes(launches: &Launches, attempt: usize) -> Vec<String> {
    let nodes = Nodes::of(launches, attempt);
    // Servers that only add workers name their head.
    if let Some(address) = nodes.led_from.as_deref().filter(|_| nodes.all == 0 && !nodes.serves) {
        return vec![format!("node 0 ({})", host(address))];
    }
    // Those say not which node they are: with them all may be there.
    if nodes.heard.len() + nodes.joining.len() >= nodes.all as usize {
        return Vec::new();
    }
    let head = nodes.head.as_deref();
    let absent = (0..nodes.all.min(MOST_NODES)).filter(|n| !nodes.heard.contains(n));
    let (first, others): (Vec<u32>, Vec<u32>) = absent.partition(|node| *node == 0 && head.is_some());
    let mut out: Vec<String> = Vec::new();
    if let (Some(address), [_]) = (head, first.as_slice()) {
        out.push(format!("node 0 ({})", host(address)));
    }
    if !others.is_empty() {
        out.push(ranks_in_words(&others).replacen("rank", "node", 1));
    }
    out
}

/// The engines of a data-parallel launch that other nodes are to start, and of which no line is in the logs.
fn unheard_engines(launches: &Launches, attempt: usize) -> Option<String> {
    let events = || launches.events_of(attempt);
    let setting = |wanted: &str| {
        let mut all = events().flat_map(|placed| &placed.event.settings);
        all.find_map(|(name, value)| value.parse::<u32>().ok().filter(|_| &**name == wanted))
    };
    let (all, local) = (setting("data_parallel_size")?, setting("data_parallel_size_local")?);
    let active = launches.active(attempt);
    let processes = active.iter().map(|&i| launches.processes.get(ProcessId(i)));
    let heard: BTreeSet<u32> = processes.filter_map(|p| p.coords.dp).collect();
    let unheard: Vec<u32> = (0..all.min(MOST_NODES)).filter(|dp| !heard.contains(dp)).collect();
    let elsewhere = local < all && !heard.is_empty() && !unheard.is_empty();
    elsewhere.then(|| format!("DP {}", ranks_in_words(&unheard)))
}

/// More nodes than any launch has.
const MOST_NODES: u32 = 4096;

fn host(address: &str) -> &str {
    let bare = address.split("://").last().unwrap_or(address);
    match bare.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') && port.parse::<u16>().is_ok() => host,
        _ => bare,
    }
}

/// Ray hands on what a worker prints; why it is gone stands in the files of its node. A raylet knows that an engine's
/// actor is gone, and not what the engine was doing; no file of Ray's holds what a driver prints.
fn of_ray(launches: &Launches, verdict: &Verdict, open: bool) -> Vec<String> {
    let active = launches.active(verdict.attempt);
    let speakers: Vec<&Process> = active
        .iter()
        .map(|&i| launches.processes.get(ProcessId(i)))
        .filter(|p| !p.absorbed && p.last_line.1 > 0)
        .collect();
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let victim = root.map(|failure| launches.processes.get(failure.process));
    let of_actor = victim
        .and_then(|p| p.label.as_deref())
        .is_some_and(|label| label.starts_with("RayWorker"));
    let of_session = |p: &&Process| p.role == ProcessRole::RayDaemon || p.by_file;
    let daemon = |p: &&Process| p.role == ProcessRole::RayDaemon;
    let mut out: Vec<String> = Vec::new();
    if launches.engine(verdict.attempt) == Engine::Ray && speakers.iter().any(daemon) {
        if of_actor && speakers.iter().all(daemon) {
            return vec!["the engine's own log".to_owned()];
        } else if open && speakers.iter().all(of_session) {
            out.push("the driver's output".to_owned());
        }
    }
    let victims = victim.filter(|_| of_actor).and_then(|p| p.node.as_ref());
    let handed_on: BTreeSet<&Arc<str>> = speakers
        .iter()
        .filter(|p| p.label.as_deref().is_some_and(|label| label.starts_with("RayWorker")))
        .filter_map(|p| p.node.as_ref())
        .filter(|node| Some(*node) == victims || open && node.parse::<IpAddr>().is_ok())
        .collect();
    let silent = |node: &&&Arc<str>| {
        let mut of_node = speakers.iter().filter(|p| p.node.as_ref() == Some(**node));
        of_node.all(|p| p.role == ProcessRole::Worker && !p.by_file)
    };
    let mut nodes: BTreeSet<&str> = handed_on.iter().filter(silent).map(|node| &***node).collect();
    nodes.extend(unheard_raylets(launches, verdict.attempt, &speakers));
    out.extend(nodes.into_iter().map(|node| format!("Ray's files of {node}")));
    out
}

/// The nodes that joined the cluster and whose raylet says nothing, where the head's files are at hand.
fn unheard_raylets<'l>(launches: &'l Launches, attempt: usize, speakers: &[&'l Process]) -> Vec<&'l str> {
    let events = launches.events_of(attempt);
    let settings = events.flat_map(|placed| &placed.event.settings);
    let joined: BTreeSet<&str> = settings
        .filter(|(name, _)| &**name == "joined_node")
        .map(|(_, address)| &**address)
        .collect();
    let raylets = || speakers.iter().filter(|p| p.label.as_deref() == Some("raylet"));
    // A raylet whose first lines are not at hand may be any of them.
    if raylets().count() >= joined.len() || raylets().any(|p| p.identity.host.is_none()) {
        return Vec::new();
    }
    let heard: BTreeSet<&str> = raylets().filter_map(|p| p.identity.host.as_deref()).collect();
    joined.difference(&heard).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn an_address_without_its_port() {
        assert_eq!(host("10.1.0.1:5000"), "10.1.0.1");
        assert_eq!(host("tcp://node-a:29500"), "node-a");
        assert_eq!(host("fd00::1"), "fd00::1");
    }
}
