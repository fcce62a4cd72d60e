//! The launch: processes, their phases and the attempts, built from the events of all sources.
//!
//! Owns who is who (`processes`), who was in which phase when (`machine`), and where one launch ends and the next
//! begins (`attempts`, over several files: `rounds`), how far the nodes' clocks are apart (`clocks`), and which inputs belong together at all
//! (`relation`). Knows no text: a line travels along as opaque evidence. Never weighs causes.

pub mod arrival;
pub mod attempts;
pub mod clocks;
pub mod clusters;
pub mod communicators;
pub mod devices;
pub mod differences;
pub mod earlier;
pub mod files;
pub mod folders;
pub mod links;
pub mod machine;
pub mod names;
pub mod nodes;
pub mod odd;
pub mod order;
pub mod processes;
pub mod relation;
pub mod rounds;
mod servers;
pub mod sizes;
mod stated;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::catalog::matcher::Signature;
use crate::catalog::schema::Role;
use crate::dialect::reader::Harvest;
use crate::event::{Event, InputId, Program};

use clocks::Clocks;
use machine::{Engine, Machine};
use order::{Moment, Within};
use processes::{ProcessId, ProcessRole, Processes, Teller};
use rounds::Rounds;
use servers::Servers;

/// Seconds within which the nodes of a launch are started, as far as their clocks agree.
const STARTED_WITHIN: f64 = 120.0;

/// One examined source with what its name says.
#[derive(Debug, Clone)]
pub struct Source {
    /// Which input.
    pub input: InputId,
    /// Name as given.
    pub name: String,
    /// Events and speakers.
    pub harvest: Harvest,
}

/// An event with its process and its place in the common order.
#[derive(Debug, Clone)]
pub struct Placed {
    /// The event.
    pub event: Event,
    /// The process that printed it.
    pub process: ProcessId,
    /// The attempt it belongs to, from 0.
    pub attempt: usize,
    /// The stretch of its source, where a source holds what several nodes wrote one below the other.
    pub stretch: usize,
    /// Whether a stamp says when it was, its own or one further up in its source.
    pub dated: bool,
    /// Between which seconds, on the clock that all are set against, it was written.
    pub within: Within,
}

impl Placed {
    /// Who tells of it.
    pub fn teller(&self) -> Teller {
        Teller {
            input: self.event.place.input,
            attempt: self.attempt,
        }
    }

    /// Where it stands, given its place in the common order.
    pub fn moment(&self, index: usize) -> Moment {
        Moment {
            index,
            input: self.event.place.input,
            stretch: self.stretch,
            dated: self.dated,
        }
    }
}

/// All launches of one examination.
pub struct Launches {
    /// Processes.
    pub processes: Processes,
    /// Events in the common order: time where stamps allow, else order of inputs and lines.
    pub events: Vec<Placed>,
    /// Number of attempts, at least 1.
    pub attempts: usize,
    /// How far the nodes' clocks are apart.
    pub clocks: Clocks,
    /// The programs whose lines are in the log, also those of which no rule knows a line.
    pub heard: BTreeSet<Program>,
    /// The engine of each attempt.
    engines: Vec<Engine>,
    /// The servers that do not meet.
    servers: Servers,
    /// One machine per attempt and process.
    machines: Vec<Vec<Machine>>,
    /// The machines of all servers, while those of one are looked at.
    whole: Option<Vec<Vec<Machine>>>,
    /// Indices of the events of each attempt, in order.
    by_attempt: Vec<Vec<usize>>,
}

