//! Who came to the meeting of the ranks, and who did not.
//!
//! Owns how far each rank got in joining its group, and the node that an absent rank belongs to where the ranks that
//! were heard tell the layout. Says nothing where several processes claim one rank.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::processes::{Process, ProcessId, ProcessRole};
use super::sizes::{self, Sizes};
use super::{Launches, links};
use crate::catalog::Catalog;
use crate::event::{Event, InputId};

/// A rank that did not come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// Global rank.
    pub rank: u32,
    /// Its node: named by its own lines, or by the place of its rank among those that were heard.
    pub node: Option<Arc<str>>,
    /// Its process, if any line of it is in the logs.
    pub process: Option<ProcessId>,
    /// Whether it is known not to have come: the rest of its node's output is heard, or whoever counted says so.
    /// Otherwise its log may just not be at hand.
    pub known: bool,
    /// Whether it came when one of the others had given up waiting.
    pub late: bool,
    /// Whether no line of that process names it, so that it may be another.
    pub unnamed: bool,
}

/// How far the ranks of an attempt got in joining their group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Number of ranks that the launch has.
    pub world: u32,
    /// Ranks that came and wait.
    pub came: BTreeSet<u32>,
    /// Ranks that did not, by rank. Empty if all came, or if the log shows that the group was formed.
    pub absent: Vec<Absent>,
    /// How many had come when one of them gave up, and how many were expected, as printed.
    pub told: Option<(u32, u32)>,
    /// Whether the group was formed.
    pub met: bool,
    /// Ranks of nodes that the launch says it has, and of which no line is in the logs, whether they came or not.
    pub unlogged: Vec<Absent>,
    /// Where processes came to one meeting with several sizes of it in mind: each size with them.
    pub sizes: Sizes,
}

impl Arrival {
    /// Ranks of which no line is in the logs.
    pub fn unheard(&self) -> impl Iterator<Item = &Absent> {
        self.absent.iter().filter(|a| a.process.is_none())
    }
}

/// Whether a rank that is known of the process is its own: an engine core that starts no workers holds the device itself.
fn holds_rank(process: &Process) -> bool {
    process.role.is_worker_like() || process.role == ProcessRole::EngineCore
}

