//! Who came to the meeting of the ranks, who did not, and of whom that is not known.
//!
//! Owns the wording. Whoever came, did not come, and may have done either add up to all ranks; that a rank did not come
//! is said only where the others prove it. Never judges: the verdict stands already.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::{Catalog, Strength};
use crate::event::TracebackKind;
use crate::launch::Launches;
use crate::launch::arrival::{Absent, Arrival};
use crate::launch::processes::ProcessId;
use crate::report::model::{Alternative, Outcome};
use crate::report::text::capital;
use crate::verdict::Verdict;
use crate::verdict::failure::Worth;

use super::waits::{Waits, absent_in_words, finding, processes_in_words, ranks_in_words};

/// Tells who is missing, where that is news.
pub(super) fn tell(catalog: &Catalog, launches: &Launches, verdict: &Verdict, arrival: &Arrival, out: &mut Waits) {
    let cause = verdict.cause.as_deref().unwrap_or("");
    // Who came with which size in mind says more than the one who noticed.
    if cause == WORLD_SIZE && arrival.sizes.len() > 1 {
        return tell_sizes(arrival, launches, out);
    }
    if !is_news(catalog, verdict) {
        if cause.starts_with("nccl.") && catalog.strength(cause) != Strength::Weak {
            tell_unlogged(verdict, arrival, out);
        }
        return;
    }
    if arrival.sizes.len() > 1 {
        tell_sizes(arrival, launches, out);
        out.alternatives.extend(out.headline.clone().map(|told| Alternative {
            id: WORLD_SIZE.to_owned(),
            title: catalog.title(WORLD_SIZE),
            confidence: SIZES_DIFFER,
            why: told,
            why_not: "no line states that this is why the group was not formed".to_owned(),
        }));
        return;
    }
    if arrival.absent.is_empty() {
        return tell_unlogged(verdict, arrival, out);
    }
    // While nobody has given up, it may still come.
    let running = verdict.outcome == Outcome::Running;
    let meeting = Meeting::of(arrival);
    // Who was refused did not wait: the head is heard, and had not got to where it listens.
    let refused = cause == UNREACHABLE && meeting.open.is_empty() && meeting.known.iter().all(|a| a.process.is_some());
    let died = died_of_its_own(verdict, arrival.absent.iter().filter_map(|a| a.process));
    out.headline = (!refused && !died).then(|| meeting.headline(running));
    let sentence = meeting.sentence();
    out.findings
        .push(finding(ABSENT, "warning", sentence.trim_end_matches('.')));
    out.sentence = Some(sentence);
    if !running {
        tell_where_they_stopped(launches, verdict, &meeting, out);
    }
    if running {
        let who = absent_in_words(&arrival.absent);
        let why = match meeting.known.is_empty() {
            true => format!("{}; {who} may not have", meeting.came_in_words()),
            false => format!(
                "{}, {} did not",
                meeting.came_in_words(),
                absent_in_words(&meeting.known)
            ),
        };
        out.alternatives.push(unmet(catalog, &why));
    }
}

/// Whether who is absent is news: whoever died of something of their own is none as an absentee.
pub(super) fn is_news(catalog: &Catalog, verdict: &Verdict) -> bool {
    let cause = verdict.cause.as_deref().unwrap_or("");
    let of_meeting = cause.starts_with("dist.") || cause.starts_with("nccl.") || cause.starts_with("unknown.");
    verdict.outcome != Outcome::Failed || of_meeting && catalog.strength(cause) == Strength::Weak
}

/// Whether the launch failed of an exception that one of the absent raised itself: that it is missing is then only how
/// the others saw it.
pub(super) fn died_of_its_own(verdict: &Verdict, mut absent: impl Iterator<Item = ProcessId>) -> bool {
    let root = verdict.root.and_then(|root| verdict.failures.get(root));
    let raised = root.filter(|f| f.worth == Worth::Unknown && f.traceback != Some(TracebackKind::Quoted));
    raised.is_some_and(|f| f.process == f.teller && absent.any(|id| id == f.process))
}

