//! What does not fit among the nodes, said as the news: which node, and which of its values is the wrong one.
//!
//! Owns the words, and the settings by which remedies name the values. Only a failure that such a misfit brings about is
//! told so.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::launch::Launches;
use crate::launch::differences::{Difference, Weight};
use crate::launch::odd::{Odd, odd};
use crate::report::model::{Finding, Outcome, Retry};
use crate::verdict::Verdict;

use super::waits::{finding, nodes_in_words, values_in_words};

/// Causes that nodes die of which do not meet.
const NOT_MET: &[&str] = &["dist.rendezvous-timeout", "dist.store-unreachable", "dist.world-size"];
/// Causes that nodes die of which cannot reach each other.
const NOT_REACHED: &[&str] = &["nccl.bootstrap-net", "dist.gloo"];
/// The cause of those whose settings somebody compared.
const REFUSED: &str = "dist.config-mismatch";

/// By what name remedies know the setting that does not fit, in words.
pub(super) const ODD_SETTING: &str = "odd_setting";

/// One misfit.
pub struct Misfit {
    /// The headline.
    pub headline: String,
    /// What is wrong, in a sentence.
    pub finding: Finding,
    /// Would the same launch end the same way?
    pub retry: Retry,
    /// The values, by the names that remedies use.
    pub settings: BTreeMap<String, String>,
}

/// The misfit that the failure comes from.
pub fn misfit(launches: &Launches, verdict: &Verdict) -> Option<Misfit> {
    let cause = verdict
        .cause
        .as_deref()
        .filter(|_| verdict.outcome == Outcome::Failed)
        .filter(|cause| NOT_MET.contains(cause) || NOT_REACHED.contains(cause) || *cause == REFUSED)?;
    let all = odd(launches, verdict.attempt);
    let fits = |odd: &&Odd| match odd {
        Odd::Address { .. } | Odd::Rank { .. } => NOT_MET.contains(&cause),
        Odd::Interface { .. } => NOT_REACHED.contains(&cause),
        Odd::Setting(difference) => match difference.weight {
            Weight::Group => NOT_MET.contains(&cause) || cause == REFUSED,
            _ => cause == REFUSED,
        },
    };
    all.iter().find(fits).map(told)
}

fn told(odd: &Odd) -> Misfit {
    let (headline, sentence, settings) = match odd {
        Odd::Address {
            node,
            told,
            head,
            right,
        } => (
            format!("{node} looks for the head at {told}, and the head ({head}) is at {right}"),
            format!("{node} was given {told} as the head's address; the head ({head}) was started with {right}"),
            vec![
                ("odd_node", node.to_string()),
                ("odd_address", told.to_string()),
                ("head_address", right.to_string()),
                ("odd_host", host(told).to_owned()),
                ("head_host", host(right).to_owned()),
            ],
        ),
        Odd::Rank { nodes, rank } => {
            let names: Vec<&str> = nodes.iter().map(|node| &**node).collect();
            let names = names.join(" and ");
            (
                format!("{names} were both started with node rank {rank}"),
                format!("{names} have node rank {rank}, so that the ranks of another node are missing"),
                vec![
                    ("same_rank_nodes", names),
                    ("same_rank", rank.to_string()),
                    ("odd_node", nodes.last().map_or_else(String::new, ToString::to_string)),
                ],
            )
        }
        Odd::Setting(difference) => return of_setting(difference),
        Odd::Interface { node, taken, right } => {
            let others = right
                .as_ref()
                .map_or_else(String::new, |right| format!("; the other nodes took {right}"));
            let mut settings = vec![("odd_node", node.to_string()), ("odd_interface", taken.to_string())];
            settings.extend(right.iter().map(|right| ("right_interface", right.to_string())));
            (
                format!("{node} offers its peers {taken}, an interface that no other node reaches"),
                format!("NCCL took {taken} on {node}, a network inside that machine{others}"),
                settings,
            )
        }
    };
    of_words(headline, &sentence, settings)
}

/// A setting of which nodes have different values: the one that differs from most, or all where none does.
fn of_setting(difference: &Difference) -> Misfit {
    let what = difference.what;
    let all = values_in_words(difference);
    let value = |value: &Option<Arc<str>>| value.as_deref().unwrap_or("none").to_owned();
    let mut settings = vec![(ODD_SETTING, what.to_owned()), ("odd_values", all.clone())];
    let (headline, undecided) = match (difference.odd_one(), difference.values.as_slice()) {
        (Some((told, nodes, right)), _) => {
            settings.push(("odd_node", nodes_in_words(nodes)));
            let was = if nodes.len() == 1 { "was" } else { "were" };
            (
                format!(
                    "{} {was} started with {what} {}, the other nodes with {}",
                    nodes_in_words(nodes),
                    value(told),
                    value(right)
                ),
                "",
            )
        }
        (None, [(a, of_a), (b, of_b)]) => (
            format!(
                "{} was started with {what} {}, {} with {}",
                nodes_in_words(of_a),
                value(a),
                nodes_in_words(of_b),
                value(b)
            ),
            "; which of them is right the log does not tell",
        ),
        _ => (
            format!("The nodes were started with different values of {what}: {all}"),
            "; which of them is right the log does not tell",
        ),
    };
    let sentence = format!("All nodes have to be started with one {what}: it is {all}{undecided}");
    of_words(headline, &sentence, settings)
}

fn of_words(headline: String, sentence: &str, settings: Vec<(&str, String)>) -> Misfit {
    Misfit {
        headline,
        finding: finding("nodes.misfit", "warning", sentence),
        retry: Retry {
            verdict: "after-change".to_owned(),
            why: "The same command gives the same values.".to_owned(),
            same_node: None,
            after: Some("the value of that node is corrected".to_owned()),
        },
        settings: settings
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    }
}

/// The host of `host:port`.
fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}
