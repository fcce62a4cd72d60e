//! The arguments of `coroner scan`.
//!
//! Owns their parser and the meaning of each value. Never acts on one.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use clap::{Args, ValueEnum};
use regex::Regex;

use super::memory::Memory;
use super::shared_args::{Judging, Redact};
use crate::batch::incident::Rule;

const EXAMPLES: &str = "\
Examples:
  coroner scan /var/log/launches > records.ndjson
  coroner scan --since 7d --fail-on nccl,cuda.ecc /var/log/launches
  coroner scan --incident 'slurm-(\\d+)' --format summary /shared/slurm
  coroner scan --resume --output launches.ndjson /var/log/launches";

const EXIT_STATUS: &str = "\
Exit status:
  0  every input was read
  4  some were not
  2  none was, or the scan could not run
  1  with --fail-on: a verdict is in the list";

/// Many incidents.
#[derive(Debug, Args)]
#[command(after_help = EXIT_STATUS, after_long_help = format!("{EXAMPLES}\n\n{EXIT_STATUS}"))]
pub struct Scan {
    /// Files, folders and archives
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,

    /// What is one incident: file (and every folder that plainly is one), dir, or a REGEX with one group over the path
    #[arg(long, value_name = "file|dir|REGEX", default_value = "file", value_parser = incident)]
    pub incident: Rule,

    /// Take only files that match, or with ! in front leave those out; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub glob: Vec<String>,

    /// Leave out what was last written, or died, before this: 2026-11-25, 2026-11-25T13:00:00Z, or 7d, 12h before now
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<SystemTime>,

    /// What to print: the records, as JSON objects or as a table, or only the summary, in one of three forms; without
    /// it the summary on a terminal, else json
    #[arg(
        long,
        value_enum,
        value_name = "json|csv|parquet|summary|markdown|html",
        hide_possible_values = true
    )]
    pub format: Option<Form>,

    /// Print the summary too: behind the records of a file on standard output, else on standard error
    #[arg(long)]
    pub summary: bool,

    /// Name in the summary the causes that are first seen since then
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub new_since: Option<SystemTime>,

    /// Show no progress, and name no unreadable inputs on standard error
    #[arg(long, short)]
    pub quiet: bool,

    /// Write to a file, which appears, or is replaced, when it is complete; a pipe or device is written straight to
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Take over what an earlier scan to the same output has found out about logs that have not changed, even if it
    /// was interrupted
    #[arg(long, requires = "output")]
    pub resume: bool,

    /// Draw a label from each path with a REGEX with one group, for the summary and a column of the table
    #[arg(long, value_name = "REGEX", value_parser = one_group)]
    pub label: Option<Regex>,

    /// Print records as they are finished instead of in order of path
    #[arg(long)]
    pub unordered: bool,

    /// Examinations at a time; without it one for each core
    #[arg(long, short = 'j', value_name = "N")]
    pub jobs: Option<NonZeroUsize>,

    /// What judges.
    #[command(flatten)]
    pub judging: Judging,

    /// What is taken out of the records.
    #[command(flatten)]
    pub redact: Redact,

    /// What each examination may take.
    #[command(flatten)]
    pub memory: Memory,
}

/// What a scan prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// One JSON object a line
    Json,
    /// A table
    Csv,
    /// A table with types
    Parquet,
    /// The summary for people
    Summary,
    /// The summary for issues and merge requests
    Markdown,
    /// The summary as a page with plots
    Html,
}

fn incident(text: &str) -> Result<Rule, String> {
    match text {
        "file" => Ok(Rule::File),
        "dir" => Ok(Rule::Folder),
        _ => one_group(text).map(Rule::Pattern),
    }
}

/// A regular expression with exactly one group.
fn one_group(text: &str) -> Result<Regex, String> {
    let pattern = Regex::new(text).map_err(|e| e.to_string())?;
    match pattern.captures_len() {
        2 => Ok(pattern),
        n => Err(format!("the pattern needs one group in parentheses and has {}", n - 1)),
    }
}

/// A date, a time, or how long ago.
fn since(text: &str) -> Result<SystemTime, String> {
    let zoned = DateTime::parse_from_rfc3339(text).map(|t| t.to_utc());
    let local = || NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S").map(|t| t.and_utc());
    let date = || {
        text.parse::<NaiveDate>()
            .map(|d| d.and_time(chrono::NaiveTime::MIN).and_utc())
    };
    if let Ok(time) = zoned.or_else(|_| local()).or_else(|_| date()) {
        return Ok(DateTime::<Utc>::into(time));
    }
    let at = text.len() - text.chars().next_back().map_or(0, char::len_utf8);
    let (number, unit) = text.split_at(at);
    let scale = match unit {
        "w" => Some(7 * 86_400),
        "d" => Some(86_400),
        "h" => Some(3_600),
        "m" => Some(60),
        _ => None,
    };
    scale
        .zip(number.parse::<u64>().ok())
        .and_then(|(scale, n)| SystemTime::now().checked_sub(Duration::from_secs(n.checked_mul(scale)?)))
        .ok_or_else(|| "give a date such as 2026-11-25, a time, or how long ago, such as 7d, 12h or 30m".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_date_a_time_or_an_age() {
        let day = since("2026-11-25").unwrap();
        assert_eq!(since("2026-11-25T00:00:00").unwrap(), day);
        assert_eq!(since("2026-11-25T01:00:00+01:00").unwrap(), day);
        let hour = SystemTime::now().duration_since(since("1h").unwrap()).unwrap();
        assert!((3599..3700).contains(&hour.as_secs()));
        for bad in [
            "",
            "x",
            "7",
            "7y",
            "-1d",
            "99999999999999999999d",
            "18446744073709551615w",
            "7ü",
        ] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_incident_pattern_has_one_group() {
        assert!(matches!(incident(r"job-(\d+)"), Ok(Rule::Pattern(_))));
        assert!(matches!(incident("dir"), Ok(Rule::Folder)));
        assert!(incident("job").is_err());
        assert!(incident("(a)(b)").is_err());
        assert!(incident("(").is_err());
    }
}