/// How far the ranks of an attempt got; `None` where the log does not tell how many there are, or who is which.
pub fn arrival(catalog: &Catalog, launches: &Launches, attempt: usize) -> Option<Arrival> {
    let active = launches.active(attempt);
    let mut ranks: BTreeMap<u32, ProcessId> = BTreeMap::new();
    for &index in &active {
        let process = launches.processes.get(ProcessId(index));
        let Some(rank) = process.rank.filter(|_| !process.absorbed && holds_rank(process)) else {
            continue;
        };
        if ranks.insert(rank, ProcessId(index)).is_some() {
            return None;
        }
    }
    let mut out = Arrival::default();
    let mut joined: BTreeSet<ProcessId> = BTreeSet::new();
    let mut late: BTreeSet<ProcessId> = BTreeSet::new();
    let mut given_up: Option<usize> = None;
    for index in launches.of_attempt(attempt) {
        let Some(placed) = launches.events.get(index) else {
            continue;
        };
        let event = &placed.event;
        let count = |name: &str| figure(event, name);
        if let (Some(came), Some(all)) = (count("joined_count"), count("expected_count")) {
            out.told = Some((came, all));
            given_up = given_up.or((came < all).then_some(index));
        }
        let step = catalog.signature(event.signature).and_then(|s| s.def.step.as_deref());
        match step {
            Some("join") if joined.contains(&placed.process) => {}
            Some("join") if given_up.is_some_and(|told| launches.in_known_order(told, index)) => {
                late.insert(placed.process);
            }
            Some("join") => _ = joined.insert(placed.process),
            Some("met") => out.met = true,
            _ => {}
        }
    }
    // An engine builds its model in groups that have been formed.
    let machines = launches.machines(attempt).iter().zip(launches.processes.all());
    let mut ranked = machines.filter(|(_, p)| p.rank.is_some() && !p.absorbed && holds_rank(p));
    out.met |= launches.engine(attempt).serves() && ranked.any(|(m, _)| m.has_begun_to_load(launches.engine(attempt)));
    out.sizes = sizes::of_one_meeting(catalog, launches, attempt);
    if out.sizes.len() > 1 {
        // Who is to come is not known: the ranks beyond the smaller size do not exist for some.
        out.world = u32::try_from(ranks.len()).ok()?;
        return Some(out);
    }
    let stated = of(launches, &active).filter_map(|(_, p)| p.identity.world_size).max();
    let highest = ranks.keys().next_back().map(|r| r + 1);
    out.world = stated
        .or(out.told.map(|(_, all)| all))
        .or_else(|| size_from_settings(launches, attempt))
        .max(highest)?;
    if out.world < 2 {
        return None;
    }
    out.came = ranks
        .iter()
        .filter(|(_, id)| joined.contains(id))
        .map(|(rank, _)| *rank)
        .collect();
    let nodes = Layout::of(launches, &ranks, out.world, &active);
    let nameless = nameless(launches, &active);
    // What nobody says it is may be the log of any of them.
    let outputs = Outputs::of(launches, attempt, &active);
    if nameless.is_empty() && (outputs.unnamed.is_empty() || outputs.count == 1) {
        out.unlogged = of_unheard_nodes(catalog, launches, attempt, &ranks, &nodes, out.world);
    }
    let all_told = out.told.is_some_and(|(came, all)| came >= all);
    let nobody_waits = out.came.is_empty() && out.told.is_none();
    if !(out.met || all_told || nobody_waits) {
        out.absent = (0..out.world)
            .filter(|rank| !out.came.contains(rank))
            .map(|rank| Absent {
                rank,
                node: nodes.node(rank),
                process: ranks.get(&rank).copied(),
                known: true,
                late: ranks.get(&rank).is_some_and(|id| late.contains(id)),
                unnamed: false,
            })
            .collect();
        let counted = out.told.is_some_and(|(came, _)| came as usize == out.came.len());
        let block = nodes.block_or_all(&ranks, out.world);
        let heard: BTreeSet<u32> = ranks.keys().filter_map(|r| r.checked_div(block)).collect();
        for absent in out.absent.iter_mut().filter(|a| a.process.is_none() && !counted) {
            absent.known = match absent.rank.checked_div(block) {
                Some(of) => heard.contains(&of) && !outputs.of_one_rank,
                None => outputs.count == 1,
            };
        }
        name_the_nameless(&nameless, &joined, &mut out.absent);
        stopped_before_their_workers(launches, &active, &mut out.absent);
        outputs.may_be_of(launches, &mut out.absent, counted);
        // A store that one client more had joined than the logs show joining: whom it counted is not known.
        let hidden = out.told.is_some_and(|(came, _)| came as usize > out.came.len());
        if hidden && out.came.is_empty() {
            out.absent.retain(|a| a.process.is_none());
        }
    }
    Some(out)
}

/// Processes with their ids.
fn of<'l>(launches: &'l Launches, ids: &'l BTreeSet<usize>) -> impl Iterator<Item = (ProcessId, &'l Process)> {
    ids.iter()
        .map(|&i| (ProcessId(i), launches.processes.get(ProcessId(i))))
}

/// Whether a process is one of its own, and speaks in the logs: one that is only told of, as by an agent, need not be
/// another than those that are known.
fn is_heard(process: &Process) -> bool {
    !process.absorbed && process.last_line.1 > 0
}

/// Workers whose rank is not known.
fn nameless<'l>(launches: &'l Launches, active: &'l BTreeSet<usize>) -> Vec<(ProcessId, &'l Process)> {
    of(launches, active)
        .filter(|(_, p)| p.rank.is_none() && p.role.is_worker_like() && is_heard(p))
        .collect()
}

