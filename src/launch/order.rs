//! One order for the events of several sources.
//!
//! Owns the merge: by time where two sources' stamps can be compared, each set right by its clock, by source and line
//! otherwise; and between which events that order is known. Within a source the order of lines always stands, since its
//! lines were written in it.

use std::sync::Arc;

use super::clocks::Clocks;
use super::processes::Processes;
use super::{Placed, Source};
use crate::event::{Event, InputId};
use crate::time::Stamp;

/// Where an event stands among the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Its place in the common order.
    pub index: usize,
    /// Its source.
    pub input: InputId,
    /// Whether a stamp says when it was, its own or one further up in its source.
    pub dated: bool,
}

impl Moment {
    /// Whether it is known which of the two came first.
    fn ordered(self, other: Self) -> bool {
        self.input == other.input || self.dated && other.dated
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

/// Merges the events of all sources.
pub fn merge(sources: &[Arc<Source>], processes: &Processes, clocks: &Clocks) -> Vec<Placed> {
    let several = sources.len() > 1;
    let base: Option<&Stamp> = sources
        .iter()
        .flat_map(|s| &s.harvest.events)
        .find_map(|e| e.place.time.as_ref())
        .filter(|_| several);
    let mut keyed: Vec<(f64, usize, Placed)> = Vec::new();
    for (at, source) in sources.iter().enumerate() {
        let seconds = |placed: &Placed| {
            let seconds = seconds(&placed.event, base)?;
            let node = &processes.get(placed.process).node;
            Some(seconds - clocks.ahead(node.as_ref()))
        };
        let placed = source.harvest.events.iter().map(|event| Placed {
            event: event.clone(),
            process: processes.of(event),
            attempt: 0,
            dated: false,
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
            keyed.push((key, at, placed));
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
    keyed.sort_by(|a, b| {
        let line = |placed: &Placed| placed.event.place.line;
        a.0.total_cmp(&b.0)
            .then(a.1.cmp(&b.1))
            .then(line(&a.2).cmp(&line(&b.2)))
    });
    keyed.into_iter().map(|(_, _, placed)| placed).collect()
}

fn seconds(event: &Event, base: Option<&Stamp>) -> Option<f64> {
    event.place.time.as_ref()?.seconds_since(base?)
}
