//! Who never came, who waits for whom and for how long, and what the nodes do not have in common: settings, clocks.
//!
//! Owns the wording of findings about many processes together. Never judges: the verdict stands already.

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::launch::arrival::{Absent, Arrival, arrival};
use crate::launch::differences::differences;
use crate::launch::processes::Process;
use crate::report::model::{Alternative, Finding, Outcome};
use crate::time::Stamp;
use crate::verdict::Verdict;

use super::facts::Facts;
use super::missing::missing;
use super::places::Names;
use super::stuck;

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
        alternatives: Vec::new(),
    };
    let open = matches!(verdict.outcome, Outcome::Failed | Outcome::Running);
    let arrival = arrival(catalog, launches, verdict.attempt).filter(|_| open);
    if let Some(arrival) = &arrival {
        tell_absent(catalog, verdict, arrival, &mut out);
    }
    if open {
        out.missing = missing(catalog, launches, verdict, arrival.as_ref());
        tell_differences(launches, verdict, &mut out);
        tell_clocks(launches, names, &mut out);
    }
    if verdict.outcome == Outcome::Running {
        stuck::tell(catalog, launches, verdict, facts, arrival.as_ref(), now, &mut out);
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

fn tell_absent(catalog: &Catalog, verdict: &Verdict, arrival: &Arrival, out: &mut Waits) {
    if arrival.absent.is_empty() {
        return;
    }
    // Whoever died of something of their own is no news as an absentee.
    let cause = verdict.cause.as_deref().unwrap_or("");
    let weak = catalog.strength(cause) == crate::catalog::Strength::Weak;
    let of_meeting = cause.starts_with("dist.") || cause.starts_with("nccl.") || cause.starts_with("unknown.");
    if verdict.outcome == Outcome::Failed && !(weak && of_meeting) {
        return;
    }
    let world = arrival.world;
    let came: Vec<u32> = arrival.came.iter().copied().collect();
    let (known, unlogged): (Vec<Absent>, Vec<Absent>) = arrival.absent.iter().cloned().partition(|a| a.known);
    let told = arrival
        .told
        .map(|(came, all)| format!("; the store counted {came} of {all}"))
        .unwrap_or_default();
    let waiting = match came.len() {
        0 => String::new(),
        1 => format!("{} of {world} came", ranks_in_words(&came)),
        n => format!("{n} of {world} ranks came ({})", ranks_in_words(&came)),
    };
    // While nobody has given up, it may still come.
    let running = verdict.outcome == Outcome::Running;
    out.headline = Some(match known.is_empty() {
        true => without_log(&unlogged, &came, world, running),
        false => never_joined(&known, &came, world, running),
    });
    let silent: Vec<Absent> = arrival.unheard().cloned().collect();
    let of = |absent: &[Absent]| {
        if absent.len() > 1 {
            ("they", "their")
        } else {
            ("it", "its")
        }
    };
    let no_log = |who: &str, absent: &[Absent]| {
        let whose = of(absent).1;
        format!("whether {who} came is not known, as the log of {whose} node is not among the inputs")
    };
    let heard = if known.is_empty() {
        capital(&no_log(of(&unlogged).0, &unlogged))
    } else if silent.is_empty() {
        match known.len() {
            1 => "It is in the logs and stopped short of it".to_owned(),
            _ => "They are in the logs and stopped short of it".to_owned(),
        }
    } else {
        let lines = match (arrival.absent.len() == silent.len(), silent.len()) {
            (true, 1) => "The logs hold no line of it".to_owned(),
            (true, _) => "The logs hold no line of them".to_owned(),
            (false, _) => format!("The logs hold no line of {}", absent_in_words(&silent)),
        };
        match unlogged.is_empty() {
            true => lines,
            false => format!("{lines}; {}", no_log(&absent_in_words(&unlogged), &unlogged)),
        }
    };
    let missed = if known.is_empty() { &unlogged } else { &known };
    let who = absent_in_words(missed);
    let sentence = match (waiting.is_empty(), known.is_empty()) {
        (true, _) => format!("{} of {world} did not join the group{told}. {heard}.", capital(&who)),
        (false, false) => format!("{waiting} to the meeting of the group{told}; {who} did not. {heard}."),
        (false, true) => {
            format!("{waiting} to the meeting of the group{told}, as far as the logs tell; {who} did not. {heard}.")
        }
    };
    out.findings
        .push(finding("arrival.absent", "warning", sentence.trim_end_matches('.')));
    out.sentence = Some(capital(&sentence));
    if verdict.outcome == Outcome::Running {
        let id = "dist.rendezvous-timeout";
        out.alternatives.push(Alternative {
            id: id.to_owned(),
            title: catalog.cause(id).map_or_else(|| id.to_owned(), |c| c.title.clone()),
            confidence: 0.5,
            why: format!("{waiting}, {who} did not"),
            why_not: "no process has given up waiting yet".to_owned(),
        });
    }
}

/// `Rank 37 (node-e) never joined: 63 of 64 ranks waited for it`.
fn never_joined(absent: &[Absent], came: &[u32], world: u32, running: bool) -> String {
    let (who, many) = (capital(&absent_in_words(absent)), absent.len() > 1);
    let them = if many { "them" } else { "it" };
    let never = match (running, many) {
        (false, _) => "never joined",
        (true, true) => "have not joined",
        (true, false) => "has not joined",
    };
    match came.len() {
        0 => format!("{who} {never} the group of {world} ranks"),
        1 if running => format!("{who} {never}: {} waits for {them}", ranks_in_words(came)),
        1 => format!("{who} {never}: {} waited in vain", ranks_in_words(came)),
        n => format!(
            "{who} {never}: {n} of {world} ranks {} for {them}",
            if running { "wait" } else { "waited" }
        ),
    }
}

/// `63 of 64 ranks waited; the log of rank 1 is missing`.
fn without_log(absent: &[Absent], came: &[u32], world: u32, running: bool) -> String {
    let who = absent_in_words(absent);
    let (one, more) = if running {
        ("waits", "wait")
    } else {
        ("waited in vain", "waited in vain")
    };
    match came.len() {
        0 => format!("The log of {who} of {world} is missing"),
        1 => format!(
            "{} {one} for its peers; the log of {who} is missing",
            capital(&ranks_in_words(came))
        ),
        n => format!("{n} of {world} ranks {more}; the log of {who} is missing"),
    }
}

fn tell_differences(launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    for difference in differences(launches, verdict.attempt) {
        let values: Vec<String> = difference
            .values
            .iter()
            .map(|(value, nodes)| {
                let named: Vec<&str> = nodes.iter().take(MAX_NODES).map(|n| &**n).collect();
                let more = nodes.len().saturating_sub(MAX_NODES);
                let more = if more > 0 {
                    format!(" and {more} more")
                } else {
                    String::new()
                };
                format!("{value} on {}{more}", named.join(", "))
            })
            .collect();
        let severity = if difference.grave { "warning" } else { "info" };
        let title = format!("The nodes differ in {}: {}", difference.what, values.join("; "));
        out.findings.push(finding("nodes.differ", severity, &title));
    }
}

/// Which clocks were set right before times of several nodes were compared.
fn tell_clocks(launches: &Launches, names: &Names<'_>, out: &mut Waits) {
    for apart in launches.clocks.apart() {
        let against = apart.against.as_deref().unwrap_or("the others");
        let which = if apart.ahead > 0.0 { "ahead of" } else { "behind" };
        let zone = if apart.zone { ", a difference of time zones" } else { "" };
        let [a, b] = apart.moment.map(|(input, line)| {
            let name = names.input(input);
            format!("line {line} of {}", name.rsplit('/').next().unwrap_or(&name))
        });
        let title = format!(
            "The clock of {} is {} {which} that of {against}{zone}: {b} was written at about the time of {a}. Times of \
             several nodes are compared by the clock of {against}",
            apart.node,
            span(apart.ahead.abs()),
        );
        out.findings.push(finding("clocks.differ", "info", &title));
    }
}

/// Seconds in the words of a clock: `3 h 15 min`, `42 s`.
fn span(seconds: f64) -> String {
    // A difference of clocks is known to some seconds at best.
    let seconds = seconds.round() as i64;
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "min"), (seconds % 60, "s")];
    let told: Vec<String> = parts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, unit)| format!("{n} {unit}"))
        .collect();
    told.join(" ")
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

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

pub(super) fn finding(id: &str, severity: &str, title: &str) -> Finding {
    Finding {
        id: id.to_owned(),
        title: title.to_owned(),
        severity: severity.to_owned(),
        evidence: Vec::new(),
    }
}
