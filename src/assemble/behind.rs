//! Ranks that are behind the others, where what ended the launch only says that something took too long.
//!
//! Owns the comparison of ranks: by how many collectives each set out for, as the watchdogs count them, and by the last
//! step that nearly all came to. Names nobody where the others do not agree, and never judges.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::SignatureId;
use crate::launch::Launches;
use crate::launch::processes::{Process, ProcessId};
use crate::report::model::NextEvidence;
use crate::report::text::capital;
use crate::verdict::Verdict;

use super::waits::{Waits, finding, processes_in_words};

/// Causes that only say that somebody waited in vain.
const WAITED: [&str; 5] = [
    "nccl.watchdog-timeout",
    "process.rpc-timeout",
    "process.watchdog",
    "process.startup-timeout",
    "model.peer-load-timeout",
];
/// Ranks below which nobody can be said to be behind.
const LEAST: usize = 3;
/// The part of the ranks that may be behind.
const FEW: usize = 4;

/// Who is behind, and how that shows.
struct Behind<'l> {
    who: Vec<(ProcessId, &'l Process)>,
    how: String,
}

/// Tells who is behind.
pub(super) fn tell(catalog: &Catalog, launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    if !verdict.cause.as_deref().is_some_and(|cause| WAITED.contains(&cause)) {
        return;
    }
    let found = by_count(launches, verdict).or_else(|| by_step(catalog, launches, verdict));
    let Some(Behind { who, how }) = found else { return };
    let processes: Vec<&Process> = who.iter().map(|(_, p)| *p).collect();
    let nodes: BTreeSet<&str> = processes.iter().filter_map(|p| p.node.as_deref()).collect();
    let on = match nodes.len() {
        1 => format!(" ({})", nodes.into_iter().collect::<String>()),
        _ => String::new(),
    };
    let mut ranks = processes_in_words(&processes);
    if let [Process { rank: Some(rank), .. }] = processes.as_slice() {
        ranks = format!("rank {rank}");
    }
    let told = capital(&format!("{ranks}{on} {how}"));
    out.findings.insert(0, finding("ranks.behind", "warning", &told));
    out.headline = Some(told.clone());
    out.sentence = Some(format!("{told}. Look there first."));
    let pid = processes.iter().find_map(|p| p.pid);
    let pid = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
    out.next.push(NextEvidence {
        what: format!("Where {ranks}{on} stands"),
        why: "The others waited for it.".to_owned(),
        command: format!("py-spy dump --pid {pid}"),
    });
}

/// The ranks that took part in the launch.
fn ranks<'l>(launches: &'l Launches, verdict: &Verdict) -> BTreeMap<ProcessId, &'l Process> {
    let active = launches.active(verdict.attempt);
    let all = active
        .into_iter()
        .map(|i| (ProcessId(i), launches.processes.get(ProcessId(i))));
    all.filter(|(_, p)| !p.absorbed && p.rank.is_some() && p.role.is_worker_like() && p.last_line.1 > 0)
        .collect()
}

/// Who set out for fewer collectives of a group than all others did.
fn by_count<'l>(launches: &'l Launches, verdict: &Verdict) -> Option<Behind<'l>> {
    let ranks = ranks(launches, verdict);
    let mut groups: BTreeMap<&str, BTreeMap<ProcessId, u64>> = BTreeMap::new();
    for placed in launches.events_of(verdict.attempt) {
        let figure = placed.event.figures.iter().find(|f| &*f.name == "last_enqueued_count");
        let (Some(figure), true) = (figure, ranks.contains_key(&placed.process)) else {
            continue;
        };
        let group = placed.event.setting("process_group").map_or("", |group| group);
        let group = groups.entry(group).or_default();
        // What each had done when the time ran out.
        group.entry(placed.process).or_insert(figure.value as u64);
    }
    groups.into_values().find_map(|counts| {
        let least = *counts.values().min()?;
        let who: Vec<_> = counts.iter().filter(|(_, n)| **n == least).map(|(id, _)| *id).collect();
        let next = *counts.values().filter(|n| **n > least).min()?;
        is_few(who.len(), counts.len()).then(|| Behind {
            how: format!(
                "had set out for {least} collectives when the others had for {next} or more: {} ranks waited for it",
                counts.len() - who.len()
            ),
            who: who.into_iter().filter_map(|id| Some((id, *ranks.get(&id)?))).collect(),
        })
    })
}

/// Who did not come to the last step that nearly all others came to, and said nothing more.
fn by_step<'l>(catalog: &Catalog, launches: &'l Launches, verdict: &Verdict) -> Option<Behind<'l>> {
    let ranks = ranks(launches, verdict);
    let root = verdict.failures.get(verdict.root?)?.event;
    // Each step with who came to it, and where the first of them did.
    let mut steps: BTreeMap<SignatureId, (usize, BTreeSet<ProcessId>)> = BTreeMap::new();
    let mut last: BTreeMap<ProcessId, usize> = BTreeMap::new();
    for index in launches.of_attempt(verdict.attempt).filter(|index| *index < root) {
        let Some(placed) = launches.events.get(index).filter(|p| ranks.contains_key(&p.process)) else {
            continue;
        };
        let role = Launches::role(catalog, &placed.event);
        if let (Some(Role::Phase | Role::Note), Some(id)) = (role, placed.event.signature) {
            steps
                .entry(id)
                .or_insert((index, BTreeSet::new()))
                .1
                .insert(placed.process);
            last.insert(placed.process, index);
        }
    }
    let behind = |(first, came): &(usize, BTreeSet<ProcessId>)| -> Vec<ProcessId> {
        let not = ranks
            .keys()
            .filter(|id| !came.contains(id))
            .copied()
            .collect::<Vec<_>>();
        let silent = |id: &ProcessId| last.get(id).is_some_and(|index| index < first);
        if is_few(not.len(), ranks.len()) && not.iter().all(silent) {
            not
        } else {
            Vec::new()
        }
    };
    let (step, who) = steps
        .values()
        .map(|step| (step, behind(step)))
        .filter(|(_, who)| !who.is_empty())
        .max_by_key(|(step, _)| step.0)?;
    let phase = who
        .first()
        .and_then(|id| launches.machine(verdict.attempt, *id)?.last());
    let place = phase.map_or_else(String::new, |phase| format!(" in {phase}"));
    let it = if who.len() == 1 { "it" } else { "them" };
    Some(Behind {
        how: format!(
            "fell silent{place}, a step before {} others: they waited for {it}",
            step.1.len()
        ),
        who: who.into_iter().filter_map(|id| Some((id, *ranks.get(&id)?))).collect(),
    })
}

fn is_few(some: usize, all: usize) -> bool {
    all >= LEAST && (1..=(all / FEW).max(1)).contains(&some)
}
