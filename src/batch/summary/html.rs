//! A summary as a page that is complete in itself: no script, nothing fetched.
//!
//! Owns the markup, and the escaping of every text of a log on its way into it.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::page::{Page, span};
use super::plot::{Bar, stacked};
use super::{SPANS, Summary};
use crate::report::text::safe;

/// Kinds with a colour of their own in a plot.
const KINDS: usize = 8;

const STYLE: &str = "\
body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#1b1b1b;background:#fff}\
h2{margin-top:2em;font-size:1.15em}table{border-collapse:collapse;width:100%}\
th,td{text-align:left;padding:.2em .7em .2em 0;border-bottom:1px solid #ddd;vertical-align:top;overflow-wrap:anywhere}\
.n,.d{white-space:nowrap}.n{text-align:right}svg{width:100%;height:auto;border-bottom:1px solid #bbb}svg text{font-size:11px}\
.legend{font-size:.85em;color:#444}.legend span{margin-left:1em}.legend i{display:inline-block;width:.8em;height:.8em;\
margin-right:.3em}";

/// Text as content or attribute value.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in safe(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// The page.
pub fn html(page: &Page, summary: &Summary) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Launches</title>\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <style>{STYLE}</style></head>\n<body><h1>Launches</h1>\n<p>{}</p>\n",
        escape(&page.lead.join(" "))
    );
    weeks(&mut out, summary);
    spans(&mut out, summary);
    for section in &page.sections {
        let class = |n: usize| match section.columns.get(n) {
            Some(name) if name.starts_with('#') => " class=\"n\"",
            Some(&("first" | "last")) => " class=\"d\"",
            _ => "",
        };
        let _ = write!(out, "<h2>{}</h2>\n<table><tr>", escape(&section.title));
        for (n, name) in section.columns.iter().enumerate() {
            let _ = write!(out, "<th{}>{}</th>", class(n), escape(name.trim_start_matches('#')));
        }
        out.push_str("</tr>\n");
        for row in &section.rows {
            out.push_str("<tr>");
            for (n, cell) in row.iter().enumerate() {
                let _ = write!(out, "<td{}>{}</td>", class(n), escape(cell));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table>\n");
        if let Some(note) = &section.note {
            let _ = writeln!(out, "<p>{}</p>", escape(note));
        }
    }
    out.push_str("</body></html>\n");
    out
}

/// Failures by week, stacked by family of causes. Weeks without any are gaps, so that time is to scale.
fn weeks(out: &mut String, summary: &Summary) {
    let (Some((first, _)), Some((last, _))) = (summary.weeks.first_key_value(), summary.weeks.last_key_value()) else {
        return;
    };
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for (family, n) in summary.weeks.values().flatten() {
        *totals.entry(family).or_default() += n;
    }
    let kinds = ranked(totals);
    let mondays = first
        .iter_weeks()
        .take_while(|monday| monday <= last)
        .take(super::WEEKS);
    let bars: Vec<Bar> = mondays
        .map(|monday| Bar {
            name: monday.to_string(),
            parts: parts(&kinds, summary.weeks.get(&monday)),
        })
        .collect();
    let _ = writeln!(out, "<h2>Failures by week and family of causes</h2>");
    out.push_str(&stacked(&kinds, &bars));
}

/// Failures by time to death, stacked by phase.
fn spans(out: &mut String, summary: &Summary) {
    if summary.spans.is_empty() {
        return;
    }
    let totals = summary
        .spans
        .iter()
        .map(|(phase, n)| (phase.as_str(), n.iter().sum()))
        .collect();
    let kinds = ranked(totals);
    let bars: Vec<Bar> = (0..=SPANS.len())
        .map(|class| {
            let by_phase = summary.spans.iter();
            let counts = by_phase.map(|(phase, n)| (phase.clone(), n.get(class).copied().unwrap_or(0)));
            Bar {
                name: span(class),
                parts: parts(&kinds, Some(&counts.collect())),
            }
        })
        .collect();
    let _ = writeln!(out, "<h2>Time to death by phase</h2>");
    out.push_str(&stacked(&kinds, &bars));
}

/// The most frequent names, and one for all others.
fn ranked(totals: BTreeMap<&str, u64>) -> Vec<String> {
    let mut names: Vec<(&str, u64)> = totals.into_iter().collect();
    names.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let more = names.len() > KINDS;
    let mut kinds: Vec<String> = names.into_iter().take(KINDS).map(|(name, _)| name.to_owned()).collect();
    kinds.extend(more.then(|| "others".to_owned()));
    kinds
}

fn parts(kinds: &[String], counts: Option<&BTreeMap<String, u64>>) -> Vec<u64> {
    let mut parts = vec![0; kinds.len()];
    for (name, n) in counts.into_iter().flatten() {
        let at = kinds.iter().position(|kind| kind == name).unwrap_or(KINDS);
        if let Some(part) = parts.get_mut(at) {
            *part += n;
        }
    }
    parts
}
