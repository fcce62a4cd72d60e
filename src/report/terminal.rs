//! The report for a person in front of a terminal, or reading a file that a pipe wrote.
//!
//! Owns the order of the page: the first screen answers – who died where of what, what to change first, and the
//! lines that prove it – and the rest argues. Colour only adds; every word stands without it.

use anstyle::{AnsiColor, Style as Ansi};

use super::model::{Outcome, Remedy, Report, UNRELATED};
use super::text::{self, safe};
use super::{Style, snippet, words};

/// Remedies named in the first screen.
const FIRST_REMEDIES: usize = 3;
/// Lines of a list that is not the answer itself.
const LIST_LIMIT: usize = 8;
/// Narrower than this nothing can be laid out.
const MIN_WIDTH: usize = 40;

/// Renders the report.
pub fn render(report: &Report, style: &Style) -> String {
    let style = Style {
        width: style.width.max(MIN_WIDTH),
        ..style.clone()
    };
    let mut page = Page::new(&style);
    first_screen(&mut page, report);
    if report.cause.is_some() {
        argument(&mut page, report);
    } else {
        page.section("Path of the launch");
        page.para(&words::path_line(report));
        processes(&mut page, report);
    }
    findings(&mut page, report);
    unknowns(&mut page, report);
    if style.explain_confidence {
        page.section("Confidence, term by term");
        for (term, weight) in &report.confidence_terms {
            page.item(&format!("{weight:+.2} "), &safe(term));
        }
    }
    page.section("");
    page.paint(DIM, &words::colophon(report));
    page.out
}

/// Headline, facts, story, the first remedies and the proof.
fn first_screen(page: &mut Page<'_>, report: &Report) {
    let (icon, ink) = match report.outcome {
        Outcome::Failed => ("✗", RED),
        Outcome::Degraded => ("!", YELLOW),
        Outcome::Healthy | Outcome::Stopped => ("✓", GREEN),
        Outcome::Running => ("…", YELLOW),
        Outcome::NoLaunch => ("–", DIM),
    };
    page.lines(ink.bold(), &format!("{icon} "), "  ", &safe(&report.headline));
    page.blank();
    let place = report.root.as_ref().map(|root| &root.place);
    let facts = [
        Some(words::outcome(report)),
        place.and_then(words::who),
        words::engine(report),
        words::attempts(report),
        words::redaction(report),
    ];
    page.para(&facts.into_iter().flatten().collect::<Vec<_>>().join(" · "));
    if let Some(cause) = &report.cause {
        let tags: String = cause.tags.iter().map(|tag| format!(" [{}]", safe(tag))).collect();
        let told = format!(
            "cause {}{tags}, {}",
            safe(&cause.id),
            words::confidence(cause.confidence)
        );
        let died = report
            .launch
            .seconds_to_death
            .filter(|s| *s > 0.0)
            .map(|s| format!(" · died after {}", text::seconds(s)));
        page.lines(Ansi::new().bold(), "  ", "  ", &(told + &died.unwrap_or_default()));
    }
    if !report.story.is_empty() {
        page.blank();
        page.para(&safe(&report.story));
    }
    if let Some(unrelated) = report.findings.iter().find(|f| f.id == UNRELATED) {
        page.blank();
        page.para(&safe(&unrelated.title));
    }
    if report.cause.is_some() && !report.remedies.is_empty() {
        page.section("Change first");
        for remedy in report.remedies.iter().take(FIRST_REMEDIES) {
            page.item(&format!("{}. ", remedy.rank), &safe(&remedy.title));
        }
    }
    let proof = snippet::render(report, page.style);
    if !proof.is_empty() {
        page.blank();
        page.out.push_str(&proof);
    }
}

/// How far it came, the figures, the changes in full, what does not help, and why no other cause.
fn argument(page: &mut Page<'_>, report: &Report) {
    page.section("Path of the launch");
    page.para(&words::path_line(report));
    if let Some((text, places)) = words::exception(report) {
        page.section("The exception");
        page.para(&text::clip(&text, page.style.width * 3));
        places.iter().for_each(|place| page.item("  ", place));
    }
    processes(page, report);
    figures(page, report);
    if !report.remedies.is_empty() {
        page.section("What to change, in this order");
        for remedy in &report.remedies {
            remedy_in_full(page, report, remedy);
        }
    }
    page.section("");
    page.para(&words::retry(report).unwrap_or_default());
    page.para(&words::owner(report).unwrap_or_default());
    page.section("What does not help");
    for vain in &report.will_not_help {
        page.item("- ", &format!("{}: {}", safe(&vain.title), safe(&vain.why)));
    }
    for wrong in &report.overruled_advice {
        let (advice, why) = (words::overruled(wrong), safe(&wrong.why));
        let at = words::line_of(report, &wrong.input, wrong.line);
        page.item("- ", &format!("the log's own advice ({at}), “{advice}”: {why}"));
    }
    page.section("Why nothing else");
    for rival in &report.alternatives {
        let told = format!("{} ({}): {}", rival.id, text::percent(rival.confidence), rival.why_not);
        page.item("- ", &safe(&told));
    }
}

