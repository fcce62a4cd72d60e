//! The lines around a failure, as a reader of the log would look at them.
//!
//! Owns the last lines of a source and which events still want the ones below them. Never reads what they say.

use std::sync::Arc;

use super::{TEXT_LIMIT, cut};
use crate::dialect::kept::Kept;

/// Lines of context kept before and after a failure line.
const LINES: usize = 2;

/// The lines that were read last, and the events that want those to come.
#[derive(Debug, Clone, Default)]
pub(super) struct Context {
    before: [(u64, Vec<u8>); LINES],
    /// Events by their places, each with how many lines it still wants.
    wanting: Vec<(usize, usize)>,
}

impl Context {
    /// What follows does not stand below what was read.
    pub(super) fn clear(&mut self) {
        self.before = Default::default();
        self.wanting.clear();
    }

    /// The last lines above this one.
    pub(super) fn above(&self, line: u64) -> Vec<(u64, Arc<str>)> {
        let above = self.before.iter().filter(|(no, _)| *no > 0 && *no < line);
        above.map(|(no, text)| (*no, kept_text(text))).collect()
    }

    /// The event at this place wants the next lines.
    pub(super) fn want(&mut self, event: usize) {
        self.wanting.push((event, LINES));
    }

    /// The events have changed places: they get no more lines.
    pub(super) fn want_nothing(&mut self) {
        self.wanting.clear();
    }

    /// Whether any event wants a line.
    pub(super) fn is_wanted(&self) -> bool {
        !self.wanting.is_empty()
    }

    /// Gives a line to the events that want it.
    pub(super) fn give(&mut self, events: &mut Kept, line: u64, shown: &[u8]) {
        if !self.is_wanted() {
            return;
        }
        let text = kept_text(shown);
        self.wanting.retain_mut(|(index, left)| {
            if let Some(event) = events.get_mut(*index)
                && line > event.place.line
                && event.context.last().is_none_or(|(no, _)| *no < line)
            {
                event.context.push((line, text.clone()));
                *left -= 1;
            }
            *left > 0
        });
    }

    /// Keeps a line for the events to come.
    pub(super) fn remember(&mut self, line: u64, shown: &[u8]) {
        if self.before.last().is_some_and(|(no, _)| *no == line) {
            return;
        }
        // The oldest gives its room to the newest.
        for newer in 1..LINES {
            self.before.swap(newer - 1, newer);
        }
        if let Some((no, text)) = self.before.last_mut() {
            *no = line;
            text.clear();
            text.extend_from_slice(head(shown));
        }
    }
}

/// What is kept of a line as evidence.
fn kept_text(shown: &[u8]) -> Arc<str> {
    cut(&String::from_utf8_lossy(head(shown)), TEXT_LIMIT).into()
}

/// The bytes that evidence is made of: one more than is kept, so that a character which is cut in two lies beyond the
/// limit.
fn head(shown: &[u8]) -> &[u8] {
    shown.get(..=TEXT_LIMIT).unwrap_or(shown)
}
