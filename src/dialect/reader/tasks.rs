//! What the number of a launcher's task stands for.
//!
//! Owns the decision, once a source is read: `srun -l` and `mpirun` number their tasks, and a task is a rank, unless a
//! line of it says that it holds others, as where an engine starts its own workers; then it is one of the nodes. `srun`
//! names the hosts of the tasks that end. Never compares two sources.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::Heard;
use crate::event::{Event, Speaker};

/// Tasks that one line tells of, at most; no job has more.
const MOST_TASKS: u32 = 1 << 16;

/// Gives the speakers of numbered tasks the rank or the node that the number stands for.
pub(super) fn settle(heard: &mut [Heard], events: &mut [Event]) {
    if heard.iter().all(|h| h.speaker.task.is_none()) {
        return;
    }
    let ranks = heard.iter().all(is_its_rank);
    let hosts = hosts(events);
    let nodes = nodes(heard, &hosts);
    let mut settled: HashMap<Arc<Speaker>, Arc<Speaker>> = HashMap::new();
    for heard in heard.iter_mut() {
        let Some(task) = heard.speaker.task else { continue };
        let mut speaker = (*heard.speaker).clone();
        match ranks {
            true => {
                if speaker.label.is_none() && speaker.coords.is_empty() {
                    speaker.rank = speaker.rank.or(Some(task));
                }
                speaker.node = speaker.node.or_else(|| hosts.get(&task).cloned().flatten());
            }
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

/// The hosts on which tasks ran, as `srun` names them when they end; none where it names several.
fn hosts(events: &[Event]) -> HashMap<u32, Option<Arc<str>>> {
    let mut hosts: HashMap<u32, Option<Arc<str>>> = HashMap::new();
    for (host, tasks) in events.iter().filter_map(|e| ended(&e.place.text)) {
        for task in tasks.into_iter().flatten() {
            let known = hosts.entry(task).or_insert_with(|| Some(host.into()));
            *known = known.take().filter(|known| **known == *host);
        }
    }
    hosts
}

/// `srun: error: gn17: tasks 8-10,12: Terminated`: the host, and its tasks.
fn ended(line: &str) -> Option<(&str, Vec<RangeInclusive<u32>>)> {
    let (_, rest) = line.split_once("srun: error: ")?;
    let (host, rest) = rest.split_once(": task")?;
    let (tasks, _) = rest.strip_prefix('s').unwrap_or(rest).trim_start().split_once(':')?;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<u32>().ok()?, last.parse::<u32>().ok()?);
        (last.checked_sub(first)? < MOST_TASKS).then_some(first..=last)
    };
    let tasks: Option<Vec<_>> = tasks.split(',').map(range).collect();
    Some((host, tasks?))
}

/// The node of each task: the only one that its lines name, else the one that its launcher names, else the task itself.
fn nodes(heard: &[Heard], hosts: &HashMap<u32, Option<Arc<str>>>) -> BTreeMap<u32, Arc<str>> {
    let mut named: BTreeMap<u32, BTreeSet<&Arc<str>>> = BTreeMap::new();
    for heard in heard {
        if let Some(task) = heard.speaker.task {
            named.entry(task).or_default().extend(heard.speaker.node.as_ref());
        }
    }
    let name = |(task, names): (u32, BTreeSet<&Arc<str>>)| match (names.first(), names.len()) {
        (Some(only), 1) => (task, (*only).clone()),
        _ => {
            let host = hosts.get(&task).cloned().flatten();
            (task, host.unwrap_or_else(|| format!("task {task}").into()))
        }
    };
    named.into_iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn srun_names_the_host_of_each_task_that_ends() {
        assert_eq!(
            ended("srun: error: cn0412: task 1: Out Of Memory"),
            Some(("cn0412", vec![1..=1]))
        );
        assert_eq!(
            ended("srun: error: gn17: tasks 8-10,12: Terminated"),
            Some(("gn17", vec![8..=10, 12..=12]))
        );
        for other in [
            "srun: error: Unable to confirm allocation for job 12: Socket timed out",
            "srun: error: gn17: tasks 4-2: Terminated",
            "srun: error: gn17: task 0-4000000000: Terminated",
        ] {
            assert_eq!(ended(other), None, "{other}");
        }
    }
}
