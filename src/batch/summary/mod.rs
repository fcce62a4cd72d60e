//! The summary of a scan: what died how often, of what, where and when.
//!
//! Owns what is counted. Takes records one by one and holds none of them.

mod html;
mod page;
mod plot;
mod text;

use std::collections::BTreeMap;

use chrono::{Datelike, Days, NaiveDate, NaiveDateTime};

use super::digest::Digest;
use super::group::{Table, template};

/// The outcome of what is no log of a launch.
const NO_LAUNCH: &str = "no-launch";

/// Inputs that could not be read and are named; the others are counted.
const NAMED: usize = 10;

/// Weeks that are counted one by one, the newest; a wrong stamp must not fill the memory with weeks.
const WEEKS: usize = 520;

/// Upper bounds of the classes of time to death, in seconds; what takes longer is in a class of its own.
pub const SPANS: [f64; 8] = [10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];

/// A form of the summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// For people, in so many columns.
    Text(usize),
    /// For issues and merge requests.
    Markdown,
    /// A page with plots, complete in itself.
    Html,
}

/// Failures by the class of their time to death.
pub type Spans = [u64; SPANS.len() + 1];

/// What is counted of the records of a scan.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    records: u64,
    unread: u64,
    /// Inputs that are read and are no log of a launch.
    other: u64,
    /// Files of reports that were not read, or not to their end.
    missed: u64,
    unread_examples: Vec<(String, String)>,
    failed: u64,
    left_out: u64,
    gpu_hours: f64,
    first: Option<NaiveDateTime>,
    last: Option<NaiveDateTime>,
    new_since: Option<NaiveDateTime>,
    outcomes: Table,
    causes: Table,
    phases: Table,
    engines: Table,
    models: Table,
    nodes: Table,
    labels: Table,
    failures: Table,
    unknown: Table,
    weeks: BTreeMap<NaiveDate, BTreeMap<String, u64>>,
    spans: BTreeMap<String, Spans>,
}

impl Summary {
    /// Nothing yet; causes first seen since the given time will have a section of their own.
    pub fn new(new_since: Option<NaiveDateTime>) -> Self {
        Self {
            new_since,
            ..Self::default()
        }
    }

    /// Counts what a choice of time leaves out.
    pub fn leave_out(&mut self, incidents: u64) {
        self.left_out += incidents;
    }

    /// Counts a record. `label` is what the caller draws from its source.
    pub fn add(&mut self, digest: &Digest, label: Option<&str>) {
        self.records += 1;
        let Some(outcome) = digest.outcome.as_deref() else {
            self.unread += 1;
            self.name_unread(&digest.source, digest.error.as_ref().map_or("", |e| e.text.as_str()));
            return;
        };
        for file in &digest.scan.unread {
            self.missed += 1;
            self.name_unread(&file.input, &file.why);
        }
        self.outcomes.add(outcome, "", digest);
        if outcome == NO_LAUNCH {
            self.other += 1;
            return;
        }
        if let Some(time) = digest.time() {
            self.first = Some(self.first.map_or(time, |t| t.min(time)));
            self.last = Some(self.last.map_or(time, |t| t.max(time)));
        }
        if let Some(name) = &digest.engine.name {
            let version = digest.engine.version.as_deref().unwrap_or("of unknown version");
            self.engines.add(&format!("{name} {version}"), "", digest);
        }
        if let Some(model) = &digest.launch.model {
            self.models.add(model, "", digest);
        }
        if let Some(label) = label {
            self.labels.add(label, "", digest);
        }
        if outcome == "failed" {
            self.failure(digest);
        }
    }

    /// Keeps the first names, in whatever order they come.
    fn name_unread(&mut self, input: &str, why: &str) {
        let named = (input.to_owned(), why.to_owned());
        let at = self.unread_examples.partition_point(|known| *known < named);
        if at < NAMED {
            self.unread_examples.insert(at, named);
            self.unread_examples.truncate(NAMED);
        }
    }

    fn failure(&mut self, digest: &Digest) {
        self.failed += 1;
        self.gpu_hours += digest.gpu_hours().unwrap_or(0.0);
        let cause = digest.cause_id().unwrap_or("unknown.silent");
        let title = digest.cause.as_ref().map_or("", |c| c.title.as_str());
        self.causes.add(cause, title, digest);
        let phase = digest.phase.as_deref().unwrap_or("unknown");
        self.phases.add(phase, "", digest);
        if let Some(node) = digest.root.as_ref().and_then(|root| root.node.as_deref()) {
            self.nodes.add(node, "", digest);
        }
        if let Some(fingerprint) = &digest.fingerprint {
            self.failures.add(fingerprint, &digest.headline, digest);
        }
        if let Some(template) = template(digest) {
            self.unknown.add(&template, &digest.headline, digest);
        }
        if let Some(time) = digest.time() {
            self.week(time.date(), cause);
        }
        if let Some(seconds) = digest.launch.seconds_to_death {
            let class = SPANS.iter().take_while(|bound| seconds > **bound).count();
            if let Some(n) = self.spans.entry(phase.to_owned()).or_default().get_mut(class) {
                *n += 1;
            }
        }
    }

    fn week(&mut self, day: NaiveDate, cause: &str) {
        let since_monday = Days::new(u64::from(day.weekday().num_days_from_monday()));
        let Some(monday) = day.checked_sub_days(since_monday) else {
            return;
        };
        let family = cause.split('.').next().unwrap_or(cause);
        *self
            .weeks
            .entry(monday)
            .or_default()
            .entry(family.to_owned())
            .or_default() += 1;
        if self.weeks.len() > WEEKS {
            self.weeks.pop_first();
        }
    }

    /// The summary in a form.
    pub fn render(&self, form: Form) -> String {
        let page = page::page(self);
        match form {
            Form::Text(width) => text::text(&page, width),
            Form::Markdown => text::markdown(&page),
            Form::Html => html::html(&page, self),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