/// That a group is not complete, as what a launch under way most likely waits for.
pub(super) fn unmet(catalog: &Catalog, why: &str) -> Alternative {
    let id = "dist.rendezvous-timeout";
    Alternative {
        id: id.to_owned(),
        title: catalog.title(id),
        confidence: 0.5,
        why: why.to_owned(),
        why_not: "no process has given up waiting yet".to_owned(),
    }
}

/// The last words of those of whom no line says which rank they are.
fn tell_where_they_stopped(launches: &Launches, verdict: &Verdict, meeting: &Meeting<'_>, out: &mut Waits) {
    let mut of: BTreeMap<ProcessId, Vec<u32>> = BTreeMap::new();
    for absent in meeting.arrival.absent.iter().filter(|a| a.unnamed) {
        let process = absent.process.into_iter();
        process.for_each(|id| of.entry(id).or_default().push(absent.rank));
    }
    for (id, ranks) in of {
        let process = launches.processes.get(id);
        let Some(at) = process.last.as_ref() else { continue };
        let phase = launches.machine(verdict.attempt, id).and_then(|m| m.last());
        let place = phase.map_or_else(String::new, |phase| format!(" in {phase}"));
        let told = format!(
            "{}: last line at {}{place}; it may be of {}",
            capital(&processes_in_words(&[process])),
            at.printed(),
            ranks_in_words(&ranks)
        );
        out.findings.push(finding("arrival.stopped", "warning", &told));
    }
}

/// The finding that tells who is absent.
pub(super) const ABSENT: &str = "arrival.absent";
/// Cause of a rank that is refused by whoever it joins.
const UNREACHABLE: &str = "dist.store-unreachable";
/// Cause of a group of which the processes expect several sizes.
const WORLD_SIZE: &str = "dist.world-size";
/// How likely it is the cause of a meeting that did not take place.
const SIZES_DIFFER: f64 = 0.6;

/// Processes that came to one meeting with several sizes of it in mind.
fn tell_sizes(arrival: &Arrival, launches: &Launches, out: &mut Waits) {
    let mut parts: Vec<String> = Vec::new();
    // Those that differ from most come first.
    for (size, who) in arrival.sizes.iter().rev() {
        let of = |id: &ProcessId| launches.processes.get(*id);
        let nodes: BTreeSet<&str> = who.iter().filter_map(|id| of(id).node.as_deref()).collect();
        let mut ranks: Vec<u32> = who.iter().filter_map(|id| of(id).rank).collect();
        ranks.sort_unstable();
        let on = match nodes.len() {
            0 => String::new(),
            1..=MOST_NODES => format!(" ({})", nodes.into_iter().collect::<Vec<_>>().join(", ")),
            n => format!(" on {n} nodes"),
        };
        let (who, many) = (ranks_in_words(&ranks), ranks.len() > 1);
        parts.push(match parts.is_empty() {
            true => format!(
                "{who}{on} {} started for a world of {size} ranks",
                if many { "were" } else { "was" }
            ),
            false => format!("{who}{on} for {size}"),
        });
    }
    let told = capital(&parts.join(", "));
    let most: Vec<usize> = arrival.sizes.iter().map(|(_, who)| who.len()).take(2).collect();
    let undecided = match most.as_slice() {
        [a, b] if a == b => "; which size is right the log does not tell",
        _ => "",
    };
    out.findings.push(finding(
        "arrival.sizes",
        "warning",
        &format!("{told}: they meet at one place, and the group is complete for none{undecided}"),
    ));
    out.sentence = Some(format!("{told}."));
    out.headline = Some(told);
}

/// Nodes named of one size.
const MOST_NODES: usize = 4;

