//! One order for the events of several sources.
//!
//! Owns the merge: by time where two sources' stamps can be compared, each set right by its clock, by source and line
//! otherwise; and between which events that order is known. Within a source the order of lines stands, since its
//! lines were written in it, unless it holds what several nodes wrote one below the other. Between sources their names decide nothing: they are put in order by what they hold.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::clocks::Clocks;
use super::files::output;
use super::processes::Processes;
use super::{Placed, Source};
use crate::event::{Event, InputId};
use crate::time::Stamp;

/// Lines below a line within which a logger prints it again.
const AGAIN: u64 = 8;

/// Where an event stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Its place in the common order.
    pub index: usize,
    /// Its source.
    pub input: InputId,
    /// Its stretch of the source, where these stand beside each other in time.
    pub stretch: usize,
    /// Whether a stamp says when it was, its own or one further up in its source.
    pub dated: bool,
}

impl Moment {
    /// Whether it is known which of the two came first.
    fn ordered(self, other: Self) -> bool {
        (self.input, self.stretch) == (other.input, other.stretch) || self.dated && other.dated
    }

    /// Whether it comes before `other`, or may do so.
    pub fn may_precede(self, other: Self) -> bool {
        self.index < other.index || !self.ordered(other)
    }

    /// Whether it is known to come after `other`.
    pub fn follows(self, other: Self) -> bool {
        self.index > other.index && self.ordered(other)
    }
}

/// Seconds for which a stamp without a fraction stands.
const WHOLE: f64 = 1.0;
/// The same for one with a fraction.
const FRACTION: f64 = 0.001;

/// Between which seconds something was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Within {
    first: f64,
    last: f64,
}

impl Within {
    /// It may have been at any time.
    const ANY: Self = Self {
        first: f64::NEG_INFINITY,
        last: f64::INFINITY,
    };

    /// Whether one of the two was over before the other can have been, by clocks that are at most `margin` seconds apart.
    pub(super) fn is_apart_from(self, other: Self, margin: f64) -> bool {
        self.last + margin <= other.first || other.last + margin <= self.first
    }
}

/// The sources in an order that does not depend on their names: by the lowest rank that speaks in each, then by what
/// they hold. The parts of one output stay together, as they follow each other.
pub(super) fn by_content(sources: &[Arc<Source>]) -> Vec<Arc<Source>> {
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut outputs: Vec<Vec<Arc<Source>>> = Vec::new();
    for source in sources {
        let at = *places.entry(output(&source.name)).or_insert(outputs.len());
        match outputs.get_mut(at) {
            Some(parts) => parts.push(source.clone()),
            None => outputs.push(vec![source.clone()]),
        }
    }
    outputs.sort_by(|a, b| compare(a, b));
    outputs.into_iter().flatten().collect()
}

fn compare(a: &[Arc<Source>], b: &[Arc<Source>]) -> Ordering {
    let rank = |parts: &[Arc<Source>]| {
        let heard = parts.iter().flat_map(|s| &s.harvest.heard);
        let rank = heard.filter_map(|h| h.speaker.rank.or(h.identity.rank).or(h.speaker.coords.tp));
        rank.min().unwrap_or(u32::MAX)
    };
    rank(a).cmp(&rank(b)).then_with(|| texts(a).cmp(texts(b)))
}

fn texts(parts: &[Arc<Source>]) -> impl Iterator<Item = &Arc<str>> {
    parts.iter().flat_map(|s| &s.harvest.events).map(|e| &e.place.text)
}

