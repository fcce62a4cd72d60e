//! What ties two names of one process, or of one node, together.
//!
//! Owns the evidence for such ties: records that name both, a node's own address, and what the kernel tells. Never
//! decides between several processes that fit: that is `processes`' work.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::files::FileHint;
use super::names::is_node_name;
use super::processes::Aliases;
use super::{Source, only};
use crate::catalog::schema::Role;
use crate::catalog::{self, Catalog};
use crate::event::{Event, ExitStatus, InputId, Speaker, Victim};
use crate::time::Stamp;

/// Setting by which a raylet gives the name of its machine beside its address.
pub const RAYLET_HOST: &str = "raylet_host";
/// Lines over which a summary tells of one process.
const RECORD: u64 = 2;
/// Signals by which a process ends of its own fault: nobody sends them to clean up after another's failure.
pub const CRASHES: [i32; 5] = [4, 6, 7, 8, 11];
/// Seconds by which an end may be noticed before the kernel's clock says so, and after.
const NOTICED: std::ops::Range<f64> = -30.0..600.0;

/// What the kernel, or its driver of GPUs, says became of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was killed.
    Killed,
    /// It ran into a fault of its own code.
    Crashed,
    /// Its GPU failed.
    LostGpu,
}

/// A process that the kernel tells of.
#[derive(Debug, Clone)]
pub struct Stricken {
    /// Pid in the host's namespace.
    pub pid: i64,
    /// Name, possibly cut.
    pub label: Option<Arc<str>>,
    /// What became of it.
    pub fate: Fate,
    /// Where the kernel tells of it.
    pub input: InputId,
    /// Which kernel.
    pub speaker: Arc<Speaker>,
    time: Option<Stamp>,
}

impl Stricken {
    /// Whether an end that was noticed at `time` can be of this process.
    pub fn fits(&self, time: Option<&Stamp>) -> bool {
        let after = time.zip(self.time.as_ref()).and_then(|(t, own)| t.seconds_since(own));
        // A zone that one of the two does not print makes the difference meaningless.
        let zones = time
            .zip(self.time.as_ref())
            .is_some_and(|(t, own)| t.offset.is_some() == own.offset.is_some());
        after.is_none_or(|s| !zones || NOTICED.contains(&s))
    }
}

/// Addresses that a node gives as its own, with the name that its other lines, or its file, use.
pub fn addresses(sources: &[Arc<Source>], files: &[FileHint]) -> Aliases {
    let mut names: HashMap<Arc<str>, Vec<Arc<str>>> = HashMap::new();
    let mut tell = |address: &Arc<str>, name: &Arc<str>| {
        let known = names.entry(address.clone()).or_default();
        if address != name && !known.contains(name) {
            known.push(name.clone());
        }
    };
    for (source, file) in sources.iter().zip(files) {
        if let (Some(node), Some("raylet")) = (&file.node, file.label.as_deref())
            && let Some(address) = source.harvest.events.iter().find_map(|e| e.victim.node.as_ref())
        {
            tell(address, node);
        }
        for heard in &source.harvest.heard {
            if let (Some(address), Some(name)) = (&heard.identity.host, node_name(&heard.speaker, file)) {
                tell(address, &name);
            }
        }
    }
    for (machine, address) in raylet_hosts(sources) {
        let known = names.entry(address).or_default();
        if known.is_empty() {
            known.push(machine);
        }
    }
    // An address that stands for several names is a router's or a bridge's.
    names
        .into_iter()
        .filter_map(|(address, names)| match names.as_slice() {
            [only] => Some((address, only.clone())),
            _ => None,
        })
        .collect()
}

/// The machines that raylets name beside their addresses, where lines call a node so and only one address is of it: one
/// machine may run the raylets of several nodes.
fn raylet_hosts(sources: &[Arc<Source>]) -> impl Iterator<Item = (Arc<str>, Arc<str>)> {
    let mut machines: BTreeMap<Arc<str>, BTreeSet<Arc<str>>> = BTreeMap::new();
    for source in sources {
        for event in &source.harvest.events {
            let Some(machine) = event.setting(RAYLET_HOST) else {
                continue;
            };
            let own = source.harvest.heard.iter().filter(|h| h.speaker == event.speaker);
            let addresses = own.filter_map(|h| h.identity.host.clone());
            machines.entry(machine.clone()).or_default().extend(addresses);
        }
    }
    let heard = || sources.iter().flat_map(|source| &source.harvest.heard);
    machines.retain(|machine, _| heard().any(|h| h.speaker.node.as_ref() == Some(machine)));
    let one = |(machine, addresses): (_, BTreeSet<_>)| Some((machine, only(addresses.into_iter())?));
    machines.into_iter().filter_map(one)
}

/// What the lines of a speaker, or its file, call its node.
pub(super) fn node_name(speaker: &Speaker, file: &FileHint) -> Option<Arc<str>> {
    // A compose service that is named for a node stands for it; others share a host.
    let service = || speaker.container.clone().filter(|name| is_node_name(name));
    speaker.node.clone().or_else(service).or_else(|| file.node.clone())
}

