//! How new an engine can be whose log prints no version: each release has its own words.
//!
//! Owns the bound that the forms of an engine's lines set. Never overrules a version that is printed.

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::remedy::versions::{Range, Version};

/// The newest version that prints all the lines of the engine that an attempt shows; none where they set no bound, or
/// contradict one another, as those of two versions do.
pub fn newest(catalog: &Catalog, launches: &Launches, attempt: usize) -> Option<String> {
    let engine = launches.engine(attempt).id()?;
    let events = launches.events_of(attempt);
    let defs = events
        .filter_map(|p| catalog.signature(p.event.signature))
        .map(|s| &s.def);
    let ranges = defs.filter(|d| d.program == engine && !d.versions.is_empty());
    let (mut oldest, mut newest): (Option<Version>, Option<Version>) = (None, None);
    for range in ranges.filter_map(|d| Range::parse(&d.versions)) {
        oldest = oldest.max(range.from);
        newest = match (newest, range.to) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    newest
        .filter(|newest| oldest.is_none_or(|oldest| oldest <= *newest))
        .map(|v| v.to_string())
}
