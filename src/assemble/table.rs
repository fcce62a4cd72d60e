//! What became of each process: the last phase, the first failure, the end.
//!
//! Owns the table and which processes of it are told as one: those of one role that ended alike. Never picks a root.

use std::collections::BTreeMap;

use crate::launch::processes::{Process, ProcessId, ProcessRole};
use crate::report::model::ProcessRow;
use crate::verdict::Verdict;
use crate::verdict::causality::{Reason, is_request_to_end};

use super::places::{Names, exit_text};
use super::waits::processes_in_words;

/// Rows of the table.
const MAX_ROWS: usize = 40;

/// Processes that are alike, with the event of their first failure.
struct Members<'a> {
    event: usize,
    of: Vec<(ProcessId, &'a Process)>,
}

/// What makes two processes alike; the victim sorts first, then those that failed as it did.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    other: bool,
    unlike: bool,
    role: ProcessRole,
    last_phase: Option<String>,
    exit: Option<String>,
    said: Option<&'static str>,
}

/// The rows, in order of the first failure; processes without any come last.
pub fn rows(names: &Names<'_>, verdict: &Verdict) -> Vec<ProcessRow> {
    let launches = names.launches;
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    // The first failure of each process and its exit, in one pass over what can be many failures.
    let mut first: BTreeMap<ProcessId, usize> = BTreeMap::new();
    let mut exits: BTreeMap<ProcessId, String> = BTreeMap::new();
    for (index, failure) in verdict.failures.iter().enumerate().filter(|(_, f)| !f.survived) {
        first.entry(failure.process).or_insert(index);
        if let Some(exit) = failure.end().and_then(exit_text) {
            exits.entry(failure.process).or_insert(exit);
        }
    }
    let mut groups: BTreeMap<Alike, Members<'_>> = BTreeMap::new();
    for index in launches.active(verdict.attempt) {
        let id = ProcessId(index);
        let process = launches.processes.get(id);
        if process.absorbed {
            continue;
        }
        let victim = root.is_some_and(|r| r.process == id);
        let failure = first.get(&id).and_then(|i| Some((*i, verdict.failures.get(*i)?)));
        let same = failure
            .zip(root)
            .is_some_and(|((_, f), r)| f.key == r.key && f.cause == r.cause);
        let last_phase = names.last_phase(verdict, id);
        let exit = exits.get(&id).cloned();
        let said = match failure {
            _ if victim || same => None,
            // Where nothing failed, it only reads so; that an end was asked for, or came, does not even do that.
            Some((_, f)) if root.is_none() => {
                let reads_so = f.cause.is_some() && !is_request_to_end(f);
                reads_so.then_some("says what reads like a failure")
            }
            Some((i, _)) => Some(verdict.reason(i).map_or("failed too", Reason::text)),
            None => None,
        };
        if !victim && last_phase.is_none() && exit.is_none() && failure.is_none() {
            continue;
        }
        let key = Alike {
            other: !victim,
            unlike: !same,
            role: process.role,
            last_phase,
            exit,
            said,
        };
        // The victim is told by its root, as in the story, also where a line of its own announces that.
        let told = root.filter(|_| victim).or(failure.map(|(_, f)| f));
        let event = told.map_or(usize::MAX, |f| f.event);
        let members = groups.entry(key).or_insert(Members {
            event: usize::MAX,
            of: Vec::new(),
        });
        members.event = members.event.min(event);
        members.of.push((id, process));
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(key, members)| (key.other, members.event));
    let row = |(key, members): (Alike, Members<'_>)| {
        let (event, members) = (members.event, members.of);
        let processes: Vec<&Process> = members.iter().map(|(_, p)| *p).collect();
        // Where one of them is on a node that is not known, the others' nodes are not those of all.
        let placed = processes.iter().all(|p| p.node.is_some());
        let nodes: std::collections::BTreeSet<&str> = processes
            .iter()
            .filter_map(|p| p.node.as_deref().filter(|_| placed))
            .collect();
        let place = (event != usize::MAX)
            .then(|| members.first().map(|(id, _)| names.place(event, *id)))
            .flatten();
        ProcessRow {
            who: processes_in_words(&processes),
            count: processes.len(),
            nodes: match nodes.into_iter().collect::<Vec<_>>().as_slice() {
                [] => None,
                [one] => Some((*one).to_owned()),
                many => Some(format!("{} nodes", many.len())),
            },
            victim: !key.other,
            same: !key.unlike,
            last_phase: key.last_phase,
            said: key.said.map(ToOwned::to_owned),
            exit: key.exit,
            input: place.as_ref().map(|p| p.input.clone()),
            line: place.as_ref().map(|p| p.line),
            when: place.and_then(|p| {
                let own = p.time_local.map(|time| format!("at {time}"));
                own.or_else(|| p.time_after.map(|time| format!("after {time}")))
            }),
        }
    };
    groups.into_iter().take(MAX_ROWS).map(row).collect()
}
