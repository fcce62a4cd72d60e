//! What is known of the processes as a group: who waits for whom and for how long, and what the nodes do not have in
//! common: settings, clocks.
//!
//! Owns the wording of findings about many processes together. Never judges: the verdict stands already.

use std::sync::Arc;

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::launch::arrival::{Absent, arrival};
use crate::launch::differences::{Difference, Weight, differences};
use crate::launch::processes::Process;
use crate::report::model::{Alternative, Finding, NextEvidence, Outcome};
use crate::report::text;
use crate::time::Stamp;
use crate::verdict::Verdict;

use super::absent;
use super::agents;
use super::behind;
use super::facts::Facts;
use super::followers;
use super::misfit::ODD_SETTING;
use super::missing::missing;
use super::parts;
use super::peer;
use super::places::Names;
use super::stuck;

/// The sub-reason of a line that names a rank which is not where the others are.
const APART: &str = "apart";
/// Nodes named of one value.
const MAX_NODES: usize = 6;

/// What is known of the processes of an attempt as a group.
pub struct Waits {
    /// Findings, the most telling first.
    pub findings: Vec<Finding>,
    /// Whose log is missing.
    pub missing: Vec<String>,
    /// A headline, where ranks that never came are the news.
    pub headline: Option<String>,
    /// A sentence for the story.
    pub sentence: Option<String>,
    /// Whether that sentence is the whole story.
    pub settled: bool,
    /// What to look at next, before what the cause suggests.
    pub next: Vec<NextEvidence>,
    /// What the wait most likely is, where the launch has not failed.
    pub alternatives: Vec<Alternative>,
}

/// Looks at an attempt. `now` is when the logs were collected, if that is known.
pub fn waits(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    facts: &Facts,
    names: &Names<'_>,
    now: Option<&Stamp>,
) -> Waits {
    let mut out = Waits {
        findings: Vec::new(),
        missing: Vec::new(),
        headline: None,
        sentence: None,
        settled: false,
        next: Vec::new(),
        alternatives: Vec::new(),
    };
    let open = matches!(verdict.outcome, Outcome::Failed | Outcome::Running);
    let arrival = arrival(catalog, launches, verdict.attempt).filter(|_| open);
    if let Some(arrival) = &arrival {
        absent::tell(catalog, launches, verdict, arrival, &mut out);
    }
    if open {
        out.missing = missing(catalog, launches, verdict, arrival.as_ref());
        // Where all are waited for, so are the members of each part.
        if arrival
            .as_ref()
            .is_none_or(|a| a.absent.is_empty() && a.sizes.is_empty())
        {
            parts::tell(catalog, launches, verdict, &mut out);
        }
        tell_differences(launches, verdict, facts, &mut out);
        tell_clocks(launches, names, &mut out);
    }
    let early = now.and_then(|now| before_the_end(launches, now));
    let now = now.filter(|_| early.is_none());
    out.findings.extend(early);
    if open {
        agents::tell(launches, verdict, names, &mut out);
        behind::tell(catalog, launches, verdict, &mut out);
        peer::tell(launches, verdict, &mut out);
    }
    if verdict.outcome == Outcome::Running {
        followers::tell(launches, verdict, &mut out);
    }
    if verdict.outcome == Outcome::Running && !out.settled {
        stuck::tell(catalog, launches, verdict, facts, arrival.as_ref(), now, &mut out);
        tell_apart(catalog, launches, verdict, &mut out);
    }
    out
}

/// `rank 3`, `ranks 0, 2–7`.
pub fn ranks_in_words(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let told: Vec<String> = runs
        .iter()
        .map(|(first, last)| match last - first {
            0 => first.to_string(),
            1 => format!("{first}, {last}"),
            _ => format!("{first}–{last}"),
        })
        .collect();
    let word = if ranks.len() == 1 { "rank" } else { "ranks" };
    format!("{word} {}", told.join(", "))
}

/// Ranks with the nodes they are on: `rank 37 (node-e)`.
pub(super) fn absent_in_words(absent: &[Absent]) -> String {
    let ranks: Vec<u32> = absent.iter().map(|a| a.rank).collect();
    let nodes: std::collections::BTreeSet<&str> = absent.iter().filter_map(|a| a.node.as_deref()).collect();
    let known = absent.iter().all(|a| a.node.is_some()) && nodes.len() <= 3;
    let nodes = match nodes.into_iter().collect::<Vec<_>>() {
        nodes if known && !nodes.is_empty() => format!(" ({})", nodes.join(", ")),
        _ => String::new(),
    };
    format!("{}{nodes}", ranks_in_words(&ranks))
}

/// Seconds by which the clock of whoever collected a log may be behind that of the log.
const CLOCKS: f64 = 60.0;

