//! The report as Slack's mrkdwn: one message that fits a block.
//!
//! Owns the message, what of it fits, and its escapes. mrkdwn has no escape but three entities, so characters of the
//! log that would format, mention or link are replaced by ones that look the same.

use super::model::Report;
use super::text::{self, safe};
use super::{snippet, words};

/// What a text block holds, in characters.
pub const BLOCK_CHARS: usize = 3000;
/// Characters kept for saying what was left out.
const RESERVE: usize = 120;
/// Columns shown of one line of the log.
const PROOF_WIDTH: usize = 160;

/// Renders the report in at most `max` characters; what matters most comes first and stays.
pub fn render(report: &Report, max: usize) -> String {
    let mut message = Message {
        out: String::new(),
        room: max.min(BLOCK_CHARS).saturating_sub(RESERVE),
        left_out: Vec::new(),
    };
    let headline = text::clip(&report.headline, 200);
    message.part("headline", format!("*{}*\n", escape(&headline)));
    message.part("facts", format!("{}\n", facts(report)));
    let first = report
        .remedies
        .iter()
        .take(3)
        .map(|remedy| format!("{}. {}\n", remedy.rank, escape(&remedy.title)));
    let first: String = first.collect();
    if !first.is_empty() {
        message.part("remedies", format!("\n*Change first*\n{first}"));
    }
    message.part("story", paragraph(&report.story));
    message.part("proof", proof(report));
    message.part("retry", paragraph(&words::retry(report).unwrap_or_default()));
    let findings = report.findings.iter().map(|f| format!("• {}\n", escape(&f.title)));
    let findings: String = findings.collect();
    message.part("findings", findings);
    let next = report
        .next_evidence
        .iter()
        .map(|n| format!("• {}: {} {}\n", escape(&n.what), escape(&n.why), code(&n.command)));
    message.part("next evidence", next.collect());
    message.part("colophon", format!("_{}_\n", escape(&words::colophon(report))));
    message.end()
}

fn facts(report: &Report) -> String {
    let mut facts = vec![words::outcome(report)];
    facts.extend(
        report
            .cause
            .as_ref()
            .map(|c| format!("{} ({})", c.id, text::percent(c.confidence))),
    );
    facts.extend(report.root.as_ref().and_then(|root| words::who(&root.place)));
    facts.extend(words::engine(report));
    let mut facts: Vec<String> = facts.iter().map(|f| escape(&text::clip(f, 200))).collect();
    facts.extend(words::redaction(report).map(|level| escape(&level)));
    facts.join(" · ")
}

fn proof(report: &Report) -> String {
    let mut body = String::new();
    for line in report.snippet.iter().filter(|line| !line.role.is_empty()).take(4) {
        let text = safe(&line.text);
        body.push_str(&format!("{} | {}\n", line.line, text::clip(&text, PROOF_WIDTH)));
        body.push_str(&format!(
            "  ^ {}\n",
            text::clip(&snippet::label(report, line), PROOF_WIDTH)
        ));
    }
    if body.is_empty() {
        return body;
    }
    format!("\n```\n{}```\n", inside(&text::safe_lines(&body)))
}

fn paragraph(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("\n{}\n", escape(text))
}

/// The message as it grows.
struct Message {
    out: String,
    room: usize,
    left_out: Vec<&'static str>,
}

impl Message {
    fn part(&mut self, name: &'static str, text: String) {
        let len = text.chars().count();
        match self.room.checked_sub(len) {
            Some(room) => {
                self.room = room;
                self.out.push_str(&text);
            }
            None => self.left_out.push(name),
        }
    }

    fn end(mut self) -> String {
        if !self.left_out.is_empty() {
            self.out
                .push_str(&format!("_Left out: {}._\n", self.left_out.join(", ")));
        }
        self.out
    }
}

/// Text outside of code.
pub fn escape(text: &str) -> String {
    let clean = safe(text);
    let mut out = String::with_capacity(clean.len() + 8);
    let mut rest = clean.chars();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push('＠'),
            '*' => out.push('∗'),
            '~' => out.push('∼'),
            '`' => out.push('ˋ'),
            ':' if rest.as_str().starts_with("//") => out.push('∶'),
            _ => out.push(c),
        }
    }
    out
}

fn code(text: &str) -> String {
    let clean = safe(text);
    if clean.is_empty() {
        return String::new();
    }
    format!("`{}`", inside(&clean))
}

/// Text within code.
fn inside(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('`', "ˋ")
}
