//! A log that stops: the last sign of life of each process, what it waits for, and what that most likely is.
//!
//! Owns the measure of silence: up to the last stamp of any source, or to the time of collection. Names causes that the
//! catalog calls likely for a phase; no line states them.

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::launch::arrival::Arrival;
use crate::launch::processes::{Process, ProcessId, ProcessRole};
use crate::report::model::Alternative;
use crate::report::text::{self, capital};
use crate::time::Stamp;
use crate::verdict::Verdict;

use super::absent;
use super::facts::Facts;
use super::waits::{Waits, finding, processes_in_words, ranks_in_words};

/// Seconds of silence below which a process may just be working.
const SILENT: f64 = 30.0;
/// Seconds of silence that work in few phases takes.
const LONG: f64 = 300.0;
/// How much less a cause is likely before so long a silence, or where its length is not known.
const EARLY: f64 = 0.5;
/// How likely a request that is known to wait is what the launch waits for.
const REQUESTED: f64 = 0.6;
/// Groups of silent processes told of.
const MAX_GROUPS: usize = 8;
/// Causes told of.
const MAX_CAUSES: usize = 3;

/// Processes that fell silent together.
struct Group<'l> {
    phase: String,
    at: &'l Stamp,
    silent: Option<f64>,
    waits: String,
    /// Whether they are the innermost ones, for which the others wait.
    inner: bool,
    /// Whether the others may wait for one of them.
    missed: bool,
    processes: Vec<&'l Process>,
}

/// The last sign of life of each process, symmetric ones together, and the likeliest causes.
pub fn tell(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    facts: &Facts,
    arrival: Option<&Arrival>,
    now: Option<&Stamp>,
    out: &mut Waits,
) {
    let mut groups = groups(launches, verdict, arrival, now);
    let known = groups.iter().any(|g| g.silent.is_some_and(|s| s >= SILENT));
    if known {
        groups.retain(|g| g.silent.is_some_and(|s| s >= SILENT));
    } else if now.is_some() {
        // Whoever spoke just before the log was collected is at work.
        return;
    }
    let against = if now.is_some() {
        "the time the log was collected"
    } else {
        "the last stamp of any input"
    };
    for group in groups.iter().take(MAX_GROUPS) {
        let who = capital(&processes_in_words(&group.processes));
        let place = match group.phase.as_str() {
            "" => String::new(),
            phase => format!(" in {phase}"),
        };
        let (at, waits) = (group.at.printed(), &group.waits);
        let told = match group.silent.filter(|_| known) {
            Some(seconds) => {
                let title = format!(
                    "{who}: last line at {at}{place}, silent for {} up to {against}; {waits}",
                    text::span(seconds)
                );
                finding("stuck.silent", "warning", &title)
            }
            None => {
                let title = format!(
                    "{who}: last line at {at}{place}; for how long it has been silent is not known without the time the \
                     log was collected (--now)"
                );
                finding("stuck.last", "info", &title)
            }
        };
        out.findings.push(told);
    }
    let first = groups.iter().find(|g| known && g.inner && !g.phase.is_empty());
    let Some(phase) = first.map(|g| g.phase.as_str()).or(verdict.phase.as_deref()) else {
        return;
    };
    let fell_silent = first.map_or_else(
        || format!("the log ends in {phase}"),
        |g| format!("{} fell silent in {phase}", processes_in_words(&g.processes)),
    );
    let named: Vec<String> = out.alternatives.iter().map(|a| a.id.clone()).collect();
    let several = has_peers(launches, verdict, facts);
    let likely = likely(catalog, facts, several, phase, first.and_then(|g| g.silent));
    let met = arrival.is_some_and(|a| a.met && a.absent.is_empty());
    let likely = likely
        .into_iter()
        .filter(|(id, _)| !(met && OF_MEETING.contains(&id.as_str())));
    let likely = likely.filter(|(id, _)| !named.contains(id));
    for (id, confidence) in likely.take(MAX_CAUSES) {
        let request = facts.request().filter(|_| id == UNPLACED);
        out.alternatives.push(Alternative {
            title: catalog.title(&id),
            why: request.map_or_else(|| fell_silent.clone(), |asked| format!("{asked} waits for a place")),
            why_not: "nothing has failed: it may be at work still, or the log be cut".to_owned(),
            id,
            confidence,
        });
    }
    if let Some(best) = out.alternatives.first().filter(|_| out.sentence.is_none()) {
        let share = text::percent(best.confidence);
        out.sentence = Some(format!(
            "If it hangs, the likeliest cause is {} ({share}): {}.",
            best.id, best.why
        ));
    }
}

/// Causes of which a process without peers cannot fall silent.
const OF_PEERS: [&str; 3] = ["nccl.", "dist.", "model.peer-load-timeout"];
/// Causes for which ranks do not meet.
const OF_MEETING: [&str; 2] = ["dist.rendezvous-timeout", "nccl.bootstrap-net"];
/// Settings above one that give a launch several processes with a device.
const SIZES: [&str; 7] = [
    "tensor_parallel_size",
    "tp_size",
    "pipeline_parallel_size",
    "pp_size",
    "data_parallel_size",
    "dp_size",
    "nnodes",
];

/// Whether several processes hold a device, as far as the log tells.
fn has_peers(launches: &Launches, verdict: &Verdict, facts: &Facts) -> bool {
    let active = launches.active(verdict.attempt);
    let processes = || active.iter().map(|&i| launches.processes.get(ProcessId(i)));
    let workers = processes().filter(|p| !p.absorbed && p.role.is_worker_like()).count();
    let set = |name: &&str| facts.settings.get(*name).and_then(|v| v.parse::<u32>().ok());
    workers > 1
        || processes().any(|p| p.identity.world_size.is_some_and(|size| size > 1))
        || SIZES.iter().filter_map(set).any(|size| size > 1)
}

