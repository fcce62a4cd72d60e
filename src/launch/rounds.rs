//! Outputs that hold one launch after the other.
//!
//! Owns the order of whole launches that were written to files of their own: `run1.log`, `run2.log`. They are attempts
//! where one ends before the next begins, by the stamps of both, and neither says that it is another node of the other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Source;
use super::files::{FileHint, output, part_in_name};
use super::relation::{Own, Span, own_launch};
use super::servers::Servers;
use crate::catalog::Catalog;

/// Seconds by which the last words of a launch may trail behind the first ones of the next.
const TRAILING: f64 = 1.0;

/// Seconds after which a launch is another one wherever it ran. Nodes whose stamps are in different zones, which vLLM's
/// and SGLang's do not tell, seem to begin up to 14 hours apart.
const APART: f64 = 14.0 * 3600.0;

/// Which outputs belong to which launch of several in a row.
#[derive(Debug, Clone, Default)]
pub struct Rounds {
    /// Of each source, in the order of the sources; none where it shows no launch of its own.
    of: Vec<Option<usize>>,
    count: usize,
    servers: Servers,
}

/// An output that shows a launch from its beginning.
struct Whole {
    sources: Vec<usize>,
    span: Span,
    place: String,
    own: Own,
    /// Whether it does not say that it is one of several nodes or servers.
    alone: bool,
}

impl Rounds {
    /// Puts the outputs in order.
    pub(super) fn of(catalog: &Catalog, sources: &[Arc<Source>]) -> Self {
        let mut rounds = Self {
            of: vec![None; sources.len()],
            count: 1,
            servers: Servers::default(),
        };
        if sources.len() < 2 {
            return rounds;
        }
        let mut outputs: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, source) in sources.iter().enumerate() {
            outputs.entry(output(&source.name)).or_default().push(at);
        }
        let mut wholes: Vec<Whole> = outputs
            .into_values()
            .filter_map(|parts| whole(catalog, sources, parts))
            .collect();
        for whole in &wholes {
            let inputs = whole.sources.iter().filter_map(|&at| sources.get(at));
            rounds.servers.add(inputs.map(|s| s.input), &whole.own, whole.alone);
        }
        // Where two stamps cannot be compared, there is no order to speak of.
        let Some(base) = wholes.first().map(|w| w.span.0.clone()) else {
            return rounds;
        };
        let seconds = |w: &Whole| w.span.0.seconds_since(&base);
        if wholes.iter().any(|w| seconds(w).is_none()) {
            return rounds;
        }
        wholes.sort_by(|a, b| seconds(a).unwrap_or(0.0).total_cmp(&seconds(b).unwrap_or(0.0)));
        let mut round = 0;
        let mut end = None;
        let mut places: BTreeSet<String> = BTreeSet::new();
        for whole in wholes {
            let over = end.as_ref().and_then(|end| whole.span.0.seconds_since(end));
            // A node that comes late is no second launch; the same place again is, and what comes much later.
            let again = |seconds: f64| seconds >= -TRAILING && places.contains(&whole.place) || seconds > APART;
            if over.is_some_and(again) {
                round += 1;
                end = None;
                places.clear();
            }
            end = match end {
                Some(end) if whole.span.1.seconds_since(&end).is_none_or(|s| s < 0.0) => Some(end),
                _ => Some(whole.span.1),
            };
            places.insert(whole.place);
            for at in whole.sources {
                if let Some(slot) = rounds.of.get_mut(at) {
                    *slot = Some(round);
                }
            }
        }
        rounds.count = round + 1;
        rounds
    }

    /// Number of rounds, at least 1.
    pub fn count(&self) -> usize {
        self.count.max(1)
    }

    /// The servers that do not meet.
    pub(super) fn into_servers(self) -> Servers {
        self.servers
    }

    /// The round of a source.
    pub fn round(&self, source: usize) -> Option<usize> {
        self.of.get(source).copied().flatten()
    }
}

fn whole(catalog: &Catalog, sources: &[Arc<Source>], parts: Vec<usize>) -> Option<Whole> {
    let of = |at: &usize| sources.get(*at);
    let owns = parts
        .iter()
        .filter_map(of)
        .filter(|s| !FileHint::of(&s.name).ray_session);
    let owns: Vec<Own> = owns.filter_map(|s| own_launch(catalog, s)).collect();
    // The agents of a torchrun job may each print no more than how its own part ended.
    let first = owns.first().filter(|own| &*own.program != "torch")?;
    let span = parts
        .iter()
        .filter_map(of)
        .filter_map(|s| super::relation::span(s))
        .reduce(super::relation::both)?;
    let node = of(parts.first()?)
        .and_then(|s| part_in_name(&s.name))
        .unwrap_or_default();
    Some(Whole {
        alone: first.place().is_empty() && node.is_empty(),
        place: format!("{node} {}", first.place()),
        own: first.clone(),
        sources: parts,
        span,
    })
}
