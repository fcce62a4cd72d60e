//! The proof: the lines of the log that carry the verdict, drawn by miette.
//!
//! Owns the choice of at most [`MAX_LINES`] lines, the gaps between them and the labels under them. Never reads
//! input: the lines were copied when the log was examined.

use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents, ThemeCharacters, ThemeStyles,
};

use super::Style;
use super::model::{Report, SnippetLine};
use super::text;

/// A snippet shows at most so many lines of the log.
pub const MAX_LINES: usize = 12;

/// Longest underline, in bytes: a longer one would push its label out of view.
const MAX_FOCUS: usize = 28;

/// Lines that follow one another in one input.
pub struct Block<'a> {
    /// The input they stand in.
    pub input: &'a str,
    /// The lines, in order, without gaps.
    pub lines: Vec<&'a SnippetLine>,
}

impl Block<'_> {
    fn first(&self) -> u64 {
        self.lines.first().map_or(0, |line| line.line)
    }

    fn last(&self) -> u64 {
        self.lines.last().map_or(0, |line| line.line)
    }
}

/// What stands between two blocks: the number of lines left out, or `None` where another input begins.
pub fn gap(before: &Block<'_>, after: &Block<'_>) -> Option<u64> {
    (before.input == after.input).then(|| after.first().saturating_sub(before.last() + 1))
}

/// The snippet's lines as blocks. Of more than [`MAX_LINES`], those with a role and those next to the root stay.
pub fn blocks(report: &Report) -> Vec<Block<'_>> {
    let root = report.snippet.iter().position(|line| line.role == "root").unwrap_or(0);
    let mut kept: Vec<usize> = (0..report.snippet.len()).collect();
    kept.sort_by_key(|&at| {
        (
            report.snippet.get(at).is_none_or(|line| line.role.is_empty()),
            at.abs_diff(root),
        )
    });
    kept.truncate(MAX_LINES);
    // The input of the root comes first: it holds the answer.
    let of_root = report.snippet.get(root).map(|line| line.input.as_str());
    kept.sort_by_key(|&at| (report.snippet.get(at).map(|line| line.input.as_str()) != of_root, at));

    let mut blocks: Vec<Block<'_>> = Vec::new();
    for line in kept.into_iter().filter_map(|at| report.snippet.get(at)) {
        match blocks.last_mut() {
            Some(block) if block.input == line.input && line.line == block.last() + 1 => block.lines.push(line),
            _ => blocks.push(Block {
                input: &line.input,
                lines: vec![line],
            }),
        }
    }
    blocks
}

/// What a line with a role is, in a few words; empty for context.
pub fn label(report: &Report, line: &SnippetLine) -> String {
    let why = report
        .evidence
        .iter()
        .find(|e| e.place.line == line.line && e.place.input == line.input)
        .and_then(|e| e.why.as_deref())
        .map(text::safe);
    let word = match line.role {
        "" => return String::new(),
        "root" => "root cause",
        "exit" => "the end",
        role => role,
    };
    match why {
        Some(why) if !why.is_empty() && line.role != "root" => format!("{word}: {why}"),
        _ => word.to_owned(),
    }
}

/// The snippet for a terminal; empty if the report has none.
pub fn render(report: &Report, style: &Style) -> String {
    let blocks = blocks(report);
    let digits = blocks.iter().map(|b| b.last().to_string().len()).max().unwrap_or(0);
    let pad = |block: &Block<'_>| " ".repeat(digits - block.last().to_string().len());
    let mut out = String::new();
    let mut previous: Option<&Block<'_>> = None;
    for block in &blocks {
        let (header, body) = draw(report, block, style, digits, previous.is_none());
        match previous.and_then(|previous| gap(previous, block)) {
            Some(left_out) => {
                out.push_str(&" ".repeat(digits + 2));
                out.push_str(&format!("⋮ {}\n", text::plural(left_out, "line")));
            }
            None => out.push_str(&format!("{}{header}\n", pad(block))),
        }
        for line in body {
            out.push_str(&format!("{}{}\n", pad(block), line.trim_end()));
        }
        previous = Some(block);
    }
    if previous.is_some() {
        out.push_str(&format!("{}╰────\n", " ".repeat(digits + 2)));
    }
    out
}

