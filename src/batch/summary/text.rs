//! A summary as plain text and as Markdown.
//!
//! Owns the layout. Passes every text of a log through the cleaning of its form.

use std::fmt::Write;

use super::page::{Page, Section};
use crate::report::markdown::escape;
use crate::report::text::{clip, safe, width, wrap};

/// Columns of a cell at most, but for the last of a row: that is mostly a path, and one cut short opens nothing.
const WIDEST: usize = 44;

/// For people, in so many columns.
pub fn text(page: &Page, columns: usize) -> String {
    let mut out = String::new();
    for line in wrap(&page.lead.join(" "), columns, "", "") {
        let _ = writeln!(out, "{line}");
    }
    for section in &page.sections {
        let _ = writeln!(out, "\n{}", section.title);
        table(&mut out, section);
    }
    out
}

fn table(out: &mut String, section: &Section) {
    let heads: Vec<&str> = section.columns.iter().map(|c| c.trim_start_matches('#')).collect();
    let number = |n: usize| section.columns.get(n).is_some_and(|c| c.starts_with('#'));
    let rows: Vec<Vec<String>> = section
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| safe(cell).into_owned()).collect())
        .collect();
    let mut widths: Vec<usize> = heads.iter().map(|head| width(head)).collect();
    for row in &rows {
        for (wide, cell) in widths.iter_mut().zip(row) {
            *wide = (*wide).max(width(cell)).min(WIDEST);
        }
    }
    let mut line = |cells: &[&str]| {
        let mut text = String::from(" ");
        for (n, (cell, wide)) in cells.iter().zip(&widths).enumerate() {
            let last = n + 1 == cells.len();
            let room = if last { usize::MAX } else { *wide };
            let cell = clip(cell, room);
            let pad = " ".repeat(wide.saturating_sub(width(&cell)));
            let _ = match number(n) {
                true => write!(text, " {pad}{cell} "),
                false => write!(text, " {cell}{pad} "),
            };
        }
        let _ = writeln!(out, "{}", text.trim_end());
    };
    line(&heads);
    for row in &rows {
        let cells: Vec<&str> = row.iter().map(String::as_str).collect();
        line(&cells);
    }
    if let Some(note) = &section.note {
        let _ = writeln!(out, "  {note}");
    }
}

/// For issues and merge requests.
pub fn markdown(page: &Page) -> String {
    let mut out = format!("# Launches\n\n{}\n", escape(&page.lead.join(" ")));
    for section in &page.sections {
        let heads: Vec<&str> = section.columns.iter().map(|c| c.trim_start_matches('#')).collect();
        let rules: Vec<&str> = section
            .columns
            .iter()
            .map(|c| if c.starts_with('#') { "---:" } else { "---" })
            .collect();
        let _ = writeln!(out, "\n## {}\n", escape(&section.title));
        let _ = writeln!(out, "| {} |\n| {} |", heads.join(" | "), rules.join(" | "));
        for row in &section.rows {
            let cells: Vec<String> = row.iter().map(|cell| escape(cell)).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
        if let Some(note) = &section.note {
            let _ = writeln!(out, "\n{}", escape(note));
        }
    }
    out
}