/// The ranks of nodes of which no line is in the logs, where the launch says how many nodes it has and the ranks lie on
/// them in equal blocks.
fn of_unheard_nodes(
    catalog: &Catalog,
    launches: &Launches,
    attempt: usize,
    ranks: &BTreeMap<u32, ProcessId>,
    layout: &Layout,
    world: u32,
) -> Vec<Absent> {
    let events = || launches.events_of(attempt);
    let stated = events()
        .flat_map(|placed| &placed.event.settings)
        .filter(|(name, _)| matches!(&**name, "nodes" | "nnodes"))
        .filter_map(|(_, value)| value.parse::<u32>().ok())
        .max();
    let Some(nodes) = world.checked_div(layout.block) else {
        return Vec::new();
    };
    let heard: BTreeSet<u32> = ranks.keys().map(|rank| rank / layout.block).collect();
    // Where nobody states how many there are, several nodes that are heard whole show how ranks lie on them.
    // So does one whose agent lists all that it started.
    let whole = ranks.len() == heard.len() * layout.block as usize && layout.block > 1;
    let whole = whole && (heard.len() > 1 || are_listed(catalog, launches, attempt, ranks));
    if stated.map_or(!whole, |stated| stated != nodes) {
        return Vec::new();
    }
    let speaks = |node: &Arc<str>| {
        let mut all = launches.processes.all().iter().filter(|p| p.last_line.1 > 0);
        all.any(|p| p.node.as_ref() == Some(node) || p.identity.host.as_ref() == Some(node))
    };
    // The only node without a log is the one that the others name and that does not speak.
    let named: BTreeSet<&Arc<str>> = events()
        .filter_map(|placed| placed.event.victim.node.as_ref())
        .collect();
    let silent: Vec<&Arc<str>> = named.into_iter().filter(|node| !speaks(node)).collect();
    let only = match (silent.as_slice(), nodes - heard.len() as u32) {
        ([node], 1) => Some((*node).clone()),
        _ => None,
    };
    (0..world)
        .filter(|rank| !heard.contains(&(rank / layout.block)))
        .map(|rank| Absent {
            rank,
            node: layout.node(rank).or_else(|| only.clone()),
            process: None,
            known: false,
            late: false,
            unnamed: false,
        })
        .filter(|absent| absent.node.as_ref().is_none_or(|node| !speaks(node)))
        .collect()
}

/// Whether an agent's account of how its job ended lists these ranks, from the first local one on.
fn are_listed(catalog: &Catalog, launches: &Launches, attempt: usize, ranks: &BTreeMap<u32, ProcessId>) -> bool {
    let mut listed: BTreeMap<u32, u32> = BTreeMap::new();
    for index in launches.of_attempt(attempt) {
        let victim = launches.events.get(index).map(|placed| &placed.event.victim);
        let of_agent = launches
            .signature(catalog, index)
            .is_some_and(|s| s.def.program == "torch");
        if let Some((rank, local)) = victim.filter(|_| of_agent).and_then(|v| v.rank.zip(v.coords.local)) {
            listed.insert(rank, local);
        }
    }
    let in_order = listed.values().enumerate().all(|(at, local)| at == *local as usize);
    in_order && listed.keys().eq(ranks.keys())
}