/// One block as miette draws it: its header line, and the lines between header and foot.
fn draw(report: &Report, block: &Block<'_>, style: &Style, digits: usize, first: bool) -> (String, Vec<String>) {
    let excerpt = Excerpt::new(report, block, style.width.saturating_sub(digits + 4));
    let mut styles = if style.color {
        ThemeStyles::ansi()
    } else {
        ThemeStyles::none()
    };
    styles.highlights = excerpt
        .roles
        .iter()
        .map(|role| match *role {
            "root" => styles.error,
            "exit" => styles.advice,
            _ => styles.warning,
        })
        .collect();
    if styles.highlights.is_empty() {
        styles.highlights.push(styles.linum);
    }
    let mut characters = ThemeCharacters::unicode();
    if !first {
        characters.ltop = '├';
    }
    let (corner, mark) = (characters.ltop, characters.vbar_break);
    let drawn = GraphicalReportHandler::new_themed(GraphicalTheme { characters, styles })
        .with_width(style.width)
        .with_context_lines(MAX_LINES)
        .without_primary_span_start()
        .without_syntax_highlighting();
    let mut rendered = String::new();
    // Writing to a string cannot fail, and the source gives the whole block for every span.
    let _ = drawn.render_report(&mut rendered, &excerpt);
    let mut lines = rendered
        .lines()
        .skip_while(|line| !line.trim_start().starts_with(corner));
    let header = lines.next().unwrap_or_default().to_owned();
    let mut body: Vec<String> = lines.map(str::to_owned).collect();
    body.pop();
    if excerpt.roles.is_empty() {
        // The silent label that miette needed leaves a mark under its line.
        body.retain(|line| !line.trim_start().starts_with(mark));
    }
    (header, body)
}

/// A block as a miette source: its text, cut to the width, with true line numbers, and the labels in it.
#[derive(Debug, thiserror::Error)]
#[error("")]
struct Excerpt {
    name: String,
    first: usize,
    text: String,
    count: usize,
    labels: Vec<LabeledSpan>,
    roles: Vec<&'static str>,
}

impl Excerpt {
    fn new(report: &Report, block: &Block<'_>, room: usize) -> Self {
        let place = block
            .lines
            .iter()
            .find(|line| !line.role.is_empty())
            .or(block.lines.first());
        let at = format!(":{}", place.map_or(0, |line| line.line));
        let input = text::safe(block.input);
        let mut excerpt = Self {
            name: clip_start(&input, room.saturating_sub(at.len() + 4)) + &at,
            first: block.first().saturating_sub(1) as usize,
            text: String::new(),
            count: block.lines.len(),
            labels: Vec::new(),
            roles: Vec::new(),
        };
        for (n, line) in block.lines.iter().enumerate() {
            if n > 0 {
                excerpt.text.push('\n');
            }
            excerpt.push(report, line, room);
        }
        // miette draws a block only around a label; one without any role gets a silent one.
        if excerpt.labels.is_empty() {
            excerpt.labels.push(LabeledSpan::new(None, 0, 1));
        }
        excerpt
    }

    fn push(&mut self, report: &Report, line: &SnippetLine, room: usize) {
        let clean = text::safe(&line.text);
        let (mut shown, focus) = text::window(&clean, focus(report, line, &clean), room);
        if shown.is_empty() {
            // An empty last line would not be drawn.
            shown.push(' ');
        }
        if !line.role.is_empty() {
            let label = label(report, line);
            let before = text::width(shown.get(..focus.start).unwrap_or_default());
            // miette hangs the label `╰── ` under the middle of the underline.
            let middle = before + text::width(shown.get(focus.clone()).unwrap_or_default()) / 2;
            let label = text::clip(&label, room.saturating_sub(middle + 4)).into_owned();
            let span = self.text.len() + focus.start;
            self.labels.push(if line.role == "root" {
                LabeledSpan::new_primary_with_span(Some(label), (span, focus.len().max(1)))
            } else {
                LabeledSpan::new(Some(label), span, focus.len().max(1))
            });
            self.roles.push(line.role);
        }
        self.text.push_str(&shown);
    }
}

