//! Who came to each communicator of NCCL's, and who did not.
//!
//! Owns the members of each communicator by its own ranks, and who a rank of it is that never came, where the other
//! communicators prove it. Says nothing of whether the launch waits for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Launches;
use super::processes::{Process, ProcessId};
use super::sizes::{GROUP_SIZE, NCCL_MEETING};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::Program;

/// The captured rank of a process within a communicator.
const GROUP_RANK: &str = "group_rank";
/// Phase in which communicators are formed.
const FORMED_IN: &str = "distributed-init";
/// Phase that follows any other.
const SHUTDOWN: &str = "shutdown";

/// A rank of a communicator that never came to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Rank within the communicator.
    pub rank: u32,
    /// Global rank, where those of the others tell it.
    pub global: Option<u32>,
    /// Its process, where only one can be meant.
    pub process: Option<ProcessId>,
}

/// A communicator that was never complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incomplete {
    /// NCCL's id of it.
    pub id: Arc<str>,
    /// Number of ranks.
    pub size: u32,
    /// Those that came, by their ranks in it.
    pub came: BTreeMap<u32, ProcessId>,
    /// Those that did not, by their ranks in it.
    pub absent: Vec<Missing>,
    /// The processes that came to no communicator of its size, where they are as many as are missing from these.
    pub left_out: Vec<ProcessId>,
}

/// What the lines of a communicator tell.
struct Communicator {
    size: u32,
    came: BTreeMap<u32, ProcessId>,
    formed: bool,
}

/// The communicators that some ranks came to, others not, and that nobody got beyond; in order of their first lines.
pub fn incomplete(catalog: &Catalog, launches: &Launches, attempt: usize) -> Vec<Incomplete> {
    let all = communicators(catalog, launches, attempt);
    let ranks = global_ranks(launches, attempt);
    let lacking = |c: &Communicator| !c.formed && c.came.len() < c.size as usize;
    all.iter()
        .filter(|(_, communicator)| lacking(communicator))
        .map(|(id, communicator)| {
            let alike: Vec<&Communicator> = all
                .iter()
                .map(|(_, other)| other)
                .filter(|other| other.size == communicator.size)
                .collect();
            let members: BTreeSet<ProcessId> = alike.iter().flat_map(|c| c.came.values().copied()).collect();
            let stride = ranks.as_ref().and_then(|_| stride(launches, &alike));
            let missing: usize = alike.iter().map(|c| c.size as usize - c.came.len()).sum();
            let left_out = left_out(launches, attempt, &members);
            let left_out: Vec<ProcessId> = if left_out.len() == missing {
                left_out
            } else {
                Vec::new()
            };
            let absent = (0..communicator.size)
                .filter(|rank| !communicator.came.contains_key(rank))
                .map(|rank| {
                    let global = stride.and_then(|stride| communicator.global(launches, rank, stride));
                    let by_rank = global.and_then(|global| ranks.as_ref()?.get(&global)).copied();
                    // Who is a member of another one like it is not the one that is meant.
                    let placed = by_rank.is_none_or(|id| !members.contains(&id));
                    let only = left_out.first().filter(|_| left_out.len() == 1).copied();
                    let process = by_rank.or_else(|| only.filter(|_| global.is_none()));
                    Missing {
                        rank,
                        global: global
                            .or_else(|| launches.processes.get(process?).rank.filter(|_| ranks.is_some()))
                            .filter(|_| placed),
                        process: process.filter(|_| placed),
                    }
                })
                .collect();
            Incomplete {
                id: id.clone(),
                size: communicator.size,
                came: communicator.came.clone(),
                absent,
                left_out,
            }
        })
        .collect()
}

/// Whether the largest communicators have no member in common: each is a part of the launch then, and none tells how
/// many ranks that has.
pub fn are_parts(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    let Some(world) = of(launches, attempt).filter_map(|(_, p)| p.identity.world_size).max() else {
        return false;
    };
    let all = communicators(catalog, launches, attempt);
    let mut largest = all.iter().filter(|(_, c)| c.size == world).map(|(_, c)| c);
    let Some(first) = largest.next() else { return false };
    let members: BTreeSet<&ProcessId> = first.came.values().collect();
    largest.any(|other| other.came.values().all(|id| !members.contains(id)))
}

impl Communicator {
    /// The global rank of one of its ranks, given how far apart those of neighbours in it are.
    fn global(&self, launches: &Launches, rank: u32, stride: u32) -> Option<u32> {
        let (own, id) = self.came.first_key_value()?;
        let global = launches.processes.get(*id).rank?;
        let first = global.checked_sub(own.checked_mul(stride)?)?;
        first.checked_add(rank.checked_mul(stride)?)
    }

