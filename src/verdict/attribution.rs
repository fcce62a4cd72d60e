//! Whose failure the root is, where its own line does not say.
//!
//! Owns the links from an unlabelled line, or from one that names only a pid or only a rank, to the process that the
//! rest of the log speaks of. Links where exactly one process fits and guesses nothing. Never changes cause or phase.

use std::collections::BTreeSet;

use super::causality::{self, is_request_to_end};
use super::failure::{Failure, Worth};
use crate::catalog::Catalog;
use crate::event::{Exception, ExitStatus, Fact, TracebackKind};
use crate::launch::Launches;
use crate::launch::links::CRASHES;
use crate::launch::processes::{Process, ProcessId, ProcessRole, same_label};

/// Programs that tell of a launch's death from outside and may not say whom it hit.
pub(super) const OBSERVERS: [&str; 3] = ["kernel", "k8s", "slurm"];

/// Finds the process of the root, and what else the log says of it.
pub fn attribute(catalog: &Catalog, launches: &mut Launches, failures: &mut [Failure], root: usize) {
    if let Some(process) = owner(catalog, launches, failures, root)
        && let Some(failure) = failures.get_mut(root)
    {
        failure.process = process;
    }
    complete(launches, failures, root);
}

/// The process that the root belongs to, if it is another than the one it was read from.
fn owner(catalog: &Catalog, launches: &Launches, failures: &[Failure], root: usize) -> Option<ProcessId> {
    let failure = failures.get(root)?;
    let process = launches.processes.get(failure.process);
    let signature = launches.signature(catalog, failure.event);
    let observer = launches.processes.get(failure.teller).role == ProcessRole::Observer
        || signature.is_some_and(|s| OBSERVERS.contains(&s.def.program.as_str()));
    if causality::is_retold(launches, failure) {
        // Whose it is, where the process that raised it was cut off in the middle of saying so.
        let raised = failures
            .iter()
            .filter(|f| f.cut && !f.survived && f.teller != failure.teller);
        return only(raised.map(|f| f.process).collect());
    }
    if failure.process != failure.teller {
        let silent = process.last_line.1 == 0;
        return killed(launches, failures, failure).filter(|_| observer && silent);
    }
    if observer {
        return only(dead(failures, failure, &|e| e == ExitStatus::Signal(9)));
    }
    if let Some(rank) = process
        .rank
        .filter(|_| process.label.is_none() && process.pid.is_none())
    {
        // The rank is one of its own group, and there may be several groups.
        let mut same = stated(launches, failures, failure);
        same.retain(|id| {
            let other = launches.processes.get(*id);
            *id != failure.process && other.rank.is_none() && other.coords.tp == Some(rank)
        });
        return only(same);
    }
    if process.explicit || process.by_file {
        return None;
    }
    let reported = match failure.traceback {
        // A traceback without a prefix is of the process that its parent reports dead.
        Some(kind) if kind != TracebackKind::Native => {
            let ended = |e| matches!(e, ExitStatus::Code(code) if code != 0);
            let mut ids = dead(failures, failure, &ended);
            ids.extend(
                told_of_others(failures)
                    .filter(|f| f.worth == Worth::Carrier)
                    .map(|f| f.process),
            );
            ids
        }
        _ => dead(
            failures,
            failure,
            &|e| matches!(e, ExitStatus::Signal(s) if CRASHES.contains(&s)),
        ),
    };
    let here = |id: &ProcessId| {
        let nodes = launches
            .processes
            .node(*id)
            .zip(launches.processes.node(failure.process));
        nodes.is_none_or(|(a, b)| a == b)
    };
    let only_here = |ids: BTreeSet<ProcessId>| only(ids.into_iter().filter(here).collect());
    only_here(reported)
        .or_else(|| only_here(stated(launches, failures, failure)))
        .or_else(|| lone_speaker(catalog, launches, failure).filter(here))
}

/// Failures told by another process than the one they happened in.
fn told_of_others(failures: &[Failure]) -> impl Iterator<Item = &Failure> {
    failures.iter().filter(|f| f.process != f.teller && !f.survived)
}

/// Processes that others report to have ended in this way.
fn dead(failures: &[Failure], root: &Failure, how: &dyn Fn(ExitStatus) -> bool) -> BTreeSet<ProcessId> {
    told_of_others(failures)
        .filter(|f| f.process != root.process && f.exit.is_some_and(how))
        .map(|f| f.process)
        .collect()
}

