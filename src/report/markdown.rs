//! The report as GitHub-flavoured Markdown, to be pasted into an issue.
//!
//! Owns the page and its escapes. Text of the log stands in code only, where no mention, reference, link or tag
//! is read; the report's own sentences, which may quote the log, are escaped character by character.

use super::model::{Remedy, Report};
use super::text::{self, capital, safe};
use super::{Style, snippet, words};

/// Columns shown of one line of the log.
const PROOF_WIDTH: usize = 300;
/// Other processes named.
const PROCESS_LIMIT: usize = 16;
/// Lines of evidence in the collapsed list.
const EVIDENCE_LIMIT: usize = 40;

/// Renders the report.
pub fn render(report: &Report, style: &Style) -> String {
    let mut out = format!("## {}\n\n", escape(&report.headline));
    facts(&mut out, report);
    if !report.story.is_empty() {
        out.push_str(&format!("{}\n\n", escape(&report.story)));
    }
    out.push_str(&proof(report));
    section(&mut out, "Path of the launch", &[escape(&words::path_line(report))]);
    if report.cause.is_some() {
        if let Some((text, places)) = words::exception(report) {
            let places = places.iter().map(|place| format!("- {}", code(place)));
            let lines: Vec<String> = std::iter::once(code(&text) + "\n").chain(places).collect();
            section(&mut out, "The exception", &lines);
        }
        processes(&mut out, report);
        remedies(&mut out, report);
        let vain = report.will_not_help.iter().map(|vain| bullet(&vain.title, &vain.why));
        let wrong = report.overruled_advice.iter().map(|wrong| {
            format!(
                "- {}, {}: {}",
                escape(&capital(&words::line_of(report, &wrong.input, wrong.line))),
                code(&words::overruled(wrong)),
                escape(&wrong.why)
            )
        });
        section(&mut out, "What does not help", &vain.chain(wrong).collect::<Vec<_>>());
        let rivals = report.alternatives.iter().map(|rival| {
            format!(
                "- {} ({}): {}",
                code(&rival.id),
                text::percent(rival.confidence),
                escape(&rival.why_not)
            )
        });
        section(&mut out, "Why nothing else", &rivals.collect::<Vec<_>>());
    }
    let findings = report
        .findings
        .iter()
        .map(|finding| format!("- {}", escape(&finding.title)));
    section(&mut out, "Also seen", &findings.collect::<Vec<_>>());
    if report.attempts.len() > 1 {
        let attempts = report
            .attempts
            .iter()
            .map(|a| format!("- {}", escape(&words::attempt(report, a))));
        section(&mut out, "Attempts in this log", &attempts.collect::<Vec<_>>());
    }
    unknowns(&mut out, report);
    evidence(&mut out, report);
    if style.explain_confidence {
        let terms = report
            .confidence_terms
            .iter()
            .map(|(term, weight)| format!("- {weight:+.2} {}", escape(term)));
        section(&mut out, "Confidence, term by term", &terms.collect::<Vec<_>>());
    }
    out.push_str(&format!("<sub>{}</sub>\n", escape(&words::colophon(report))));
    out
}

/// What became of each process.
fn processes(out: &mut String, report: &Report) {
    let rows = words::processes(report);
    let cell = |text: &String| escape(text).replace('|', "\\|");
    let mut lines: Vec<String> = Vec::new();
    for row in rows.iter().take(PROCESS_LIMIT) {
        lines.push(format!("| {} |", row.iter().map(cell).collect::<Vec<_>>().join(" | ")));
    }
    if !lines.is_empty() {
        lines.splice(
            0..0,
            [
                "| Process | Last phase | First failure | End |".to_owned(),
                "| --- | --- | --- | --- |".to_owned(),
            ],
        );
    }
    section(out, "The processes", &lines);
}

