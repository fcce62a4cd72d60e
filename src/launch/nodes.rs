//! Which nodes of a launch its logs are of, as the launch says itself.
//!
//! Owns the reading of node numbers and of servers that join the one another node leads, and how many nodes the launch
//! has. Such a node never prints that the server is ready.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::machine::Machine;
use super::processes::{Process, ProcessId, ProcessRole, RAYLET};
use super::relation::names_a_host;
use super::{Launches, Placed};
use crate::event::InputId;

/// Settings that name the node with rank 0.
pub(super) const HEADS: &[&str] = &["master_addr", "dist_init_addr"];
/// Settings by which nothing is captured.
const EAGER: &[&str] = &["enforce_eager", "disable_cuda_graph"];

/// The nodes of an attempt.
#[derive(Debug, Clone, Default)]
pub struct Nodes {
    /// How many there are, if the launch states more than one.
    pub all: u32,
    /// Those whose logs are at hand.
    pub heard: BTreeSet<u32>,
    /// Address of the node with rank 0.
    pub head: Option<Arc<str>>,
    /// Address of the node that leads, by those that join it and do not say which node they are.
    pub led_from: Option<Arc<str>>,
    /// The inputs of those.
    pub joining: BTreeSet<InputId>,
    /// Whether a server that takes requests is heard.
    pub serves: bool,
}

impl Nodes {
    /// Reads what the launch lines of an attempt state.
    pub fn of(launches: &Launches, attempt: usize) -> Self {
        let mut out = Self::default();
        for placed in launches.events_of(attempt) {
            let setting = |name: &str| placed.event.setting(name);
            let number = |name: &str| setting(name).and_then(|v| v.parse::<u32>().ok());
            if let Some(address) = setting("head_node") {
                out.led_from = Some(address.clone());
                out.joining.insert(placed.event.place.input);
            }
            if let Some(all) = number("nnodes").filter(|all| *all > 1) {
                out.all = out.all.max(all);
                // What is left at its default is not printed.
                out.heard.insert(number("node_rank").unwrap_or(0));
                let head = HEADS.iter().find_map(|name| setting(name));
                out.head = out.head.or_else(|| head.cloned());
            }
        }
        let active = launches.active(attempt);
        let mut processes = active.iter().map(|&i| launches.processes.get(ProcessId(i)));
        out.serves = processes.any(|p| p.role == ProcessRole::ApiServer && p.last_line.1 > 0);
        out
    }

    /// Whether none of them is the one that leads, which alone tells whether the server serves.
    pub fn only_follow(&self) -> bool {
        let joins = !self.joining.is_empty() && !self.serves;
        !self.heard.contains(&0) && (!self.heard.is_empty() || joins)
    }
}

/// Whether the workers of an attempt had done all that a start asks of them before the event at `index`: they have
/// captured their graphs, or sized their caches where nothing is captured.
pub fn workers_are_done(launches: &Launches, attempt: usize, index: usize) -> bool {
    let now = launches.moment(index);
    let engine = launches.engine(attempt);
    let machines = launches.machines(attempt).iter().zip(launches.processes.all());
    let workers: Vec<&Machine> = machines
        .filter(|(machine, p)| p.role.is_worker_like() && !p.absorbed && machine.at(now).is_some())
        .map(|(machine, _)| machine)
        .collect();
    let events = || launches.events_of(attempt);
    let mut settings = events().flat_map(|placed| &placed.event.settings);
    let eager = settings.any(|(name, value)| EAGER.contains(&&**name) && &**value == "True");
    let captured = |m: &Machine| m.at(now) == Some("graph-capture") && m.has_finished(now);
    let beyond = |m: &Machine| {
        m.at(now)
            .is_some_and(|phase| engine.tier(phase) > engine.tier("graph-capture"))
    };
    let sized = |m: &Machine| m.at(now) == Some("kv-cache");
    let done = |m: &&Machine| captured(m) || beyond(m) || eager && sized(m);
    // One rank may speak for its group.
    let at_work = |m: &&Machine| !done(m) && !sized(m);
    workers.iter().copied().any(|m| done(&m)) && !workers.iter().any(at_work)
}

