//! `coroner scan`: many incidents, from the paths to the exit status.
//!
//! Owns the order of things and where records go. Never judges.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, NaiveDateTime, Utc};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::error::CliError;
use super::exit::{CLEAN, FAILED, FailOn, NO_REPORT, SOME_UNREAD};
use super::output::remark;
use super::scan_args::Scan;
use crate::batch::digest::Digest;
use crate::batch::record::Record;
use crate::batch::walk::{Choice, walk};
use crate::batch::{self, Settings, Sink};
use crate::examine::Options;

/// Scans and returns the status.
pub fn run(args: &Scan) -> Result<u8, CliError> {
    let catalog = args.rules.load()?;
    let fail_on = FailOn::new(&args.fail_on, &catalog).map_err(|word| CliError::FailOn { word })?;
    let choice = Choice {
        roots: args.paths.clone(),
        globs: args.glob.clone(),
        since: args.since,
        rule: args.incident.clone(),
    };
    let found = walk(choice).map_err(CliError::Glob)?;
    let older = found.older();
    let settings = Settings {
        catalog: &catalog,
        options: Options::default(),
        threads: args.jobs,
        ordered: !args.unordered,
        stop: &*watch_signals()?,
    };
    let mut desk = Desk {
        fail_on,
        since: args.since.map(|t| DateTime::<Utc>::from(t).naive_utc()),
        tally: Tally::default(),
    };
    match batch::scan(found, &settings, &mut desk) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => return Err(CliError::Output(e)),
        _ => {}
    }
    desk.tally.left_out += older.load(Ordering::Relaxed);
    Ok(desk.tally.status())
}

/// A flag that the first SIGINT or SIGTERM raises; the second ends the program at once.
fn watch_signals() -> Result<Arc<AtomicBool>, CliError> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&stop))
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
    fn status(&self) -> u8 {
        match self {
            // Nothing new since a date is no failure to read.
            Self {
                read: 0,
                unread: 0,
                left_out: 1..,
                ..
            } => CLEAN,
            Self { read: 0, .. } => NO_REPORT,
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
    tally: Tally,
}

impl Sink for Desk {
    fn record(&mut self, record: &Record) -> io::Result<()> {
        let digest = Digest::of(&record.line).map_err(io::Error::other)?;
        if self
            .since
            .zip(digest.log_time())
            .is_some_and(|(since, died)| died < since)
        {
            self.tally.left_out += 1;
            return Ok(());
        }
        match (&digest.outcome, &digest.error) {
            (Some(outcome), _) => {
                self.tally.read += 1;
                self.tally.chosen += u64::from(self.fail_on.chooses(outcome, digest.cause_id()));
            }
            (None, error) => {
                self.tally.unread += 1;
                let why = error.as_ref().map_or("", |e| e.text.as_str());
                remark(&format!("{}: {why}", digest.source));
            }
        }
        io::stdout().lock().write_all(record.line.as_bytes())
    }

    fn examined(&self, _bytes: u64) {}
}
