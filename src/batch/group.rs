//! Counting by a name: how many, since when, until when, and one example.
//!
//! Owns the tables of a summary and their limits, and the template by which unknown failures are told apart. Its
//! memory depends on how many names there are, never on how many logs, and is bounded.

use std::collections::HashMap;

use chrono::NaiveDateTime;

use super::digest::Digest;
use crate::verdict::fingerprint::mask;

/// Names a table holds; records with further ones are counted together.
const NAMES: usize = 10_000;

/// Characters kept of a name, a title or an example.
const KEPT: usize = 300;

/// What is counted under one name.
#[derive(Debug, Clone, Default)]
pub struct Row {
    /// Records.
    pub count: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Earliest time.
    pub first: Option<NaiveDateTime>,
    /// Latest time.
    pub last: Option<NaiveDateTime>,
    /// GPU-hours until death.
    pub gpu_hours: f64,
    /// The first of their sources by name, in whatever order they came.
    pub example: String,
    /// What the name means.
    pub title: String,
}

impl Row {
    fn add(&mut self, digest: &Digest, title: &str) {
        let source = kept(&digest.source);
        if self.count == 0 || (source.as_str(), title) < (self.example.as_str(), self.title.as_str()) {
            self.example = source;
            self.title = kept(title);
        }
        self.count += 1;
        self.failed += u64::from(digest.outcome.as_deref() == Some("failed"));
        self.gpu_hours += digest.gpu_hours().unwrap_or(0.0);
        if let Some(time) = digest.time() {
            self.first = Some(self.first.map_or(time, |t| t.min(time)));
            self.last = Some(self.last.map_or(time, |t| t.max(time)));
        }
    }
}

fn kept(text: &str) -> String {
    text.chars().take(KEPT).collect()
}

/// Rows by name.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: HashMap<String, Row>,
    /// Records whose names did not fit in.
    pub beyond: u64,
}

impl Table {
    /// Counts a record under a name.
    pub fn add(&mut self, name: &str, title: &str, digest: &Digest) {
        let name = kept(name);
        if self.rows.len() >= NAMES && !self.rows.contains_key(&name) {
            self.beyond += 1;
            return;
        }
        self.rows.entry(name).or_default().add(digest, title);
    }

    /// The rows, most frequent first, equal ones by name.
    pub fn ranked(&self) -> Vec<(&str, &Row)> {
        let mut rows: Vec<(&str, &Row)> = self.rows.iter().map(|(name, row)| (name.as_str(), row)).collect();
        rows.sort_by(|a, b| b.1.count.cmp(&a.1.count).then_with(|| a.0.cmp(b.0)));
        rows
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// What unknown failures of one kind have in common: the type of the exception and its message, or the line, with all
/// that varies masked.
pub fn template(digest: &Digest) -> Option<String> {
    digest.cause_id().filter(|id| id.starts_with("unknown."))?;
    let first = |text: &str| mask(text.lines().next().unwrap_or_default());
    Some(match (&digest.exception, &digest.root) {
        (Some(exception), _) => format!("{}: {}", exception.kind, first(&exception.message)),
        (None, Some(root)) => first(&root.text),
        (None, None) => "(no line tells of the death)".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(json: &str) -> Digest {
        Digest::of(json).unwrap()
    }

    #[test]
    fn rows_count_and_span_time() {
        let mut table = Table::default();
        for (source, time) in [("b", "2026-02-01"), ("a", "2026-01-01"), ("c", "2026-03-01")] {
            let record = format!(
                r#"{{"source":"{source}","outcome":"failed","launch":{{"died":"{time}T00:00:00Z","seconds_to_death":3600,"gpus":2}}}}"#
            );
            table.add("x", "title", &digest(&record));
        }
        table.add("y", "", &digest(r#"{"source":"d","outcome":"healthy"}"#));
        let ranked = table.ranked();
        let (name, row) = ranked[0];
        assert_eq!((name, row.count, row.failed, row.gpu_hours), ("x", 3, 3, 6.0));
        assert_eq!(row.example, "a");
        let month = |t: Option<NaiveDateTime>| t.unwrap().format("%m").to_string();
        assert_eq!((month(row.first), month(row.last)), ("01".into(), "03".into()));
        assert_eq!((ranked[1].0, ranked[1].1.failed), ("y", 0));
    }

    #[test]
    fn a_table_stays_within_its_limit() {
        let mut table = Table::default();
        for n in 0..NAMES + 5 {
            table.add(&n.to_string(), "", &Digest::default());
        }
        table.add("0", "", &Digest::default());
        assert_eq!((table.rows.len(), table.beyond), (NAMES, 5));
    }

    #[test]
    fn unknown_failures_that_differ_in_numbers_share_a_template() {
        let of = |message: &str| {
            let record = format!(
                r#"{{"cause":{{"id":"unknown.exception"}},"exception":{{"type":"ValueError","message":"{message}"}}}}"#
            );
            template(&digest(&record))
        };
        assert_eq!(of("rank 3 at 0x7f01 in /a/b.py"), of("rank 11 at 0xdeadbeef in /c.py"));
        assert_ne!(of("rank 3 is lost"), of("rank 3 is late"));
        assert_eq!(template(&digest(r#"{"cause":{"id":"nccl.ib"}}"#)), None);
    }
}
