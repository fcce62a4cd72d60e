//! What a summary says, before it takes a form: sentences and tables.
//!
//! Owns the sections, their order and their words. Never knows a form.

use chrono::NaiveDateTime;

use super::{SPANS, Spans, Summary};
use crate::batch::group::{Row, Table};
use crate::report::text::{count, percent, plural};

/// Rows shown of a table by name.
const SHOWN: usize = 10;
/// Causes shown; there are about two hundred.
const CAUSES: usize = 40;

/// A summary.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The first sentences.
    pub lead: Vec<String>,
    /// The tables.
    pub sections: Vec<Section>,
}

/// One table.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// What it shows.
    pub title: String,
    /// Names of the columns; those of numbers begin with `#`, which is not shown.
    pub columns: Vec<&'static str>,
    /// Cells.
    pub rows: Vec<Vec<String>>,
    /// What it leaves out.
    pub note: Option<String>,
}

/// The page of a summary.
pub fn page(s: &Summary) -> Page {
    let mut sections = vec![outcomes(s), causes(s, "Causes of the failures", None)];
    if let Some(since) = s.new_since {
        sections.push(causes(
            s,
            &format!("Causes first seen since {}", since.date()),
            Some(since),
        ));
    }
    sections.push(phases(s));
    sections.push(failures(s));
    sections.push(unknown(s));
    sections.push(by("Engines", "engine", &s.engines));
    sections.push(by("Models", "model", &s.models));
    sections.push(by("Labels", "label", &s.labels));
    sections.push(by("Nodes on which launches died", "node", &s.nodes));
    sections.push(unread(s));
    sections.retain(|section| !section.rows.is_empty());
    Page {
        lead: lead(s),
        sections,
    }
}

fn lead(s: &Summary) -> Vec<String> {
    let read = s.records - s.unread;
    let launches = plural(read - s.other, "launch");
    let mut first = match s.other {
        0 => format!("{launches} examined"),
        _ => format!("{launches} found in {}", plural(read, "input")),
    };
    if let (Some(from), Some(to)) = (s.first, s.last) {
        first.push_str(&match from.date() == to.date() {
            true => format!(", of {}", from.date()),
            false => format!(", from {} to {}", from.date(), to.date()),
        });
    }
    first.push_str(&format!(": {} failed", count(s.failed)));
    if s.gpu_hours >= 0.05 {
        first.push_str(&format!(
            ", which cost {} GPU-hours where the logs tell",
            hours(s.gpu_hours)
        ));
    }
    let mut lead = vec![format!("{first}.")];
    if s.unread > 0 {
        lead.push(format!("{} could not be read.", plural(s.unread, "input")));
    }
    if s.missed > 0 {
        let files = plural(s.missed, "file");
        lead.push(format!("{files} of the launches could not be read, or not to the end."));
    }
    if s.left_out > 0 {
        lead.push(format!("{} left out as too old.", plural(s.left_out, "incident")));
    }
    lead
}

fn hours(hours: f64) -> String {
    match hours {
        h if h >= 100.0 => count(h.round() as u64),
        h => format!("{h:.1}"),
    }
}

fn share(n: u64, of: u64) -> String {
    percent(n as f64 / of.max(1) as f64)
}

fn day(time: Option<NaiveDateTime>) -> String {
    time.map(|t| t.date().to_string()).unwrap_or_default()
}

fn rest(table: &Table, all: usize, shown: usize) -> Option<String> {
    let more = all.saturating_sub(shown) as u64;
    let beyond = table.beyond;
    match (more, beyond) {
        (0, 0) => None,
        (more, 0) => Some(format!("and {} more", count(more))),
        (more, beyond) => Some(format!(
            "and {} more; {} had further names that are not told apart",
            count(more),
            plural(beyond, "record")
        )),
    }
}

fn outcomes(s: &Summary) -> Section {
    let read = s.records - s.unread;
    let row = |(name, row): &(&str, &Row)| vec![(*name).to_owned(), count(row.count), share(row.count, read)];
    Section {
        title: "Outcomes".to_owned(),
        columns: vec!["outcome", "#inputs", "#share"],
        rows: s.outcomes.ranked().iter().map(row).collect(),
        note: None,
    }
}

