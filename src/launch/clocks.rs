//! How far the clocks of nodes are apart.
//!
//! Owns the estimate, from moments that two clocks stamped both: the end of a meeting of all ranks, and the lines of one
//! node that another's output relays between its own. Claims nothing where the clocks may agree: all offsets are 0 then.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::processes::{ProcessId, Processes};
use super::servers::Servers;
use super::sizes::NCCL_MEETING;
use super::{STARTED_WITHIN, Source};
use crate::catalog::Catalog;
use crate::event::{Event, InputId, Program, SignatureId};
use crate::time::Stamp;

/// Seconds within which all ranks print the end of one meeting.
const TOGETHER: f64 = 5.0;
/// Seconds that a line may take from its process to the output that relays it.
const RELAYED: f64 = 10.0;
/// Changes of the speaking clock from which on an output counts as interleaved. Fewer may be parts put one behind the
/// other, which tells nothing of time.
const INTERLEAVED: usize = 4;
/// Seconds by which clocks that nothing compares may be apart: more than those that are set right from time to time are.
const UNCOMPARED: f64 = 5.0;
/// Seconds between the zones that machines are set to.
const HALF_HOUR: f64 = 1800.0;
/// Seconds between the first zone and the last.
const MOST_ZONES: f64 = 26.0 * 3600.0;
/// Zones are multiples of a quarter of an hour apart, in seconds.
const ZONE: f64 = 900.0;

/// Whose clock made a stamp: a node's, or that of a source whose node is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Clock {
    Node(Arc<str>),
    Source(InputId),
}

/// A clock that does not agree with the one that all are set against.
#[derive(Debug, Clone, PartialEq)]
pub struct Apart {
    /// Its node.
    pub node: Arc<str>,
    /// Node of the clock it is set against, if that has a name.
    pub against: Option<Arc<str>>,
    /// Seconds by which it is ahead; negative if it is behind.
    pub ahead: f64,
    /// Whether that is a difference of time zones.
    pub zone: bool,
    /// Lines of one moment: by the clock that it is set against, and by its own.
    pub moment: [(InputId, u64); 2],
}

/// The clocks of an examination.
#[derive(Debug, Clone, Default)]
pub struct Clocks {
    apart: BTreeMap<Arc<str>, Apart>,
    /// The nodes whose clocks some moment compares with the one that all are set against, and that one's.
    compared: BTreeSet<Arc<str>>,
    /// When each node's first line was written, by its own clock, seconds.
    began: BTreeMap<Arc<str>, f64>,
}

impl Clocks {
    /// Estimates the clocks of all sources.
    pub(super) fn estimate(
        catalog: &Catalog,
        sources: &[Arc<Source>],
        processes: &Processes,
        servers: &Servers,
    ) -> Self {
        let base = sources
            .iter()
            .flat_map(|s| &s.harvest.events)
            .find_map(|e| e.place.time.as_ref());
        let Some(base) = base else {
            return Self::default();
        };
        let per_source: Vec<Vec<Tick<'_>>> = sources.iter().map(|s| ticks(s, processes, base)).collect();
        let mut counts: BTreeMap<&Clock, usize> = BTreeMap::new();
        let mut began: BTreeMap<Arc<str>, f64> = BTreeMap::new();
        for tick in per_source.iter().flatten() {
            *counts.entry(&tick.clock).or_default() += 1;
            if let Clock::Node(node) = &tick.clock {
                let first = began.entry(node.clone()).or_insert(tick.seconds);
                *first = first.min(tick.seconds);
            }
        }
        // All are set against the one that is read most.
        let most = counts.iter().max_by_key(|(clock, n)| (**n, std::cmp::Reverse(**clock)));
        let Some((&reference, _)) = most else {
            return Self::default();
        };
        let mut bounds: BTreeMap<&Clock, Bounds> = BTreeMap::new();
        meetings(catalog, servers, &per_source, reference, &mut bounds);
        for ticks in &per_source {
            relays(ticks, reference, &mut bounds);
        }
        let against = match reference {
            Clock::Node(node) => Some(node.clone()),
            Clock::Source(_) => None,
        };
        let known = |(clock, bounds): (&&Clock, &Bounds)| match clock {
            Clock::Node(node) if bounds.low.is_finite() && bounds.high.is_finite() => Some(node.clone()),
            _ => None,
        };
        let compared = bounds.iter().filter_map(known).chain(against.clone()).collect();
        let apart = bounds.into_iter().filter_map(|(clock, bounds)| {
            let Clock::Node(node) = clock else { return None };
            let (ahead, zone) = bounds.ahead()?;
            let apart = Apart {
                node: node.clone(),
                against: against.clone(),
                ahead,
                zone,
                moment: bounds.moment?,
            };
            Some((node.clone(), apart))
        });
        Self {
            apart: apart.collect(),
            compared,
            began,
        }
    }

