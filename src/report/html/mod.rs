//! The report as one self-contained HTML file.
//!
//! Owns the page, its escapes and its policy: nothing is fetched, only the style and the script that stand in the
//! page are allowed, by their hashes. Without scripts the page lacks its copy buttons and nothing else.

mod charts;
pub mod several;

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::model::{Outcome, Remedy, Report};
use super::text::{self, safe};
use super::{Style, snippet, words};

const CSS: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Pieces of evidence shown.
const EVIDENCE_LIMIT: usize = 60;
/// Other processes named.
const PROCESS_LIMIT: usize = 16;
/// Columns shown of one line of the log.
const LINE_WIDTH: usize = 2000;

/// Renders the report.
pub fn render(report: &Report, style: &Style) -> String {
    document(&report.headline, &meta(report), &parts(report, style))
}

/// What the head of a page says of a report.
fn meta(report: &Report) -> String {
    let level = report.redaction.as_ref().map_or("none", |r| r.level.as_str());
    format!("<meta name=\"redaction\" content=\"{}\">\n", escape(level))
}

/// The body of the page of a report.
fn parts(report: &Report, style: &Style) -> String {
    let mut page = Page::default();
    answer(&mut page, report);
    page.section("proof", "The proof", &proof(report));
    page.section("change", "What to change, in this order", &remedies(report));
    page.section("timeline", "Path of the launch", &charts::timeline(report));
    page.section("memory", "Memory", &charts::memory(report));
    page.section("figures", "Figures", &table(&words::figures(report)));
    argument(&mut page, report);
    page.section("evidence", "Evidence", &evidence(report));
    if style.explain_confidence {
        let terms = report
            .confidence_terms
            .iter()
            .map(|(term, w)| format!("{w:+.2} {term}"));
        page.section("confidence", "Confidence, term by term", &list(terms));
    }
    page.end(report)
}

/// The page as it grows; a section without content leaves no trace.
#[derive(Default)]
struct Page {
    head: String,
    body: String,
    nav: String,
}

impl Page {
    fn section(&mut self, id: &str, title: &str, content: &str) {
        if content.is_empty() {
            return;
        }
        let _ = writeln!(self.nav, "<li><a href=\"#{id}\">{title}</a></li>");
        let _ = writeln!(
            self.body,
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n{content}</section>"
        );
    }

    fn end(self, report: &Report) -> String {
        format!(
            "{}\n<nav aria-label=\"Parts of this report\">\n<ul>\n{}</ul>\n</nav>\n<main>\n{}</main>\n\
             <footer><p>{}</p></footer>",
            self.head,
            self.nav,
            self.body,
            escape(&words::colophon(report)),
        )
    }
}

/// A whole document around a body, with the policy, the style and the script that all pages have.
pub fn document(title: &str, head: &str, body: &str) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64(&Sha256::digest(CSS)),
        base64(&Sha256::digest(SCRIPT))
    );
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n{head}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{CSS}</style>\n</head>\n<body>\n{body}\n\
         <script>{SCRIPT}</script>\n</body>\n</html>\n",
        escape(title),
    )
}

