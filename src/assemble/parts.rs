//! Who is missing from the communicators of a part of the ranks, where the ranks as a whole have met.
//!
//! Owns the wording. Names a rank by its global number, by its process, or by its rank in the communicator, in this
//! order, as far as the log tells. Never judges: the verdict stands already.

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::launch::communicators::{Incomplete, Missing, incomplete};
use crate::launch::processes::{Process, ProcessId};
use crate::report::model::Outcome;
use crate::report::text::capital;
use crate::verdict::Verdict;

use super::absent::{ABSENT, died_of_its_own, is_news, unmet};
use super::waits::{Waits, finding, processes_in_words, ranks_in_words};

/// Phase of a launch that is done with meetings.
const SERVING: &str = "serving";
/// Communicators told of.
const MOST: usize = 4;
/// Nodes named of one group.
const MOST_NAMED: usize = 3;

/// Tells who is missing, where that is news.
pub(super) fn tell(catalog: &Catalog, launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    // Communicators that a server forms while it serves are not read whole.
    if !is_news(catalog, verdict) || verdict.phase.as_deref() == Some(SERVING) {
        return;
    }
    let all = incomplete(catalog, launches, verdict.attempt);
    let Some(first) = all.first() else { return };
    let told = Told { launches };
    let running = verdict.outcome == Outcome::Running;
    for communicator in all.iter().take(MOST) {
        let sentence = told.sentence(communicator);
        out.findings.push(finding(ABSENT, "warning", &sentence));
    }
    out.sentence = Some(format!("{}.", told.sentence(first)));
    let headline = told.headline(&all, running);
    if running {
        out.alternatives.push(unmet(catalog, &headline));
    }
    let absent = all.iter().flat_map(|c| &c.absent).filter_map(|a| a.process);
    out.headline = (!died_of_its_own(verdict, absent)).then_some(headline);
    if out.missing.is_empty() {
        out.missing.extend(told.without_a_log(&all));
    }
}

/// What is told of communicators.
struct Told<'l> {
    launches: &'l Launches,
}

