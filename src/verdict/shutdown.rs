//! What is lost after an end is part of that end.
//!
//! Owns which ends of an attempt take what is lost after them along: of a node or cluster that was told to stop, of a
//! program, of the last job of a cluster. Which reports of loss an end takes along, its signature declares. Never judges
//! how the attempt ended.

use std::collections::HashSet;

use super::causality;
use super::failure::{Failure, Worth};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::launch::Launches;
use crate::launch::processes::{ProcessId, ProcessRole};

/// Settings by which a cluster names a job that begins, and one that ended.
const JOB: &str = "ray_job";
const JOB_ENDED: &str = "ray_job_ended";

/// The ends of an attempt, and what was done in it.
#[derive(Default)]
struct Ends {
    /// The ends, as indices of their events, and whether only what ran on a cluster ended: that may outlast it.
    ends: Vec<(usize, bool)>,
    /// Where programs show that they are at work, as indices of events.
    work: Vec<usize>,
}

impl Ends {
    fn of(catalog: &Catalog, launches: &Launches, attempt: usize) -> Self {
        let mut all = Self::default();
        let by_daemon = |id: ProcessId| launches.processes.get(id).role == ProcessRole::RayDaemon;
        let machines = launches.machines(attempt).iter().enumerate();
        let programs = machines.filter(|(id, _)| !by_daemon(ProcessId(*id)));
        let steps = programs.flat_map(|(_, machine)| machine.entries());
        all.work
            .extend(steps.filter(|e| e.phase != "shutdown").map(|e| e.at.index));
        let mut jobs: HashSet<&str> = HashSet::new();
        for index in launches.of_attempt(attempt) {
            let Some((placed, signature)) = launches.events.get(index).zip(launches.signature(catalog, index)) else {
                continue;
            };
            if signature.def.role == Role::Stop {
                let of_driver = signature.def.program == "ray" && !by_daemon(placed.process);
                all.ends.push((index, of_driver));
            }
            for (name, job) in &placed.event.settings {
                match &**name {
                    JOB => {
                        jobs.insert(job);
                        all.work.push(index);
                    }
                    JOB_ENDED if jobs.remove(&**job) && jobs.is_empty() => all.ends.push((index, true)),
                    _ => {}
                }
            }
        }
        all.work.sort_unstable();
        all
    }
}

/// Makes reports of loss the effects of an end before them, where the line that tells of the end declares so: a raylet
/// misses the agent that was ended before it, and a head the node on which its job is done.
pub fn demote(catalog: &Catalog, launches: &Launches, attempt: usize, failures: &mut [Failure]) {
    let on_one_node = |a: ProcessId, b: ProcessId| {
        let (a, b) = (launches.processes.get(a), launches.processes.get(b));
        // In one folder, the daemons of several nodes are told apart by their own addresses.
        let hosts = a.identity.host.as_ref().zip(b.identity.host.as_ref());
        a.node == b.node && hosts.is_none_or(|(a, b)| a == b)
    };
    let Ends { ends, work } = Ends::of(catalog, launches, attempt);
    for failure in failures {
        let before = work.partition_point(|i| *i < failure.event).checked_sub(1);
        let worked = before.and_then(|at| work.get(at));
        let takes_along = |&(end, of_driver): &(usize, bool)| {
            let Some((told, signature)) = launches.events.get(end).zip(launches.signature(catalog, end)) else {
                return false;
            };
            let after = |i: usize| launches.moment(i).follows(launches.moment(end));
            // What is lost while another program is at work is no part of the end of the one before.
            let outlasted = of_driver && worked.is_some_and(|i| after(*i));
            let reaches = signature.def.shared || on_one_node(told.process, failure.teller);
            reaches
                && !outlasted
                && after(failure.event)
                && causality::names(signature, None, catalog, launches, failure)
        };
        if ends.iter().any(takes_along) {
            (failure.worth, failure.cause) = (Worth::Downstream, None);
        }
    }
}
