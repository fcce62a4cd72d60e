//! The logs of nodes that do not lead, alone.
//!
//! Owns what is said of workers that have done their part of a start: their node never prints that the server is ready,
//! so that their silence tells nothing. Never judges: the verdict stands already.

use crate::launch::Launches;
use crate::launch::nodes::{Nodes, workers_are_done};
use crate::report::text::capital;
use crate::verdict::Verdict;

use super::waits::{Waits, finding, ranks_in_words};

/// Tells that the workers at hand are done, if they are.
pub(super) fn tell(launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    let nodes = Nodes::of(launches, verdict.attempt);
    if !nodes.only_follow() || !workers_are_done(launches, verdict.attempt, usize::MAX) {
        return;
    }
    let heard: Vec<u32> = nodes.heard.iter().copied().collect();
    let who = match heard.is_empty() {
        true => "a node that joins another one's server".to_owned(),
        false => ranks_in_words(&heard).replacen("rank", "node", 1),
    };
    let head = match nodes.heard.is_empty() {
        true => "the node that leads",
        false => "node 0",
    };
    let did = if heard.len() > 1 {
        "have done their"
    } else {
        "has done its"
    };
    out.headline = Some(format!(
        "{} {did} part of the start; whether the server serves stands in the log of {head}",
        capital(&who)
    ));
    let told = format!(
        "The logs are of {who}, whose workers have done all that a start asks of them; a node that does not lead never \
         prints that the server is ready"
    );
    out.settled = true;
    out.sentence = Some(format!("{told}."));
    out.findings.push(finding("node.follows", "info", &told));
}
