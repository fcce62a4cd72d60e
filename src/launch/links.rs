//! What ties two names of one process, or of one node, together.
//!
//! Owns the evidence for such ties: records that name both, a node's own address, and the kernel's kills. Never
//! decides between several processes that fit: that is `processes`' work.

use std::collections::HashMap;
use std::sync::Arc;

use super::Source;
use super::files::FileHint;
use super::processes::Aliases;
use crate::catalog::Catalog;
use crate::event::{Event, ExitStatus, InputId, Speaker, Victim};
use crate::time::Stamp;

/// Lines over which a summary tells of one process.
const RECORD: u64 = 2;
/// Seconds by which an end may be noticed before the kernel's clock says so, and after.
const NOTICED: std::ops::Range<f64> = -30.0..600.0;

/// A process that the kernel killed.
#[derive(Debug, Clone)]
pub struct Killed {
    /// Pid in the host's namespace.
    pub pid: i64,
    /// Name, possibly cut.
    pub label: Option<Arc<str>>,
    /// Where the kernel tells of it.
    pub input: InputId,
    /// Which kernel.
    pub speaker: Arc<Speaker>,
    time: Option<Stamp>,
}

impl Killed {
    /// Whether an end that was noticed at `time` can be this kill.
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
            let name = heard.speaker.node.as_ref().or(file.node.as_ref());
            if let (Some(address), Some(name)) = (&heard.identity.host, name) {
                tell(address, name);
            }
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

/// The processes that a kernel says it killed, each once.
pub fn killed_by_kernel(catalog: &Catalog, sources: &[Arc<Source>]) -> Vec<Killed> {
    let mut killed: Vec<Killed> = Vec::new();
    for event in events(sources).filter(|e| is_kernel(catalog, e)) {
        let Some(pid) = event.victim.pid else { continue };
        let same = |k: &Killed| k.pid == pid && k.input == event.place.input && k.speaker == event.speaker;
        if !killed.iter().any(same) {
            killed.push(Killed {
                pid,
                speaker: event.speaker.clone(),
                label: event.victim.label.clone(),
                input: event.place.input,
                time: event.place.time.clone(),
            });
        }
    }
    killed
}

/// What parents and agents tell of processes that ended by SIGKILL.
pub fn ended_by_sigkill<'s>(catalog: &Catalog, sources: &'s [Arc<Source>]) -> impl Iterator<Item = &'s Event> {
    events(sources)
        .filter(|e| !is_kernel(catalog, e) && e.exit == Some(ExitStatus::Signal(9)))
        .filter(|e| !e.victim.is_empty())
}

/// Settings that give a launch more than one rank.
const SIZES: [&str; 6] = [
    "tensor_parallel_size",
    "tp_size",
    "pipeline_parallel_size",
    "pp_size",
    "data_parallel_size",
    "nnodes",
];

/// Whether the launches say that they have one rank.
pub fn is_of_one_rank(sources: &[Arc<Source>]) -> bool {
    let settings = || events(sources).flat_map(|e| &e.settings);
    let mut sizes = settings().filter(|(name, _)| SIZES.contains(&&**name)).peekable();
    sizes.peek().is_some() && sizes.all(|(_, value)| &**value == "1")
}

fn is_kernel(catalog: &Catalog, event: &Event) -> bool {
    catalog
        .signature(event.signature)
        .is_some_and(|s| s.def.program == "kernel")
}

fn events(sources: &[Arc<Source>]) -> impl Iterator<Item = &Event> {
    sources.iter().flat_map(|s| &s.harvest.events)
}