/// The one that there is; none of several.
pub fn only<T>(mut found: impl Iterator<Item = T>) -> Option<T> {
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

impl Launches {
    /// Builds the launches from the sources.
    pub fn build(catalog: &Catalog, sources: &[Arc<Source>]) -> Self {
        let sources = &order::by_content(sources);
        let rounds = Rounds::of(catalog, sources);
        let mut processes = Processes::build(catalog, sources, &rounds);
        let mut servers = rounds.servers();
        servers.add_streams(catalog, sources);
        let clocks = Clocks::estimate(catalog, sources, &processes, &servers);
        let mut events = order::merge(sources, &processes, &clocks);
        let attempts = attempts::split(catalog, sources, &rounds, (&processes, &servers), &mut events);
        if attempts > 1 {
            processes.note_attempts(events.iter().map(|placed| (placed.process, placed.attempt)));
        }
        let mut by_attempt = vec![Vec::new(); attempts];
        for (index, placed) in events.iter().enumerate() {
            if let Some(own) = by_attempt.get_mut(placed.attempt) {
                own.push(index);
            }
        }
        let engines = Engine::of_attempts(catalog, &events, attempts);
        let machines = machine::run(catalog, &engines, &mut processes, &events);
        let speakers = sources.iter().flat_map(|source| &source.harvest.heard);
        let heard = speakers.map(|heard| heard.speaker.program).collect();
        Self {
            processes,
            events,
            attempts,
            heard,
            engines,
            clocks,
            servers,
            machines,
            whole: None,
            by_attempt,
        }
    }

    /// The engine that an attempt starts.
    pub fn engine(&self, attempt: usize) -> Engine {
        self.engines.get(attempt).copied().unwrap_or_default()
    }

    /// The engine that the attempt of an event starts.
    pub fn engine_at(&self, index: usize) -> Engine {
        self.engine(self.events.get(index).map_or(0, |placed| placed.attempt))
    }

    /// Whether two events are of servers of their own, neither of which is a part of the other's launch: what one does
    /// says nothing of the other.
    pub fn of_other_servers(&self, a: usize, b: usize) -> bool {
        matches!((self.server(a), self.server(b)), (Some(a), Some(b)) if a != b)
    }

    /// The node of what the event at `index` tells of `process`: where it tells of another process than that of its own
    /// line, of which nothing else is known, the one that it names.
    pub fn node(&self, index: usize, process: ProcessId) -> Option<&Arc<str>> {
        let placed = self.events.get(index)?;
        // A process of the launch or of its cluster may name the node of a peer; a daemon that names a node and no process
        // of it tells of that node.
        let role = self.processes.get(process).role;
        let of_node = role == ProcessRole::RayDaemon && !placed.event.victim.is_named();
        let outside = of_node || matches!(role, ProcessRole::Observer | ProcessRole::Main);
        let told = placed
            .event
            .victim
            .node
            .as_ref()
            .map(|node| self.processes.node_at(node));
        let told = told.filter(|_| outside && placed.process == process);
        told.or_else(|| self.processes.node(process))
    }

    /// Where the event at `index` stands; one that there is not follows all.
    pub fn moment(&self, index: usize) -> Moment {
        let none = Moment {
            index,
            input: InputId::default(),
            stretch: 0,
            dated: true,
        };
        self.events.get(index).map_or(none, |placed| placed.moment(index))
    }

    /// Whether it is known which of two events came first: they stand in one source, or their times tell.
    pub fn in_known_order(&self, a: usize, b: usize) -> bool {
        let (Some(a), Some(b)) = (self.events.get(a), self.events.get(b)) else {
            return false;
        };
        let of = |placed: &Placed| (placed.event.place.input, placed.stretch);
        let node = |placed: &Placed| self.processes.get(placed.process).node.as_ref();
        let apart = |margin| a.within.is_apart_from(b.within, margin);
        of(a) == of(b) || self.clocks.margin(node(a), node(b)).is_some_and(apart)
    }

    /// The first event of the launch itself that has a stamp. A kernel's log reaches back to the start of the machine,
    /// and a Ray cluster may have stood for weeks; where there is nothing else, theirs counts.
    pub fn start(&self, attempt: usize) -> Option<usize> {
        let event = |index: &usize| self.events.get(*index);
        let around = |index: &usize| {
            let role = event(index).map(|placed| self.processes.get(placed.process).role);
            matches!(role, Some(ProcessRole::Observer | ProcessRole::RayDaemon))
        };
        let stamped = |index: &usize| event(index).is_some_and(|p| p.event.place.time.is_some());
        let all = || self.of_attempt(attempt).filter(stamped);
        all().find(|index| !around(index)).or_else(|| all().next())
    }

    /// The first event of the launch by whose stamp the time up to the one at `index` is known: that of the launch; but
    /// the first of the own node where nothing compares the clocks of the two, and their stamps begin further apart than
    /// nodes of one launch are started.
    pub fn start_for(&self, attempt: usize, index: usize) -> Option<usize> {
        let node = |index: usize| {
            self.events
                .get(index)
                .and_then(|p| self.processes.get(p.process).node.as_ref())
        };
        let start = self.start(attempt)?;
        if self.clocks.are_comparable(node(start), node(index)) {
            return Some(start);
        }
        let stamped = |index: &usize| self.events.get(*index).is_some_and(|p| p.event.place.time.is_some());
        let own = self
            .of_attempt(attempt)
            .filter(stamped)
            .find(|own| node(*own) == node(index));
        let late = own.and_then(|own| self.seconds_between(start, own));
        own.filter(|_| late.is_some_and(|seconds| seconds > STARTED_WITHIN))
            .or(Some(start))
    }

    /// Seconds from one event to another, by one clock.
    pub fn seconds_between(&self, from: usize, to: usize) -> Option<f64> {
        let (from, to) = (self.events.get(from)?, self.events.get(to)?);
        let ahead = |placed: &Placed| self.clocks.ahead(self.processes.get(placed.process).node.as_ref());
        let (begin, end) = (from.event.place.time.as_ref()?, to.event.place.time.as_ref()?);
        Some(end.seconds_since(begin)? - (ahead(to) - ahead(from)))
    }

    /// The machine of a process in an attempt.
    pub fn machine(&self, attempt: usize, process: ProcessId) -> Option<&Machine> {
        self.machines.get(attempt)?.get(process.0)
    }

    /// All machines of an attempt, by process.
    pub fn machines(&self, attempt: usize) -> &[Machine] {
        self.machines.get(attempt).map_or(&[], Vec::as_slice)
    }

    /// Indices of the events of an attempt, in order.
    pub fn of_attempt(&self, attempt: usize) -> impl Iterator<Item = usize> + '_ {
        self.own(attempt).iter().copied()
    }

    /// Indices of the events of an attempt before the one at `index`, the nearest first.
    pub fn before(&self, attempt: usize, index: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.own(attempt);
        let (before, _) = own.split_at(own.partition_point(|&i| i < index));
        before.iter().rev().copied()
    }

    fn own(&self, attempt: usize) -> &[usize] {
        self.by_attempt.get(attempt).map_or(&[], Vec::as_slice)
    }

    /// The events of an attempt, in order.
    pub fn events_of(&self, attempt: usize) -> impl Iterator<Item = &Placed> {
        self.of_attempt(attempt).filter_map(|index| self.events.get(index))
    }

    /// The processes that say or are told of anything in an attempt; with a single attempt of a single server, all of them.
    pub fn active(&self, attempt: usize) -> std::collections::BTreeSet<usize> {
        if self.attempts <= 1 && self.whole.is_none() {
            return (0..self.processes.all().len()).collect();
        }
        let mut active: std::collections::BTreeSet<usize> = self
            .of_attempt(attempt)
            .filter_map(|i| self.events.get(i))
            .map(|p| p.process.0)
            .collect();
        let told = self.of_attempt(attempt).filter_map(|i| self.events.get(i));
        let victims = told.filter_map(|p| self.processes.find(&p.event.victim, p.teller()));
        active.extend(victims.map(|p| p.0));
        active
    }

    /// The phase of a process just before the event at `index`: its own last marker, or one that its group shares.
    pub fn phase_before(&self, attempt: usize, process: ProcessId, index: usize) -> Option<&str> {
        let machines = self.machines(attempt);
        let now = self.moment(index);
        let own = machines.get(process.0).and_then(|m| m.at(now));
        let role = self.processes.get(process).role;
        let shared = role.is_worker_like().then(|| {
            let group = machines.iter().filter_map(|m| m.shared_at(now));
            group.max_by_key(|p| self.engine(attempt).tier(p))
        });
        // What one rank says that it has begun, those have begun that had nothing else to do.
        let idle = machines
            .get(process.0)
            .is_some_and(|m| role.is_worker_like() && m.has_finished(now));
        let once = idle.then(|| {
            let group = machines.iter().filter_map(|m| m.once_at(now));
            group.max_by_key(|p| self.engine(attempt).tier(p))
        });
        [own, shared.flatten(), once.flatten()]
            .into_iter()
            .flatten()
            .max_by_key(|p| self.engine(attempt).tier(p))
    }

    /// The furthest phase that any process had entered before the event at `index`.
    pub fn furthest_before(&self, attempt: usize, index: usize) -> Option<&str> {
        let now = self.moment(index);
        self.machines(attempt)
            .iter()
            .filter_map(|m| m.at(now))
            .max_by_key(|p| self.engine(attempt).tier(p))
    }

    /// The signature of the event at `index`.
    pub fn signature<'c>(&self, catalog: &'c Catalog, index: usize) -> Option<&'c Signature> {
        catalog.signature(self.events.get(index)?.event.signature)
    }

    /// The role of an event's signature.
    pub fn role(catalog: &Catalog, event: &Event) -> Option<Role> {
        catalog.signature(event.signature).map(|s| s.def.role)
    }
}
