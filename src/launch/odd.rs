//! The node that was set up otherwise than the head: another address to meet at, the rank of another node, a network
//! interface that leads nowhere, another value of a setting that all have to share.
//!
//! Owns which of two values is the wrong one: the head's is right, a bridge of the machine's own is no network between
//! nodes, and what most nodes have goes before what few have. Never says what died of it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Launches;
use super::differences::{Difference, Value, Weight, differences};
use super::names::is_ip;
use super::nodes::HEADS;

/// How the interfaces begin that a machine makes for itself: bridges of containers and virtual machines, loop-backs.
const OF_THE_MACHINE: &[&str] = &[
    "docker", "br-", "virbr", "veth", "cni", "flannel", "cali", "lxc", "podman", "lo",
];

/// One node that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Odd {
    /// It looks for the head at another address than the head's own.
    Address {
        /// The node.
        node: Arc<str>,
        /// Where it looks.
        told: Arc<str>,
        /// The head.
        head: Arc<str>,
        /// Where the head is.
        right: Arc<str>,
    },
    /// Several nodes were started with the same node rank.
    Rank {
        /// The nodes.
        nodes: Vec<Arc<str>>,
        /// Their rank.
        rank: Arc<str>,
    },
    /// NCCL took an interface of the machine's own there.
    Interface {
        /// The node.
        node: Arc<str>,
        /// The interface.
        taken: Arc<str>,
        /// That of all other nodes, where they agree.
        right: Option<Arc<str>>,
    },
    /// They have different values of a setting that all have to share.
    Setting(Difference),
}

impl Difference {
    /// The nodes that differ from most, with their value and that of the others; `None` if no value is that of most.
    pub fn odd_one(&self) -> Option<(&Value, &[Arc<str>], &Value)> {
        let [(a, of_a), (b, of_b)] = self.values.as_slice() else {
            return None;
        };
        match of_a.len().cmp(&of_b.len()) {
            Ordering::Less => Some((a, of_a, b)),
            Ordering::Greater => Some((b, of_b, a)),
            Ordering::Equal => None,
        }
    }
}

/// Values by the nodes that state them.
type ByNode = BTreeMap<Arc<str>, BTreeSet<Arc<str>>>;

/// What does not fit among the nodes of an attempt.
pub fn odd(launches: &Launches, attempt: usize) -> Vec<Odd> {
    let rank = values(launches, attempt, "node_rank");
    let mut out = Vec::new();
    out.extend(address(&values(launches, attempt, "dist_init_addr"), &|node| {
        only(&rank, node).is_some_and(|rank| &*rank == "0")
    }));
    let meeting = values(launches, attempt, "init_method");
    out.extend(address(&meeting, &|node| has_first_rank(launches, attempt, node)));
    let stated = |names: &[&str]| {
        names
            .iter()
            .map(|name| values(launches, attempt, name))
            .collect::<Vec<_>>()
    };
    out.extend(same_rank(&rank, &stated(&["nnodes"]), &stated(HEADS)));
    out.extend(interface(&values(launches, attempt, "nccl_interface")));
    let one_form = |d: &Difference| {
        let mut values = d.values.iter().filter_map(|(value, _)| value.as_deref());
        let first = values.next();
        first.is_none_or(|first| values.all(|value| are_comparable(first, value)))
    };
    let shared = |d: &Difference| matches!(d.weight, Weight::Group | Weight::Work) && one_form(d);
    let unlike = differences(launches, attempt).into_iter().filter(shared);
    out.extend(unlike.map(Odd::Setting));
    out
}

fn values(launches: &Launches, attempt: usize, name: &str) -> ByNode {
    let mut values = ByNode::new();
    for placed in launches.events_of(attempt) {
        let Some(node) = launches.processes.get(placed.process).place() else {
            continue;
        };
        for (_, value) in placed.event.settings.iter().filter(|(n, _)| &**n == name) {
            values.entry(node.clone()).or_default().insert(value.clone());
        }
    }
    values
}

