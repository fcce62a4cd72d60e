//! Which process has the device that the driver tells of.
//!
//! Owns the two spellings of a device's place on the bus: the driver's, and the number that NCCL prints with a rank.
//! Names nobody where several processes have a device at that place, as they do on nodes that are not told apart.

use std::collections::BTreeSet;

use super::processes::ProcessId;
use super::{Launches, Placed, only};

/// The captured place of the device that a process gives as its own, as NCCL prints it.
const OWN: &str = "bus_id";
/// The captured place of the device that a driver tells of.
const TOLD: &str = "pci";

/// The process whose device the event at `index` tells of, if it names a place on the bus at which only one has its own.
pub fn holder(launches: &Launches, index: usize) -> Option<ProcessId> {
    let seen = Seen::of(launches, index)?;
    let at = seen.own.into_iter().filter(|(place, _)| *place == seen.told);
    only(at.map(|(_, id)| id).collect::<BTreeSet<ProcessId>>().into_iter())
}

/// Whether the event at `index` tells of a device that no rank of its node has, where all ranks of the launch say which
/// is theirs.
pub fn is_of_none(launches: &Launches, index: usize) -> bool {
    let Some(seen) = Seen::of(launches, index).filter(|seen| seen.named) else {
        return false;
    };
    let active = launches.active(seen.attempt);
    let own = active.iter().map(|&i| launches.processes.get(ProcessId(i)));
    let world = own.filter_map(|p| p.identity.world_size).max();
    let elsewhere = seen.own.iter().all(|(place, _)| *place != seen.told);
    !seen.own.is_empty() && elsewhere && world.is_some_and(|world| seen.ranks.len() >= world as usize)
}

/// A device that a driver tells of, and those that the ranks say to be theirs.
struct Seen {
    /// Its place.
    told: u64,
    attempt: usize,
    /// Whether the node is known on which it is.
    named: bool,
    /// The places of the processes that may be on that node.
    own: Vec<(u64, ProcessId)>,
    /// The ranks of the launch that say which device is theirs.
    ranks: BTreeSet<u32>,
}

impl Seen {
    fn of(launches: &Launches, index: usize) -> Option<Self> {
        let placed = launches.events.get(index)?;
        let told = place(placed.event.setting(TOLD)?)?;
        let processes = &launches.processes;
        let node = processes.observed_node(placed.process);
        // Of a node that the launch knows by another name, or not at all, nothing is known.
        if node.is_none() && processes.get(placed.process).node.is_some() {
            return None;
        }
        let say = launches.events_of(placed.attempt);
        let say = say.filter_map(|other| Some((place(other.event.setting(OWN)?)?, whose(launches, other))));
        let all: Vec<(u64, ProcessId)> = say.collect();
        let ranks = all.iter().filter_map(|(_, id)| processes.get(*id).rank).collect();
        let here = |(_, id): &(u64, ProcessId)| processes.get(*id).may_be_on(node);
        Some(Self {
            told,
            attempt: placed.attempt,
            named: node.is_some(),
            own: all.into_iter().filter(here).collect(),
            ranks,
        })
    }
}

/// Whose device a line gives: that of the process it tells of, as a table of all ranks does, else of its own.
fn whose(launches: &Launches, placed: &Placed) -> ProcessId {
    let told = launches.processes.find(&placed.event.victim, placed.teller());
    told.unwrap_or(placed.process)
}

/// A place as NCCL counts it: the digits of `0000:1b:00.0` read as one number, `1b000`.
fn place(text: &str) -> Option<u64> {
    let hex = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let text = text.strip_prefix("PCI:").unwrap_or(text);
    let Some((before, device)) = text.rsplit_once(':') else {
        return hex(text);
    };
    let (domain, bus) = before.rsplit_once(':').unwrap_or(("0", before));
    let (device, function) = device.split_once('.').unwrap_or((device, "0"));
    Some(hex(domain)?.checked_shl(20)? | hex(bus)? << 12 | hex(device)? << 4 | hex(function)?)
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn the_drivers_spelling_and_nccls_are_one_place() {
        for told in [
            "PCI:0000:1b:00",
            "0000:1b:00.0",
            "1b:00.0",
            "PCI:00000000:1B:00.0",
            "1b000",
        ] {
            assert_eq!(place(told), Some(0x1b000), "{told}");
        }
        assert_eq!(place("PCI:0001:1b:00"), place("11b000"));
        for none in ["", "PCI:", "node:b", "zz"] {
            assert_eq!(place(none), None, "{none}");
        }
    }
}
