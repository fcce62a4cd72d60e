//! Whether and where an attempt became ready.
//!
//! Owns the reading of ready lines and of lines that only a server that had served prints. Never judges a failure.

use crate::catalog::Catalog;
use crate::catalog::matcher::Signature;
use crate::catalog::schema::Role;
use crate::launch::Launches;
use crate::launch::machine::{Engine, is_ready};
use crate::launch::processes::ProcessId;

/// The program of rules for scripts around an engine, and for jobs without one.
const BATCH: &str = "launcher";

/// Whether a line says that the engine had been serving although no ready line is in the log
/// (`EngineCore encountered a fatal error.` is only printed after ready).
pub fn told_later(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    launches.events_of(attempt).any(|p| {
        let def = catalog.signature(p.event.signature).map(|s| &s.def);
        def.is_some_and(|d| {
            matches!(d.role, Role::Wrapper | Role::Consequence) && d.phase.as_deref() == Some("serving")
        })
    })
}

/// Where the launch became ready.
pub fn lines(catalog: &Catalog, launches: &Launches, attempt: usize) -> Vec<usize> {
    let is = |i: &usize| {
        let event = launches.events.get(*i).map(|p| &p.event);
        let signature = catalog.signature(event.and_then(|e| e.signature));
        signature.is_some_and(|s| match s.def.role {
            Role::Ready => is_ready(launches.engine(attempt), &s.def.program),
            // The ready line may be cut off, but only a server that serves prints its throughput.
            Role::Phase => s.def.phase.as_deref() == Some("serving") && s.def.program != BATCH,
            _ => false,
        })
    };
    launches.of_attempt(attempt).filter(is).collect()
}

/// Whether a job that is no server is at its work: it has no point from which on it is ready, and ended before its end
/// it has failed. So is a node of Ray's that has come up and has not been asked for anything.
pub fn works(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    let signatures = || {
        launches
            .of_attempt(attempt)
            .filter_map(|i| launches.signature(catalog, i))
    };
    let at_work = |s: &Signature| s.def.program == BATCH && s.def.phase.as_deref() == Some("serving");
    let steps = signatures().filter(|s| matches!(s.def.role, Role::Phase | Role::Launch));
    let up = |s: &Signature| s.def.program == "ray" && s.def.finishes;
    signatures().any(at_work) || launches.engine(attempt) == Engine::Ray && steps.last().is_some_and(up)
}

/// The ready lines that are news: a bar printed again at the exit does not show that anything went on.
pub fn news(catalog: &Catalog, launches: &Launches, ready: &[usize]) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let key = |i: usize| launches.events.get(i).map(|p| (p.process, p.event.signature));
    let said = |i: usize| {
        let signature = launches.signature(catalog, i);
        signature.is_some_and(|s| s.def.role == Role::Ready)
    };
    ready
        .iter()
        .copied()
        .filter(|&i| said(i) && seen.insert(key(i)))
        .collect()
}

/// The processes that use the engine which they run, and serve nobody: what a script of that kind raises ends its launch.
pub fn offline(catalog: &Catalog, launches: &Launches, attempt: usize, news: &[usize]) -> Vec<ProcessId> {
    let mut signatures = launches
        .of_attempt(attempt)
        .filter_map(|i| launches.signature(catalog, i));
    let server = signatures.any(|s| s.def.program == "uvicorn" || s.def.phase.as_deref() == Some("serve-start"));
    let own = news.iter().filter_map(|i| Some(launches.events.get(*i)?.process));
    if server { Vec::new() } else { own.collect() }
}