/// A log cannot have been collected before its last line was written.
fn before_the_end(launches: &Launches, now: &Stamp) -> Option<Finding> {
    let last = launches.processes.all().iter().filter_map(|p| p.last.as_ref());
    let last = last.max_by(|a, b| {
        a.seconds_since(now)
            .unwrap_or(f64::MIN)
            .total_cmp(&b.seconds_since(now).unwrap_or(f64::MIN))
    })?;
    let early = last.seconds_since(now).filter(|early| *early > CLOCKS)?;
    let title = format!(
        "The time of collection given, {}, is {} before the last line of the log, {}, and is not used: give the time at \
         which the log was collected, in the time zone of its stamps",
        now.printed(),
        text::span(early),
        last.printed(),
    );
    Some(finding("now.early", "warning", &title))
}

fn tell_differences(launches: &Launches, verdict: &Verdict, facts: &Facts, out: &mut Waits) {
    // What is told as the misfit is not told again.
    let told = facts.settings.get(ODD_SETTING);
    let all = differences(launches, verdict.attempt).into_iter();
    for difference in all.filter(|d| told.is_none_or(|told| told != d.what)) {
        let severity = match difference.weight {
            Weight::Local => "info",
            _ => "warning",
        };
        let title = format!(
            "The nodes differ in {}: {}",
            difference.what,
            values_in_words(&difference)
        );
        out.findings.push(finding("nodes.differ", severity, &title));
    }
}

/// `8 on node-a, node-b; not set on node-c`.
pub(super) fn values_in_words(difference: &Difference) -> String {
    let values = difference.values.iter().map(|(value, nodes)| match value {
        Some(value) => format!("{value} on {}", nodes_in_words(nodes)),
        None => format!("not set on {}", nodes_in_words(nodes)),
    });
    values.collect::<Vec<_>>().join("; ")
}

/// `node-a, node-b`, of many the first.
pub(super) fn nodes_in_words(nodes: &[Arc<str>]) -> String {
    let named: Vec<&str> = nodes.iter().take(MAX_NODES).map(|n| &**n).collect();
    match nodes.len().saturating_sub(MAX_NODES) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// The ranks that a report of NCCL's own on a communicator that stands names, because they are not where the others are.
fn tell_apart(catalog: &Catalog, launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    let named = launches.of_attempt(verdict.attempt).filter_map(|i| {
        let placed = launches.events.get(i)?;
        let def = &catalog.signature(placed.event.signature)?.def;
        let victim = &placed.event.victim;
        (def.reason.as_deref() == Some(APART)).then_some((victim.rank?, victim))
    });
    let mut ranks: Vec<String> = Vec::new();
    for (rank, victim) in named {
        let place = match (victim.pid, &victim.node) {
            (Some(pid), Some(node)) => format!(" (pid {pid} on {node})"),
            (_, Some(node)) => format!(" ({node})"),
            _ => String::new(),
        };
        let told = format!("rank {rank}{place}");
        if ranks.len() < MAX_NODES && !ranks.contains(&told) {
            ranks.push(told);
        }
    }
    if ranks.is_empty() {
        return;
    }
    let who = ranks.join(", ");
    let title =
        format!("NCCL's RAS report names {who}: not at the operation at which the other ranks of the communicator are");
    out.findings.insert(0, finding("ras.apart", "warning", &title));
    out.headline = Some(format!("NCCL's RAS report sets {who} apart from the other ranks"));
}

/// Which clocks were set right before times of several nodes were compared.
fn tell_clocks(launches: &Launches, names: &Names<'_>, out: &mut Waits) {
    for apart in launches.clocks.apart() {
        let against = apart.against.as_deref().unwrap_or("the others");
        let which = if apart.ahead > 0.0 { "ahead of" } else { "behind" };
        let zone = if apart.zone { ", a difference of time zones" } else { "" };
        let [a, b] = apart.moment.map(|(input, line)| names.line_of(input, line));
        let title = format!(
            "The clock of {} is {} {which} that of {against}{zone}: {b} was written at about the time of {a}. Times of \
             several nodes are compared by the clock of {against}",
            apart.node,
            text::span(apart.ahead.abs()),
        );
        out.findings.push(finding("clocks.differ", "info", &title));
    }
}

/// Processes by rank where they have one, else by id.
pub fn processes_in_words(processes: &[&Process]) -> String {
    let mut ranks: Vec<u32> = processes.iter().filter_map(|p| p.rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() == processes.len() && ranks.len() > 1 {
        return ranks_in_words(&ranks);
    }
    match processes {
        [one] => match one.rank {
            Some(rank) if !one.id.starts_with("rank") => format!("rank {rank} ({})", one.id),
            _ => one.id.clone(),
        },
        [first, ..] => format!("{} and {} like it", first.id, processes.len() - 1),
        [] => String::new(),
    }
}

pub(super) fn finding(id: &str, severity: &str, title: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        title: title.to_owned(),
        severity: severity.to_owned(),
        evidence: Vec::new(),
    }
}