    /// The clocks that do not agree with the others, by node.
    pub fn apart(&self) -> impl Iterator<Item = &Apart> {
        self.apart.values()
    }

    /// Whether the clocks of two nodes are one, or known to be as far apart as is told.
    pub fn are_comparable(&self, a: Option<&Arc<str>>, b: Option<&Arc<str>>) -> bool {
        let known = |node: Option<&Arc<str>>| node.is_none_or(|node| self.compared.contains(node));
        a == b || known(a) && known(b)
    }

    /// Seconds that must lie between what two nodes stamped for the stamps to tell which was first; `None` where no
    /// distance tells, as their clocks may be set to several zones.
    pub fn margin(&self, a: Option<&Arc<str>>, b: Option<&Arc<str>>) -> Option<f64> {
        if self.are_comparable(a, b) {
            return Some(0.0);
        }
        let began = |node: Option<&Arc<str>>| self.began.get(node?).copied();
        let apart = began(a).zip(began(b)).map_or(0.0, |(a, b)| (a - b).abs());
        let zone = (apart / HALF_HOUR).round() * HALF_HOUR;
        let by_zone = zone > 0.0 && zone <= MOST_ZONES && (apart - zone).abs() <= STARTED_WITHIN;
        (!by_zone).then_some(UNCOMPARED)
    }

    /// Seconds by which the clock of a node is ahead.
    pub fn ahead(&self, node: Option<&Arc<str>>) -> f64 {
        node.and_then(|n| self.apart.get(n)).map_or(0.0, |a| a.ahead)
    }
}

/// A stamped event.
struct Tick<'e> {
    clock: Clock,
    process: ProcessId,
    seconds: f64,
    event: &'e Event,
}

impl Tick<'_> {
    fn place(&self) -> (InputId, u64) {
        (self.event.place.input, self.event.place.line)
    }
}

fn ticks<'e>(source: &'e Source, processes: &Processes, base: &Stamp) -> Vec<Tick<'e>> {
    let tick = |event: &'e Event| {
        let seconds = event.place.time.as_ref()?.seconds_since(base)?;
        let process = processes.of(event);
        let node = processes.get(process).node.clone();
        Some(Tick {
            clock: node.map_or(Clock::Source(source.input), Clock::Node),
            process,
            seconds,
            event,
        })
    };
    source.harvest.events.iter().filter_map(tick).collect()
}

/// Between which limits a clock is ahead of the one it is set against, seconds.
#[derive(Debug, Clone)]
struct Bounds {
    low: f64,
    high: f64,
    moment: Option<[(InputId, u64); 2]>,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            low: f64::NEG_INFINITY,
            high: f64::INFINITY,
            moment: None,
        }
    }
}

impl Bounds {
    fn narrow(&mut self, low: f64, high: f64, moment: [(InputId, u64); 2]) {
        self.low = self.low.max(low);
        self.high = self.high.min(high);
        self.moment.get_or_insert(moment);
    }

    /// By how much the clock is ahead, and whether by a zone; `None` if both may agree, or if the evidence contradicts
    /// itself.
    fn ahead(&self) -> Option<(f64, bool)> {
        let known = self.low.is_finite() && self.high.is_finite() && self.low <= self.high;
        if !known || self.low <= 0.0 && 0.0 <= self.high {
            return None;
        }
        let middle = f64::midpoint(self.low, self.high);
        let zone = (middle / ZONE).round() * ZONE;
        let by_zone = (self.low..=self.high).contains(&zone) && zone != 0.0;
        Some(if by_zone { (zone, true) } else { (middle, false) })
    }
}

/// The kind of a meeting, and whose it was.
type Meeting<'a> = (SignatureId, Option<&'a Arc<str>>);

