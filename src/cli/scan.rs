//! `coroner scan`: many incidents, from the paths to the exit status.
//!
//! Owns the order of things and where records go. Never judges.

use std::io::{self, ErrorKind, IsTerminal};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use chrono::{DateTime, NaiveDateTime, Utc};
use regex::Regex;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::Looks;
use super::error::CliError;
use super::exit::{CLEAN, FAILED, FailOn, INTERRUPTED, NO_REPORT, SOME_UNREAD};
use super::output::{Output, remark};
use super::progress::Progress;
use super::scan_args::{Form, Scan};
use crate::batch::digest::Digest;
use crate::batch::parquet::Table;
use crate::batch::record::Record;
use crate::batch::resume::Known;
use crate::batch::sink::{Target, earlier, remains};
use crate::batch::summary::{Form as Look, Summary};
use crate::batch::walk::{Choice, walk};
use crate::batch::{self, Settings, Sink, csv};
use crate::catalog::{BuiltIn, Catalog};
use crate::examine::Options;
use crate::redact::Level;
use crate::report::text::safe;
use crate::store::Place;

/// Scans and returns the status.
pub fn run(args: &Scan, looks: &Looks) -> Result<u8, CliError> {
    let catalog = args.judging.rules.load()?;
    let chosen = args.judging.fail_on.as_deref().unwrap_or_default();
    let fail_on = FailOn::new(chosen, &catalog).map_err(|word| CliError::FailOn { word })?;
    let place = match &args.output {
        Some(file) => Place::of(file).map_err(|e| unwritable(file)(e))?,
        None => Place::Stdout,
    };
    let redaction = args.redact.of_scan()?;
    let choice = Choice {
        roots: args.paths.clone(),
        globs: args.glob.clone(),
        since: args.since,
        rule: args.incident.clone(),
        output: match &place {
            Place::File(path) => Some(path.clone()),
            _ => None,
        },
    };
    let form = form(args);
    let table = match form {
        Form::Parquet if args.output.is_none() && io::stdout().is_terminal() => return Err(CliError::Binary),
        Form::Parquet => Some(Table::new().map_err(CliError::Parquet)?),
        _ => None,
    };
    let found = walk(choice.clone()).map_err(CliError::Glob)?;
    let (older, clash) = (found.older(), found.clash());
    let stop = watch_signals()?;
    let basis = basis(&catalog, args.judging.rules.built_in());
    let settings = Settings {
        known: known(args, &place, &basis)?,
        catalog: &catalog,
        options: Options {
            // What is one incident is said by the rule of the scan.
            one_incident: true,
            limits: args.memory.limits(),
            ..Options::default()
        },
        basis,
        threads: args.jobs.map_or(0, NonZeroUsize::get),
        ordered: !args.unordered,
        stop: &stop,
        redaction: &redaction,
    };
    let mut desk = Desk {
        fail_on,
        since: args.since.map(utc),
        form,
        table,
        looks: looks.clone(),
        label: args.label.clone(),
        target: match &args.output {
            Some(file) => Target::at(&place).map_err(unwritable(file))?,
            None => Target::Stdout,
        },
        tally: Tally::default(),
        summary: Summary::new(args.new_since.map(utc)),
        progress: Progress::start(&choice, args.quiet),
    };
    let done = desk.begin().and_then(|()| batch::scan(found, &settings, &mut desk));
    desk.progress.end();
    if clash.load(Ordering::Relaxed) {
        desk.target.discard();
        return Err(CliError::InputAsOutput {
            file: args.output.as_deref().unwrap_or(Path::new("-")).display().to_string(),
        });
    }
    args.redact.keep_of_scan(&redaction)?;
    let older = older.load(Ordering::Relaxed);
    desk.tally.left_out += older;
    desk.summary.leave_out(older);
    let interrupted = stop.load(Ordering::Relaxed);
    if desk.tally.is_empty() && !interrupted {
        remark(
            "there is no log in the paths given; hidden and binary files count as none, and so does what --glob or a \
             .coronerignore leaves out",
        );
    }
    let status = if interrupted { INTERRUPTED } else { desk.tally.status() };
    let left = desk.target.partial().map(Path::to_owned);
    let done = match done {
        Ok(()) => desk.end(interrupted),
        Err(e) => Err(e),
    };
    match (done, &args.output) {
        (Ok(summary), file) => {
            let told = args.summary || (file.is_some() && io::stdout().is_terminal());
            if told && prints_records(form) {
                let output = if file.is_some() { Output::Stdout } else { Output::Stderr };
                let text = summary.render(Look::Text(output.style(looks, false).width));
                output.write(&looks.text(text))?;
            }
            Ok(status)
        }
        // Whoever read the records has seen enough.
        (Err(e), None) if e.kind() == ErrorKind::BrokenPipe => Ok(CLEAN),
        (Err(e), Some(file)) => Err(CliError::OutputFile {
            file: file.display().to_string(),
            text: format!("{e}{}", left.and_then(|left| kept(&left, form)).unwrap_or_default()),
        }),
        (Err(e), None) => Err(CliError::Output(e)),
    }
}

/// The form asked for, or else the one that fits where it goes.
fn form(args: &Scan) -> Form {
    args.format
        .unwrap_or_else(|| match args.output.is_none() && io::stdout().is_terminal() {
            true => Form::Summary,
            false => Form::Json,
        })
}

fn prints_records(form: Form) -> bool {
    matches!(form, Form::Json | Form::Csv | Form::Parquet)
}

fn utc(time: SystemTime) -> NaiveDateTime {
    DateTime::<Utc>::from(time).naive_utc()
}