/// Settings that state how many nodes a launch has.
const COUNTS: &[&str] = &["nnodes", "min_nodes"];
/// How many NCCL counts, of each group.
const OF_NCCL: &str = "nodes";

/// The nodes of a launch: those that it states, else those that are named, or one.
pub fn count(launches: &Launches, attempt: usize) -> u32 {
    let number = |placed: &Placed, name: &str| placed.event.setting(name)?.parse::<u32>().ok();
    let most = |name: &&str| {
        launches
            .events_of(attempt)
            .filter_map(|placed| number(placed, name))
            .max()
    };
    let active = launches.active(attempt);
    let own = || active.iter().map(|&i| launches.processes.get(ProcessId(i)));
    // What all ranks say of their hosts goes before what NCCL takes for hosts.
    let world = own().filter_map(|p| p.identity.world_size).max();
    let ranks: BTreeSet<u32> = own().filter(|p| p.node.is_some()).filter_map(|p| p.rank).collect();
    let by_nccl = most(&OF_NCCL).filter(|_| world.is_none_or(|world| (world as usize) > ranks.len()));
    let stated = COUNTS.iter().filter_map(most).chain(by_nccl).max().unwrap_or(1);
    let nodes = Nodes::of(launches, attempt);
    let mut inputs = own().filter(|p| p.role.is_engine()).map(|p| p.last_line.0);
    let led = nodes.led_from.as_deref().is_some_and(names_a_host);
    let headless = led && inputs.all(|input| nodes.joining.contains(&input));
    // A launch on Ray may have many nodes and states one.
    stated.max(named(launches, attempt) + u32::from(headless))
}

/// Nodes that are named, or one.
pub fn named(launches: &Launches, attempt: usize) -> u32 {
    let active = launches.active(attempt);
    let all = || {
        let own = active
            .iter()
            .map(|&i| (ProcessId(i), launches.processes.get(ProcessId(i))));
        // Who only tells of the launch, or is only told of, may call a node by another name.
        own.filter(|(_, p)| p.role != ProcessRole::Observer && p.last_line.1 > 0 && !p.absorbed)
    };
    // A router beside the servers, or another program, is no part of a launch.
    let takes_part = |id: ProcessId, p: &Process| {
        p.role != ProcessRole::Main || launches.machine(attempt, id).is_some_and(|m| m.last().is_some())
    };
    // One machine may run the daemons of several nodes, which their addresses tell apart.
    let address = |p: &Process| {
        let own = p.identity.host.as_ref().filter(|_| p.label.as_deref() == Some(RAYLET));
        own.map(|address| launches.processes.node_at(address).clone())
    };
    let mut addresses: BTreeMap<&Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    for (_, process) in all() {
        if let (Some(node), Some(address)) = (&process.node, address(process)) {
            addresses.entry(node).or_default().insert(address);
        }
    }
    let of_process = |p: &Process| -> BTreeSet<Arc<str>> {
        let by_name = || p.node.as_ref().and_then(|node| addresses.get(node)).cloned();
        let own = address(p).map(|address| BTreeSet::from([address])).or_else(by_name);
        own.unwrap_or_else(|| p.node.iter().cloned().collect())
    };
    let nodes = |of: &dyn Fn(ProcessId, &Process) -> bool| -> BTreeSet<Arc<str>> {
        let own = all().filter(|(id, p)| of(*id, p));
        own.flat_map(|(_, p)| of_process(p)).collect()
    };
    let mut named = nodes(&takes_part);
    if named.is_empty() {
        named = nodes(&|_, _| true);
    }
    // Ray names only foreign nodes in what it hands on: the driver's is one more, unless a log of it is there,
    // too.
    let drivers = all().filter(|(_, p)| p.node.is_none() && (p.role.is_engine() || p.role == ProcessRole::Driver));
    let drivers: BTreeSet<InputId> = drivers.map(|(_, p)| p.last_line.0).collect();
    let foreign = launches.processes.foreign_in(&drivers);
    let foreign: BTreeSet<Arc<str>> = foreign.flat_map(of_process).collect();
    let one_more = !foreign.is_empty() && foreign.is_superset(&named);
    let named = u32::try_from(named.len()).unwrap_or(u32::MAX);
    named.saturating_add(u32::from(one_more)).max(1)
}