fn causes(s: &Summary, title: &str, since: Option<NaiveDateTime>) -> Section {
    let mut ranked = s.causes.ranked();
    ranked.retain(|(_, row)| since.is_none_or(|since| row.first.is_some_and(|first| first >= since)));
    let row = |(name, row): &(&str, &Row)| {
        vec![
            (*name).to_owned(),
            count(row.count),
            share(row.count, s.failed),
            hours(row.gpu_hours),
            day(row.first),
            day(row.last),
            row.example.clone(),
        ]
    };
    Section {
        title: title.to_owned(),
        columns: vec!["cause", "#failures", "#share", "#GPU-hours", "first", "last", "example"],
        rows: ranked.iter().take(CAUSES).map(row).collect(),
        note: rest(&s.causes, ranked.len(), CAUSES),
    }
}

fn phases(s: &Summary) -> Section {
    let row = |(name, row): &(&str, &Row)| {
        vec![
            (*name).to_owned(),
            count(row.count),
            share(row.count, s.failed),
            s.spans.get(*name).map(half).unwrap_or_default(),
        ]
    };
    Section {
        title: "Phases in which launches died".to_owned(),
        columns: vec!["phase", "#failures", "#share", "half of them within"],
        rows: s.phases.ranked().iter().map(row).collect(),
        note: None,
    }
}

/// The class of time in which half of the failures are over.
fn half(spans: &Spans) -> String {
    let all: u64 = spans.iter().sum();
    let mut seen = 0;
    let class = spans.iter().position(|n| {
        seen += n;
        seen * 2 >= all
    });
    class.map(span).unwrap_or_default()
}

/// The name of a class of time.
pub fn span(class: usize) -> String {
    let name = |seconds: f64| match seconds {
        s if s < 60.0 => format!("{s} s"),
        s if s < 3600.0 => format!("{} min", s / 60.0),
        s => format!("{} h", s / 3600.0),
    };
    match SPANS.get(class) {
        Some(bound) => name(*bound),
        None => format!("over {}", SPANS.last().copied().map(name).unwrap_or_default()),
    }
}

fn failures(s: &Summary) -> Section {
    let mut ranked = s.failures.ranked();
    ranked.retain(|(_, row)| row.count > 1);
    let row = |(name, row): &(&str, &Row)| {
        vec![
            row.title.clone(),
            count(row.count),
            day(row.first),
            day(row.last),
            (*name).to_owned(),
            row.example.clone(),
        ]
    };
    Section {
        title: "Equal failures".to_owned(),
        columns: vec!["failure", "#times", "first", "last", "fingerprint", "example"],
        rows: ranked.iter().take(SHOWN).map(row).collect(),
        note: rest(&s.failures, ranked.len(), SHOWN),
    }
}

fn unknown(s: &Summary) -> Section {
    let ranked = s.unknown.ranked();
    let row = |(name, row): &(&str, &Row)| {
        vec![
            (*name).to_owned(),
            count(row.count),
            day(row.first),
            day(row.last),
            row.example.clone(),
        ]
    };
    Section {
        title: "Unknown failures, # for numbers".to_owned(),
        columns: vec!["message", "#failures", "first", "last", "example"],
        rows: ranked.iter().take(SHOWN).map(row).collect(),
        note: rest(&s.unknown, ranked.len(), SHOWN),
    }
}

fn by(title: &str, name: &'static str, table: &Table) -> Section {
    let ranked = table.ranked();
    let row = |(name, row): &(&str, &Row)| {
        vec![
            (*name).to_owned(),
            count(row.count),
            count(row.failed),
            share(row.failed, row.count),
            hours(row.gpu_hours),
        ]
    };
    Section {
        title: title.to_owned(),
        columns: vec![name, "#launches", "#failed", "#share", "#GPU-hours"],
        rows: ranked.iter().take(SHOWN).map(row).collect(),
        note: rest(table, ranked.len(), SHOWN),
    }
}

fn unread(s: &Summary) -> Section {
    let rows: Vec<Vec<String>> = s
        .unread_examples
        .iter()
        .map(|(source, why)| vec![source.clone(), why.clone()])
        .collect();
    let more = s.unread + s.missed - rows.len() as u64;
    Section {
        title: "Inputs that could not be read".to_owned(),
        columns: vec!["input", "why"],
        rows,
        note: (more > 0).then(|| format!("and {} more", count(more))),
    }
}