/// An engine that is heard and has not started its workers stands for them: they did not come, and no log is missing.
/// Under Ray the workers of a node print elsewhere.
fn stopped_before_their_workers(launches: &Launches, active: &BTreeSet<usize>, absent: &mut [Absent]) {
    let of_ray = |p: &Process| {
        p.role == ProcessRole::RayDaemon || p.label.as_deref().is_some_and(|label| label.starts_with("RayWorker"))
    };
    if of(launches, active).any(|(_, p)| of_ray(p)) {
        return;
    }
    let heard = || of(launches, active).filter(|(_, p)| is_heard(p));
    let workers: BTreeSet<&Arc<str>> = heard()
        .filter(|(_, p)| p.role.is_worker_like())
        .filter_map(|(_, p)| p.node.as_ref())
        .collect();
    for rank in absent.iter_mut().filter(|a| a.process.is_none()) {
        let Some(node) = rank.node.as_ref().filter(|node| !workers.contains(node)) else {
            continue;
        };
        let engine = heard().find(|(_, p)| p.role == ProcessRole::EngineCore && p.node.as_ref() == Some(node));
        if let Some((engine, _)) = engine {
            (rank.process, rank.known) = (Some(engine), true);
        }
    }
}

/// A worker whose rank is not known may be any rank that fits its node, so that rank is not unheard. One that joined
/// makes it unknown who did not.
fn name_the_nameless(nameless: &[(ProcessId, &Process)], joined: &BTreeSet<ProcessId>, absent: &mut Vec<Absent>) {
    if nameless.iter().any(|(id, _)| joined.contains(id)) {
        absent.clear();
    }
    for rank in absent.iter_mut().filter(|a| a.process.is_none()) {
        let fitting = nameless.iter().find(|(_, p)| p.may_be_on(rank.node.as_ref()));
        rank.process = fitting.map(|(id, _)| *id);
    }
}

/// The inputs that hold what processes of the launch print.
struct Outputs {
    count: usize,
    /// Whether each holds the lines of one rank: what is not in them may be in a file that was not given.
    of_one_rank: bool,
    /// The processes of inputs in which no line says which rank speaks.
    unnamed: Vec<ProcessId>,
}

impl Outputs {
    fn of(launches: &Launches, attempt: usize, active: &BTreeSet<usize>) -> Self {
        let mut ranks: BTreeMap<InputId, BTreeSet<u32>> = BTreeMap::new();
        let mut unnamed: BTreeMap<InputId, ProcessId> = BTreeMap::new();
        let mut add = |id: ProcessId, input: InputId| {
            let process = launches.processes.get(id);
            if matches!(process.role, ProcessRole::Observer | ProcessRole::RayDaemon) {
                return;
            }
            let of_input = ranks.entry(input).or_default();
            of_input.extend(process.rank);
            if process.role == ProcessRole::Main && process.rank.is_none() {
                unnamed.entry(input).or_insert(id);
            }
        };
        for placed in launches.events_of(attempt) {
            add(placed.process, placed.event.place.input);
        }
        for &index in active {
            let process = launches.processes.get(ProcessId(index));
            if process.last_line.1 > 0 {
                add(ProcessId(index), process.last_line.0);
            }
        }
        let named = |input: &InputId| ranks.get(input).is_some_and(|ranks| !ranks.is_empty());
        unnamed.retain(|input, _| !named(input));
        Self {
            count: ranks.len(),
            of_one_rank: ranks.len() > 1 && ranks.values().all(|ranks| ranks.len() <= 1),
            unnamed: unnamed.into_values().collect(),
        }
    }

    /// What nobody says it is may be the log of a rank of which no line speaks. That rank may then have come, unless
    /// whoever counted says who did.
    fn may_be_of(&self, launches: &Launches, absent: &mut [Absent], counted: bool) {
        for rank in absent.iter_mut().filter(|a| a.process.is_none() && self.count > 1) {
            let node = |id: &&ProcessId| launches.processes.get(**id).node.as_ref();
            // One of the node's own goes before one of another.
            let own = self
                .unnamed
                .iter()
                .find(|id| rank.node.is_some() && node(id) == rank.node.as_ref());
            if let Some(&process) = own.or(self.unnamed.first().filter(|_| !counted)) {
                (rank.process, rank.known, rank.unnamed) = (Some(process), counted, true);
            }
        }
    }
}

