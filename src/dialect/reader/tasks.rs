//! What the number of a launcher's task stands for.
//!
//! Owns the decision, once a source is read: `srun -l` and `mpirun` number their tasks, and a task is a rank, unless a
//! line of it says that it holds others, as where an engine starts its own workers; then it is one of the nodes. Never
//! compares two sources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Heard;
use crate::event::{Event, Speaker};

/// Gives the speakers of numbered tasks the rank or the node that the number stands for.
pub(super) fn settle(heard: &mut [Heard], events: &mut [Event]) {
    if heard.iter().all(|h| h.speaker.task.is_none()) {
        return;
    }
    let ranks = heard.iter().all(is_its_rank);
    let nodes = nodes(heard);
    let mut settled: HashMap<Arc<Speaker>, Arc<Speaker>> = HashMap::new();
    for heard in heard.iter_mut() {
        let Some(task) = heard.speaker.task else { continue };
        let mut speaker = (*heard.speaker).clone();
        match ranks {
            true if speaker.label.is_none() && speaker.coords.is_empty() => speaker.rank = speaker.rank.or(Some(task)),
            true => {}
            false => speaker.node = speaker.node.or_else(|| nodes.get(&task).cloned()),
        }
        let speaker = Arc::new(speaker);
        settled.insert(heard.speaker.clone(), speaker.clone());
        heard.speaker = speaker;
    }
    for event in events {
        if let Some(speaker) = settled.get(&event.speaker) {
            event.speaker = speaker.clone();
        }
    }
}

/// Whether nothing that a speaker says of its rank is another number than that of its task.
fn is_its_rank(heard: &Heard) -> bool {
    let speaker = &heard.speaker;
    let only_tp = speaker.coords.dp.is_none() && speaker.coords.pp.is_none();
    let stated = [speaker.rank, heard.identity.rank, speaker.coords.tp.filter(|_| only_tp)];
    let other = |task: u32| stated.into_iter().flatten().any(|rank| rank != task);
    !speaker.task.is_some_and(other)
}

/// The node of each task: the only one that its lines name, else the task itself.
fn nodes(heard: &[Heard]) -> BTreeMap<u32, Arc<str>> {
    let mut named: BTreeMap<u32, BTreeSet<&Arc<str>>> = BTreeMap::new();
    for heard in heard {
        if let Some(task) = heard.speaker.task {
            named.entry(task).or_default().extend(heard.speaker.node.as_ref());
        }
    }
    let name = |(task, names): (u32, BTreeSet<&Arc<str>>)| match (names.first(), names.len()) {
        (Some(only), 1) => (task, (*only).clone()),
        _ => (task, format!("task {task}").into()),
    };
    named.into_iter().map(name).collect()
}
