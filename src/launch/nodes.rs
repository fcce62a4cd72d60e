//! Which nodes of a launch its logs are of, as the launch says itself.
//!
//! Owns the reading of node numbers and of servers that join the one another node leads. Such a node never prints that
//! the server is ready.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Launches;
use super::machine::Machine;
use super::processes::{ProcessId, ProcessRole};
use crate::event::InputId;

/// Settings that name the node with rank 0.
const HEADS: &[&str] = &["master_addr", "dist_init_addr"];
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