/// What a record depends on besides the content of the logs: this program and its rules.
fn basis(catalog: &Catalog, rules: BuiltIn) -> String {
    let rules = match rules {
        BuiltIn::Structure => "/none",
        BuiltIn::All | BuiltIn::Nothing => "",
    };
    format!("{}/{}{rules}", env!("CARGO_PKG_VERSION"), catalog.hash())
}

/// The records of earlier scans to the same output.
fn known(args: &Scan, place: &Place, basis: &str) -> Result<Known, CliError> {
    let Some(file) = args.output.as_ref().filter(|_| args.resume) else {
        return Ok(Known::default());
    };
    let Place::File(path) = place else {
        return Err(unwritable(file)(io::Error::other(
            "it is no file, so nothing of an earlier scan is in it",
        )));
    };
    if args.redact.level() > Level::Secrets {
        return Err(CliError::ResumeRedacted);
    }
    if form(args) != Form::Json {
        return Err(CliError::Resume);
    }
    earlier(path)
        .and_then(|files| Known::read(&files, basis))
        .map_err(unwritable(file))
}

fn unwritable(file: &Path) -> impl Fn(io::Error) -> CliError {
    let file = file.display().to_string();
    move |e| CliError::OutputFile {
        file: file.clone(),
        text: e.to_string(),
    }
}

/// A flag that the first SIGINT or SIGTERM raises; the second ends the program at once.
fn watch_signals() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, i32::from(INTERRUPTED), Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(CliError::Signals)?;
    }
    Ok(stop)
}

/// What is counted for the exit status.
#[derive(Debug, Default)]
struct Tally {
    read: u64,
    unread: u64,
    chosen: u64,
    left_out: u64,
}

impl Tally {
    /// Whether nothing at all was come upon.
    fn is_empty(&self) -> bool {
        self.read + self.unread + self.left_out == 0
    }

    fn status(&self) -> u8 {
        match self {
            // Nothing new since a date is no failure to read.
            Self {
                read: 0, left_out: 0, ..
            } => NO_REPORT,
            Self { chosen: 1.., .. } => FAILED,
            Self { unread: 1.., .. } => SOME_UNREAD,
            _ => CLEAN,
        }
    }
}

/// Takes the records.
struct Desk {
    fail_on: FailOn,
    since: Option<NaiveDateTime>,
    form: Form,
    table: Option<Table>,
    looks: Looks,
    label: Option<Regex>,
    target: Target,
    tally: Tally,
    summary: Summary,
    progress: Progress,
}

impl Desk {
    fn begin(&mut self) -> io::Result<()> {
        match self.form {
            Form::Csv => self.target.write(csv::head()),
            _ => Ok(()),
        }
    }

    /// Writes what can only be said at the end, and completes the output unless the scan was interrupted.
    fn end(mut self, interrupted: bool) -> io::Result<Summary> {
        let look = match self.form {
            Form::Json | Form::Csv | Form::Parquet => None,
            Form::Summary => Some(Look::Text(Output::Stdout.style(&self.looks, false).width)),
            Form::Markdown => Some(Look::Markdown),
            Form::Html => Some(Look::Html),
        };
        if let Some(look) = look {
            let text = self.summary.render(look);
            let text = if self.form == Form::Html {
                text
            } else {
                self.looks.text(text)
            };
            self.target.write(text)?;
        }
        // Without its end nothing could read the table, not even of an interrupted scan.
        if let Some(table) = self.table.take() {
            self.target.write(table.end()?)?;
        }
        if interrupted {
            let left = self.target.partial().and_then(|left| kept(left, self.form));
            remark(&format!("the scan was interrupted{}", left.unwrap_or_default()));
        } else {
            self.target.complete()?;
        }
        Ok(self.summary)
    }
}

/// Where the finished part of a scan stands that came to no end, if there is any.
fn kept(partial: &Path, form: Form) -> Option<String> {
    if !remains(partial) {
        return None;
    }
    let partial = partial.display().to_string();
    let partial = safe(&partial);
    Some(match form {
        Form::Json => format!("; what is finished stands in {partial}, and --resume goes on from there"),
        _ => format!("; what is finished stands in {partial}"),
    })
}

/// What the pattern finds in a source.
fn drawn<'a>(pattern: Option<&Regex>, source: &'a str) -> Option<&'a str> {
    Some(pattern?.captures(source)?.get(1)?.as_str())
}

impl Sink for Desk {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        let digest = Digest::of(&record.line).unwrap_or_else(|e| Digest::torn(&record.source, &e));
        let died = digest.log_time();
        if self.since.zip(died).is_some_and(|(since, died)| died < since) {
            self.tally.left_out += 1;
            self.summary.leave_out(1);
            return Ok(());
        }
        let label = drawn(self.label.as_ref(), &digest.source);
        self.summary.add(&digest, label);
        match (&digest.outcome, &digest.error) {
            (Some(outcome), _) => {
                self.tally.read += 1;
                self.tally.chosen += u64::from(self.fail_on.chooses(outcome, digest.cause_id()));
                self.progress.report(outcome);
                self.tally.unread += digest.scan.unread.len() as u64;
                for file in &digest.scan.unread {
                    self.progress.unread(&file.input, &file.why);
                }
            }
            (None, error) => {
                self.tally.unread += 1;
                let why = error.as_ref().map_or("", |e| e.text.as_str());
                self.progress.unread(&digest.source, why);
            }
        }
        match self.form {
            Form::Json => self.target.write(&record.line),
            Form::Csv => self.target.write(csv::row(&digest, label)),
            Form::Parquet => match &mut self.table {
                Some(table) => self.target.write(table.row(&digest, label)?),
                None => Ok(()),
            },
            Form::Summary | Form::Markdown | Form::Html => Ok(()),
        }
    }

    fn examined(&mut self, bytes: u64) {
        self.progress.examined(bytes);
    }
}