/// The table under the headline.
fn facts(out: &mut String, report: &Report) {
    let outcome = [Some(words::outcome(report)), words::redaction(report)];
    let outcome = outcome.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    let mut rows: Vec<(&str, String)> = vec![("Outcome", escape(&outcome))];
    if let Some(cause) = &report.cause {
        let told = format!(
            "{} – {}, {}",
            code(&cause.id),
            escape(&cause.title),
            words::confidence(cause.confidence)
        );
        rows.push(("Cause", told));
    }
    if let Some(root) = &report.root {
        let who = words::who(&root.place).map(|who| code(&who));
        rows.extend(who.map(|who| ("Process", who)));
        rows.push(("Line", code(&format!("{}:{}", root.place.input, root.place.line))));
    }
    rows.extend(words::engine(report).map(|engine| ("Engine", escape(&engine))));
    rows.extend(report.launch.model.as_deref().map(|model| ("Model", code(model))));
    rows.extend(
        report
            .launch
            .seconds_to_death
            .filter(|s| *s > 0.0)
            .map(|s| ("Died after", text::seconds(s))),
    );
    rows.extend(words::attempts(report).map(|attempts| ("Attempts", attempts)));
    if report.cause.is_some() && !report.owner.is_empty() {
        rows.push(("Who can act", escape(&words::actor(report))));
    }
    out.push_str("| | |\n| --- | --- |\n");
    for (name, value) in rows {
        // A pipe ends a cell even inside code.
        out.push_str(&format!("| **{name}** | {} |\n", value.replace('|', "\\|")));
    }
    out.push('\n');
}

/// The snippet, fenced.
fn proof(report: &Report) -> String {
    let blocks = snippet::blocks(report);
    let digits = blocks
        .iter()
        .flat_map(|b| b.lines.last())
        .map(|l| l.line.to_string().len())
        .max()
        .unwrap_or(0);
    let mut body = String::new();
    for (n, block) in blocks.iter().enumerate() {
        match n.checked_sub(1).and_then(|n| snippet::gap(blocks.get(n)?, block)) {
            Some(left_out) => body.push_str(&format!("{:>digits$} ⋮ {}\n", "", text::plural(left_out, "line"))),
            None => body.push_str(&format!("{}\n", safe(block.input))),
        }
        for line in &block.lines {
            body.push_str(
                format!(
                    "{:>digits$} │ {}",
                    line.line,
                    text::clip(&safe(&line.text), PROOF_WIDTH)
                )
                .trim_end(),
            );
            body.push('\n');
            if !line.role.is_empty() {
                body.push_str(&format!("{:>digits$} · ╰── {}\n", "", snippet::label(report, line)));
            }
        }
    }
    if body.is_empty() { body } else { fenced(&body) + "\n" }
}

/// The changes, numbered, with their price; the figures they are computed from stand under them.
fn remedies(out: &mut String, report: &Report) {
    if !report.remedies.is_empty() {
        out.push_str("### What to change, in this order\n\n");
        for remedy in &report.remedies {
            one_remedy(out, report, remedy);
        }
        out.push('\n');
    }
    if let Some(retry) = words::retry(report) {
        out.push_str(&format!("{}\n\n", escape(&retry)));
    }
    let rows = words::figures(report);
    if !rows.is_empty() {
        out.push_str("| Figure | Value |\n| --- | ---: |\n");
        for (name, value) in rows {
            out.push_str(&format!("| {} | {} |\n", escape(&name), escape(&value)));
        }
        out.push('\n');
    }
}

fn one_remedy(out: &mut String, report: &Report, remedy: &Remedy) {
    out.push_str(&format!(
        "{}. **{}** (risk: {})\n",
        remedy.rank,
        escape(&remedy.title),
        escape(&remedy.risk)
    ));
    let (settings, commands) = words::changes(remedy);
    let all = |changes: &[String]| changes.iter().map(|change| code(change)).collect::<Vec<_>>().join(", ");
    let rows = [
        ("Set", all(&settings)),
        ("Run", all(&commands)),
        ("Why", escape(&remedy.why)),
        ("Sum", remedy.arithmetic.as_deref().map(code).unwrap_or_default()),
        ("Cost", escape(&remedy.cost)),
        ("Check", escape(&remedy.verify)),
        ("Together with", words::pair(report, remedy).unwrap_or_default()),
    ];
    for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
        out.push_str(&format!("   - {name}: {value}\n"));
    }
    for patch in &remedy.patch {
        out.push_str(&format!("   - Paste, {}:\n\n", escape(&patch.place)));
        for line in fenced(&patch.text).lines() {
            out.push_str(&format!("     {line}\n"));
        }
    }
}