/// Whom a kernel's kill hit, whose pid no line of the log has: a container counts its own. It is the process that the
/// log itself reports killed, where that is a single one and their names, as far as told, agree.
fn killed(launches: &Launches, failures: &[Failure], failure: &Failure) -> Option<ProcessId> {
    let victim = launches.processes.get(failure.process);
    let agrees = |process: &Process| match (&process.label, &victim.label) {
        (Some(own), Some(told)) => same_label(own, told),
        _ => true,
    };
    let lost = told_of_others(failures).filter(|f| {
        let killed = match f.exit {
            Some(exit) => matches!(exit, ExitStatus::Signal(9) | ExitStatus::Gone),
            None => f.worth == Worth::Weak && !is_request_to_end(f),
        };
        killed && f.process != failure.process
    });
    let ids = lost.map(|f| f.process);
    only(ids.filter(|id| agrees(launches.processes.get(*id))).collect())
}

/// Processes that name themselves and state the same failure.
fn stated(launches: &Launches, failures: &[Failure], root: &Failure) -> BTreeSet<ProcessId> {
    let same = |f: &&Failure| {
        f.key == root.key && f.traceback.is_some() == root.traceback.is_some()
            || f.cause.is_some() && f.cause == root.cause && f.worth >= Worth::Generic
    };
    let own = failures
        .iter()
        .filter(|f| f.process == f.teller && !f.observed && !f.survived);
    own.filter(same)
        .map(|f| f.process)
        .filter(|id| launches.processes.get(*id).explicit)
        .collect()
}

/// What native code prints past the logger of the only process that names itself is that one's own: it has started
/// nobody yet. A raw traceback that begins at a script is of the process that was started by hand: the API server
/// where one names itself, else again the only one.
fn lone_speaker(catalog: &Catalog, launches: &Launches, root: &Failure) -> Option<ProcessId> {
    let all = launches.processes.all().iter().enumerate();
    let named = all.filter(|(_, p)| !p.absorbed && p.explicit && p.role.is_engine());
    let named: Vec<(ProcessId, ProcessRole)> = named.map(|(i, p)| (ProcessId(i), p.role)).collect();
    let lone = only(named.iter().map(|(id, _)| *id).collect());
    let server = || {
        let servers = named.iter().filter(|(_, role)| *role == ProcessRole::ApiServer);
        only(servers.map(|(id, _)| *id).collect())
    };
    let event = &launches.events.get(root.event)?.event;
    match &event.fact {
        Fact::Traceback(t) if t.kind == TracebackKind::Raw && t.chain.iter().any(Exception::is_from_script) => {
            server().or(lone)
        }
        Fact::Traceback(_) => None,
        _ => lone.filter(|_| catalog.signature(event.signature).is_some()),
    }
}

/// The same failure told under a pid alone, as NCCL does, and under a rank alone, as torch does, is of one process,
/// where nobody else tells it.
fn complete(launches: &mut Launches, failures: &[Failure], root: usize) {
    let Some(failure) = failures.get(root) else { return };
    let same = failures
        .iter()
        .filter(|f| f.process == f.teller && f.cause.is_some() && f.cause == failure.cause);
    let ids: BTreeSet<ProcessId> = same.map(|f| f.process).chain([failure.process]).collect();
    let of = |with: &dyn Fn(&Process) -> bool| -> BTreeSet<ProcessId> {
        let fits = |id: &&ProcessId| with(launches.processes.get(**id));
        ids.iter().filter(fits).copied().collect()
    };
    let by_pid = only(of(&|p| p.pid.is_some()));
    let by_rank = only(of(&|p| p.rank.is_some() && p.pid.is_none()));
    let (Some(pid), Some(rank)) = (by_pid, by_rank) else {
        return;
    };
    if ids.len() != 2 || launches.processes.get(pid).rank.is_some() {
        return;
    }
    let (number, rank_number) = (launches.processes.get(pid).pid, launches.processes.get(rank).rank);
    if let Some(process) = launches.processes.get_mut(pid) {
        process.rank = rank_number;
    }
    if let Some(process) = launches.processes.get_mut(rank) {
        process.pid = number;
    }
}

fn only(ids: BTreeSet<ProcessId>) -> Option<ProcessId> {
    crate::launch::only(ids.into_iter())
}
