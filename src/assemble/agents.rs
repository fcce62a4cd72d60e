//! The agents of a torchrun job of several nodes: how many it has, and how many of them are heard.
//!
//! Owns the wording. An agent that waited in vain did come; who did not is known where one node alone has no log.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::InputId;
use crate::launch::Launches;
use crate::launch::files::file_of;
use crate::report::model::Outcome;
use crate::report::text::capital;
use crate::verdict::Verdict;

use super::places::Names;
use super::waits::{Waits, finding};

/// The setting by which an agent says how many nodes have to come.
pub(super) const NODES: &str = "min_nodes";
/// Cause of a meeting that did not take place.
const TIMED_OUT: &str = "dist.rendezvous-timeout";
/// Nodes named.
const MOST: usize = 6;

/// Tells how many nodes never came, where the agents' own meeting is what failed, or what they are at.
pub(super) fn tell(launches: &Launches, verdict: &Verdict, names: &Names<'_>, out: &mut Waits) {
    let failed = verdict.outcome == Outcome::Failed;
    let at_meeting = match failed {
        true => verdict.cause.as_deref() == Some(TIMED_OUT),
        false => verdict.phase.as_deref() == Some("cluster-join"),
    };
    let mut all: u32 = 0;
    let mut heard: BTreeMap<(InputId, Option<Arc<str>>), String> = BTreeMap::new();
    for placed in launches.events_of(verdict.attempt) {
        let Some(nodes) = placed.event.setting(NODES).and_then(|value| value.parse::<u32>().ok()) else {
            continue;
        };
        all = all.max(nodes);
        let input = placed.event.place.input;
        let node = launches.processes.node(placed.process);
        let name = node.map_or_else(|| file_of(&names.input(input)).to_owned(), ToString::to_string);
        heard.insert((input, placed.event.speaker.node.clone()), name);
    }
    let silent = (all as usize).saturating_sub(heard.len());
    if !at_meeting || out.headline.is_some() || heard.is_empty() || silent == 0 {
        return;
    }
    let who: Vec<&str> = heard.values().take(MOST).map(String::as_str).collect();
    let more = heard.len().saturating_sub(MOST);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let who = format!("{}{more}", who.join(", "));
    let waited = match (failed, heard.len()) {
        (true, _) => "waited",
        (false, 1) => "waits",
        (false, _) => "wait",
    };
    let told = match (silent, failed) {
        (1, true) => format!("1 of {all} nodes never came: {who} {waited} for it"),
        (1, false) => format!("1 of {all} nodes is not heard: {who} {waited} for it"),
        (n, true) => {
            format!("not all of {n} of {all} nodes came, of which no log is in the input: {who} {waited} for them")
        }
        (n, false) => format!("{n} of {all} nodes are not heard: {who} {waited} for them"),
    };
    let told = capital(&told);
    out.findings.push(finding("arrival.nodes", "warning", &told));
    out.sentence = Some(format!("{told}."));
    out.headline = Some(told);
    if out.missing.is_empty() {
        out.missing.push(format!("{silent} of {all} nodes"));
    }
}
