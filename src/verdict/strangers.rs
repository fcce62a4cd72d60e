//! What observers tell of others than the launch: a unit, a container or a process that is none of its own.
//!
//! Owns the test whether the launch went on behind a line that names none of its processes, and whose death a count of the
//! dead of one node means. Whether a name is another's, `own_names` says. Never says which failure is the root.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::causality::is_request_to_end;
use super::failure::{Failure, Worth};
use super::phase;
use crate::catalog::Catalog;
use crate::event::{ExitStatus, TracebackKind};
use crate::launch::processes::{ProcessId, ProcessRole};
use crate::launch::{Launches, only};

/// Seconds that a server can answer requests for which has lost a process: what was under way is finished, and no wait
/// on the one that is gone has run out.
const LIVES_ON: f64 = 60.0;

/// Takes out what befell others: where a daemon or an observer names no process of the launch and the server answered
/// requests behind it, for longer than one that has lost a process does, or with nothing told of its end. So does a
/// fault on a device after which nobody ended, once the server was ready, and a task that is tried again.
pub fn settle(catalog: &Catalog, launches: &Launches, attempt: usize, failures: &mut [Failure]) {
    let answers: Vec<usize> = launches
        .of_attempt(attempt)
        .filter(|&i| launches.signature(catalog, i).is_some_and(|s| s.def.answers))
        .collect();
    let untied: Vec<bool> = failures
        .iter()
        .map(|f| !f.survived && is_untied(catalog, launches, f))
        .collect();
    let answered = |f: &Failure, seconds: f64| {
        let own = || answers.iter().filter(|&&a| !launches.of_other_servers(f.event, a));
        let now = launches.moment(f.event);
        let after = |a: usize| launches.seconds_between(f.event, a).unwrap_or(0.0);
        own().any(|&a| launches.moment(a).follows(now) && after(a) >= seconds)
    };
    let fault = |f: &Failure| {
        let victim = launches.events.get(f.event).map(|p| &p.event.victim);
        // A process that gave itself an engine's name is none but an engine's: `VLLM::Worker_TP`.
        let named = |name: &str| name.contains("::");
        let victim = victim.is_some_and(|v| v.pid.is_some() && !v.label.as_deref().is_some_and(named));
        f.after_ready && victim && matches!(f.cause.as_deref(), Some("cuda.illegal-access" | "cuda.launch-failure"))
    };
    let again = |f: &Failure| f.retried && f.worth <= Worth::Weak && f.traceback.is_some();
    let ends = |(f, untied): (&Failure, &bool)| !f.survived && (f.fatal || f.worth == Worth::Carrier) && !untied;
    let last_end = failures.iter().zip(&untied).rposition(ends);
    let over = |(i, (f, untied)): (usize, (&Failure, &bool))| {
        let ended = || last_end.is_some_and(|end| end > i);
        *untied && (answered(f, LIVES_ON) || !ended() && (answered(f, 0.0) || fault(f) || again(f)))
    };
    let over: Vec<bool> = failures.iter().zip(&untied).enumerate().map(over).collect();
    for (failure, over) in failures.iter_mut().zip(over) {
        failure.survived |= over;
    }
}

/// Whether one of Ray's daemons or an observer says it, of no process that the log knows otherwise.
fn is_untied(catalog: &Catalog, launches: &Launches, failure: &Failure) -> bool {
    let teller = launches.processes.get(failure.teller).role;
    let outside = matches!(teller, ProcessRole::RayDaemon | ProcessRole::Observer)
        || launches
            .signature(catalog, failure.event)
            .is_some_and(|s| s.def.tells_of_others());
    let known = || launches.processes.get(failure.process).last_line.1 > 0;
    let own = failure.traceback.is_some_and(|kind| kind != TracebackKind::Quoted);
    outside && !own && (failure.process == failure.teller || !known())
}

