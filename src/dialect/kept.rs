//! The events that are kept of one source, within a budget of memory.
//!
//! Owns the choice of what goes when there is too much: the beginning stays, where launches fail first, and the end
//! stays, where the last of them does. What goes between is counted. Never looks at what an event means.

use std::cmp::Reverse;
use std::ops::Deref;

use crate::event::{Event, Exception, Fact};

/// Events kept of one source, whatever their size. A log with more of them repeats itself.
const MOST: usize = 30_000;

/// What an event takes beside its texts, bytes: its own fields, and the counters of the shared texts.
const OWN: usize = size_of::<Event>() + 256;

/// Events in order of arrival, with what they take.
#[derive(Debug, Clone)]
pub(super) struct Kept {
    events: Vec<Event>,
    bytes: usize,
    budget: usize,
    /// Events that were let go.
    pub dropped: u64,
}

impl Kept {
    /// Nothing yet; all together may take `budget` bytes.
    pub fn new(budget: usize) -> Self {
        Self {
            events: Vec::new(),
            bytes: 0,
            budget,
            dropped: 0,
        }
    }

    /// Keeps one more event. Whether others had to go for it, so that their places in the list have changed.
    pub fn push(&mut self, event: Event) -> bool {
        self.bytes += weight(&event);
        self.events.push(event);
        let full = self.is_full();
        while self.is_full() {
            self.thin();
        }
        full
    }

    fn is_full(&self) -> bool {
        !self.events.is_empty() && (self.bytes > self.budget || self.events.len() > MOST)
    }

    /// Lets the third quarter go: the first half is the beginning, the last quarter the end as it stands now.
    fn thin(&mut self) {
        let length = self.events.len();
        let from = length / 2;
        let to = (length * 3 / 4).max(from + 1).min(length);
        self.dropped += self.events.drain(from..to).len() as u64;
        // Weighed anew: later lines have completed what was kept.
        self.bytes = self.events.iter().map(weight).sum();
    }

    /// The event at a place in the list.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut Event> {
        self.events.get_mut(index)
    }

    /// All events, to be completed by what later lines say.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, Event> {
        self.events.iter_mut()
    }

    /// The events in the order in which their lines were written, by line: in a source that is newest-first the last line
    /// is the oldest.
    pub fn into_sorted(mut self, newest_first: bool) -> Vec<Event> {
        match newest_first {
            true => self.events.sort_by_key(|e| Reverse(e.place.line)),
            false => self.events.sort_by_key(|e| e.place.line),
        }
        self.events
    }
}

impl Deref for Kept {
    type Target = [Event];

    fn deref(&self) -> &[Event] {
        &self.events
    }
}

/// Bytes that an event takes, roughly. Texts that events share count for each of them.
pub(super) fn weight(event: &Event) -> usize {
    let texts: usize = event.context.iter().map(|(_, text)| text.len()).sum();
    let settings: usize = event
        .settings
        .iter()
        .map(|(name, value)| name.len() + value.len() + 64)
        .sum();
    let figures: usize = event.figures.iter().map(|f| f.name.len() + f.printed.len() + 64).sum();
    let chain: usize = match &event.fact {
        Fact::Traceback(traceback) => traceback.chain.iter().map(exception).sum(),
        _ => 0,
    };
    OWN + event.place.text.len() + texts + settings + figures + chain
}

fn exception(exception: &Exception) -> usize {
    let frames = exception
        .frames
        .iter()
        .map(|f| size_of_val(f) + 96 + f.file.len() + f.function.len() + f.code.len());
    let places = exception.place.text.len() + exception.stated_at.text.len();
    size_of_val(exception) + exception.message.len() + places + frames.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::event::{InputId, Place, Speaker};

    fn event(line: u64, text: &str) -> Event {
        let place = Place {
            input: InputId(0),
            line,
            byte: 0,
            time: None,
            own_time: false,
            message: (0, 0),
            text: text.into(),
        };
        Event::new(place, Arc::new(Speaker::default()), Fact::Known)
    }

    #[test]
    fn the_first_and_the_last_events_stay_within_the_budget() {
        let budget = 200_000;
        let mut kept = Kept::new(budget);
        for line in 1..=10_000 {
            kept.push(event(line, &"x".repeat(1000)));
            assert!(kept.iter().map(weight).sum::<usize>() <= budget);
        }
        assert_eq!(kept.len() as u64 + kept.dropped, 10_000);
        assert!(kept.len() > 50);
        let lines: Vec<u64> = kept.into_sorted(false).iter().map(|e| e.place.line).collect();
        assert_eq!(lines[..20], (1..=20).collect::<Vec<u64>>());
        assert_eq!(lines[lines.len() - 10..], (9991..=10_000).collect::<Vec<u64>>());
    }

    #[test]
    fn what_later_lines_add_to_an_event_is_weighed() {
        let mut kept = Kept::new(100_000);
        for line in 1..=10_000 {
            kept.push(event(line, "x"));
            for event in kept.iter_mut() {
                event.place.text = "x".repeat(500).into();
            }
        }
        assert_eq!(kept.len() as u64 + kept.dropped, 10_000);
        assert!(kept.len() > 50);
    }

    #[test]
    fn an_event_larger_than_the_budget_is_let_go() {
        let mut kept = Kept::new(1000);
        assert!(kept.push(event(1, &"x".repeat(2000))));
        assert_eq!((kept.len(), kept.dropped), (0, 1));
    }
}
