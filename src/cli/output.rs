//! Where output goes and how it may look.
//!
//! Owns width, colour and the quiet end on a closed pipe. Never decides what is said.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

use super::args::Color;
use super::error::CliError;
use crate::report::limit::fit;
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
    pub fn style(self, color: Color, explain_confidence: bool) -> Style {
        let terminal = match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
        };
        let columns = match self {
            Self::Stdout => terminal_size::terminal_size_of(io::stdout()),
            Self::Stderr => terminal_size::terminal_size_of(io::stderr()),
        };
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Style {
            width: columns.map_or(PLAIN_WIDTH, |(w, _)| usize::from(w.0).min(WIDEST)),
            color: match color {
                Color::Always => true,
                Color::Never => false,
                Color::Auto => terminal && !dumb && !set("NO_COLOR"),
            },
            explain_confidence,
        }
    }
}

fn put(mut to: impl Write, text: &str) -> io::Result<()> {
    to.write_all(text.as_bytes())?;
    to.flush()
}

/// Writes a file whole or not at all: beside it first, then in its place. A private one is for its owner only.
pub fn replace(file: &Path, text: &str, private: bool) -> io::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let beside = file.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let written = options
        .open(&beside)
        .and_then(|to| put(to, text))
        .and_then(|()| fs::rename(&beside, file));
    if written.is_err() {
        // What was begun is of no use to anybody; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// A line on standard error; nothing is to be done when that is closed.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr(), "coroner: {text}");
}

/// The text of reports: one as a page or object of its own, several one below the other, in JSON one on a line. A
/// page of HTML holds one report, so of several only the last is shown.
pub fn rendered(reports: &[Report], format: Format, style: &Style, max_chars: Option<usize>) -> String {
    let one = |report: &Report| fit(report, format, style, max_chars);
    match (reports, format) {
        ([report], _) => one(report),
        (many, Format::Json) => many.iter().map(report::json::line).collect(),
        (many, Format::Html) => many.last().map(one).unwrap_or_default(),
        (many, Format::Oneline | Format::Termination | Format::Github) => many.iter().map(one).collect(),
        (many, _) => many.iter().map(one).collect::<Vec<_>>().join("\n"),
    }
}