/// Outcome, headline, facts and story.
fn answer(page: &mut Page, report: &Report) {
    let out = &mut page.head;
    out.push_str("<header>\n");
    if let Some(level) = words::redaction(report) {
        let _ = writeln!(out, "<span class=\"level\">{}</span>", escape(&level));
    }
    let _ = writeln!(
        out,
        "<span class=\"badge {0}\">{0}</span>\n<h1>{1}</h1>\n<dl class=\"facts\">",
        report.outcome.id(),
        escape(&report.headline)
    );
    for (name, value) in facts(report) {
        let _ = writeln!(out, "<dt>{name}</dt><dd>{value}</dd>");
    }
    out.push_str("</dl>\n");
    if !report.story.is_empty() {
        let _ = writeln!(out, "<p class=\"story\">{}</p>", escape(&report.story));
    }
    out.push_str("</header>");
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    rows.extend(report.phase.as_deref().map(|phase| ("Phase", code(phase))));
    if let Some(cause) = &report.cause {
        let sure = words::confidence(cause.confidence);
        rows.push((
            "Cause",
            format!("{} – {}, {sure}", code(&cause.id), escape(&cause.title)),
        ));
    }
    if let Some(root) = &report.root {
        rows.extend(words::who(&root.place).map(|who| ("Process", escape(&who))));
        let place = format!("{}:{}", root.place.input, root.place.line);
        let told = match report.evidence.iter().any(|e| e.n == 0) {
            true => format!("<a href=\"#e0\">{}</a>", escape(&place)),
            false => escape(&place),
        };
        rows.push(("Line", told));
    }
    rows.extend(words::engine(report).map(|engine| ("Engine", escape(&engine))));
    rows.extend(report.launch.model.as_deref().map(|model| ("Model", escape(model))));
    let died = report.launch.seconds_to_death.filter(|s| *s > 0.0);
    rows.extend(died.map(|s| ("Died after", text::seconds(s))));
    rows.extend(words::attempts(report).map(|attempts| ("Attempts", escape(&attempts))));
    if report.cause.is_some() && !report.owner.is_empty() {
        rows.push(("Who can act", escape(&words::actor(report))));
    }
    rows
}

fn remedies(report: &Report) -> String {
    if report.cause.is_none() {
        return String::new();
    }
    let mut out: String = report.remedies.iter().map(|remedy| card(report, remedy)).collect();
    if let Some(retry) = words::retry(report) {
        let _ = writeln!(out, "<p>{}</p>", escape(&retry));
    }
    out
}

fn card(report: &Report, remedy: &Remedy) -> String {
    let mut out = format!(
        "<article class=\"card\">\n<h3>{}. {}</h3>\n",
        remedy.rank,
        escape(&remedy.title)
    );
    // Set apart, so that what is copied can be pasted: the old value is told beside it.
    for change in &remedy.change {
        let joint = match change.kind.as_str() {
            "env" => "=",
            _ => " ",
        };
        let told = match change.to.as_deref() {
            Some(to) => format!("{}{joint}{to}", change.name),
            None => change.name.clone(),
        };
        // A value told in words is to be read, not to be pasted.
        match change.to.as_deref().is_some_and(|to| to.contains(' ')) {
            true => out.push_str(&format!("<p>{}</p>\n", code(&told))),
            false => out.push_str(&copied(&told)),
        }
        if let (Some(from), Some(_)) = (&change.from, &change.to) {
            let _ = writeln!(out, "<p class=\"soft\">now {}</p>", code(from));
        }
    }
    for patch in &remedy.patch {
        let _ = writeln!(out, "<p class=\"soft\">{}:</p>", escape(&patch.place));
        // One block: a copy of half of it would not be the change.
        out.push_str(&copied_lines(&patch.text));
    }
    let rows = [
        ("Why", escape(&remedy.why)),
        ("Sum", remedy.arithmetic.as_deref().map(code).unwrap_or_default()),
        ("Cost", escape(&remedy.cost)),
        ("Risk", escape(&remedy.risk)),
        ("Check", escape(&remedy.verify)),
        (
            "Together with",
            escape(&words::pair(report, remedy).unwrap_or_default()),
        ),
        (
            "Evidence",
            remedy
                .evidence
                .iter()
                .map(|n| reference(report, *n))
                .collect::<Vec<_>>()
                .join(" "),
        ),
    ];
    for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
        let _ = writeln!(out, "<p><span class=\"soft\">{name}:</span> {value}</p>");
    }
    out + "</article>\n"
}

/// The same with its line breaks.
fn copied_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(escape).collect();
    format!(
        "<div class=\"set\"><code class=\"lines\">{}</code><button type=\"button\" class=\"copy\" hidden>Copy</button></div>\n",
        lines.join("\n")
    )
}

/// Code with a button that copies it. The button is hidden until the script shows it.
fn copied(text: &str) -> String {
    let clean = escape(text);
    format!(
        "<div class=\"set\"><code>{clean}</code><button type=\"button\" class=\"copy\" hidden>Copy</button></div>\n"
    )
}

