//! Where output goes and how it may look.
//!
//! Owns width, colour and the quiet end on a closed pipe. Never decides what is said.

use std::io::{self, ErrorKind, IsTerminal, Write};

use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, MietteHandlerOpts};

use super::args::{Color, Looks};
use super::clean::Clean;
use super::error::CliError;
use crate::report::limit::{TooFew, fit, fit_line};
use crate::report::{self, Format, Style, model::Report};

/// Columns when the output is no terminal.
const PLAIN_WIDTH: usize = 80;
/// Columns at most: longer lines are hard to read.
const WIDEST: usize = 120;

/// Standard output or standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Output {
    /// Writes a text. That nobody reads it is no error.
    pub fn write(self, text: &str) -> Result<(), CliError> {
        let written = match self {
            Self::Stdout => put(io::stdout().lock(), text),
            Self::Stderr => put(io::stderr().lock(), text),
        };
        match written {
            Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(CliError::Output(e)),
            _ => Ok(()),
        }
    }

    /// The look of a report here.
    pub fn style(self, looks: &Looks, explain_confidence: bool) -> Style {
        let terminal = match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        };
        let columns = match self {
            Self::Stdout => terminal_size::terminal_size_of(io::stdout()),
            Self::Stderr => terminal_size::terminal_size_of(io::stderr()),
        };
        Style {
            width: columns.map_or(PLAIN_WIDTH, |(w, _)| usize::from(w.0).min(WIDEST)),
            color: looks.colors(terminal),
            explain_confidence,
        }
    }
}

impl Looks {
    /// Whether there is colour where the output is a terminal, or is none. `NO_COLOR` counts more than
    /// `CLICOLOR_FORCE`.
    pub fn colors(&self, terminal: bool) -> bool {
        let value = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let dumb = value("TERM").is_some_and(|term| term == "dumb");
        match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if value("NO_COLOR").is_some() => false,
            Color::Auto if value("CLICOLOR_FORCE").is_some_and(|v| v != "0") => true,
            Color::Auto => terminal && !dumb && value("CLICOLOR").is_none_or(|v| v != "0"),
        }
    }

    /// A text for people, in ASCII where that is asked for.
    pub fn text(&self, text: String) -> String {
        if self.ascii { ascii(&text) } else { text }
    }

    /// A report in a form; what programs and browsers read stays as it is.
    pub fn report(&self, text: String, format: Format) -> String {
        match format {
            Format::Json | Format::Html => text,
            _ => self.text(text),
        }
    }
}

/// Every character by one that looks like it, or by `?`, so that columns and lengths stay what they are.
fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\0'..='\x7f' => out.push(c),
            '–' | '—' | '−' | '─' => out.push('-'),
            '…' => out.push('~'),
            '→' => out.push('>'),
            '×' => out.push('x'),
            '·' | '⋮' => out.push(':'),
            '│' | '┃' => out.push('|'),
            '╭' | '╰' | '├' | '┬' | '┴' | '┼' => out.push('+'),
            '“' | '”' => out.push('"'),
            '‘' | '’' => out.push('\''),
            '✗' => out.push('X'),
            '✓' => out.push('+'),
            '•' => out.push('*'),
            '\u{a0}' => out.push(' '),
            '≤' => out.push_str("<="),
            '≥' => out.push_str(">="),
            _ => out.push('?'),
        }
    }
    out
}

/// Writes a text to its end.
pub fn put(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// A line on standard error; nothing is to be done when that is closed.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "coroner: {text}");
}

/// The whole of an error on standard error; nothing is to be done when that is closed.
pub fn complain(error: impl Diagnostic + Send + Sync + 'static) {
    let _ = Output::Stderr.write(&format!("{:?}", miette::Report::new(Clean::new(Box::new(error)))));
}

/// Makes the errors look as asked for, from now on.
pub fn dress_errors(looks: &Looks) {
    let (color, ascii) = (looks.colors(io::stderr().is_terminal()), looks.ascii);
    // It is set once; a second time is no harm.
    let _ = miette::set_hook(Box::new(move |_| {
        Box::new(MietteHandlerOpts::new().color(color).unicode(!ascii).build())
    }));
}

/// Diagnostics as a text for standard output.
pub fn told(faults: &[impl Diagnostic], looks: &Looks) -> String {
    let theme = match (looks.colors(io::stdout().is_terminal()), looks.ascii) {
        (true, false) => GraphicalTheme::unicode(),
        (false, false) => GraphicalTheme::unicode_nocolor(),
        (_, true) => GraphicalTheme::ascii(),
    };
    let width = Output::Stdout.style(looks, false).width;
    let handler = GraphicalReportHandler::new_themed(theme).with_width(width);
    let mut out = String::new();
    for fault in faults {
        // A text takes what is written to it.
        let _ = handler.render_report(&mut out, &Clean::new(fault));
    }
    out
}

/// The text of reports: one as a page or object of its own, several one below the other, in JSON one on a line, in
/// HTML on one page; where that is longer than `max_chars`, a page holds the last alone. All of it together takes at
/// most `max_chars`.
///
/// # Errors
/// When it cannot be told in so few characters: how many are enough.
pub fn rendered(reports: &[Report], format: Format, style: &Style, max_chars: Option<usize>) -> Result<String, TooFew> {
    let shown = match (reports, format) {
        ([_, .., last], Format::Html) => {
            let page = report::html::several::render(reports, style);
            if max_chars.is_none_or(|max| page.chars().nth(max).is_none()) {
                return Ok(page);
            }
            std::slice::from_ref(last)
        }
        (all, _) => all,
    };
    let joint = match format {
        Format::Json | Format::Oneline | Format::Termination | Format::Github => "",
        _ => "\n",
    };
    let parts = shown.len().max(1);
    // Equal shares: none of them is more important than another.
    let share = max_chars.map(|max| max.saturating_sub((parts - 1) * joint.len()) / parts);
    let one = |report: &Report| match (parts, format, share) {
        (2.., Format::Json, None) => Ok(report::json::line(report)),
        (2.., Format::Json, Some(max)) => fit_line(report, max),
        _ => fit(report, format, style, share),
    };
    let told: Result<Vec<String>, TooFew> = shown.iter().map(one).collect();
    told.map(|told| told.join(joint)).map_err(|few| TooFew {
        least: few.least * parts + (parts - 1) * joint.len(),
    })
}