/// The value of a node that states one.
fn only(values: &ByNode, node: &str) -> Option<Arc<str>> {
    let of_node = values.get(node).filter(|of_node| of_node.len() == 1)?;
    of_node.first().cloned()
}

/// Whether global rank 0 says on this node where it meets the others. Each of several replicas has a rank 0 of its own,
/// and a place of its own to meet.
fn has_first_rank(launches: &Launches, attempt: usize, node: &str) -> bool {
    let placed = launches.events_of(attempt);
    let meets = placed.filter(|p| p.event.settings.iter().any(|(name, _)| &**name == "init_method"));
    let mut of_node = meets.map(|p| launches.processes.get(p.process));
    of_node.any(|p| p.rank == Some(0) && p.node.as_deref() == Some(node))
}

/// The node that looks for the head elsewhere, where one node is known to be the head.
fn address(values: &ByNode, is_head: &dyn Fn(&str) -> bool) -> Option<Odd> {
    let mut heads = values.keys().filter(|node| is_head(node));
    let (Some(head), None) = (heads.next(), heads.next()) else {
        return None;
    };
    let right = only(values, head)?;
    let others = values.keys().filter(|node| *node != head);
    others.into_iter().find_map(|node| {
        let told = only(values, node).filter(|told| *told != right && are_comparable(told, &right))?;
        Some(Odd::Address {
            node: node.clone(),
            told: place(&told).into(),
            head: head.clone(),
            right: place(&right).into(),
        })
    })
}

/// Whether two addresses name hosts in the same way: a name may stand for any address.
fn are_comparable(a: &str, b: &str) -> bool {
    let by_number = |text: &str| {
        let place = place(text);
        let host = place.rsplit_once(':').map_or(place, |(host, _)| host);
        is_ip(host.trim_matches(['[', ']']))
    };
    by_number(a) == by_number(b)
}

/// An address without the scheme of a URL.
fn place(text: &str) -> &str {
    text.split_once("://").map_or(text, |(_, place)| place)
}

/// A node rank, and the address at which its nodes meet.
type Seat = (Arc<str>, Option<Arc<str>>);

/// Nodes that were started with one node rank. Those that meet at another address, or are one node alone, are servers of
/// their own, as those are that share the work of a service.
fn same_rank(values: &ByNode, counts: &[ByNode], heads: &[ByNode]) -> Option<Odd> {
    let of = |all: &[ByNode], node: &str| all.iter().find_map(|values| only(values, node));
    let several = values.keys().filter(|node| of(counts, node).as_deref() != Some("1"));
    let mut nodes: BTreeMap<Seat, Vec<Arc<str>>> = BTreeMap::new();
    for node in several {
        let key = (only(values, node)?, of(heads, node));
        nodes.entry(key).or_default().push(node.clone());
    }
    let ((rank, _), nodes) = nodes.into_iter().find(|(_, nodes)| nodes.len() > 1)?;
    Some(Odd::Rank { nodes, rank })
}

/// The node on which NCCL took an interface of the machine's own, where it did not on the others.
fn interface(values: &ByNode) -> Option<Odd> {
    let own = |name: &str| OF_THE_MACHINE.iter().any(|start| name.starts_with(start));
    let taken = values.keys().map(|node| Some((node, only(values, node)?)));
    let taken: Vec<(&Arc<str>, Arc<str>)> = taken.collect::<Option<_>>()?;
    let (inner, outer): (Vec<_>, Vec<_>) = taken.into_iter().partition(|(_, name)| own(name));
    let right: BTreeSet<&Arc<str>> = outer.iter().map(|(_, name)| name).collect();
    let (node, taken) = inner.first().filter(|_| !outer.is_empty())?;
    Some(Odd::Interface {
        node: (*node).clone(),
        taken: taken.clone(),
        right: right.first().filter(|_| right.len() == 1).map(|name| (*name).clone()),
    })
}