/// A link to a piece of evidence, if it is shown.
fn reference(report: &Report, n: usize) -> String {
    match report.evidence.iter().take(EVIDENCE_LIMIT).any(|e| e.n == n) {
        true => format!("<a href=\"#e{n}\">[{n}]</a>"),
        false => format!("[{n}]"),
    }
}

fn proof(report: &Report) -> String {
    let blocks = snippet::blocks(report);
    let mut body = String::new();
    for (n, block) in blocks.iter().enumerate() {
        match n.checked_sub(1).and_then(|n| snippet::gap(blocks.get(n)?, block)) {
            Some(left_out) => {
                let told = text::plural(left_out, "line");
                let _ = writeln!(body, "<div class=\"gap\"><span class=\"n\">⋮</span>{told}</div>");
            }
            None => {
                let _ = writeln!(body, "<div class=\"file\">{}</div>", escape(block.input));
            }
        }
        for line in &block.lines {
            let class = if line.role == "root" { " class=\"root\"" } else { "" };
            let (number, told) = (line.line, text::clip(&line.text, LINE_WIDTH));
            let _ = writeln!(
                body,
                "<div{class}><span class=\"n\">{number}</span>{}</div>",
                escape(&told)
            );
            if !line.role.is_empty() {
                let label = escape(&snippet::label(report, line));
                let class = if line.role == "root" { "says cause" } else { "says" };
                let _ = writeln!(body, "<div class=\"{class}\"><span class=\"n\">╰──</span>{label}</div>");
            }
        }
    }
    if body.is_empty() {
        return body;
    }
    // What scrolls must be reachable by keyboard.
    format!("<div class=\"log\" role=\"region\" aria-label=\"Lines of the log\" tabindex=\"0\">\n{body}</div>\n")
}

/// What became of each process.
fn processes(report: &Report) -> String {
    let rows: String = words::processes(report)
        .iter()
        .take(PROCESS_LIMIT)
        .map(|row| {
            let [who, rest @ ..] = row;
            let rest: String = rest.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
            format!("<tr><th scope=\"row\">{}</th>{rest}</tr>\n", escape(who))
        })
        .collect();
    if rows.is_empty() {
        return rows;
    }
    let heads = ["Process", "Last phase", "First failure", "End"];
    let heads: String = heads
        .iter()
        .map(|head| format!("<th scope=\"col\">{head}</th>"))
        .collect();
    format!("<table>\n<tr>{heads}</tr>\n{rows}</table>\n")
}

/// Everything that speaks for and against.
fn argument(page: &mut Page, report: &Report) {
    if report.cause.is_some() {
        if let Some((text, places)) = words::exception(report) {
            let content = format!("<p>{}</p>\n{}", code(&text), list(places));
            page.section("exception", "The exception", &content);
        }
        page.section("processes", "The processes", &processes(report));
        let vain = report.will_not_help.iter().map(|v| format!("{}: {}", v.title, v.why));
        let wrong = report.overruled_advice.iter().map(|w| {
            format!(
                "The log's own advice ({}), “{}”: {}",
                words::line_of(report, &w.input, w.line),
                words::overruled(w),
                w.why
            )
        });
        page.section("vain", "What does not help", &list(vain.chain(wrong)));
        let rivals = report
            .alternatives
            .iter()
            .map(|r| format!("{} ({}): {}", r.id, text::percent(r.confidence), r.why_not));
        page.section("rivals", "Why nothing else", &list(rivals));
    }
    page.section(
        "findings",
        "Also seen",
        &list(report.findings.iter().map(|f| f.title.clone())),
    );
    if report.attempts.len() > 1 {
        page.section(
            "attempts",
            "Attempts in this log",
            &list(report.attempts.iter().map(|a| words::attempt(report, a))),
        );
    }
    let mut gaps = list(words::gaps(report));
    for next in &report.next_evidence {
        let _ = writeln!(gaps, "<p>{}: {}</p>", escape(&next.what), escape(&next.why));
        if !next.command.is_empty() {
            gaps.push_str(&copied(&next.command));
        }
    }
    page.section("gaps", "What the log cannot tell", &gaps);
}

