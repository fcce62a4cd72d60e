//! One incident in, its records out: a report or an error, each on one line of JSON.
//!
//! Owns what a scan says of an input. Never fails and never panics: what goes wrong with one input becomes its record.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};
use regex::Regex;
use serde_json::json;

use super::incident::{Incident, of_members};
use super::resume::{Known, mark};
use crate::catalog::Catalog;
use crate::examine::{Examiner, Options};
use crate::intake::{InputSpec, SkipKind, Skipped, gather, holds_members};
use crate::redact::{Level, Names, Redactor};
use crate::report::json::{line_with, object_line};
use crate::report::model::{Report, SkippedReport};

/// Schema of the record of an input without a report.
pub const ERROR_SCHEMA: &str = "coroner.error/1";

/// Members of an archive of many launches, each of which is examined by itself.
const MEMBERS: usize = 500_000;

/// The part of what may be held of archives from which on one waits for its turn.
const LARGE: u64 = 8;

/// What a scan has to say of one input.
#[derive(Debug, Clone)]
pub struct Record {
    /// The input.
    pub source: String,
    /// One JSON object, ending in a line break.
    pub line: String,
}

impl Record {
    /// An input that cannot be examined; both texts are as they may be shown.
    pub(super) fn error(source: &str, id: &str, text: &str) -> Self {
        let object = json!({"schema": ERROR_SCHEMA, "source": source, "error": {"id": id, "text": text}});
        Self {
            source: source.to_owned(),
            line: object_line(&object),
        }
    }

    fn report(report: &Report, unread: &[SkippedReport], origin: &Origin, basis: &str) -> Self {
        let mut scan = json!({"content": origin.content, "modified": origin.modified.map(stamp), "basis": basis});
        if !unread.is_empty()
            && let Some(scan) = scan.as_object_mut()
        {
            scan.insert("unread".to_owned(), json!(unread));
        }
        Self {
            source: report.source.clone(),
            line: line_with(report, "scan", &scan),
        }
    }
}

/// Where a record comes from, besides its name.
struct Origin {
    /// Mark of the stored content.
    content: Option<String>,
    /// When the newest file was written.
    modified: Option<SystemTime>,
}

fn stamp(time: SystemTime) -> String {
    DateTime::<Utc>::from(time).to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// How incidents are examined.
pub struct Bench<'a> {
    /// The rules.
    pub catalog: &'a Catalog,
    /// Options of every examination.
    pub options: &'a Options,
    /// What a record depends on besides the content: program, rules.
    pub basis: &'a str,
    /// Records of earlier scans.
    pub known: &'a Known,
    /// What is taken out of the records.
    pub redaction: &'a Redaction,
    /// Whose turn it is among archives that fill the memory.
    pub turn: Mutex<()>,
}

/// What is taken out of the records of a scan.
#[derive(Debug, Default)]
pub struct Redaction {
    /// How much.
    pub level: Level,
    /// What else, at [`Level::All`].
    pub patterns: Vec<Regex>,
    /// How pseudonyms are made. Records are made side by side: only with a key has a name the same pseudonym in all.
    pub names: Names,
    /// The pseudonyms given, for a map, if one is wanted.
    pub given: Option<Mutex<Names>>,
}

impl Redaction {
    /// Works with a redactor of its own and keeps the pseudonyms that it gives.
    fn with<T>(&self, work: impl FnOnce(&mut Redactor) -> T) -> T {
        let mut redactor = Redactor::new(self.level, self.patterns.clone(), self.names.apart());
        let done = work(&mut redactor);
        if let Some(given) = &self.given {
            given
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .collect(redactor.names());
        }
        done
    }
}