/// Ranks whose logs are missing once the group was formed: what stopped the others may stand there.
fn tell_unlogged(verdict: &Verdict, arrival: &Arrival, out: &mut Waits) {
    if arrival.unlogged.is_empty() {
        return;
    }
    let logs = capital(&logs_of(&arrival.unlogged));
    let news = match verdict.outcome {
        Outcome::Running => "how far the launch is",
        _ => "what stopped the others",
    };
    let told = format!("{logs} not in the input; {news} may stand there");
    out.findings.push(finding("arrival.unlogged", "warning", &told));
    out.sentence = Some(format!("{told}."));
}

/// The logs of ranks as the start of what is said of them.
fn logs_of(absent: &[Absent]) -> String {
    let who = absent_in_words(absent);
    match absent.len() {
        1 => format!("the log of {who} is"),
        _ => format!("the logs of {who} are"),
    }
}

/// What a rank waits for, in a sentence about that rank.
pub(super) fn waited_for(arrival: &Arrival) -> String {
    let meeting = Meeting::of(arrival);
    match meeting.known.is_empty() {
        true => format!("waiting for its peers; {}", meeting.unlogged()),
        false => format!("waiting for {}", absent_in_words(&meeting.known)),
    }
}

/// The ranks of a launch: those that came, those that are known not to have, and the others.
struct Meeting<'a> {
    arrival: &'a Arrival,
    came: Vec<u32>,
    known: Vec<Absent>,
    open: Vec<Absent>,
    /// How many of the others came, where whoever counted says so.
    uncounted: Option<usize>,
}

impl<'a> Meeting<'a> {
    fn of(arrival: &'a Arrival) -> Self {
        let came: Vec<u32> = arrival.came.iter().copied().collect();
        let (known, open): (Vec<Absent>, Vec<Absent>) = arrival.absent.iter().cloned().partition(|a| a.known);
        let counted = arrival.told.map(|(counted, _)| counted as usize);
        let more = counted.and_then(|counted| counted.checked_sub(came.len()));
        Self {
            arrival,
            uncounted: more.filter(|more| (1..=open.len()).contains(more)),
            came,
            known,
            open,
        }
    }

    /// `63 of 64 ranks came (ranks 0–36, 38–63)`, `rank 0 of 2 came`; nothing if the logs show nobody come.
    fn came_in_words(&self) -> String {
        let (ranks, world) = (ranks_in_words(&self.came), self.arrival.world);
        match self.came.len() {
            0 => String::new(),
            1 => format!("{ranks} of {world} came"),
            n => format!("{n} of {world} ranks came ({ranks})"),
        }
    }

    /// Why it is not known whether the others came.
    fn unlogged(&self) -> String {
        self.why_open(&absent_in_words(&self.open), &logs_of(&self.open))
    }

    /// The same where the sentence has named them.
    fn unlogged_in_short(&self) -> String {
        match self.open.len() {
            1 => self.why_open("it", "its log is"),
            _ => self.why_open("them", "their logs are"),
        }
    }

    fn why_open(&self, who: &str, logs: &str) -> String {
        // Logs in which no line says whose they are may be theirs.
        match self.open.iter().any(|a| a.process.is_some()) {
            true => format!("no line of the logs names {who}"),
            false => format!("{logs} not in the input"),
        }
    }