    /// How far apart the global ranks of its neighbours are, where that is the same throughout; `None` of no two.
    fn stride(&self, launches: &Launches) -> Option<Option<u32>> {
        let global = |id: &ProcessId| launches.processes.get(*id).rank;
        let pairs = self.came.iter().zip(self.came.iter().skip(1));
        let strides: BTreeSet<Option<u32>> = pairs
            .map(|((a, from), (b, to))| {
                let apart = global(to)?.checked_sub(global(from)?)?;
                (apart > 0 && apart.is_multiple_of(b - a)).then_some(apart / (b - a))
            })
            .collect();
        match strides.len() {
            0 => None,
            1 => strides.first().copied(),
            _ => Some(None),
        }
    }
}

/// How far apart the global ranks of neighbours are in communicators of one size, where all agree.
fn stride(launches: &Launches, alike: &[&Communicator]) -> Option<u32> {
    let strides: BTreeSet<Option<u32>> = alike.iter().filter_map(|c| c.stride(launches)).collect();
    strides.first().copied().filter(|_| strides.len() == 1)?
}

/// The processes by global rank; `None` where several have one, so that their ranks are those of parts.
fn global_ranks(launches: &Launches, attempt: usize) -> Option<BTreeMap<u32, ProcessId>> {
    let mut ranks = BTreeMap::new();
    for (id, process) in of(launches, attempt) {
        if process.role.is_worker_like()
            && let Some(rank) = process.rank
            && ranks.insert(rank, id).is_some()
        {
            return None;
        }
    }
    Some(ranks)
}

fn of(launches: &Launches, attempt: usize) -> impl Iterator<Item = (ProcessId, &Process)> {
    let ids = launches.active(attempt).into_iter().map(ProcessId);
    ids.map(|id| (id, launches.processes.get(id)))
        .filter(|(_, process)| !process.absorbed)
}

/// The processes that speak NCCL and are members of no communicator of some size.
fn left_out(launches: &Launches, attempt: usize, members: &BTreeSet<ProcessId>) -> Vec<ProcessId> {
    let nccl = launches
        .events_of(attempt)
        .filter(|placed| placed.event.speaker.program == Program::Nccl);
    let speak: BTreeSet<ProcessId> = nccl.map(|placed| placed.process).collect();
    speak.difference(members).copied().collect()
}

fn communicators(catalog: &Catalog, launches: &Launches, attempt: usize) -> Vec<(Arc<str>, Communicator)> {
    let mut all: Vec<(Arc<str>, Communicator)> = Vec::new();
    let mut place: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    // The one that each process came to last.
    let mut last: BTreeMap<ProcessId, usize> = BTreeMap::new();
    let engine = launches.engine(attempt);
    for placed in launches.events_of(attempt) {
        let event = &placed.event;
        let def = catalog.signature(event.signature).map(|s| &s.def);
        let own = event.setting(NCCL_MEETING);
        let number = |name: &str| event.setting(name).and_then(|n| n.parse::<u32>().ok());
        let came = own.zip(number(GROUP_RANK).zip(number(GROUP_SIZE)));
        if let Some((id, (rank, size))) = came {
            let at = *place.entry(id.clone()).or_insert_with(|| {
                all.push((id.clone(), Communicator::new(size)));
                all.len() - 1
            });
            // Whoever comes to another one is done with the one before.
            let before = last.insert(placed.process, at).filter(|before| *before != at);
            form(&mut all, before);
            if let Some((_, communicator)) = all.get_mut(at) {
                // Who is to come to one of several sizes is not known.
                communicator.formed |= communicator.size != size;
                communicator.came.insert(rank, placed.process);
            }
            continue;
        }
        let Some(def) = def else { continue };
        let met = def.step.as_deref() == Some("met");
        let phase = def.phase.as_deref().filter(|_| def.role == Role::Phase);
        let beyond = phase.is_some_and(|phase| engine.tier(phase) > engine.tier(FORMED_IN) && phase != SHUTDOWN);
        match own.and_then(|id| place.get(id)) {
            Some(&at) => form(&mut all, Some(at)),
            None if own.is_none() && (met || beyond) => form(&mut all, last.get(&placed.process).copied()),
            None => {}
        }
    }
    all
}

impl Communicator {
    fn new(size: u32) -> Self {
        Self {
            size,
            came: BTreeMap::new(),
            formed: false,
        }
    }
}

fn form(all: &mut [(Arc<str>, Communicator)], at: Option<usize>) {
    if let Some((_, communicator)) = at.and_then(|at| all.get_mut(at)) {
        communicator.formed = true;
    }
}
