//! The report in one line: for alerts, for a Kubernetes termination message, and as annotations of a CI run.
//!
//! Owns the short forms. No text of the log can begin a line of its own: every text is cleaned to one line.

use super::limit::squeezed;
use super::model::{Outcome, Report};
use super::text::{self, safe};
use super::words;

/// What Kubernetes keeps of a termination message, in bytes.
pub const TERMINATION_BYTES: usize = 4096;
/// Annotations of findings beside that of the verdict.
const FINDINGS: usize = 8;
/// Columns quoted of one text within a line.
const QUOTE: usize = 200;

/// One line for an alert: verdict, headline, the first change, the place.
pub fn oneline(report: &Report) -> String {
    let mut parts = vec![verdict(report), safe(&report.headline).into_owned()];
    parts.extend(first_change(report));
    parts.extend(place(report));
    parts.extend(words::redaction(report));
    parts.retain(|part| !part.is_empty());
    parts.join(" | ") + "\n"
}

/// One line of at most [`TERMINATION_BYTES`] bytes: what a controller or the next person needs to decide.
pub fn termination(report: &Report) -> String {
    let mut parts = vec![
        format!("coroner: {}", verdict(report)),
        safe(&report.headline).into_owned(),
    ];
    parts.extend(words::redaction(report));
    parts.extend(first_change(report));
    if report.cause.is_some() {
        let node = match report.retry.same_node {
            Some(false) => ", not on the same node",
            _ => "",
        };
        parts.push(format!("retry: {}{node}", safe(&report.retry.verdict)));
    }
    parts.extend(place(report));
    parts.extend(
        report
            .fingerprint
            .as_deref()
            .map(|f| format!("fingerprint {}", safe(f))),
    );
    parts.extend(
        report
            .root
            .as_ref()
            .map(|root| format!("log: {}", safe(root.place.text.trim()))),
    );
    parts.push(safe(&report.story).into_owned());
    parts.retain(|part| !part.is_empty());
    cut(parts.join(" | "), TERMINATION_BYTES - 1) + "\n"
}

/// Workflow commands: the verdict, then the findings.
pub fn github(report: &Report) -> String {
    let level = level(report);
    let mut said = vec![words::redaction(report).unwrap_or_default(), verdict(report)];
    said.push(safe(&report.story).into_owned());
    for remedy in &report.remedies {
        said.push(format!("{}. {}", remedy.rank, safe(&remedy.title)));
    }
    let said: Vec<String> = said
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| message(part))
        .collect();
    let mut properties = Vec::new();
    if let Some(root) = &report.root {
        properties.push(format!("file={},line={}", property(&root.place.input), root.place.line));
    }
    properties.push(format!("title={}", property(&report.headline)));
    let mut out = format!("::{level} {}::{}\n", properties.join(","), said.join("%0A"));
    for finding in report.findings.iter().take(FINDINGS) {
        let level = if finding.severity == "warning" {
            "warning"
        } else {
            "notice"
        };
        out.push_str(&format!("::{level}::{}\n", message(&finding.title)));
    }
    out
}

/// The workflow commands that fit: whole ones, or else the verdict alone and as much of its headline as there is room.
pub fn annotations(report: &Report, max: usize) -> String {
    let mut out = String::new();
    let mut room = max;
    for line in github(report).split_inclusive('\n') {
        match room.checked_sub(line.chars().count()) {
            Some(rest) => {
                room = rest;
                out.push_str(line);
            }
            None if out.is_empty() => break,
            None => {}
        }
    }
    if !out.is_empty() {
        return out;
    }
    let level = level(report);
    squeezed(oneline(report).trim_end(), max, |told| {
        format!("::{level}::{}\n", message(told))
    })
}

/// What kind of annotation the verdict is.
fn level(report: &Report) -> &'static str {
    match report.outcome {
        Outcome::Failed => "error",
        Outcome::Degraded => "warning",
        _ => "notice",
    }
}

fn verdict(report: &Report) -> String {
    let outcome = words::outcome(report);
    match &report.cause {
        Some(cause) => format!("{outcome}: {} ({})", safe(&cause.id), text::percent(cause.confidence)),
        None => outcome,
    }
}

fn first_change(report: &Report) -> Option<String> {
    let remedy = report.remedies.first()?;
    Some(format!("first: {}", text::clip(&safe(&remedy.title), QUOTE)))
}

fn place(report: &Report) -> Option<String> {
    let place = &report.root.as_ref()?.place;
    let who = words::who(place).map(|who| format!("{who}, ")).unwrap_or_default();
    Some(format!("{who}{}:{}", safe(&place.input), place.line))
}

/// At most `max` bytes, whole characters; what is cut off shows as `…`.
fn cut(mut text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let mut at = max.saturating_sub('…'.len_utf8());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.truncate(at);
    text + "…"
}

/// Text of a workflow command.
fn message(text: &str) -> String {
    safe(text).replace('%', "%25")
}

/// Value of a workflow command's property.
fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}