impl<'l> Told<'l> {
    fn process(&self, id: ProcessId) -> &'l Process {
        self.launches.processes.get(id)
    }

    /// `ranks 8–12, 14, 15`, or how many; the ranks in the communicator need not be those of the launch.
    fn came(&self, communicator: &Incomplete) -> String {
        let came = communicator.came.values().map(|id| self.process(*id).rank);
        match came.collect::<Option<BTreeSet<u32>>>() {
            Some(ranks) if ranks.len() == communicator.came.len() && self.are_global(communicator) => {
                ranks_in_words(&ranks.into_iter().collect::<Vec<_>>())
            }
            _ => format!("{} of its ranks", communicator.came.len()),
        }
    }

    /// Whether the ranks of its members are those of the launch: else NCCL gave them in this communicator.
    fn are_global(&self, communicator: &Incomplete) -> bool {
        let mut members = communicator.came.values().map(|id| self.process(*id));
        members.all(|p| p.identity.world_size.is_none_or(|world| world > communicator.size))
    }

    /// `rank 13 (node-b)`, `VllmWorker-5 pid=17 @node-b`, `its rank 5`.
    fn who(&self, absent: &[&Missing]) -> String {
        let processes: Option<BTreeSet<ProcessId>> = absent.iter().map(|a| a.process).collect();
        let globals: Option<BTreeSet<u32>> = absent.iter().map(|a| a.global).collect();
        match (globals, processes) {
            (Some(globals), processes) => {
                let nodes = self.nodes(processes.into_iter().flatten());
                format!("{}{nodes}", ranks_in_words(&globals.into_iter().collect::<Vec<_>>()))
            }
            (None, Some(processes)) => self.processes(&processes.into_iter().collect::<Vec<_>>()),
            (None, None) => {
                let ranks: BTreeSet<u32> = absent.iter().map(|a| a.rank).collect();
                format!("its {}", ranks_in_words(&ranks.into_iter().collect::<Vec<_>>()))
            }
        }
    }

    /// `ranks 8–15 (node-b)`, `worker pid=17 @node-b`.
    fn processes(&self, ids: &[ProcessId]) -> String {
        let all: Vec<&Process> = ids.iter().map(|id| self.process(*id)).collect();
        let told = processes_in_words(&all);
        match all.len() {
            1 => told,
            _ => format!("{told}{}", self.nodes(ids.iter().copied())),
        }
    }

    /// ` (node-a, node-b)`, if they are few.
    fn nodes(&self, ids: impl Iterator<Item = ProcessId>) -> String {
        let nodes: BTreeSet<&str> = ids.filter_map(|id| self.process(id).node.as_deref()).collect();
        match nodes.len() {
            1..=MOST_NAMED => format!(" ({})", nodes.into_iter().collect::<Vec<_>>().join(", ")),
            _ => String::new(),
        }
    }

    fn sentence(&self, communicator: &Incomplete) -> String {
        let (heard, open): (Vec<&Missing>, Vec<&Missing>) =
            communicator.absent.iter().partition(|a| a.process.is_some());
        let (id, size, came) = (&communicator.id, communicator.size, self.came(communicator));
        let mut parts = vec![format!("communicator {id} of {size} ranks: {came} came")];
        if !heard.is_empty() {
            let they = if heard.len() == 1 { "it is" } else { "they are" };
            parts.push(format!(
                "{}{} did not: {they} in the logs and stopped short of it",
                self.who(&heard),
                within(&heard)
            ));
        }
        if !open.is_empty() && !communicator.left_out.is_empty() {
            let of = if open.len() == 1 { "one of " } else { "of " };
            parts.push(format!(
                "{}, {of}{}, did not",
                self.who(&open),
                self.processes(&communicator.left_out)
            ));
        } else if !open.is_empty() {
            let whose = if open.len() == 1 {
                "its log is"
            } else {
                "their logs are"
            };
            parts.push(format!(
                "whether {}{} came is not known: {whose} not in the input",
                self.who(&open),
                within(&open)
            ));
        }
        capital(&parts.join("; "))
    }

    /// `Rank 13 (node-b) never joined a communicator of 8 ranks: ranks 8–12, 14, 15 waited for it`.
    fn headline(&self, all: &[Incomplete], running: bool) -> String {
        let sizes: BTreeSet<u32> = all.iter().map(|c| c.size).collect();
        let ranks = match sizes.len() {
            1 => format!(" of {} ranks", all.first().map_or(0, |c| c.size)),
            _ => String::new(),
        };
        let heard: Vec<&Missing> = all
            .iter()
            .flat_map(|c| &c.absent)
            .filter(|a| a.process.is_some())
            .collect();
        let came = match all {
            [only] => self.came(only),
            _ => format!("{} ranks", all.iter().map(|c| c.came.len()).sum::<usize>()),
        };
        let communicators = match all.len() {
            1 => format!("a communicator{ranks}"),
            n => format!("{n} communicators{ranks}"),
        };
        let left_out: BTreeSet<ProcessId> = all.iter().flat_map(|c| c.left_out.iter().copied()).collect();
        let distinct: BTreeSet<ProcessId> = heard.iter().filter_map(|a| a.process).chain(left_out.clone()).collect();
        if distinct.is_empty() {
            let open: Vec<&Missing> = all.iter().flat_map(|c| &c.absent).collect();
            let logs = if open.len() == 1 { "the log of" } else { "the logs of" };
            let are = if open.len() == 1 { "is" } else { "are" };
            let wait = if running { "wait" } else { "waited in vain" };
            let whose = match all.len() {
                1 => self.who(&open),
                n => format!("{} ranks that {n} of them lack", open.len()),
            };
            return capital(&format!(
                "{came} {wait} in {communicators}; {logs} {whose} {are} not in the input"
            ));
        }
        let many = distinct.len() > 1;
        let them = if many { "them" } else { "it" };
        let (never, wait) = match (running, many) {
            (false, _) => ("never joined", "waited"),
            (true, true) => ("have not joined", "wait"),
            (true, false) => ("has not joined", "wait"),
        };
        let all_known = all.iter().map(|c| c.absent.len()).sum::<usize>() == heard.len();
        let who = match all_known || left_out.is_empty() {
            true => self.who(&heard),
            false => self.processes(&distinct.into_iter().collect::<Vec<_>>()),
        };
        capital(&format!("{who} {never} {communicators}: {came} {wait} for {them}"))
    }

    /// Whose logs are not in the input.
    fn without_a_log(&self, all: &[Incomplete]) -> Option<String> {
        let unheard = |c: &&Incomplete| c.left_out.is_empty() && c.absent.iter().any(|a| a.process.is_none());
        let lacking: Vec<&Incomplete> = all.iter().filter(unheard).collect();
        let absent = || lacking.iter().flat_map(|c| &c.absent).filter(|a| a.process.is_none());
        let globals: Option<BTreeSet<u32>> = absent().map(|a| a.global).collect();
        let ranks: Vec<u32> = match (lacking.as_slice(), &globals) {
            ([], _) => return None,
            (_, Some(globals)) => globals.iter().copied().collect(),
            (_, None) => absent().map(|a| a.rank).collect(),
        };
        Some(match (lacking.as_slice(), globals) {
            (_, Some(_)) => ranks_in_words(&ranks),
            ([only], None) => format!("{} of communicator {}", ranks_in_words(&ranks), only.id),
            (several, None) => format!("{} ranks that {} communicators lack", ranks.len(), several.len()),
        })
    }
}

/// `, its rank 5,` where ranks were named otherwise.
fn within(absent: &[&Missing]) -> String {
    if absent.iter().any(|a| a.global.is_none() && a.process.is_none()) {
        return String::new();
    }
    let ranks: Vec<u32> = absent.iter().map(|a| a.rank).collect();
    format!(", its {},", ranks_in_words(&ranks))
}