/// Every rank prints the end of a meeting as soon as the last of them has come.
fn meetings<'t>(
    catalog: &Catalog,
    servers: &Servers,
    sources: &'t [Vec<Tick<'_>>],
    reference: &'t Clock,
    bounds: &mut BTreeMap<&'t Clock, Bounds>,
) {
    // Those of a communicator meet by themselves: what names none may be of another on each node.
    let named = sources
        .iter()
        .flatten()
        .any(|tick| tick.event.setting(NCCL_MEETING).is_some());
    // The first end of each kind by each clock, and how often one process printed it: a node whose log holds more
    // launches than another's may tell of another meeting.
    let mut first: BTreeMap<(Meeting<'_>, &Clock), &Tick<'_>> = BTreeMap::new();
    let mut times: HashMap<(SignatureId, ProcessId), usize> = HashMap::new();
    for tick in sources.iter().flatten() {
        let signature = catalog.signature(tick.event.signature);
        let (Some(id), Some("met")) = (tick.event.signature, signature.and_then(|s| s.def.step.as_deref())) else {
            continue;
        };
        let group = tick.event.setting(NCCL_MEETING);
        if named && group.is_none() && tick.event.speaker.program == Program::Nccl {
            continue;
        }
        *times.entry((id, tick.process)).or_default() += 1;
        let slot = first.entry(((id, group), &tick.clock)).or_insert(tick);
        if tick.seconds < slot.seconds {
            *slot = tick;
        }
    }
    let count = |id: SignatureId, tick: &Tick<'_>| times.get(&(id, tick.process)).copied();
    for (((id, group), clock), tick) in &first {
        let Some(own) = first.get(&((*id, *group), reference)).filter(|_| *clock != reference) else {
            continue;
        };
        // Servers that do not meet have meetings of their own.
        let apart = servers.get(own.event).zip(servers.get(tick.event));
        if (group.is_some() || count(*id, own) == count(*id, tick)) && apart.is_none_or(|(a, b)| a == b) {
            let ahead = tick.seconds - own.seconds;
            let moment = [own.place(), tick.place()];
            bounds
                .entry(clock)
                .or_default()
                .narrow(ahead - TOGETHER, ahead + TOGETHER, moment);
        }
    }
}

/// What one clock has stamped at most so far, and between what limits it is ahead.
struct Relay<'t> {
    latest: f64,
    at_least: f64,
    at_most: f64,
    changes: usize,
    own_last: bool,
    moment: Option<[&'t Tick<'t>; 2]>,
}

/// Where one output holds lines of two clocks in turn, a line is later than those above it but for the time it took.
fn relays<'t>(ticks: &'t [Tick<'t>], reference: &'t Clock, bounds: &mut BTreeMap<&'t Clock, Bounds>) {
    let mut reference_latest: Option<(f64, &Tick<'_>)> = None;
    let mut relayed: BTreeMap<&Clock, Relay<'_>> = BTreeMap::new();
    for tick in ticks {
        if tick.clock == *reference {
            let latest = reference_latest.map_or(tick.seconds, |(s, _)| s.max(tick.seconds));
            reference_latest = Some((latest, tick));
            for relay in relayed.values_mut() {
                relay.at_least = relay.at_least.max(relay.latest - tick.seconds);
                relay.changes += usize::from(relay.own_last);
                relay.own_last = false;
            }
            continue;
        }
        let relay = relayed.entry(&tick.clock).or_insert(Relay {
            latest: f64::NEG_INFINITY,
            at_least: f64::NEG_INFINITY,
            at_most: f64::INFINITY,
            changes: 0,
            own_last: false,
            moment: None,
        });
        relay.latest = relay.latest.max(tick.seconds);
        if let Some((latest, last)) = reference_latest {
            relay.at_most = relay.at_most.min(tick.seconds - latest);
            relay.changes += usize::from(!relay.own_last);
            relay.moment.get_or_insert([last, tick]);
        }
        relay.own_last = true;
    }
    for (clock, relay) in relayed {
        if let Some([reference, own]) = relay.moment.filter(|_| relay.changes >= INTERLEAVED) {
            let (low, high) = (relay.at_least - RELAYED, relay.at_most + RELAYED);
            let moment = [reference.place(), own.place()];
            bounds.entry(clock).or_default().narrow(low, high, moment);
        }
    }
}
