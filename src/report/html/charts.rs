//! The pictures of the page: the phases of each process and the holders of the memory.
//!
//! Owns their geometry. Every picture is told in words beside it, and styled by class alone: the page's policy
//! allows no style in place.

use std::fmt::Write;

use super::super::model::{Memory, Report, TimelineEntry};
use super::super::{text, words};
use super::{died, escape};

/// Processes drawn; the rest is counted.
const LANES: usize = 16;
/// Width of a picture in its own units.
const WIDTH: f64 = 1000.0;
/// Colours of phases, in the style sheet.
const COLORS: usize = 8;

/// One lane for each process that entered a phase at a known time, the root's process first.
pub fn timeline(report: &Report) -> String {
    let told = words::path_line(report);
    let mut out = match told.is_empty() {
        true => String::new(),
        false => format!("<p>{}</p>\n", escape(&told)),
    };
    let last = report
        .timeline
        .iter()
        .filter_map(|entry| entry.seconds)
        .fold(0.0, f64::max);
    let end = report.launch.seconds_to_death.unwrap_or(0.0).max(last);
    if last <= 0.0 || !end.is_finite() {
        return out;
    }
    let mut ids: Vec<&str> = Vec::new();
    for entry in report.timeline.iter().filter(|entry| entry.seconds.is_some()) {
        if !ids.contains(&entry.process.as_str()) {
            ids.push(&entry.process);
        }
    }
    let victim = report.root.as_ref().and_then(|root| root.place.process.as_deref());
    ids.sort_by_key(|id| Some(*id) != victim);
    let mut phases: Vec<&str> = Vec::new();
    for entry in &report.timeline {
        if !phases.contains(&entry.phase.as_str()) {
            phases.push(&entry.phase);
        }
    }
    for id in ids.iter().take(LANES) {
        let entries: Vec<&TimelineEntry> = report
            .timeline
            .iter()
            .filter(|entry| entry.process == **id && entry.seconds.is_some())
            .collect();
        let dead = died(report) && Some(*id) == victim;
        lane(&mut out, report, id, &entries, &phases, end, dead);
    }
    if ids.len() > LANES {
        let more = text::plural((ids.len() - LANES) as u64, "more process");
        let _ = writeln!(out, "<p class=\"soft\">{more} in the JSON report.</p>");
    }
    out
}

fn lane(
    out: &mut String,
    report: &Report,
    id: &str,
    entries: &[&TimelineEntry],
    phases: &[&str],
    end: f64,
    dead: bool,
) {
    let process = report.processes.iter().find(|process| process.id == id);
    let name = process.map_or_else(|| id.to_owned(), words::process);
    let (mut bars, mut told) = (String::new(), Vec::new());
    for (n, entry) in entries.iter().enumerate() {
        let start = entry.seconds.unwrap_or(0.0);
        let until = entries
            .get(n + 1)
            .and_then(|next| next.seconds)
            .unwrap_or(end)
            .max(start);
        let color = phases.iter().position(|phase| *phase == entry.phase).unwrap_or(0) % COLORS;
        let phase = escape(&entry.phase);
        let _ = write!(
            bars,
            "<rect class=\"c{color}\" x=\"{:.1}\" y=\"0\" width=\"{:.1}\" height=\"20\"><title>{phase}, {}</title></rect>",
            start / end * WIDTH,
            ((until - start) / end * WIDTH - 1.0).max(1.5),
            text::seconds(until - start),
        );
        told.push(format!("{} {}", entry.phase, text::seconds(start)));
    }
    if dead {
        let _ = write!(
            bars,
            "<rect class=\"death\" x=\"{:.1}\" y=\"0\" width=\"6\" height=\"20\"><title>died here</title></rect>",
            WIDTH - 6.0
        );
        told.push(format!("✗ {}", text::seconds(end)));
    }
    let _ = writeln!(
        out,
        "<div class=\"lane\"><span>{0}</span><svg role=\"img\" aria-label=\"Phases of {0}\" viewBox=\"0 0 1000 20\" \
         preserveAspectRatio=\"none\">{bars}</svg><span class=\"told\">{1}</span></div>",
        escape(&name),
        escape(&told.join(" → "))
    );
}

/// A bar for each holder of the pool, and for its marks.
pub fn memory(report: &Report) -> String {
    let Some(memory) = &report.memory else {
        return String::new();
    };
    let mut out = format!("<p>{}</p>\n", escape(&owner(memory)));
    let marks = [
        ("total", memory.total_gib, 7),
        ("free at start", memory.free_at_start_gib, 2),
        ("requested", memory.requested_gib, 0),
    ];
    let marks = marks
        .into_iter()
        .filter_map(|(name, gib, color)| Some((name.to_owned(), gib?, format!("c{color}"))));
    let holders = memory.holders.iter().map(|h| (h.what.clone(), h.gib, "c3".to_owned()));
    let short = memory
        .short_by_gib
        .map(|gib| ("short by".to_owned(), gib, "death".to_owned()));
    let rows: Vec<(String, f64, String)> = marks.chain(holders).chain(short).collect();
    let full = rows
        .iter()
        .map(|row| row.1)
        .filter(|gib| gib.is_finite())
        .fold(0.0, f64::max);
    for (name, gib, class) in rows {
        let width = match full > 0.0 && gib.is_finite() {
            true => (gib.max(0.0) / full * WIDTH).max(2.0),
            false => 0.0,
        };
        let value = text::figure("_gib", gib).1;
        let _ = writeln!(
            out,
            "<div class=\"bar\"><span>{}</span><svg aria-hidden=\"true\" viewBox=\"0 0 1000 20\" \
             preserveAspectRatio=\"none\"><rect class=\"{class}\" x=\"0\" y=\"0\" width=\"{width:.1}\" height=\"20\"/></svg>\
             <span class=\"v\">{}</span></div>",
            escape(&name),
            escape(&value)
        );
    }
    for note in &memory.notes {
        let _ = writeln!(out, "<p class=\"soft\">{}</p>", escape(note));
    }
    out
}

fn owner(memory: &Memory) -> String {
    let pool = match memory.pool.as_str() {
        "gpu" => "GPU memory",
        "host" => "Host memory",
        "unified" => "Memory shared by GPU and host",
        other => other,
    };
    let device = memory
        .device
        .map(|device| format!(" of device {device}"))
        .unwrap_or_default();
    let process = memory
        .process
        .as_deref()
        .map(|id| format!(", {id}"))
        .unwrap_or_default();
    format!("{pool}{device}{process}")
}