    fn sentence(&self) -> String {
        let world = self.arrival.world;
        let mut parts: Vec<String> = Vec::new();
        let told = self.arrival.told;
        let came = self.came_in_words();
        match (came.is_empty(), told) {
            (true, None) => {}
            (true, Some((counted, all))) => parts.push(format!("the store counted {counted} of {all} ranks")),
            // Who set out to join need not have reached the one who counts.
            (false, Some((counted, all))) if (counted as usize) < self.came.len() => parts.push(format!(
                "{} of {world} ranks set out for the meeting of the group ({}); the store counted {counted} of {all}",
                self.came.len(),
                ranks_in_words(&self.came)
            )),
            (false, Some((counted, all))) => parts.push(format!(
                "{came} to the meeting of the group; the store counted {counted} of {all}"
            )),
            (false, None) => parts.push(format!("{came} to the meeting of the group")),
        }
        if !self.known.is_empty() {
            let who = absent_in_words(&self.known);
            parts.push(match parts.is_empty() {
                true => format!("{who} of {world} did not join the group{}", self.stopped_short()),
                false => format!("{who} did not{}", self.stopped_short()),
            });
        }
        if !self.open.is_empty() {
            let who = absent_in_words(&self.open);
            let why = self.unlogged_in_short();
            let out = self.uncounted.map(|more| (more, self.open.len() - more));
            parts.push(match out {
                Some((more, 0)) => format!("so {} came too ({}): {why}", amount(more), who),
                Some((more, out)) => format!(
                    "so of {who} {} came too and {} did not. Which is not known: {why}",
                    amount(more),
                    amount(out)
                ),
                None => format!("whether {who} came is not known: {why}"),
            });
        }
        format!("{}.", capital(&parts.join("; ")))
    }

    /// Whether those that are known not to have come are in the logs at all.
    fn stopped_short(&self) -> String {
        let silent: Vec<Absent> = self.known.iter().filter(|a| a.process.is_none()).cloned().collect();
        let many = self.known.len() > 1;
        match (self.known.len(), silent.len()) {
            (0, _) => String::new(),
            _ if self.known.iter().all(|a| a.late) => {
                format!(
                    ": {} came when the others had given up",
                    if many { "they" } else { "it" }
                )
            }
            (_, 0) if self.known.iter().all(|a| a.unnamed) => {
                format!(
                    ": a log that names no rank, which may be {}, stops short of it",
                    if many { "theirs" } else { "its" }
                )
            }
            (_, 0) if many => ": they are in the logs and stopped short of it".to_owned(),
            (_, 0) => ": it is in the logs and stopped short of it".to_owned(),
            (all, none) if all == none => {
                format!(", and the logs hold no line of {}", if many { "them" } else { "it" })
            }
            _ => format!(", and the logs hold no line of {}", absent_in_words(&silent)),
        }
    }

    fn headline(&self, running: bool) -> String {
        let world = self.arrival.world;
        if !self.known.is_empty() {
            let left = match self.open.len() {
                0 => String::new(),
                1 => ", the log of one is not in the input".to_owned(),
                n => format!(", the logs of {n} are not in the input"),
            };
            return format!("{}{left}", never_joined(&self.known, &self.came, world, running));
        }
        if let (Some(_), Some((counted, all))) = (self.uncounted, self.arrival.told) {
            return format!(
                "{counted} of {all} ranks came, by the store's count; {}",
                self.unlogged()
            );
        }
        let (one, more) = if running {
            ("waits", "wait")
        } else {
            ("waited in vain", "waited in vain")
        };
        match self.came.len() {
            0 => format!("{} (of {world})", capital(&self.unlogged())),
            1 => format!(
                "{} {one} for its peers; {}",
                capital(&ranks_in_words(&self.came)),
                self.unlogged()
            ),
            n => format!("{n} of {world} ranks {more}; {}", self.unlogged()),
        }
    }
}

/// A small number as a word.
fn amount(n: usize) -> String {
    match n {
        1 => "one".to_owned(),
        n => n.to_string(),
    }
}

/// `Rank 37 (node-e) never joined: 63 of 64 ranks waited for it`.
fn never_joined(absent: &[Absent], came: &[u32], world: u32, running: bool) -> String {
    let (who, many) = (capital(&absent_in_words(absent)), absent.len() > 1);
    if absent.iter().all(|a| a.late) && !came.is_empty() {
        let others = ranks_in_words(came);
        return format!("{who} came too late: {others} of {world} had given up waiting");
    }
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