/// Merges the events of all sources.
pub fn merge(sources: &[Arc<Source>], processes: &Processes, clocks: &Clocks) -> Vec<Placed> {
    // One daemon stamps what its containers print; other stamps in one source are of clocks that nothing compares.
    let parted = |events: &[Event]| are_containers(events) && stretches(events).nth(1).is_some();
    let several = sources.len() > 1 || sources.iter().any(|source| parted(&source.harvest.events));
    let base: Option<&Stamp> = sources
        .iter()
        .flat_map(|s| &s.harvest.events)
        .find_map(|e| e.place.time.as_ref())
        .filter(|_| several);
    let mut keyed: Vec<(f64, usize, Placed)> = Vec::new();
    let stretches = sources
        .iter()
        .enumerate()
        .flat_map(|(at, source)| stretches(&source.harvest.events).enumerate().map(move |own| (at, own)));
    for (at, (stretch, events)) in stretches {
        let seconds = |placed: &Placed| {
            let seconds = seconds(&placed.event, base)?;
            let node = &processes.get(placed.process).node;
            Some(seconds - clocks.ahead(node.as_ref()))
        };
        let width = |placed: &Placed| {
            let stamp = placed.event.place.time.as_ref();
            let whole = stamp.is_some_and(|stamp| stamp.is_whole());
            if whole { WHOLE } else { FRACTION }
        };
        let placed = events.iter().enumerate().map(|(at, event)| Placed {
            event: set_right(event, events.get(at + 1..).unwrap_or_default()),
            process: processes.of(event),
            attempt: 0,
            stretch,
            dated: false,
            within: Within::ANY,
        });
        // A source without stamps says nothing of when. What a worker's own file holds came before others spoke of it.
        let mut key = f64::MIN;
        let first = keyed.len();
        for mut placed in placed {
            if let Some(seconds) = seconds(&placed) {
                // Clocks may step back within a source; its lines do not.
                key = key.max(seconds);
            }
            placed.dated = key > f64::MIN;
            if let Some(seconds) = seconds(&placed) {
                placed.within.first = seconds;
                if placed.event.place.own_time {
                    placed.within.last = seconds + width(&placed);
                }
            }
            keyed.push((key, at, placed));
        }
        // A line without a stamp was written before the next one that has one.
        let mut next = f64::INFINITY;
        for (_, _, placed) in keyed.iter_mut().skip(first).rev() {
            match placed.event.place.own_time && placed.within.last.is_finite() {
                true => next = next.min(placed.within.last),
                false => placed.within.last = next,
            }
        }
        // What stands above the first stamp came shortly before it.
        let start = keyed
            .iter()
            .skip(first)
            .map(|(key, ..)| *key)
            .find(|key| *key > f64::MIN);
        for (key, ..) in keyed.iter_mut().skip(first).take_while(|(key, ..)| *key == f64::MIN) {
            *key = start.unwrap_or(f64::MIN);
        }
    }
    // What one source holds of one time stays in its order.
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    keyed.into_iter().map(|(_, _, placed)| placed).collect()
}

/// The parts of a source that stand beside each other in time, though one below the other: what `kubectl logs` prints of
/// one pod after that of another, `docker compose logs` of one container. The lines of each stand together, and the time
/// steps back between them.
fn stretches(events: &[Event]) -> impl Iterator<Item = &[Event]> {
    let containers = are_containers(events);
    let same = move |a: &Event, b: &Event| place(a, containers) == place(b, containers);
    let runs = || events.chunk_by(same);
    let places: HashSet<_> = events.iter().map(|e| place(e, containers)).collect();
    let apart = places.len() > 1 && runs().take(places.len() + 1).count() == places.len();
    let back = |(a, b): (&[Event], &[Event])| {
        let events = a.last().zip(b.first());
        let stamps = events.and_then(|(a, b)| a.place.time.as_ref().zip(b.place.time.as_ref()));
        let step = stamps.and_then(|(before, after)| after.seconds_since(before));
        step.is_some_and(|seconds| seconds < -WHOLE)
    };
    let apart = apart && runs().zip(runs().skip(1)).any(back);
    events.chunk_by(move |a, b| !apart || same(a, b))
}

/// Where a line was printed: on which node and, if asked, in which container.
fn place(event: &Event, container: bool) -> (Option<&Arc<str>>, Option<&Arc<str>>) {
    let own = event.speaker.container.as_ref().filter(|_| container);
    (event.speaker.node.as_ref(), own)
}

/// Whether all of a source is what containers print.
fn are_containers(events: &[Event]) -> bool {
    events.iter().all(|event| event.speaker.container.is_some())
}

/// The event at its own time. A line without a stamp has that of the last line above it, which may be long ago: one that
/// a logger prints again right below, as Ray's banner of a signal, was printed then.
fn set_right(event: &Event, below: &[Event]) -> Event {
    let text = &*event.place.text;
    let again = |other: &&Event| {
        let headed = other.place.text.len() > text.len() && other.place.text.ends_with(text);
        headed && other.signature == event.signature && other.place.line.abs_diff(event.place.line) <= AGAIN
    };
    let known = event.signature.and(below.get(..below.len().min(AGAIN as usize)));
    let again = known.and_then(|near| near.iter().find(again));
    let mut event = event.clone();
    if let Some(again) = again {
        event.place.time = again.place.time.clone().or(event.place.time);
    }
    event
}

fn seconds(event: &Event, base: Option<&Stamp>) -> Option<f64> {
    event.place.time.as_ref()?.seconds_since(base?)
}