fn unknowns(out: &mut String, report: &Report) {
    let gaps = words::gaps(report).into_iter().map(|gap| format!("- {}", escape(&gap)));
    let next = report.next_evidence.iter().map(|next| {
        let command = if next.command.is_empty() {
            String::new()
        } else {
            format!(" – {}", code(&next.command))
        };
        bullet(&next.what, &next.why) + &command
    });
    section(out, "What the log cannot tell", &gaps.chain(next).collect::<Vec<_>>());
}

/// The evidence, collapsed.
fn evidence(out: &mut String, report: &Report) {
    if report.evidence.is_empty() {
        return;
    }
    let mut body = String::new();
    for evidence in report.evidence.iter().take(EVIDENCE_LIMIT) {
        let place = &evidence.place;
        body.push_str(&format!(
            "[{}] {} {}:{}",
            evidence.n,
            evidence.role,
            safe(&place.input),
            place.line
        ));
        if let Some(who) = words::who(place) {
            body.push_str(&format!(" {who}"));
        }
        if let Some(why) = evidence.why.as_deref().filter(|why| !why.is_empty()) {
            body.push_str(&format!(" – {}", safe(why)));
        }
        body.push_str(&format!("\n    {}\n", safe(&place.text)));
    }
    let shown = report.evidence.len().min(EVIDENCE_LIMIT);
    let of = if shown < report.evidence.len() {
        format!(" of {}", report.evidence.len())
    } else {
        String::new()
    };
    out.push_str(&format!(
        "<details>\n<summary>Evidence: {}{of}</summary>\n\n{}\n</details>\n\n",
        text::plural(shown as u64, "line"),
        fenced(&body)
    ));
}

fn section(out: &mut String, title: &str, lines: &[String]) {
    if lines.iter().all(String::is_empty) {
        return;
    }
    out.push_str(&format!("### {title}\n\n{}\n\n", lines.join("\n")));
}

fn bullet(title: &str, why: &str) -> String {
    format!("- {}: {}", escape(title), escape(why))
}

/// A fenced block that its content cannot close: the fence is longer than every run of backticks in it.
fn fenced(body: &str) -> String {
    let body = text::safe_lines(body);
    let fence = "`".repeat(longest_run(&body).max(2) + 1);
    format!(
        "{fence}text\n{body}{}{fence}\n",
        if body.ends_with('\n') { "" } else { "\n" }
    )
}

/// A code span that its content cannot close.
fn code(text: &str) -> String {
    let clean = safe(text);
    if clean.is_empty() {
        return String::new();
    }
    let fence = "`".repeat(longest_run(&clean) + 1);
    // The spaces are stripped by the reader; without them a leading backtick would join the fence.
    let pad = if clean.starts_with('`') || clean.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{clean}{pad}{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

/// Text outside of code. `@` and `#` are followed by a zero-width space written as an entity, because a plain
/// escape does not stop mentions and references, and so are the first letters of `GH-1` and `www.`; a colon before
/// `//` is an entity, so no link arises.
pub fn escape(text: &str) -> String {
    let clean = safe(text);
    let mut out = String::with_capacity(clean.len() + 16);
    let mut rest = clean.chars();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '@' => out.push_str("@&#8203;"),
            '#' => out.push_str("#&#8203;"),
            ':' if rest.as_str().starts_with("//") => out.push_str("&#58;"),
            'G' if rest.as_str().starts_with("H-") => out.push_str("G&#8203;"),
            'w' if rest.as_str().starts_with("ww.") => out.push_str("w&#8203;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_cannot_be_closed_from_inside() {
        assert_eq!(code("plain"), "`plain`");
        assert_eq!(code("a ``` b"), "````a ``` b````");
        assert_eq!(code("`x"), "`` `x ``");
        assert!(fenced("```\n@all\n").starts_with("````text\n"));
    }

    #[test]
    fn sentences_mention_and_link_nobody() {
        assert_eq!(escape("@octocat fixes #12"), "@&#8203;octocat fixes #&#8203;12");
        assert_eq!(escape("<b>&|*"), "&lt;b&gt;&amp;\\|\\*");
        assert_eq!(escape("https://x.y/z"), "https&#58;//x.y/z");
        assert_eq!(escape("gpu_memory_utilization"), "gpu\\_memory\\_utilization");
    }
}