/// The end of a path that is too long.
fn clip_start(path: &str, max: usize) -> String {
    let mut at = 0;
    while text::width(path.get(at..).unwrap_or_default()) > max.max(8) - 1 {
        at += path
            .get(at..)
            .and_then(|rest| rest.chars().next())
            .map_or(1, char::len_utf8);
    }
    match at {
        0 => path.to_owned(),
        _ => format!("…{}", path.get(at..).unwrap_or_default()),
    }
}

/// What to underline: the exception's type where the line prints it, else the start of the message.
fn focus(report: &Report, line: &SnippetLine, clean: &str) -> Range<usize> {
    let kind = report
        .exception
        .as_ref()
        .map(|e| e.kind.as_str())
        .filter(|kind| !kind.is_empty());
    if let Some((kind, at)) = kind.and_then(|kind| Some((kind, clean.find(kind)?)))
        && line.role == "root"
    {
        return at..at + kind.len();
    }
    let start = message_start(clean);
    let message = clean.get(start..).unwrap_or_default();
    let words = message.char_indices().take_while(|(at, _)| *at <= MAX_FOCUS);
    let end = match words.filter(|(_, c)| c.is_whitespace()).last() {
        Some((at, _)) if message.len() > MAX_FOCUS => at,
        _ => message.len().min(MAX_FOCUS),
    };
    start..start + end
}

/// Where the message begins behind `(name pid=…)`, `[file:line]`, levels, stamps and `file.cc:123:`. Only for the
/// eye: the grammar of prefixes is the dialects' own.
fn message_start(line: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = line.get(at..).unwrap_or_default();
        let trimmed = rest.trim_start_matches([' ', ':']);
        at += rest.len() - trimmed.len();
        let bracket = |close: char| trimmed.find(close).map(|end| end + 1);
        let word = trimmed.split_whitespace().next().unwrap_or_default();
        let len = match trimmed.chars().next() {
            Some('[') => bracket(']'),
            Some('D' | 'I' | 'W' | 'E' | 'C' | 'F') if is_month_day(word) => bracket(']'),
            Some('(') => bracket(')').filter(|end| is_speaker(trimmed.get(1..end - 1).unwrap_or_default())),
            _ if matches!(word, "DEBUG" | "INFO" | "WARNING" | "ERROR" | "CRITICAL" | "|") => Some(word.len()),
            _ if is_stamp(word) || is_place(word) => Some(word.len()),
            _ => None,
        };
        match len {
            Some(len) if len < trimmed.len() => at += len,
            _ => return at,
        }
    }
}

/// `RayWorkerProc pid=742, ip=…` or a bare component name.
fn is_speaker(text: &str) -> bool {
    text.contains("pid=") || (!text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
}

fn is_stamp(word: &str) -> bool {
    word.len() >= 5
        && word.bytes().filter(u8::is_ascii_digit).count() * 2 > word.len()
        && word.bytes().all(|b| b.is_ascii_digit() || b":-/.,TZ+".contains(&b))
}

/// `E1125`, the level and date that torch's Python logger begins with.
fn is_month_day(word: &str) -> bool {
    word.len() == 5 && word.bytes().skip(1).all(|b| b.is_ascii_digit())
}

/// `node_manager.cc:3199:`
fn is_place(word: &str) -> bool {
    let Some((file, line)) = word.strip_suffix(':').and_then(|word| word.rsplit_once(':')) else {
        return false;
    };
    file.contains('.') && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit())
}

impl Diagnostic for Excerpt {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(self)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.labels.iter().cloned()))
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        _before: usize,
        _after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        if span.offset() + span.len() > self.text.len() {
            return Err(MietteError::OutOfBounds);
        }
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            self.text.as_bytes(),
            (0, self.text.len()).into(),
            self.first,
            0,
            self.count,
        )))
    }
}