fn figure(event: &Event, name: &str) -> Option<u32> {
    let found = event.figures.iter().find(|f| &*f.name == name)?;
    // Counts are printed as whole numbers; what does not fit is no count of ranks.
    found.printed.trim().parse().ok()
}

/// Number of ranks by the launch's own parallel sizes.
pub fn size_from_settings(launches: &Launches, attempt: usize) -> Option<u32> {
    let events = launches.events_of(attempt);
    let mut sizes: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, value) in events.flat_map(|p| &p.event.settings) {
        if let Ok(value) = value.parse::<u32>() {
            sizes.entry(name).or_insert(value);
        }
    }
    let [tensor, pipeline, _] = links::SIZES.map(|names| names.iter().find_map(|n| sizes.get(n)).copied());
    tensor?.checked_mul(pipeline.unwrap_or(1))
}

/// Which node holds which ranks, where ranks lie on nodes in equal blocks, as every launcher places them.
struct Layout {
    own: BTreeMap<u32, Arc<str>>,
    block: u32,
    of_block: BTreeMap<u32, Arc<str>>,
}

impl Layout {
    fn of(launches: &Launches, ranks: &BTreeMap<u32, ProcessId>, world: u32, active: &BTreeSet<usize>) -> Self {
        let node = |id: ProcessId| launches.processes.get(id).node.clone();
        let own: BTreeMap<u32, Arc<str>> = ranks.iter().filter_map(|(r, id)| Some((*r, node(*id)?))).collect();
        let mut layout = Self {
            own,
            block: 0,
            of_block: BTreeMap::new(),
        };
        let with_ranks: BTreeSet<&Arc<str>> = layout.own.values().collect();
        let all: BTreeSet<Arc<str>> = of(launches, active)
            .filter(|(_, p)| !p.absorbed)
            .filter_map(|(_, p)| p.node.clone())
            .collect();
        let idle: Vec<&Arc<str>> = all.iter().filter(|n| !with_ranks.contains(n)).collect();
        // The size of a block shows in what was heard: the largest share of one node that divides the world.
        let mut share: BTreeMap<&Arc<str>, u32> = BTreeMap::new();
        for node in layout.own.values() {
            *share.entry(node).or_default() += 1;
        }
        let Some(block) = share.values().max().copied().filter(|b| world.is_multiple_of(*b)) else {
            return layout;
        };
        let mut of_block: BTreeMap<u32, Arc<str>> = BTreeMap::new();
        for (rank, node) in &layout.own {
            if of_block.entry(rank / block).or_insert_with(|| node.clone()) != node {
                return layout;
            }
        }
        let distinct: BTreeSet<&Arc<str>> = of_block.values().collect();
        if distinct.len() != of_block.len() {
            return layout;
        }
        let missing: Vec<u32> = (0..world / block).filter(|b| !of_block.contains_key(b)).collect();
        if let ([only], [node]) = (missing.as_slice(), idle.as_slice()) {
            of_block.insert(*only, (*node).clone());
        }
        layout.block = block;
        layout.of_block = of_block;
        layout
    }

    /// How many ranks a node holds; where no line names a node, those that were heard are taken for the ranks of one if
    /// they can be.
    fn block_or_all(&self, ranks: &BTreeMap<u32, ProcessId>, world: u32) -> u32 {
        if self.block > 0 || !self.own.is_empty() {
            return self.block;
        }
        let (Some((&first, _)), Some((&last, _))) = (ranks.first_key_value(), ranks.last_key_value()) else {
            return 0;
        };
        let size = last - first + 1;
        let whole = size as usize == ranks.len() && first.is_multiple_of(size) && world.is_multiple_of(size);
        if whole { size } else { 0 }
    }

    fn node(&self, rank: u32) -> Option<Arc<str>> {
        let by_block = || self.of_block.get(&rank.checked_div(self.block)?);
        self.own.get(&rank).or_else(by_block).cloned()
    }
}
