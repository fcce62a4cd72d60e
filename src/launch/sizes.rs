//! The size of the group that processes came to one meeting for.
//!
//! Owns what makes two joins the same meeting: the address they meet at, or the id of their communicator. Sizes of
//! other groups, as of tensor-parallel ones within the world, are never compared.

use std::collections::{BTreeMap, BTreeSet};

use super::Launches;
use super::processes::ProcessId;
use crate::catalog::Catalog;

/// The captured id of a communicator.
pub(super) const NCCL_MEETING: &str = "nccl_comm_id";
/// The captured size of the group that comes to a meeting.
pub(super) const GROUP_SIZE: &str = "group_size";
/// Captured names of a meeting.
const MEETINGS: [&str; 3] = [NCCL_MEETING, "init_method", BARRIER];
/// The captured key at which torch counts in its store who has come; a rank that gives up there names it.
const BARRIER: &str = "store_barrier";
/// What an address of a meeting within one machine holds.
const WITHIN_A_MACHINE: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Sizes of a group, the most common first, each with the processes that state it.
pub type Sizes = Vec<(u32, BTreeSet<ProcessId>)>;

/// What meets, where, and on which machine if it is a place within one.
type Meeting<'a> = (&'a str, &'a str, Option<&'a str>);

/// The sizes that those who came to one meeting state, of the first meeting on which they disagree; empty where all
/// agree.
pub(super) fn of_one_meeting(catalog: &Catalog, launches: &Launches, attempt: usize) -> Sizes {
    let mut meetings: BTreeMap<Meeting<'_>, BTreeMap<u32, BTreeSet<ProcessId>>> = BTreeMap::new();
    let mut first: BTreeSet<(ProcessId, Meeting<'_>)> = BTreeSet::new();
    for placed in launches.events_of(attempt) {
        let step = catalog
            .signature(placed.event.signature)
            .and_then(|s| s.def.step.as_deref());
        let mut named = placed.event.settings.iter().map(|(name, value)| (&**name, &**value));
        let meeting = named.find(|(name, _)| MEETINGS.contains(name) && (step == Some("join") || *name == BARRIER));
        let size = placed.event.setting(GROUP_SIZE).and_then(|size| size.parse().ok());
        let process = launches.processes.get(placed.process);
        let (Some((name, place)), Some(size), Some(_)) = (meeting, size, process.rank) else {
            continue;
        };
        let within = WITHIN_A_MACHINE.iter().any(|host| place.contains(host));
        let meeting = (name, place, process.node.as_deref().filter(|_| within));
        // What a process says of a group is what it says when it first comes to it.
        if first.insert((placed.process, meeting)) {
            let of_meeting = meetings.entry(meeting).or_default();
            of_meeting.entry(size).or_default().insert(placed.process);
        }
    }
    // Jobs that are not one have ranks of one number each.
    let one_job = |sizes: &BTreeMap<u32, BTreeSet<ProcessId>>| {
        let mut ranks = BTreeSet::new();
        let mut all = sizes.values().flatten().map(|id| launches.processes.get(*id).rank);
        all.all(|rank| ranks.insert(rank))
    };
    let apart = meetings
        .into_iter()
        .find(|((name, ..), sizes)| sizes.len() > 1 && (*name != BARRIER || one_job(sizes)))
        .map(|(_, sizes)| sizes);
    let mut out: Sizes = apart.into_iter().flatten().collect();
    out.sort_by_key(|(size, who)| (std::cmp::Reverse(who.len()), *size));
    out
}
