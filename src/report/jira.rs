//! The report in Jira's wiki markup, to be pasted into an issue.
//!
//! Owns the page and its escapes. Text of the log stands in blocks without format or is escaped character by
//! character, so that it mentions nobody, embeds nothing and closes no block.

use super::model::Report;
use super::text::{self, capital, safe};
use super::{snippet, words};

/// Columns shown of one line of the log.
const PROOF_WIDTH: usize = 300;
/// Lines of evidence.
const EVIDENCE_LIMIT: usize = 40;

/// Renders the report.
pub fn render(report: &Report) -> String {
    let mut out = format!("h2. {}\n\n", escape(&report.headline));
    for (name, value) in facts(report) {
        out.push_str(&format!("||{name}|{value}|\n"));
    }
    out.push('\n');
    if !report.story.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&report.story)));
    }
    out.push_str(&proof(report));
    section(&mut out, "Path of the launch", "", [words::path_line(report)]);
    if report.cause.is_some() {
        remedies(&mut out, report);
        section(&mut out, "The processes", "* ", words::process_lines(report));
        let vain = report.will_not_help.iter().map(|v| format!("{}: {}", v.title, v.why));
        let wrong = report.overruled_advice.iter().map(|w| {
            format!(
                "{}, “{}”: {}",
                capital(&words::line_of(report, &w.input, w.line)),
                words::overruled(w),
                w.why
            )
        });
        section(&mut out, "What does not help", "* ", vain.chain(wrong));
        let rivals = report
            .alternatives
            .iter()
            .map(|r| format!("{} ({}): {}", r.id, text::percent(r.confidence), r.why_not));
        section(&mut out, "Why nothing else", "* ", rivals);
    }
    let findings = report.findings.iter().map(|f| f.title.clone());
    section(&mut out, "Also seen", "* ", findings);
    let next = report
        .next_evidence
        .iter()
        .map(|n| format!("{}: {} {}", n.what, n.why, n.command));
    let gaps = words::gaps(report).into_iter().chain(next);
    section(&mut out, "What the log cannot tell", "* ", gaps);
    if !report.evidence.is_empty() {
        let mut body = String::new();
        for e in report.evidence.iter().take(EVIDENCE_LIMIT) {
            let place = &e.place;
            let text = text::clip(&place.text, PROOF_WIDTH);
            body.push_str(&format!(
                "[{}] {} {}:{}\n    {text}\n",
                e.n, e.role, place.input, place.line
            ));
        }
        out.push_str(&format!("h3. Evidence\n\n{}\n", block(&body)));
    }
    out.push_str(&format!("----\n{}\n", escape(&words::colophon(report))));
    out
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let outcome = [Some(words::outcome(report)), words::redaction(report)];
    let outcome = outcome.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut rows = vec![("Outcome", escape(&outcome))];
    if let Some(cause) = &report.cause {
        let sure = words::confidence(cause.confidence);
        rows.push(("Cause", escape(&format!("{} – {}, {sure}", cause.id, cause.title))));
    }
    if let Some(root) = &report.root {
        rows.extend(words::who(&root.place).map(|who| ("Process", escape(&who))));
        rows.push(("Line", escape(&format!("{}:{}", root.place.input, root.place.line))));
    }
    rows.extend(words::engine(report).map(|engine| ("Engine", escape(&engine))));
    rows.extend(report.launch.model.as_deref().map(|model| ("Model", escape(model))));
    if report.cause.is_some() && !report.owner.is_empty() {
        rows.push(("Who can act", escape(&words::actor(report))));
    }
    rows
}

fn proof(report: &Report) -> String {
    let mut body = String::new();
    for block in snippet::blocks(report) {
        body.push_str(&format!("{}\n", safe(block.input)));
        for line in &block.lines {
            let text = safe(&line.text);
            body.push_str(&format!("{:>7} | {}\n", line.line, text::clip(&text, PROOF_WIDTH)));
            if !line.role.is_empty() {
                body.push_str(&format!("        ^ {}\n", snippet::label(report, line)));
            }
        }
    }
    if body.is_empty() { body } else { block(&body) + "\n" }
}