/// Gives a count of the dead of one node its victim: the process of that node which is told of otherwise. Where all that
/// are told of are on other nodes, it counts others than the launch's.
pub fn name_the_counted(catalog: &Catalog, launches: &mut Launches, attempt: usize, failures: &mut [Failure]) {
    let counts = |f: &Failure| -> Option<Arc<str>> {
        let victim = &launches.events.get(f.event)?.event.victim;
        let daemon = launches.processes.get(f.teller).role == ProcessRole::RayDaemon;
        let counted = launches.signature(catalog, f.event).is_some_and(|s| s.def.counts);
        let node = victim.node.as_ref().filter(|_| counted && daemon)?;
        Some(launches.processes.node_at(node).clone())
    };
    let counted: Vec<(usize, Arc<str>)> = failures
        .iter()
        .enumerate()
        .filter_map(|(i, f)| Some((i, counts(f)?)))
        .collect();
    for (index, node) in counted {
        let mut here: BTreeSet<ProcessId> = BTreeSet::new();
        let mut elsewhere = false;
        let dead = |f: &&Failure| {
            let named = f.process != f.teller || launches.processes.get(f.process).role.is_worker_like();
            named && !f.survived && f.worth >= Worth::Weak && !is_request_to_end(f)
        };
        for failure in failures.iter().filter(dead) {
            let told = launches
                .events
                .get(failure.event)
                .and_then(|p| p.event.victim.node.as_ref());
            let own = launches.processes.node(failure.process);
            match told.or(own).map(|n| launches.processes.node_at(n)) {
                Some(other) if *other == node => {
                    here.insert(failure.process);
                }
                Some(_) => elsewhere = true,
                None => {}
            }
        }
        let strange = elsewhere && here.is_empty();
        let victim = only(here.into_iter());
        let Some(failure) = failures.get_mut(index) else {
            continue;
        };
        if let Some(victim) = victim {
            failure.process = victim;
            if let Some(placed) = launches.events.get(failure.event).cloned() {
                phase::place(catalog, launches, attempt, failure.event, &placed, failure);
            }
        } else if strange {
            (failure.worth, failure.foreign) = (Worth::Weak.min(failure.worth), true);
        }
    }
}

/// Takes the signal of a clean-up for what it is. Ray ends what is left of a launch with SIGTERM, and what workers print
/// arrives late, so that the place of their lines tells nothing: where another process failed by itself, not known to
/// have done so later, the banner of the signal is an effect.
pub fn excuse_swept(catalog: &Catalog, launches: &Launches, failures: &mut [Failure]) {
    let swept = |f: &Failure| {
        let worker = launches.processes.get(f.teller).role.is_worker_like() && f.process == f.teller;
        let banner = launches
            .signature(catalog, f.event)
            .is_some_and(|s| s.def.program == BANNER);
        worker && banner && f.exit == Some(ExitStatus::Signal(15)) && !f.survived
    };
    // Where the first banner of each process stands.
    let mut banners: BTreeMap<ProcessId, usize> = BTreeMap::new();
    for sign in failures.iter().filter(|f| swept(f)) {
        let first = banners.entry(sign.process).or_insert(sign.event);
        *first = sign.event.min(*first);
    }
    if banners.is_empty() {
        return;
    }
    // When the first signal came to each process.
    let mut first: BTreeMap<ProcessId, u64> = BTreeMap::new();
    for failure in failures.iter() {
        let event = launches.events.get(failure.event).map(|p| &p.event);
        let stamp = event.and_then(|e| e.setting("signal_at")?.parse::<u64>().ok());
        if let Some(stamp) = stamp {
            let first = first.entry(failure.process).or_insert(stamp);
            *first = stamp.min(*first);
        }
    }
    let failed = |f: &Failure, sign: &Failure| {
        let at = |f: &Failure| first.get(&f.process);
        let later = at(f).zip(at(sign)).is_some_and(|(own, signal)| own > signal);
        let own = f.worth >= Worth::Weak && !is_request_to_end(f) && !f.foreign && !f.survived;
        // What a process raises behind its own banner may come of the signal. What it answered, it raised before.
        let answered = f.traceback == Some(TracebackKind::Quoted);
        let before = answered || banners.get(&f.process).is_none_or(|banner| f.event < *banner);
        own && before && !is_of_transport(f) && !later
    };
    let effects: Vec<usize> = failures
        .iter()
        .enumerate()
        .filter(|(_, sign)| swept(sign) && failures.iter().any(|f| failed(f, sign)))
        .map(|(i, _)| i)
        .collect();
    for index in effects {
        if let Some(failure) = failures.get_mut(index) {
            (failure.worth, failure.cause) = (Worth::Downstream, None);
        }
    }
}

/// Whether it is an error of what moves data between processes: where one has ended, the others have it.
pub(super) fn is_of_transport(failure: &Failure) -> bool {
    let cause = failure.cause.as_deref();
    cause.is_some_and(|cause| cause.starts_with("nccl.") || cause.starts_with("dist."))
}

/// The handler of signals in Ray's workers.
const BANNER: &str = "absl";
