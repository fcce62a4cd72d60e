//! One order for the events of several sources.
//!
//! Owns the merge: by time where two sources' stamps can be compared, by input and line otherwise. Within a source
//! the order of lines always stands, since its lines were written in it.

use super::Source;
use crate::event::Event;
use crate::time::Stamp;

/// Merges the events of all sources.
pub fn merge(sources: &[Source]) -> Vec<Event> {
    let base: Option<Stamp> = sources
        .iter()
        .flat_map(|s| &s.harvest.events)
        .find_map(|e| e.place.time.clone());
    let mut keyed: Vec<(f64, u32, u64, &Event)> = Vec::new();
    for source in sources {
        // A source without stamps says nothing of when. What a worker's own file holds came before others spoke of it.
        let mut key = if sources.len() > 1 {
            first_key(source, base.as_ref())
        } else {
            0.0
        };
        for event in &source.harvest.events {
            if sources.len() > 1
                && let Some(seconds) = seconds(event, base.as_ref())
            {
                // Clocks may step back within a source; its lines do not.
                key = f64::max(key, seconds);
            }
            keyed.push((key, source.input.0, event.place.line, event));
        }
    }
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    keyed.into_iter().map(|(_, _, _, event)| event.clone()).collect()
}

fn first_key(source: &Source, base: Option<&Stamp>) -> f64 {
    source
        .harvest
        .events
        .iter()
        .find_map(|e| seconds(e, base))
        .unwrap_or(f64::MIN)
}

fn seconds(event: &Event, base: Option<&Stamp>) -> Option<f64> {
    event.place.time.as_ref()?.seconds_since(base?)
}