fn remedies(out: &mut String, report: &Report) {
    if !report.remedies.is_empty() {
        out.push_str("h3. What to change, in this order\n\n");
    }
    for remedy in &report.remedies {
        out.push_str(&format!(
            "# *{}* (risk: {})\n",
            escape(&remedy.title),
            escape(&remedy.risk)
        ));
        let (settings, commands) = words::changes(remedy);
        let rows = [
            ("Set", settings.join(", ")),
            ("Run", commands.join(", ")),
            ("Why", remedy.why.clone()),
            ("Sum", remedy.arithmetic.clone().unwrap_or_default()),
            ("Cost", remedy.cost.clone()),
            ("Check", remedy.verify.clone()),
        ];
        for (name, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            out.push_str(&format!("#* {name}: {}\n", escape(value)));
        }
        for patch in &remedy.patch {
            let lines = words::paste(patch).join("\n").replace("{noformat}", "{ noformat}");
            out.push_str(&format!(
                "#* Paste, {}:\n{{noformat}}\n{lines}\n{{noformat}}\n",
                escape(&patch.place)
            ));
        }
    }
    out.push('\n');
    section(out, "", "", words::retry(report));
    for (name, value) in words::figures(report) {
        out.push_str(&format!("|{}|{}|\n", escape(&name), escape(&value)));
    }
    out.push('\n');
}

fn section(out: &mut String, title: &str, mark: &str, lines: impl IntoIterator<Item = String>) {
    let lines: Vec<String> = lines
        .into_iter()
        .filter(|line| !line.is_empty())
        .map(|line| format!("{mark}{}", escape(&line)))
        .collect();
    if lines.is_empty() {
        return;
    }
    if !title.is_empty() {
        out.push_str(&format!("h3. {title}\n\n"));
    }
    out.push_str(&format!("{}\n\n", lines.join("\n")));
}

/// A block without format. Its end inside of it is taken apart: nothing escapes there.
fn block(body: &str) -> String {
    let mut clean = text::safe_lines(body).into_owned();
    for tag in ["noformat", "code"] {
        clean = clean.replace(&format!("{{{tag}"), &format!("{{ {tag}"));
    }
    format!("{{noformat}}\n{}\n{{noformat}}\n", clean.trim_end_matches('\n'))
}

/// Text between markup. Marks become entities, because a backslash means a line break where it is doubled.
pub fn escape(text: &str) -> String {
    let clean = safe(text);
    let mut out = String::with_capacity(clean.len() + 16);
    let mut before = ' ';
    let mut rest = clean.chars();
    while let Some(c) = rest.next() {
        let next = rest.as_str();
        let marks = match c {
            '&' | '<' | '>' | '\\' | '{' | '}' | '[' | ']' | '|' | '!' | '*' | '^' | '~' | '@' => true,
            // Between letters these are themselves; elsewhere they underline, strike out, draw a line, begin a list.
            '_' => !before.is_alphanumeric() || !next.starts_with(char::is_alphanumeric),
            '-' | '+' | '#' => !before.is_alphanumeric(),
            '?' => before == '?' || next.starts_with('?'),
            ':' => next.starts_with("//") || next.starts_with([')', '(', 'P', 'D', '|', '-']),
            ';' => next.starts_with(')'),
            '(' => next.chars().nth(1) == Some(')') || next.starts_with("off)") || next.starts_with("on)"),
            // `h1.` and `bq.` at the start of a line.
            'h' | 'b' if out.is_empty() => next.get(1..2) == Some("."),
            _ => false,
        };
        if marks {
            out.push_str(&format!("&#{};", u32::from(c)));
        } else {
            out.push(c);
        }
        before = c;
    }
    out
}
