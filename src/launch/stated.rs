//! Which of a launch's nodes a file is of, by what its own lines state.
//!
//! Owns the naming of nodes that neither a host in the lines nor the names of files tell apart: by node rank, by the first
//! data-parallel rank, and by joining a head. Never looks at the names of folders.

use std::collections::BTreeSet;

use super::files::{FileHint, bare, file_of, only_host};
use super::{Source, only};

/// Which node of a launch a file is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'a> {
    /// The one with this number.
    Node(&'a str),
    /// The one whose data-parallel ranks begin with this one.
    From(&'a str),
    /// One that joins a head and does not say as which.
    Joins,
    /// The one that leads, where its settings say that others join it.
    Leads,
}

impl Place<'_> {
    /// What to call the node where no file's name does.
    fn name(self) -> String {
        match self {
            Self::Node(rank) => format!("node {rank}"),
            Self::From(rank) => format!("node of rank {rank}"),
            Self::Joins => "joining node".to_owned(),
            Self::Leads => "head".to_owned(),
        }
    }
}

/// Names the nodes of files that nothing else names, where each states which of the launch's nodes it is of.
pub(super) fn name_nodes(sources: &[std::sync::Arc<Source>], hints: &mut [FileHint]) {
    let mut all: Vec<(usize, Place<'_>)> = sources
        .iter()
        .enumerate()
        .filter_map(|(at, source)| Some((at, place(source)?)))
        .filter(|(at, _)| hints.get(*at).is_some_and(|h| h.node.is_none() && !h.observer))
        .collect();
    // Two that join may be two nodes, or one that was started again.
    if all.iter().filter(|(_, place)| *place == Place::Joins).count() > 1 {
        all.retain(|(_, place)| *place != Place::Joins);
    }
    let places: BTreeSet<Place<'_>> = all.iter().map(|(_, place)| *place).collect();
    if places.len() < 2 {
        return;
    }
    let name = |at: usize| sources.get(at).map_or("", |source| bare(file_of(&source.name)));
    for place in places {
        let own = || all.iter().filter(|(_, p)| *p == place).map(|(at, _)| *at);
        let names: BTreeSet<&str> = own().map(name).collect();
        let others = all.iter().filter(|(_, p)| *p != place);
        let others: BTreeSet<&str> = others.map(|(at, _)| name(*at)).collect();
        let node = match names.first() {
            Some(only) if names.len() == 1 && !others.contains(only) => (*only).to_owned(),
            _ => place.name(),
        };
        for at in own() {
            if let Some(hint) = hints.get_mut(at) {
                hint.node = Some(node.as_str().into());
            }
        }
    }
}

/// The one place that a source states, if its lines name no host.
fn place(source: &Source) -> Option<Place<'_>> {
    let settings = || source.harvest.events.iter().flat_map(|e| &e.settings);
    let values = |wanted: &str| -> BTreeSet<&str> {
        let stated = settings().filter(|(name, _)| &**name == wanted);
        stated.map(|(_, value)| &**value).collect()
    };
    let one = |wanted: &str| only(values(wanted).into_iter());
    let count = |wanted: &str| one(wanted)?.parse::<u32>().ok();
    if only_host(source).is_some() {
        return None;
    }
    if !values("node_rank").is_empty() {
        return one("node_rank").map(Place::Node);
    }
    let first = || one("data_parallel_start_rank").map(Place::From);
    let joins = || one("head_node").map(|_| Place::Joins);
    // What is left at its default, as the first rank of the head, is not printed.
    let others = || Some(count("data_parallel_size_local")? < count("data_parallel_size")?);
    first().or_else(joins).or_else(|| others()?.then_some(Place::Leads))
}