/// The cause of a request that Ray cannot place.
const UNPLACED: &str = "ray.insufficient-resources";

/// What a silence in a phase most likely is, best first.
fn likely(catalog: &Catalog, facts: &Facts, several: bool, phase: &str, silent: Option<f64>) -> Vec<(String, f64)> {
    let weight = if silent.is_some_and(|s| s >= LONG) { 1.0 } else { EARLY };
    let of_peers = |id: &str| OF_PEERS.iter().any(|family| id.starts_with(family));
    let of_ray = |id: &str| id.starts_with("ray.");
    let possible = |id: &str| (several || !of_peers(id)) && (!of_ray(id) || facts.under.contains(&"ray"));
    let mut out: Vec<(String, f64)> = catalog
        .causes()
        .filter(|cause| possible(&cause.id))
        .filter_map(|cause| Some((cause.id.clone(), cause.silent_in.get(phase)? * weight)))
        .collect();
    if facts.request().is_some() {
        for (_, confidence) in out.iter_mut().filter(|(id, _)| id == UNPLACED) {
            *confidence = REQUESTED;
        }
    }
    out.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    out
}

fn groups<'l>(
    launches: &'l Launches,
    verdict: &Verdict,
    arrival: Option<&Arrival>,
    now: Option<&Stamp>,
) -> Vec<Group<'l>> {
    let active = launches.active(verdict.attempt);
    let all: Vec<(usize, &Process)> = active
        .iter()
        .map(|&i| (i, launches.processes.get(ProcessId(i))))
        .filter(|(_, p)| !p.absorbed && p.last_line.1 > 0)
        .collect();
    let innermost = all.iter().map(|(_, p)| p.role).max();
    let engine = innermost.is_some_and(ProcessRole::is_engine);
    // The end of the log, by the clock that all others are set against.
    let ahead = |p: &Process| launches.clocks.ahead(p.node.as_ref());
    let last = launches
        .processes
        .all()
        .iter()
        .filter_map(|p| Some((p.last.as_ref()?, ahead(p))))
        .reduce(|a, b| {
            let after = b.0.seconds_since(a.0).map(|s| s - b.1 + a.1);
            if after.is_some_and(|s| s > 0.0) { b } else { a }
        });
    let end = now.map(|now| (now, 0.0)).or(last);
    // Whole seconds tell symmetric processes together.
    let mut groups: BTreeMap<(String, Option<i64>, String), Group<'l>> = BTreeMap::new();
    for (index, process) in all {
        let machine = launches.machine(verdict.attempt, ProcessId(index));
        let phase = machine.and_then(|m| m.last()).unwrap_or("").to_owned();
        let of_engine = process.role.is_engine()
            || !engine && matches!(process.role, ProcessRole::Main | ProcessRole::Driver) && !phase.is_empty();
        let missed = arrival
            .filter(|_| process.rank.is_none())
            .and_then(|a| missed_as(a, ProcessId(index)));
        let Some(at) = process.last.as_ref().filter(|_| of_engine || missed.is_some()) else {
            continue;
        };
        let since = |(end, end_ahead): (&Stamp, f64)| Some(end.seconds_since(at)? - end_ahead + ahead(process));
        let silent = end.and_then(since);
        let is_missed = missed.is_some();
        let inner = Some(process.role) == innermost;
        let came = |a: &&Arrival| !a.absent.is_empty() && process.rank.is_some_and(|r| a.came.contains(&r));
        let waits = match (missed, arrival.filter(came)) {
            (Some(missed), _) => missed,
            (None, Some(arrival)) => absent::waited_for(arrival),
            (None, None) if inner => waits_for(&phase).to_owned(),
            (None, None) => "waiting for the processes that it started".to_owned(),
        };
        let key = (phase.clone(), silent.map(|s| s as i64), waits.clone());
        let group = groups.entry(key).or_insert(Group {
            phase,
            at,
            silent,
            waits,
            inner: inner || is_missed,
            missed: is_missed,
            processes: Vec::new(),
        });
        group.processes.push(process);
    }
    let mut groups: Vec<Group<'l>> = groups.into_values().collect();
    groups.sort_by_key(|g| std::cmp::Reverse((g.missed, g.silent.map(|s| s as i64))));
    groups
}

/// What a process that the others may wait for does, which has no rank of its own to be told by.
fn missed_as(arrival: &Arrival, process: ProcessId) -> Option<String> {
    let of_process = arrival.absent.iter().filter(|a| a.process == Some(process));
    let ranks: Vec<u32> = of_process.map(|a| a.rank).collect();
    let may = match ranks.len() {
        0 => return None,
        1 => "may be the one of",
        _ => "may be one of",
    };
    Some(format!(
        "it {may} {}, for which the others wait",
        ranks_in_words(&ranks)
    ))
}

/// What a process in a phase most often waits for.
fn waits_for(phase: &str) -> &'static str {
    match phase {
        "process-start" | "config" => {
            "imports and configuration need the file system and, for a hub model, the network"
        }
        "cluster-join" => "waiting for nodes, resources or workers of the cluster",
        "device-init" => "waiting for the driver or for the peers to join",
        "distributed-init" => "waiting for its peers, or for connections to them",
        "model-fetch" => "waiting for a download",
        "weight-load" => "reading weights, or waiting for ranks that still do",
        "memory-profile" | "warmup" => "working on the device, or waiting in a collective for a peer",
        "compile" => "compiling, which may take minutes without a line",
        "kv-cache" => "waiting for the other ranks' memory figures",
        "graph-capture" => "capturing, or waiting in a collective for a peer",
        "serve-start" => "waiting for the engine to answer",
        _ => "what it waits for is not known",
    }
}
