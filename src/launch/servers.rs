//! Which server a line is of, where the logs of one incident hold several: replicas, each with a file of its own or pod
//! by pod, or container by container, in one stream.
//!
//! Owns the telling apart of launches that do not meet, so that what one does says nothing of another, and the view of
//! one of them alone. Nodes that give one meeting point are one; a line that belongs to none for sure is not told apart
//! from any.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::machine::Machine;
use super::processes::ProcessId;
use super::relation::{Own, launch_of};
use super::{Launches, Source};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Event, InputId};

/// The setting by which a server says which part of the work it has: one fills the cache, another reads it.
const PART: &str = "disaggregation_mode";

/// The servers of an incident.
#[derive(Debug, Clone, Default)]
pub struct Servers {
    /// By input, and by node or container where the input is a stream of several.
    of: HashMap<(InputId, Option<Arc<str>>), usize>,
    meetings: HashMap<Arc<str>, usize>,
    /// Those of which nothing says that they are one of several nodes.
    alone: HashSet<usize>,
    count: usize,
}

impl Servers {
    /// The server that a line is of, if that is known.
    pub(super) fn get(&self, event: &Event) -> Option<usize> {
        let node = (event.place.input, part(event).cloned());
        let whole = || self.of.get(&(event.place.input, None));
        self.of.get(&node).or_else(whole).copied()
    }

    /// Notes inputs that hold the launch `own`; `alone` where nothing says that it is one of several nodes.
    pub(super) fn add(&mut self, inputs: impl Iterator<Item = InputId>, own: &Own, alone: bool) {
        if let Some(server) = self.server(own, alone) {
            self.of.extend(inputs.map(|input| ((input, None), server)));
        }
    }

    /// Tells the launches apart that stand in one stream under the names of their nodes.
    pub(super) fn add_streams(&mut self, catalog: &Catalog, sources: &[Arc<Source>]) {
        for source in sources {
            let mut nodes: HashMap<&Arc<str>, Vec<&Event>> = HashMap::new();
            for event in &source.harvest.events {
                if let Some(node) = part(event) {
                    nodes.entry(node).or_default().push(event);
                }
            }
            if nodes.len() < 2 {
                continue;
            }
            for (node, events) in nodes {
                let own = launch_of(catalog, events.iter().copied(), None);
                // The agents of a torchrun job may each print no more than how its own part ended.
                let own = own.filter(|own| &*own.program != "torch");
                if let Some(server) = own.and_then(|own| self.server(&own, own.place().is_empty())) {
                    self.of.insert((source.input, Some(node.clone())), server);
                }
            }
        }
    }

    fn server(&mut self, own: &Own, alone: bool) -> Option<usize> {
        let new = self.count;
        let server = match &own.meeting {
            _ if alone => new,
            Some(meeting) => *self.meetings.entry(meeting.clone()).or_insert(new),
            None => return None,
        };
        self.count += usize::from(server == new);
        self.alone.extend(alone.then_some(server));
        Some(server)
    }
}

impl Launches {
    /// The server that the event at `index` is of, where there are several.
    pub fn server(&self, index: usize) -> Option<usize> {
        self.servers.get(&self.events.get(index)?.event)
    }

    /// Whether the event at `index` is of a server of its own, that shares nothing with others.
    pub(super) fn is_of_one_alone(&self, index: usize) -> bool {
        self.server(index)
            .is_some_and(|server| self.servers.alone.contains(&server))
    }

    /// The servers that begin in an attempt, by what each is known by. None where two of them are begun by one process:
    /// then it is one server, told twice.
    pub fn servers(&self, catalog: &Catalog, attempt: usize) -> Vec<(usize, Arc<str>)> {
        let mut all: Vec<(usize, ProcessId)> = Vec::new();
        let mut led: HashSet<usize> = HashSet::new();
        for index in self.of_attempt(attempt) {
            let begins = self
                .signature(catalog, index)
                .is_some_and(|s| s.def.role == Role::Launch && matches!(s.def.program.as_str(), "vllm" | "sglang"));
            let Some((server, placed)) = self.server(index).zip(self.events.get(index)).filter(|_| begins) else {
                continue;
            };
            if placed.event.setting("node_rank").is_some_and(|rank| &**rank == "0") {
                led.insert(server);
            }
            if !all.contains(&(server, placed.process)) {
                all.push((server, placed.process));
            }
        }
        let leaders: HashSet<ProcessId> = all.iter().map(|(_, leader)| *leader).collect();
        // Nodes of one launch that are to meet, and look for each other in several places, are no servers of their own,
        // unless each place has a head.
        let apart = |server: &usize| self.servers.alone.contains(server) || led.contains(server);
        if leaders.len() < all.len() || !all.iter().all(|(server, _)| apart(server)) {
            return Vec::new();
        }
        let mut known: HashSet<usize> = HashSet::new();
        all.retain(|(server, _)| known.insert(*server));
        let name = |leader: ProcessId| {
            let process = self.processes.get(leader);
            let name = self.processes.node(leader).or(process.container.as_ref());
            name.cloned().unwrap_or_else(|| process.id.as_str().into())
        };
        all.into_iter().map(|(server, leader)| (server, name(leader))).collect()
    }

    /// Which part of the work of a service the server of an attempt has, if it says so.
    pub fn part_in_service(&self, attempt: usize) -> Option<Arc<str>> {
        let events = self.of_attempt(attempt).filter_map(|i| self.events.get(i));
        let mut settings = events.flat_map(|placed| &placed.event.settings);
        let part = settings.find(|(name, value)| &**name == PART && matches!(&**value, "prefill" | "decode"))?;
        Some(part.1.clone())
    }

    /// Keeps to the lines of one server and those that are of none for sure, or takes all again.
    pub fn keep_to(&mut self, server: Option<usize>) {
        let whole = self.whole.take().unwrap_or_else(|| self.machines.clone());
        let own = |event: &Event| match (server, self.servers.get(event)) {
            (Some(kept), Some(other)) => kept == other,
            _ => true,
        };
        let mut by_attempt = vec![Vec::new(); self.attempts];
        let mut heard: HashSet<ProcessId> = HashSet::new();
        let mut left_out: HashSet<ProcessId> = HashSet::new();
        for (index, placed) in self.events.iter().enumerate() {
            match own(&placed.event) {
                true => _ = heard.insert(placed.process),
                false => _ = left_out.insert(placed.process),
            }
            let of_attempt = by_attempt.get_mut(placed.attempt).filter(|_| own(&placed.event));
            of_attempt.into_iter().for_each(|all: &mut Vec<usize>| all.push(index));
        }
        self.by_attempt = by_attempt;
        self.machines.clone_from(&whole);
        for other in left_out.difference(&heard) {
            let of_attempts = self
                .machines
                .iter_mut()
                .filter_map(|machines| machines.get_mut(other.0));
            of_attempts.for_each(|machine| *machine = Machine::default());
        }
        self.whole = server.map(|_| whole);
    }
}

/// The part of a stream that a line stands in.
fn part(event: &Event) -> Option<&Arc<str>> {
    event.speaker.node.as_ref().or(event.speaker.container.as_ref())
}