fn evidence(report: &Report) -> String {
    let mut out = String::new();
    for e in report.evidence.iter().take(EVIDENCE_LIMIT) {
        let place = &e.place;
        let who = words::who(place)
            .map(|who| format!(" · {}", escape(&who)))
            .unwrap_or_default();
        let why = e.why.as_deref().filter(|why| !why.is_empty());
        let why = why.map(|why| format!(" – {}", escape(why))).unwrap_or_default();
        let by = e
            .explained_by
            .map(|n| format!(" · explained by {}", reference(report, n)));
        let _ = writeln!(
            out,
            "<li id=\"e{}\">[{}] <strong>{}</strong> · {}:{}{who}{why}{}<code class=\"text\">{}</code></li>",
            e.n,
            e.n,
            escape(&e.role),
            escape(&place.input),
            place.line,
            by.unwrap_or_default(),
            escape(&text::clip(&place.text, LINE_WIDTH)),
        );
    }
    if out.is_empty() {
        return out;
    }
    let more = report.evidence.len().saturating_sub(EVIDENCE_LIMIT);
    let more = match more {
        0 => String::new(),
        more => format!("<p class=\"soft\">{more} more in the JSON report.</p>\n"),
    };
    format!("<ol class=\"evidence\">\n{out}</ol>\n{more}")
}

fn table(rows: &[(String, String)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let rows: String = rows
        .iter()
        .map(|(name, value)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td class=\"v\">{}</td></tr>\n",
                escape(name),
                escape(value)
            )
        })
        .collect();
    format!("<table>\n{rows}</table>\n")
}

fn list(lines: impl IntoIterator<Item = String>) -> String {
    let lines: String = lines
        .into_iter()
        .map(|line| format!("<li>{}</li>\n", escape(&line)))
        .collect();
    if lines.is_empty() {
        return lines;
    }
    format!("<ul>\n{lines}</ul>\n")
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", escape(text))
}

/// Text of an element or an attribute.
pub fn escape(text: &str) -> String {
    let clean = safe(text);
    let mut out = String::with_capacity(clean.len() + 16);
    for c in clean.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digit = |n: u32| char::from(DIGITS.get((n & 63) as usize).copied().unwrap_or(b'='));
    let mut out = String::new();
    for part in bytes.chunks(3) {
        let at = |n: usize| u32::from(part.get(n).copied().unwrap_or(0));
        let word = (at(0) << 16) | (at(1) << 8) | at(2);
        let filled = [digit(word >> 18), digit(word >> 12), digit(word >> 6), digit(word)];
        out.extend(filled.iter().take(part.len() + 1));
        out.extend(std::iter::repeat_n('=', 3 - part.len()));
    }
    out
}

/// Whether a launch ended in a death that the charts mark.
fn died(report: &Report) -> bool {
    report.outcome == Outcome::Failed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn base64_is_that_of_the_standard() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn nothing_is_fetched_and_nothing_is_styled_or_run_in_place() {
        let page = render(&sample::graph_capture(), &Style::default());
        assert!(page.contains("Content-Security-Policy"));
        for forbidden in [
            "http://", "https://", " src=", "style=\"", " onclick", "@import", "url(",
        ] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn every_jump_has_a_goal() {
        let page = render(&sample::graph_capture(), &Style::default());
        for link in page.split("href=\"#").skip(1) {
            let id = link.split('"').next().unwrap();
            assert_eq!(page.matches(&format!(" id=\"{id}\"")).count(), 1, "{id}");
        }
    }

    #[test]
    fn hostile_text_opens_no_tag_and_closes_no_attribute() {
        let page = render(
            &sample::hostile("\"><script>alert(1)</script><img src=x onerror=y>'"),
            &Style::default(),
        );
        assert_eq!(page.matches("<script").count(), 1);
        assert!(!page.contains("<img"));
    }
}
