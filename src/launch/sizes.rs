//! The size of the group that processes came to one meeting for.
//!
//! Owns what makes two joins the same meeting: the address they meet at, or the id of their communicator. Sizes of
//! other groups, as of tensor-parallel ones within the world, are never compared.

use std::collections::{BTreeMap, BTreeSet};

use super::Launches;
use super::processes::ProcessId;
use crate::catalog::Catalog;

/// Captured names of a meeting.
const MEETINGS: [&str; 2] = ["nccl_comm_id", "init_method"];

/// Sizes of a group, the most common first, each with the processes that state it.
pub type Sizes = Vec<(u32, BTreeSet<ProcessId>)>;

/// The sizes that those who came to one meeting state, of the first meeting on which they disagree; empty where all
/// agree.
pub(super) fn of_one_meeting(catalog: &Catalog, launches: &Launches, attempt: usize) -> Sizes {
    let mut meetings: BTreeMap<(&str, &str), BTreeMap<u32, BTreeSet<ProcessId>>> = BTreeMap::new();
    let mut first: BTreeSet<(ProcessId, &str)> = BTreeSet::new();
    for placed in launches.events_of(attempt) {
        let step = catalog
            .signature(placed.event.signature)
            .and_then(|s| s.def.step.as_deref());
        let mut named = placed.event.settings.iter().map(|(name, value)| (&**name, &**value));
        let Some(meeting) = named.find(|(name, _)| step == Some("join") && MEETINGS.contains(name)) else {
            continue;
        };
        // What a process says of its world is what it says at its first meeting.
        if !first.insert((placed.process, meeting.0)) {
            continue;
        }
        let process = launches.processes.get(placed.process);
        if let Some(size) = process.identity.world_size.filter(|_| process.rank.is_some()) {
            meetings
                .entry(meeting)
                .or_default()
                .entry(size)
                .or_default()
                .insert(placed.process);
        }
    }
    let apart = meetings.into_values().find(|sizes| sizes.len() > 1);
    let mut out: Sizes = apart.into_iter().flatten().collect();
    out.sort_by_key(|(size, who)| (std::cmp::Reverse(who.len()), *size));
    out
}
