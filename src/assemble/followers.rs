//! The logs of nodes that do not lead, alone.
//!
//! Owns what is said of workers that wait for the head, and of those that have done their part of a start: their node
//! never prints that the server is ready, so that their silence tells nothing. Never judges: the verdict stands already.

use crate::launch::Launches;
use crate::launch::nodes::{Nodes, workers_are_done};
use crate::report::text::capital;
use crate::verdict::Verdict;

use super::waits::{Waits, finding, ranks_in_words};

/// Phases in which a node waits for the one that leads.
const MEETINGS: [&str; 2] = ["cluster-join", "distributed-init"];

/// Tells what the nodes at hand, none of which leads, have done or wait for.
pub(super) fn tell(launches: &Launches, verdict: &Verdict, out: &mut Waits) {
    let nodes = Nodes::of(launches, verdict.attempt);
    if !nodes.only_follow() {
        return;
    }
    let heard: Vec<u32> = nodes.heard.iter().copied().collect();
    let who = match heard.is_empty() {
        true => "a node that joins another one's server".to_owned(),
        false => ranks_in_words(&heard).replacen("rank", "node", 1),
    };
    if workers_are_done(launches, verdict.attempt, usize::MAX) {
        tell_done(&who, heard.len(), out);
    } else if let (Some(address), true) = (
        nodes.led_from.as_deref().or(nodes.head.as_deref()),
        verdict.phase.as_deref().is_some_and(|phase| MEETINGS.contains(&phase)),
    ) {
        let waits = if heard.len() > 1 { "wait" } else { "waits" };
        let told = format!(
            "{} {waits} for the head at {address}, whose log is not in the input",
            capital(&who)
        );
        // Of several nodes, more than the head may be missing.
        if nodes.all <= 2 {
            out.headline = Some(told.clone());
        }
        out.findings.push(finding("node.joins", "info", &told));
    }
}

/// Tells that the workers at hand are done.
fn tell_done(who: &str, nodes: usize, out: &mut Waits) {
    let (head, did) = match nodes {
        0 => ("the node that leads", "has done its"),
        1 => ("node 0", "has done its"),
        _ => ("node 0", "have done their"),
    };
    out.headline = Some(format!(
        "{} {did} part of the start; whether the server serves stands in the log of {head}",
        capital(who)
    ));
    let told = format!(
        "The logs are of {who}, whose workers have done all that a start asks of them; a node that does not lead never \
         prints that the server is ready"
    );
    out.settled = true;
    out.sentence = Some(format!("{told}."));
    out.findings.push(finding("node.follows", "info", &told));
}
