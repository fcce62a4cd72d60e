//! Servers that do not meet, in the logs of one incident: replicas of a service, or its prefill and decode servers.
//!
//! Owns the judgement of each by itself: figures, times and phases of one say nothing of another. Which lines are of
//! which server `launch` tells.

use std::sync::Arc;

use super::{Verdict, judge};
use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::report::model::Outcome;

/// Servers judged beside the one of the report.
const MOST: usize = 64;

/// A server beside the one that a report is on.
pub struct Beside {
    /// Node, container or file that it is known by.
    pub name: Arc<str>,
    /// What it does in the service, where servers share the work: `prefill`, `decode`.
    pub part: Option<Arc<str>>,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it failed.
    pub cause: Option<String>,
    /// The phase it is in.
    pub phase: Option<String>,
}

/// Keeps to the server in which the root of the verdict is, and judges it anew; the others are told beside it. Where no
/// server failed, or they cannot be told apart, all stay together.
pub fn keep_to_root(catalog: &Catalog, launches: &mut Launches, verdict: &mut Verdict) -> Vec<Beside> {
    let attempt = verdict.attempt;
    let servers = launches.servers(catalog, attempt);
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let own = root.and_then(|root| launches.server(root.event));
    if servers.len() < 2 || root.is_some() && own.is_none() {
        return Vec::new();
    }
    let others = servers.into_iter().filter(|(server, _)| Some(*server) != own);
    let mut beside = Vec::new();
    for (server, name) in others.take(MOST) {
        launches.keep_to(Some(server));
        let other = judge(catalog, launches, attempt);
        beside.push(Beside {
            name,
            part: launches.part_in_service(attempt),
            outcome: other.outcome,
            cause: other.cause,
            phase: other.phase,
        });
    }
    launches.keep_to(own);
    if own.is_some() {
        let alone = judge(catalog, launches, attempt);
        if alone.outcome != Outcome::Failed {
            launches.keep_to(None);
            return Vec::new();
        }
        *verdict = alone;
    }
    beside
}
