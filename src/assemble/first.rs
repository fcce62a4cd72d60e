//! Who else may have been first.
//!
//! Owns the wording of what neither place nor time decides: failures of other processes that are as good a root as the
//! one chosen. Never chooses between them.

use crate::launch::Launches;
use crate::launch::processes::Process;
use crate::report::model::Finding;
use crate::report::text::capital;
use crate::verdict::Verdict;
use crate::verdict::failure::{Failure, Worth};

use super::places::Names;
use super::waits::{finding, processes_in_words};

/// What is not decided, and a sentence for the story where it may be another cause.
#[derive(Default)]
pub struct Undecided {
    /// The findings.
    pub findings: Vec<Finding>,
    /// The sentence.
    pub sentence: Option<String>,
}

/// Why the order of two failures is not known.
fn why(launches: &Launches, a: &Failure, b: &Failure) -> String {
    let node = |f: &Failure| launches.processes.get(f.teller).node.as_ref();
    match (node(a), node(b)) {
        (Some(one), Some(other)) if !launches.clocks.are_comparable(Some(one), Some(other)) => {
            format!("nothing in the logs compares the clocks of {one} and {other}")
        }
        _ => "their times do not tell".to_owned(),
    }
}

/// Tells who may have been first as well as the root's process.
pub fn tell(launches: &Launches, verdict: &Verdict, names: &Names<'_>) -> Undecided {
    let mut out = Undecided::default();
    let Some(root) = verdict.root.and_then(|i| verdict.failures.get(i)) else {
        return out;
    };
    let all = verdict.undecided.iter().filter_map(|&i| verdict.failures.get(i));
    let (same, others): (Vec<&Failure>, Vec<&Failure>) = all.partition(|f| f.cause == root.cause);
    let process = |f: &Failure| launches.processes.get(f.process);
    let at = |f: &Failure| names.stands_at(f.event);
    if let Some(other) = others.first() {
        let why = why(launches, root, other);
        let who = processes_in_words(&[process(other)]);
        let cause = other.cause.as_deref().unwrap_or("another failure");
        let more = match others.len() {
            1 => String::new(),
            n => format!(", and so does what {} more state", n - 1),
        };
        out.sentence = Some(format!(
            "Whether this came first, or {cause} of {who} ({}), is not known: {}{more}.",
            at(other),
            why
        ));
        out.findings.push(finding(
            "order.unknown",
            "warning",
            &format!(
                "Which of these was first is not known, as they stand in different files and {}: {} of {} ({}), {cause} of \
                 {who} ({})",
                why,
                root.cause.as_deref().unwrap_or("the failure"),
                processes_in_words(&[process(root)]),
                at(root),
                at(other),
            ),
        ));
    }
    let mut alike: Vec<&Process> = Vec::new();
    for process in same.iter().map(|f| process(f)) {
        if alike.iter().all(|known| known.id != process.id) {
            alike.push(process);
        }
    }
    // Who only waited says nothing new by having waited as long as the others.
    if let Some(first) = same.first().filter(|_| root.worth > Worth::Weak) {
        let states = if alike.len() == 1 { "states" } else { "state" };
        out.findings.push(finding(
            "order.unknown",
            "info",
            &format!(
                "{} {states} the same cause as {} ({}): which of them was first is not known",
                capital(&processes_in_words(&alike)),
                processes_in_words(&[process(root)]),
                at(first),
            ),
        ));
    }
    out
}
