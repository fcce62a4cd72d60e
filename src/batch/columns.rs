//! The columns of a scan as a table.
//!
//! Owns their names, kinds and values, for every form of table. Never knows a form.

use std::borrow::Cow;

use chrono::NaiveDateTime;

use super::digest::Digest;
use crate::report::text::safe;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Real,
    /// A date and time, without a zone: UTC where the log tells its zone, else as the log prints it.
    Time,
}

/// One value. Where there is none, what it would tell is not known.
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "the variants are those of the kind")]
pub enum Cell<'a> {
    Text(Option<Cow<'a, str>>),
    Whole(Option<u64>),
    Real(Option<f64>),
    Time(Option<NaiveDateTime>),
}

/// The columns in order.
pub const COLUMNS: [(&str, Kind); 24] = [
    ("source", Kind::Text),
    ("outcome", Kind::Text),
    ("cause", Kind::Text),
    ("confidence", Kind::Real),
    ("phase", Kind::Text),
    ("engine", Kind::Text),
    ("engine_version", Kind::Text),
    ("model", Kind::Text),
    ("time", Kind::Time),
    ("seconds_to_death", Kind::Real),
    ("gpu_hours", Kind::Real),
    ("process", Kind::Text),
    ("rank", Kind::Whole),
    ("node", Kind::Text),
    ("fingerprint", Kind::Text),
    ("label", Kind::Text),
    ("files", Kind::Whole),
    ("bytes", Kind::Whole),
    ("lines", Kind::Whole),
    ("headline", Kind::Text),
    ("root_input", Kind::Text),
    ("root_line", Kind::Whole),
    ("root_text", Kind::Text),
    ("error", Kind::Text),
];

/// The values of one record, one for each column. `label` is what the caller draws from its source.
pub fn cells<'a>(digest: &'a Digest, label: Option<&'a str>) -> [Cell<'a>; COLUMNS.len()] {
    fn text(value: Option<&str>) -> Cell<'_> {
        Cell::Text(value.filter(|text| !text.is_empty()).map(safe))
    }
    let root = digest.root.as_ref();
    let report = digest.outcome.is_some();
    let read = |n: u64| Cell::Whole(report.then_some(n));
    [
        text(Some(&digest.source)),
        text(digest.outcome.as_deref()),
        text(digest.cause_id()),
        Cell::Real(digest.cause.as_ref().and_then(|c| c.confidence)),
        text(digest.phase.as_deref()),
        text(digest.engine.name.as_deref()),
        text(digest.engine.version.as_deref()),
        text(digest.launch.model.as_deref()),
        Cell::Time(digest.time()),
        Cell::Real(digest.launch.seconds_to_death),
        Cell::Real(digest.gpu_hours().map(|h| (h * 1000.0).round() / 1000.0)),
        text(root.and_then(|r| r.process.as_deref())),
        Cell::Whole(root.and_then(|r| r.rank).map(u64::from)),
        text(root.and_then(|r| r.node.as_deref())),
        text(digest.fingerprint.as_deref()),
        text(label),
        read(digest.examined.files),
        read(digest.examined.bytes),
        read(digest.examined.lines),
        text(Some(&digest.headline)),
        text(root.map(|r| r.input.as_str())),
        Cell::Whole(root.map(|r| r.line)),
        text(root.map(|r| r.text.as_str())),
        text(digest.error.as_ref().map(|e| e.text.as_str())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_of_the_kind_of_its_column() {
        let digest = Digest::of(r#"{"source":"a","error":{"id":"x","text":"no"}}"#).unwrap();
        for ((name, kind), cell) in COLUMNS.iter().zip(cells(&digest, Some("west"))) {
            let own = match cell {
                Cell::Text(_) => Kind::Text,
                Cell::Whole(_) => Kind::Whole,
                Cell::Real(_) => Kind::Real,
                Cell::Time(_) => Kind::Time,
            };
            assert_eq!(own, *kind, "{name}");
        }
    }
}
