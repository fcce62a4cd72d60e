//! Outputs that hold one launch after the other.
//!
//! Owns the order of whole launches that were written to files of their own: `run1.log`, `run2.log`. They are attempts
//! where one ends before the next begins, by the stamps of both, and neither says that it is another node of the other.
//! So are the folders in which torchrun keeps what its processes print of each try, and the sessions of Ray clusters that ran one after the other, each with the launch that ran on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Source;
use super::clusters::{self, Cluster, overlap};
use super::files::{FileHint, attempt_folder, output, part_in_name};
use super::relation::{Own, Span, both, own_launch, span, widen};
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
    /// Of each source, which of several clusters it is of.
    clusters: Vec<Option<usize>>,
    /// Whether clusters of their own tell the rounds apart.
    by_cluster: bool,
    /// Whether folders of their own do.
    by_folder: bool,
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
            ..Self::default()
        };
        if sources.len() < 2 {
            return rounds;
        }
        rounds.of_outputs(catalog, sources);
        rounds.of_clusters(sources);
        rounds.of_folders(sources);
        rounds
    }

    /// What the processes of an agent print of each of its tries lies in a folder with its number. The last try of all
    /// nodes is the same; one that saw fewer was started anew for another's sake.
    fn of_folders(&mut self, sources: &[Arc<Source>]) {
        let folders: Vec<Option<(String, u32)>> = sources.iter().map(|s| attempt_folder(&s.name)).collect();
        let mut tries: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
        for (run, number) in folders.iter().flatten() {
            tries.entry(run).or_default().insert(*number);
        }
        let count = tries.values().map(BTreeSet::len).max().unwrap_or(0);
        if count < 2 || self.count > 1 || !self.clusters.is_empty() {
            return;
        }
        let round = |(run, number): &(String, u32)| {
            let own = tries.get(run.as_str())?;
            Some(count - own.range(number..).count())
        };
        self.of = folders.iter().map(|folder| round(folder.as_ref()?)).collect();
        self.count = count;
        self.by_folder = true;
    }

    /// Launches that were written to files of their own.
    fn of_outputs(&mut self, catalog: &Catalog, sources: &[Arc<Source>]) {
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
            self.servers.add(inputs.map(|s| s.input), &whole.own, whole.alone);
        }
        if !sort_by_start(&mut wholes, |whole| &whole.span) {
            return;
        }
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
            number(&mut self.of, &whole.sources, round);
        }
        self.count = round + 1;
    }

    /// Clusters of their own, each with what ran on it. What ran on several, and a cluster that several launches ran on
    /// one after the other, was there all the time: then time alone tells.
    fn of_clusters(&mut self, sources: &[Arc<Source>]) {
        let clusters = clusters::several(sources);
        if clusters.is_empty() {
            return;
        }
        self.clusters = vec![None; sources.len()];
        for (of, cluster) in clusters.iter().enumerate() {
            number(&mut self.clusters, &cluster.sources, of);
        }
        let Some(units) = self.units(sources, &clusters) else {
            return;
        };
        let mut in_order = units.iter().zip(units.iter().skip(1));
        let apart = in_order.all(|((a, _), (b, _))| overlap(a, b) == Some(false));
        if units.len() < 2 || !apart {
            return;
        }
        self.by_cluster = true;
        self.count = units.len();
        self.of = vec![None; sources.len()];
        for (round, (_, members)) in units.iter().enumerate() {
            number(&mut self.of, members, round);
        }
        // An output without a launch of its own is of the cluster during whose life it was written.
        let free = self.of.iter_mut().zip(sources).filter(|(of, _)| of.is_none());
        for (of, source) in free {
            *of = span(source).and_then(|own| match beside(&units, &own).as_slice() {
                [only] => Some(*only),
                _ => None,
            });
        }
    }

    /// The clusters in order of time, each with the outputs that were written during its life; an output during whose
    /// life none ran stands for itself. None where they do not fit together one to one.
    fn units(&self, sources: &[Arc<Source>], clusters: &[Cluster]) -> Option<Vec<Unit>> {
        let mut units: Vec<Unit> = Vec::new();
        for cluster in clusters {
            units.push((cluster.span.clone()?, cluster.sources.clone()));
        }
        let mut rounds: BTreeMap<usize, (Option<Span>, Vec<usize>)> = BTreeMap::new();
        for (at, (round, source)) in self.of.iter().zip(sources).enumerate() {
            let Some(round) = round else { continue };
            let (all, members) = rounds.entry(*round).or_default();
            widen(all, source);
            members.push(at);
        }
        let mut alone = Vec::new();
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        for (own, members) in rounds.into_values() {
            let own = own?;
            match beside(&units, &own).as_slice() {
                [] => alone.push((own, members)),
                [only] if taken.insert(*only) => {
                    if let Some((all, sources)) = units.get_mut(*only) {
                        *all = both(all.clone(), own);
                        sources.extend(members);
                    }
                }
                _ => return None,
            }
        }
        units.extend(alone);
        sort_by_start(&mut units, |unit| &unit.0).then_some(units)
    }

    /// Number of rounds, at least 1.
    pub fn count(&self) -> usize {
        self.count.max(1)
    }

    /// The servers that do not meet, as far as each has an output of its own.
    pub(super) fn servers(&self) -> Servers {
        self.servers.clone()
    }

    /// Which of several clusters a source is of.
    pub(super) fn cluster(&self, source: usize) -> Option<usize> {
        self.clusters.get(source).copied().flatten()
    }

    /// Whether sessions of their own tell the rounds apart: a source in one shows only a part of its launches.
    pub(super) fn by_cluster(&self) -> bool {
        self.by_cluster
    }

    /// The round in which alone the names and pids of a source are those of its processes: each session may be one of a
    /// container of its own, which counts from 1 again, and each try has its own process of a rank.
    pub(super) fn scope(&self, source: usize) -> Option<usize> {
        self.round(source).filter(|_| self.by_cluster || self.by_folder)
    }

    /// The round of a source.
    pub fn round(&self, source: usize) -> Option<usize> {
        self.of.get(source).copied().flatten()
    }
}

/// Gives members their number.
fn number(of: &mut [Option<usize>], members: &[usize], number: usize) {
    for &at in members {
        if let Some(slot) = of.get_mut(at) {
            *slot = Some(number);
        }
    }
}

/// Puts what has a span in the order in which it began. Where there is nothing, or two stamps cannot be compared, there
/// is no order to speak of.
fn sort_by_start<T>(all: &mut [T], span: impl Fn(&T) -> &Span) -> bool {
    let Some(base) = all.first().map(|first| span(first).0.clone()) else {
        return false;
    };
    let seconds = |one: &T| span(one).0.seconds_since(&base);
    if all.iter().any(|one| seconds(one).is_none()) {
        return false;
    }
    all.sort_by(|a, b| seconds(a).unwrap_or(0.0).total_cmp(&seconds(b).unwrap_or(0.0)));
    true
}

/// When a cluster ran, with the sources that are of it.
type Unit = (Span, Vec<usize>);

/// The units that ran when something else did.
fn beside(units: &[Unit], own: &Span) -> Vec<usize> {
    let ran = |(_, (span, _)): &(usize, &Unit)| overlap(span, own) == Some(true);
    units.iter().enumerate().filter(ran).map(|(at, _)| at).collect()
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