/// What became of each process.
fn processes(page: &mut Page<'_>, report: &Report) {
    page.section("The processes");
    let lines = words::process_lines(report);
    for line in lines.iter().take(LIST_LIMIT) {
        page.item("- ", &text::clip(line, page.style.width * 2));
    }
    if let Some(more) = lines.len().checked_sub(LIST_LIMIT).filter(|more| *more > 0) {
        page.item("- ", &format!("{more} more in the other formats"));
    }
}

/// The memory account and the figures of the root process.
fn figures(page: &mut Page<'_>, report: &Report) {
    page.section("Figures");
    let rows = words::figures(report);
    let column = rows
        .iter()
        .map(|(name, _)| text::width(name))
        .max()
        .unwrap_or(0)
        .min(page.style.width / 2);
    for (name, value) in &rows {
        let gap = " ".repeat(column.saturating_sub(text::width(name)) + 2);
        page.item("", &format!("{name}{gap}{value}"));
    }
    for note in report.memory.iter().flat_map(|memory| &memory.notes) {
        page.para(&safe(note));
    }
}

fn remedy_in_full(page: &mut Page<'_>, report: &Report, remedy: &Remedy) {
    let number = format!("{}. ", remedy.rank);
    page.lines(
        Ansi::new().bold(),
        &format!("  {number}"),
        "     ",
        &safe(&remedy.title),
    );
    let (settings, commands) = words::changes(remedy);
    for command in commands {
        page.command("     run   ", &command);
    }
    page.lines(Ansi::new(), "     set   ", "           ", &settings.join("; "));
    for patch in &remedy.patch {
        page.lines(
            Ansi::new(),
            "     paste ",
            "           ",
            &format!("{}:", safe(&patch.place)),
        );
        for line in words::paste(patch) {
            page.command("           ", &line);
        }
    }
    let rows = [
        ("why", Some(safe(&remedy.why).into_owned())),
        ("sum", remedy.arithmetic.as_deref().map(|sum| safe(sum).into_owned())),
        (
            "cost",
            Some(format!("{} (risk: {})", safe(&remedy.cost), safe(&remedy.risk))),
        ),
        ("check", Some(safe(&remedy.verify).into_owned())),
        ("with", words::pair(report, remedy)),
    ];
    for (name, value) in rows {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            page.lines(Ansi::new(), &format!("     {name:<6}"), "           ", &value);
        }
    }
}

fn findings(page: &mut Page<'_>, report: &Report) {
    page.section("Also seen");
    // What else the inputs hold stands in the first screen.
    for finding in report.findings.iter().filter(|f| f.id != UNRELATED).take(LIST_LIMIT) {
        let mark = if finding.severity == "warning" { "! " } else { "- " };
        page.item(mark, &safe(&finding.title));
    }
    if report.attempts.len() > 1 {
        page.section("Attempts in this log");
        for attempt in &report.attempts {
            page.item("", &words::attempt(report, attempt));
        }
    }
}

fn unknowns(page: &mut Page<'_>, report: &Report) {
    page.section("What the log cannot tell");
    for gap in words::gaps(report) {
        page.item("- ", &gap);
    }
    for next in &report.next_evidence {
        page.item("- ", &format!("{}: {}", safe(&next.what), safe(&next.why)));
        if !next.command.is_empty() {
            page.command("    $ ", &safe(&next.command));
        }
    }
}

const RED: Ansi = AnsiColor::Red.on_default();
const GREEN: Ansi = AnsiColor::Green.on_default();
const YELLOW: Ansi = AnsiColor::Yellow.on_default();
const DIM: Ansi = Ansi::new().dimmed();

/// The page as it grows. A section's heading appears with its first line, so an empty section leaves no trace.
struct Page<'a> {
    style: &'a Style,
    out: String,
    heading: Option<&'a str>,
}

impl<'a> Page<'a> {
    fn new(style: &'a Style) -> Self {
        Self {
            style,
            out: String::new(),
            heading: None,
        }
    }

    fn section(&mut self, heading: &'a str) {
        self.heading = Some(heading);
    }

    fn blank(&mut self) {
        self.out.push('\n');
    }

    /// Text indented by two.
    fn para(&mut self, text: &str) {
        self.lines(Ansi::new(), "  ", "  ", text);
    }

    fn paint(&mut self, ink: Ansi, text: &str) {
        self.lines(ink, "  ", "  ", text);
    }

    /// A command is never broken: it is there to be copied.
    fn command(&mut self, mark: &str, command: &str) {
        self.push(Ansi::new(), &format!("{mark}{command}"));
    }

    /// Text behind a mark, further lines indented under the text.
    fn item(&mut self, mark: &str, text: &str) {
        let hang = " ".repeat(2 + text::width(mark));
        self.lines(Ansi::new(), &format!("  {mark}"), &hang, text);
    }

    fn lines(&mut self, ink: Ansi, first: &str, rest: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        if let Some(heading) = self.heading.take() {
            self.out.push('\n');
            if !heading.is_empty() {
                self.push(Ansi::new().bold().underline(), heading);
            }
        }
        for line in text::wrap(text, self.style.width, first, rest) {
            self.push(ink, line.trim_end());
        }
    }

    fn push(&mut self, ink: Ansi, line: &str) {
        if self.style.color && !ink.is_plain() {
            self.out.push_str(&format!("{ink}{line}{ink:#}\n"));
        } else {
            self.out.push_str(line);
            self.out.push('\n');
        }
    }
}
