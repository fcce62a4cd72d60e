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
    let placed = launches.events.get(index)?;
    let told = place(placed.event.setting(TOLD)?)?;
    let processes = &launches.processes;
    let node = processes.observed_node(placed.process);
    // Of a node that the launch knows by another name, or not at all, nothing is known.
    if node.is_none() && processes.get(placed.process).node.is_some() {
        return None;
    }
    let at = |own: &str| place(own) == Some(told);
    let own = launches
        .events_of(placed.attempt)
        .filter(|other| other.event.setting(OWN).is_some_and(|own| at(own)))
        .map(|other| whose(launches, other))
        .filter(|id| processes.get(*id).may_be_on(node));
    only(own.collect::<BTreeSet<ProcessId>>().into_iter())
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
