//! What can go wrong before a report stands, and what to do about it.
//!
//! Owns the wording of the program's own errors. Never prints them.

use miette::Diagnostic;
use thiserror::Error;

use super::config::ConfigFault;
use crate::catalog::{Catalog, CatalogError};
use crate::explain;
use crate::pack::draft::NoDraft;
use crate::report::text::plural;

/// An error of the command line; the exit status is 2.
#[derive(Debug, Error, Diagnostic)]
pub enum CliError {
    /// No input is left.
    #[error("none of the inputs can be read")]
    #[diagnostic(help(
        "{reasons}\nGive the path of a log, a folder or an archive, or pipe the launch: COMMAND 2>&1 | coroner"
    ))]
    NothingReadable {
        /// One line for each input.
        reasons: String,
    },
    /// An archive comes through a pipe.
    #[error("standard input is a {kind} archive, which is read from a file only")]
    #[diagnostic(help("Give its path: coroner logs.{ending}, or hand on one of its logs unpacked"))]
    ArchiveInPipe {
        /// What it is called.
        kind: &'static str,
        /// How such files end.
        ending: &'static str,
    },
    /// `explain` has no such page.
    #[error("there is no cause, signature, phase or remedy called `{id}`")]
    #[diagnostic(help("{near}"))]
    UnknownId {
        /// As given.
        id: String,
        /// What comes close.
        near: String,
    },
    /// A word of `--fail-on`.
    #[error("--fail-on: `{word}` is neither an outcome nor a cause or a family of causes")]
    #[diagnostic(help(
        "outcomes are failed, healthy, degraded, running, stopped and no-launch; `coroner catalog` lists the causes"
    ))]
    FailOn {
        /// The word.
        word: String,
    },
    /// `--attempt N` with too large an N.
    #[error("--attempt {asked}: the log shows {}", plural(*found as u64, "attempt"))]
    #[diagnostic(help("{list}\nwithout --attempt the report is on the last one"))]
    Attempt {
        /// The number given.
        asked: usize,
        /// How many there are.
        found: usize,
        /// One line for each.
        list: String,
    },
    /// The rules.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Catalog(#[from] CatalogError),
    /// The folder given to `catalog check` or `--rules`.
    #[error("{dir} cannot be read: {text}")]
    #[diagnostic(help("give a rule file, NAME.toml, or a folder that holds such files"))]
    Rules {
        /// As given.
        dir: String,
        /// Why.
        text: String,
    },
    /// `catalog draft` of a failure that a rule knows.
    #[error("there is nothing to draft: the cause of this failure is known as {id}")]
    #[diagnostic(help(
        "`coroner explain {id}` shows its page; a rule file changes it with [[extend.cause]], see the README"
    ))]
    Known {
        /// The cause.
        id: String,
    },
    /// `catalog draft` of logs without a failure, or without a line of one.
    #[error("there is nothing to draft: {text}")]
    #[diagnostic(help("give the logs of a launch that failed, complete; `coroner LOG` shows what they tell"))]
    NoDraft {
        /// Why.
        text: &'static str,
    },
    /// A settings file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Config(Box<ConfigFault>),
    /// The settings file that is named.
    #[error("{file} cannot be read: {text}")]
    #[diagnostic(help("give a settings file that exists, or --no-config"))]
    ConfigFile {
        /// As given.
        file: String,
        /// Why.
        text: String,
    },
    /// `man` of no command.
    #[error("there is no command `{name}`")]
    #[diagnostic(help("the commands are {known}"))]
    NoCommand {
        /// As given.
        name: String,
        /// Those that are.
        known: String,
    },
    /// The folder given to `catalog --coverage` or `--audit`.
    #[error("{dir} cannot be read: {text}")]
    #[diagnostic(help("give a folder that holds notes, NAME.md, or has a folder `knowledge` with them"))]
    Notes {
        /// As given.
        dir: String,
        /// Why.
        text: String,
    },
    /// The file of `--redact-map`.
    #[error("{file}: {text}")]
    #[diagnostic(help("--redact-map takes a file of its own, which coroner writes, or one that it wrote before"))]
    RedactMap {
        /// As given.
        file: String,
        /// Why.
        text: String,
    },
    /// The file of `--format FORM=FILE`.
    #[error("{file} cannot be written: {text}")]
    #[diagnostic(help("{help}"))]
    File {
        /// As given.
        file: String,
        /// Why.
        text: String,
        /// What to do.
        help: &'static str,
    },
    /// A target that is an input.
    #[error("{file} is one of the inputs, and would be overwritten")]
    #[diagnostic(help("give the output another file, outside of the folders that are read"))]
    InputAsOutput {
        /// As given.
        file: String,
    },
    /// Two outputs to one place.
    #[error("two outputs go to {file}")]
    #[diagnostic(help("give each output a file of its own"))]
    SameTarget {
        /// As given.
        file: String,
    },
    /// `--max-chars` with too small a number.
    #[error("--max-chars {asked}: the {format} report takes {least} characters")]
    #[diagnostic(help("{help}"))]
    MaxChars {
        /// The number given.
        asked: usize,
        /// The format.
        format: &'static str,
        /// What is enough.
        least: usize,
        /// What to do.
        help: &'static str,
    },
    /// Writing the report failed for another reason than a closed pipe.
    #[error("the report cannot be written: {0}")]
    #[diagnostic(help("standard output takes no more; --format FORM=FILE writes to a file"))]
    Output(std::io::Error),
    /// A glob of a scan.
    #[error("--glob: {0}")]
    #[diagnostic(help("a glob is written like a line of a .gitignore: *.log, **/serve-*, !*.tmp"))]
    Glob(ignore::Error),
    /// The output of a scan.
    #[error("{file} cannot be written: {text}")]
    #[diagnostic(help(
        "give --output a file in a folder that exists, can be written to and has room; a file that was there before is as it was"
    ))]
    OutputFile {
        /// As given.
        file: String,
        /// Why.
        text: String,
    },
    /// `--resume` with records that do not name their logs.
    #[error("--resume cannot be used with --redact identity or all: the records do not name their logs")]
    #[diagnostic(help("resume a scan with --redact secrets, or scan anew"))]
    ResumeRedacted,
    /// `--resume` with another format.
    #[error("--resume works with --format json: other formats do not hold whole records")]
    #[diagnostic(help(
        "scan to a file with --format json --resume: DuckDB, Polars and jq read its records as a table"
    ))]
    Resume,
    /// A table in Parquet cannot be made.
    #[error("{0}")]
    #[diagnostic(help("--format csv has the same columns"))]
    Parquet(std::io::Error),
    /// A binary format on a terminal.
    #[error("--format parquet is not for a terminal")]
    #[diagnostic(help("add --output FILE"))]
    Binary,
    /// Signals cannot be watched.
    #[error("signals cannot be watched: {0}")]
    #[diagnostic(help("give the log as a file instead of a pipe"))]
    Signals(std::io::Error),
}

impl CliError {
    /// When no input is left; pairs of an input and why it cannot be read.
    pub fn nothing_readable<'a>(skipped: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut reasons: Vec<String> = skipped.map(|(input, why)| format!("{input}: {why}")).collect();
        if reasons.is_empty() {
            reasons.push("There is no file in it.".to_owned());
        }
        Self::NothingReadable {
            reasons: reasons.join("\n"),
        }
    }

    /// Why there is no draft.
    pub fn no_draft(why: NoDraft) -> Self {
        match why {
            NoDraft::Known(id) => Self::Known { id },
            NoDraft::NoFailure => Self::NoDraft {
                text: "the logs tell of no failure",
            },
            NoDraft::NoLine => Self::NoDraft {
                text: "no line states the failure",
            },
        }
    }

    /// For an id without a page, with those that come close.
    pub fn unknown_id(catalog: &Catalog, id: &str) -> Self {
        let close = explain::nearest(catalog, id);
        Self::UnknownId {
            id: id.to_owned(),
            near: match close.as_slice() {
                [] => "`coroner catalog` lists the causes".to_owned(),
                close => format!("do you mean {}?", close.join(" or ")),
            },
        }
    }
}