impl Bench<'_> {
    /// Examines an incident and hands over its records: one, or for an archive one for each launch in it.
    pub fn records(&self, incident: &Incident, take: &mut dyn FnMut(Record)) {
        let origin = Origin {
            content: mark(incident),
            modified: incident.modified,
        };
        if let Some(record) = self.known(&incident.source, &origin) {
            return take(record);
        }
        let large = self.is_large_archive(incident);
        let _turn = large.then(|| self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        let mut limits = self.options.limits;
        if !incident.whole {
            limits.inputs = MEMBERS;
        }
        let found = match guarded(|| gather(&incident.files, &limits)) {
            Ok(found) => found,
            Err(text) => return take(self.error(&incident.source, "program.panic", &text)),
        };
        if incident.whole {
            return take(self.one(&incident.source, &found.inputs, &found.skipped, &origin));
        }
        for skipped in found.skipped.iter().filter(|s| s.kind == SkipKind::Unreadable) {
            take(self.error(&skipped.input, "input.unreadable", &skipped.why));
        }
        for (source, inputs) in of_members(&incident.source, found.inputs) {
            let known = self.known(&source, &origin);
            take(known.unwrap_or_else(|| self.one(&source, &inputs, &[], &origin)));
        }
    }

    /// Whether what is held of archives may take a good part of what is allowed: of such, one is read at a time.
    fn is_large_archive(&self, incident: &Incident) -> bool {
        let limits = &self.options.limits;
        incident.bytes > limits.archive_bytes as u64 / LARGE
            && incident.files.iter().any(|file| holds_members(file, limits))
    }

    /// The record of an input that cannot be examined.
    pub fn error(&self, source: &str, id: &str, text: &str) -> Record {
        let [source, text] = self.redaction.with(|redactor| redactor.texts([source, text]));
        Record::error(&source, id, &text)
    }

    fn known(&self, source: &str, origin: &Origin) -> Option<Record> {
        let line = self.known.line(source, origin.content.as_deref())?;
        let source = source.to_owned();
        Some(Record { source, line })
    }

    fn one(&self, source: &str, inputs: &[InputSpec], skipped: &[Skipped], origin: &Origin) -> Record {
        let report = guarded(|| {
            let mut examiner = Examiner::new(self.catalog, self.options.clone());
            skipped.iter().for_each(|s| examiner.skip(&s.input, &s.why));
            inputs.iter().for_each(|input| examiner.read(input));
            let mut report = examiner.report();
            source.clone_into(&mut report.source);
            let unread = unread(&report, inputs);
            if unread.is_none() {
                self.redaction.with(|redactor| redactor.apply(&mut report));
            }
            (report, unread)
        });
        match report {
            Err(text) => self.error(source, "program.panic", &text),
            Ok((_, Some(text))) => self.error(source, "input.unreadable", &text),
            Ok((report, None)) => Record::report(&report, &missed(&report, skipped), origin, self.basis),
        }
    }
}

/// The files of a report that were not read, or not to their end. `left_out` is what the report was told first.
fn missed(report: &Report, left_out: &[Skipped]) -> Vec<SkippedReport> {
    let passed_over = |n: usize| left_out.get(n).is_some_and(|s| s.kind == SkipKind::PassedOver);
    let told = report.examined.skipped.iter().enumerate();
    told.filter(|(n, _)| !passed_over(*n)).map(|(_, s)| s.clone()).collect()
}

/// Why nothing at all was read, if so. An empty file is read: there is nothing in it.
fn unread(report: &Report, inputs: &[InputSpec]) -> Option<String> {
    let examined = &report.examined;
    let reasons = |skipped: &[SkippedReport]| {
        let all: Vec<String> = skipped.iter().map(|s| format!("{}: {}", s.input, s.why)).collect();
        all.join("; ")
    };
    if examined.files == 0 {
        return Some(match examined.skipped.as_slice() {
            [] => "there is no log in it".to_owned(),
            [one] if one.input == report.source => one.why.clone(),
            many => reasons(many),
        });
    }
    let stored: u64 = inputs.iter().filter_map(|input| input.size).sum();
    if examined.bytes > 0 || stored == 0 {
        return None;
    }
    // The record names its source anyway.
    let own = format!("{}: ", report.source);
    let note = |title: &'_ str| title.strip_prefix(own.as_str()).unwrap_or(title).to_owned();
    let notes: Vec<String> = report.findings.iter().map(|f| note(&f.title)).collect();
    Some(match (examined.skipped.as_slice(), notes.as_slice()) {
        ([], []) => return None,
        ([], notes) => notes.join("; "),
        (skipped, _) => reasons(skipped),
    })
}

/// The result, or the message of a panic. A fault that one input brings to light must not cost the others.
fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("a fault of coroner itself, please report it: {message}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_text() {
        let text = guarded(|| panic!("index {} is out of range", 7)).unwrap_err();
        assert_eq!(
            text,
            "a fault of coroner itself, please report it: index 7 is out of range"
        );
        assert_eq!(guarded(|| 3), Ok(3));
    }

    #[test]
    fn an_error_record_is_one_clean_line() {
        let record = Record::error("a\nb\u{1b}[31m.log", "input.unreadable", "no");
        assert_eq!(record.line.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&record.line).unwrap();
        assert_eq!(value["schema"], ERROR_SCHEMA);
        assert_eq!(value["source"], "a\nb.log");
    }
}
