//! Which lines are shown as proof, and the snippet.
//!
//! Owns the selection. Every line was copied when it was read.

use crate::catalog::Catalog;
use crate::event::Event;
use crate::launch::Launches;
use crate::report::model::{Evidence, SnippetLine};
use crate::verdict::Verdict;
use crate::verdict::causality::Reason;
use crate::verdict::failure::Failure;

use super::places::Names;

/// Consequences shown.
const MAX_CONSEQUENCES: usize = 8;
/// Copies shown.
const MAX_COPIES: usize = 4;
/// Lines of the snippet.
const MAX_SNIPPET: usize = 12;

/// The evidence, root first.
pub fn choose(catalog: &Catalog, launches: &Launches, verdict: &Verdict, names: &Names<'_>) -> Vec<Evidence> {
    let mut out: Vec<Evidence> = Vec::new();
    let id_of = |event: usize| launches.signature(catalog, event).map(|s| s.def.id.clone());
    let mut add = |role: &str, event: usize, failure: Option<&Failure>, under: Option<usize>, why: Option<String>| {
        let teller = launches.events.get(event).map(|p| p.process);
        let Some(process) = failure.map(|f| f.process).or(teller) else {
            return;
        };
        let n = out.len();
        let place = names.place(event, process);
        out.push(Evidence {
            n,
            role: role.to_owned(),
            signature: id_of(event),
            place,
            explained_by: under,
            why,
        });
    };
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    if let Some(root) = root {
        add("root", root.event, Some(root), None, None);
        let machine = launches.machine(verdict.attempt, root.process);
        let moment = launches.moment(root.event);
        let marker = machine.and_then(|m| m.entries().iter().rev().find(|e| e.at.may_precede(moment)));
        if let Some(marker) = marker {
            add(
                "phase",
                marker.at.index,
                None,
                None,
                Some(format!("the process enters {}", marker.phase)),
            );
        }
    }
    let (mut consequences, mut copies) = (0, 0);
    for (index, reason) in &verdict.explained {
        let Some(failure) = verdict.failures.get(*index) else {
            continue;
        };
        let copy = *reason == Reason::Copy;
        let (count, limit) = if copy {
            (&mut copies, MAX_COPIES)
        } else {
            (&mut consequences, MAX_CONSEQUENCES)
        };
        if *count >= limit {
            continue;
        }
        *count += 1;
        let role = match (copy, failure.exit.is_some()) {
            (true, _) => "copy",
            (false, true) => "exit",
            (false, false) => "consequence",
        };
        add(
            role,
            failure.event,
            Some(failure),
            Some(0),
            Some(reason.text().to_owned()),
        );
    }
    out
}

/// The snippet: the root with its neighbours, the first consequence, the last exit.
pub fn snippet(launches: &Launches, verdict: &Verdict, names: &Names<'_>, shown: &[Evidence]) -> Vec<SnippetLine> {
    let Some(root) = verdict.root.and_then(|i| verdict.failures.get(i)) else {
        return Vec::new();
    };
    let Some(placed) = launches.events.get(root.event) else {
        return Vec::new();
    };
    let mut lines: Vec<SnippetLine> = around(&placed.event, names, "root");
    // The root's own wrapper lines say nothing new; what another process noticed does.
    let own = names.launches.processes.get(root.process).id.as_str();
    let other = |e: &&Evidence| e.role == "consequence" && e.place.process.as_deref() != Some(own);
    let first = shown
        .iter()
        .find(other)
        .or_else(|| shown.iter().find(|e| e.role == "consequence"));
    let last = shown.iter().rev().find(|e| e.role == "exit" || e.role == "consequence");
    for (evidence, role) in [(first, "consequence"), (last, "exit")] {
        let Some(evidence) = evidence else { continue };
        if lines
            .iter()
            .any(|l| l.line == evidence.place.line && l.input == evidence.place.input)
        {
            continue;
        }
        let role = if evidence.role == "exit" { role } else { "consequence" };
        lines.push(SnippetLine {
            input: evidence.place.input.clone(),
            line: evidence.place.line,
            text: evidence.place.text.clone(),
            role,
        });
    }
    lines.truncate(MAX_SNIPPET);
    lines.sort_by(|a, b| a.input.cmp(&b.input).then(a.line.cmp(&b.line)));
    lines
}

fn around(event: &Event, names: &Names<'_>, role: &'static str) -> Vec<SnippetLine> {
    let place = &event.place;
    let input = names.input(place.input);
    let near = |line: u64| line.abs_diff(place.line) <= 2 && line != place.line;
    let mut lines: Vec<SnippetLine> = event
        .context
        .iter()
        .filter(|(line, _)| near(*line))
        .map(|(line, text)| SnippetLine {
            input: input.clone(),
            line: *line,
            text: text.to_string(),
            role: "",
        })
        .collect();
    lines.push(SnippetLine {
        input,
        line: place.line,
        text: place.text.to_string(),
        role,
    });
    lines.sort_by_key(|l| l.line);
    lines.dedup_by_key(|l| l.line);
    lines
}