/// Records that name rank and pid of one process on lines of their own, as torchrun's summary does.
pub fn ranks_with_pids(sources: &[Arc<Source>]) -> Vec<(InputId, Victim)> {
    let mut pairs: Vec<(InputId, Victim)> = Vec::new();
    for source in sources {
        let events: Vec<&Event> = source.harvest.events.iter().collect();
        for (at, event) in events.iter().enumerate() {
            let told = &event.victim;
            if told.rank.is_none() || told.pid.is_some() || event.signature.is_none() {
                continue;
            }
            let next = events.get(at + 1).filter(|n| near(event, n) && n.victim.rank.is_none());
            let Some(pid) = next.and_then(|n| n.victim.pid) else {
                continue;
            };
            let before = at.checked_sub(1).and_then(|i| events.get(i)).filter(|b| near(b, event));
            let node = told.node.clone().or_else(|| before.and_then(|b| b.victim.node.clone()));
            // Every machine calls itself so.
            let node = node.filter(|node| !node.starts_with("localhost"));
            let pair = Victim {
                pid: Some(pid),
                node,
                ..told.clone()
            };
            let told = (source.input, pair);
            if !pairs.contains(&told) {
                pairs.push(told);
            }
        }
    }
    pairs
}

fn near(a: &Event, b: &Event) -> bool {
    b.place.line.abs_diff(a.place.line) <= RECORD && a.speaker == b.speaker
}

/// The processes that a kernel tells of, each once.
pub fn stricken(catalog: &Catalog, sources: &[Arc<Source>]) -> Vec<Stricken> {
    let mut stricken: Vec<Stricken> = Vec::new();
    for event in events(sources).filter(|e| is_kernel(catalog, e)) {
        let (Some(pid), Some(fate)) = (event.victim.pid, fate(catalog, event)) else {
            continue;
        };
        let same = |k: &Stricken| k.pid == pid && k.input == event.place.input && k.speaker == event.speaker;
        if !stricken.iter().any(same) {
            stricken.push(Stricken {
                pid,
                label: event.victim.label.clone(),
                fate,
                input: event.place.input,
                speaker: event.speaker.clone(),
                time: event.place.time.clone(),
            });
        }
    }
    stricken
}

fn fate(catalog: &Catalog, event: &Event) -> Option<Fate> {
    let cause = catalog.signature(event.signature)?.def.cause.as_deref()?;
    match catalog::family(cause) {
        "host-mem" => Some(Fate::Killed),
        "cuda" => Some(Fate::LostGpu),
        "process" => Some(Fate::Crashed),
        _ => None,
    }
}

/// What others than the kernel tell of processes to which such things happened: parents and agents of their ends, which
/// may not say how, and each process of its own GPU.
pub fn told_by_others<'s>(
    catalog: &'s Catalog,
    sources: &'s [Arc<Source>],
) -> impl Iterator<Item = (&'s Event, &'static [Fate])> {
    let ended = |event: &Event| {
        let role = catalog.signature(event.signature).map(|s| s.def.role);
        role == Some(Role::Exit) && !event.victim.is_empty()
    };
    let told = move |event: &Event| -> &'static [Fate] {
        match event.exit.filter(|_| !event.victim.is_empty()) {
            Some(ExitStatus::Signal(9) | ExitStatus::Gone) => &[Fate::Killed],
            Some(ExitStatus::Signal(signal)) if CRASHES.contains(&signal) => &[Fate::Crashed],
            None if ended(event) => &[Fate::Killed, Fate::Crashed],
            _ if event.speaker.explicit && fate(catalog, event) == Some(Fate::LostGpu) => &[Fate::LostGpu],
            _ => &[],
        }
    };
    let others = events(sources).filter(|e| !is_kernel(catalog, e));
    others
        .map(move |event| (event, told(event)))
        .filter(|(_, fates)| !fates.is_empty())
}

/// Settings that multiply the ranks of a launch, under each of their names.
pub(super) const SIZES: [&[&str]; 3] = [
    &["tensor_parallel_size", "tp_size"],
    &["pipeline_parallel_size", "pp_size"],
    &["data_parallel_size", "dp_size"],
];

/// Whether the launches say that they have one rank.
pub fn is_of_one_rank(sources: &[Arc<Source>]) -> bool {
    let names: Vec<&str> = SIZES.into_iter().flatten().copied().chain(["nnodes"]).collect();
    let settings = events(sources).flat_map(|e| &e.settings);
    let mut sizes = settings.filter(|(name, _)| names.contains(&&**name)).peekable();
    sizes.peek().is_some() && sizes.all(|(_, value)| &**value == "1")
}

/// What a source says of the ranks of its launch.
#[derive(Debug, Clone, Copy)]
pub struct Sizes {
    /// Ranks of a tensor-parallel group.
    pub tensor: u32,
    /// Ranks at most: data-parallel ones may lie on the same devices.
    pub most: u32,
    /// The first rank of the node that wrote it.
    pub first: Option<u32>,
}

/// The sizes that a source states, each once.
pub fn sizes(source: &Source) -> Option<Sizes> {
    let number = |names: &[&str]| {
        let settings = source.harvest.events.iter().flat_map(|e| &e.settings);
        let mut values = settings.filter(|(name, _)| names.contains(&&**name)).map(|(_, v)| v);
        let first = values.next()?;
        values.all(|v| v == first).then(|| first.parse::<u32>().ok())?
    };
    let [tensor, pipeline, data] = SIZES.map(number);
    let tensor = tensor?;
    let group = tensor.checked_mul(pipeline.unwrap_or(1))?;
    let nodes = number(&["nnodes"]).filter(|nodes| *nodes > 1 && group.is_multiple_of(*nodes));
    Some(Sizes {
        tensor,
        most: group.checked_mul(data.unwrap_or(1).max(1))?,
        first: nodes
            .zip(number(&["node_rank"]))
            .and_then(|(nodes, rank)| rank.checked_mul(group / nodes)),
    })
}

fn is_kernel(catalog: &Catalog, event: &Event) -> bool {
    catalog
        .signature(event.signature)
        .is_some_and(|s| s.def.program == "kernel")
}

fn events(sources: &[Arc<Source>]) -> impl Iterator<Item = &Event> {
    sources.iter().flat_map(|s| &s.harvest.events)
}
