//! The command line: what can be asked for, and how.
//!
//! Owns the parser and the meaning of each value. Never acts on one.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::memory::Memory;
use super::scan_args::Scan;
use super::shared_args::{Judging, Redact, RuleChoice};
use crate::examine::AttemptChoice;
use crate::report::Format;
use crate::time::Stamp;

const EXAMPLES: &str = "\
Examples:
  coroner serve.log
  coroner head.log worker-1.log worker-2.log     one launch, a log for each node
  vllm serve MODEL 2>&1 | tee -i launch.log | coroner
  kubectl logs --previous vllm-0 | coroner --format oneline
  coroner --format markdown --max-chars github --redact identity serve.log
  coroner --format html=report.html --format terminal logs.tar.gz
  coroner explain gpu-oom.graph-capture";

const EXIT_STATUS: &str = "\
Exit status:
  0  healthy, degraded, running, stopped or no launch
  1  failed, and the cause is known
  3  failed, and the cause is unknown
  2  no report could be made

A path that is named like a command is written ./explain.";

/// Says why the launch of an LLM inference server died: root cause, phase, process, evidence, what to change first
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    after_help = EXIT_STATUS,
    after_long_help = format!("{EXAMPLES}\n\n{EXIT_STATUS}")
)]
pub struct Cli {
    /// What to do instead of an examination.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The examination.
    #[command(flatten)]
    pub examine: Examine,

    /// How it all looks, and where settings are kept.
    #[command(flatten)]
    pub looks: Looks,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings and looks")]
pub struct Looks {
    /// Colour; auto: on a terminal, unless NO_COLOR is set, and anywhere if CLICOLOR_FORCE is
    #[arg(
        long,
        global = true,
        value_enum,
        default_value_t,
        value_name = "auto|always|never",
        hide_possible_values = true
    )]
    pub color: Color,

    /// Write nothing but ASCII, except in JSON and HTML
    #[arg(long, global = true)]
    pub ascii: bool,

    /// Take settings from FILE, whose keys are the long options, instead of the first coroner.toml in this folder,
    /// ~/.config/coroner and /etc/xdg/coroner
    #[arg(long, global = true, value_name = "FILE", conflicts_with = "no_config")]
    pub config: Option<PathBuf>,

    /// Take settings from no file
    #[arg(long, global = true)]
    pub no_config: bool,
}

/// Everything but an examination.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Examine many incidents: every log below the paths, one result each
    Scan(Box<Scan>),
    /// Print the page of a cause, a family of causes, a signature, a phase or a remedy
    Explain {
        /// Its id, such as gpu-oom.graph-capture, or a family such as gpu-oom
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Print the pages of all causes, phases, signatures and remedies
        #[arg(long, conflicts_with = "id")]
        all: bool,
        /// Form of the page; html with --all is a reference to browse
        #[arg(
            long,
            value_enum,
            default_value_t,
            value_name = "terminal|markdown|html",
            hide_possible_values = true
        )]
        format: PageFormat,
        /// The rules in force.
        #[command(flatten)]
        rules: RuleChoice,
    },
    /// List the causes and signatures, check rule files, or draft one
    Catalog {
        /// What to do with the rules.
        #[command(subcommand)]
        action: Option<CatalogAction>,
        /// Show which signature covers each message quoted in the notes (.md) of a folder
        #[arg(long, value_name = "DIR", conflicts_with = "audit")]
        coverage: Option<PathBuf>,
        /// List signatures that neither notes nor programs vouch for; DIR has folders knowledge and cases
        #[arg(long, value_name = "DIR")]
        audit: Option<PathBuf>,
        /// The rules in force.
        #[command(flatten)]
        rules: RuleChoice,
    },
    /// Print the completions of a shell
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page of the program, or of one of its commands
    Man {
        /// The command: `scan`, `catalog check`
        command: Vec<String>,
    },
}

/// A form of a page of `explain`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum PageFormat {
    /// Plain text
    #[default]
    Terminal,
    /// To be pasted
    Markdown,
    /// One file for a browser
    Html,
}

/// Work on rules.
#[derive(Debug, Subcommand)]
pub enum CatalogAction {
    /// Check rule files of your own: keys and words, samples, patterns that match too much or are slow
    Check {
        /// Folder with rule files, NAME.toml, or one such file
        dir: PathBuf,
        /// Take the folder for a whole catalog instead of an addition to the built-in one
        #[arg(long)]
        alone: bool,
    },
    /// Print the skeleton of a rule for a failure that no rule knows
    Draft {
        /// Logs of the launch: files, folders, archives, - for standard input
        #[arg(value_name = "LOG", required = true)]
        paths: Vec<PathBuf>,
    },
    /// Print the JSON Schema of rule files, for editors
    Schema,
}

/// One examination.
#[derive(Debug, Args)]
pub struct Examine {
    /// Logs of ONE launch, from one node or many: files, folders, archives, - for standard input (the default)
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,

    /// Form of the report: terminal, markdown, json (schema coroner.report/1), html, jira, slack, github
    /// (annotations), oneline or termination (at most 4096 bytes). FORM=FILE writes it to FILE. Can be given
    /// several times
    #[arg(long, value_name = "FORM[=FILE]", default_value = "terminal", value_parser = form)]
    pub format: Vec<Form>,

    /// Shorten what each format writes to at most N characters, the least important first: github 65536, jira 32767,
    /// slack 3000. 80 are enough for all but json and html, which say how many they need
    #[arg(long, value_name = "N|github|jira|slack", value_parser = max_chars)]
    pub max_chars: Option<usize>,

    /// Print the JSON Schema of the JSON report and end
    #[arg(long)]
    pub schema: bool,

    /// Which attempt to report on, where one log holds several
    #[arg(long, value_name = "N|last-failed|all", value_parser = attempt)]
    pub attempt: Option<Attempt>,

    /// Take all inputs for one incident, even if they look unrelated
    #[arg(long)]
    pub one_incident: bool,

    /// When the log was collected, as 2026-11-25T13:00:07Z: a silent process is measured against it
    #[arg(long, value_name = "TIME", value_parser = moment)]
    pub now: Option<Stamp>,

    /// List the terms that make up the confidence
    #[arg(long)]
    pub explain_confidence: bool,

    /// What judges.
    #[command(flatten)]
    pub judging: Judging,

    /// Exit with 2 when one of the inputs cannot be read
    #[arg(long)]
    pub strict: bool,

    /// Exit with 0 instead of 1 or 3
    #[arg(long)]
    pub exit_zero: bool,

    /// What is taken out of the report.
    #[command(flatten)]
    pub redact: Redact,

    /// Options of a pipe.
    #[command(flatten)]
    pub pipe: Pipe,

    /// What it may take.
    #[command(flatten)]
    pub memory: Memory,
}

/// How standard input is read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading a pipe")]
pub struct Pipe {
    /// After a failure, report when nothing came for this long, even if the pipe is still open
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub settle: Duration,

    /// Read on after such a report, and report again only if the verdict changes
    #[arg(long)]
    pub keep_reading: bool,

    /// Copy standard input to standard output, unchanged and at once; the report goes to standard error
    #[arg(long)]
    pub pass_through: bool,
}

/// A form of the report and where it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Form {
    /// The form.
    pub format: Format,
    /// The file; the output of the program where there is none.
    pub file: Option<PathBuf>,
}

fn form(text: &str) -> Result<Form, String> {
    let (name, file) = match text.split_once('=') {
        Some((name, file)) if !file.is_empty() => (name, Some(PathBuf::from(file))),
        Some(_) => return Err("behind = the name of a file is missing".to_owned()),
        None => (text, None),
    };
    match Format::ALL.iter().find(|format| format.id() == name) {
        Some(format) => Ok(Form { format: *format, file }),
        None => {
            let names: Vec<_> = Format::ALL.iter().map(|format| format.id()).collect();
            Err(format!("possible values are {}", names.join(", ")))
        }
    }
}

/// What the targets take of one text.
fn max_chars(text: &str) -> Result<usize, String> {
    match text {
        "github" => Ok(65_536),
        "jira" => Ok(32_767),
        "slack" => Ok(3_000),
        _ => text
            .parse()
            .ok()
            .filter(|n| *n > 0)
            .ok_or_else(|| "give a number of characters, or github, jira or slack".to_owned()),
    }
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A point in time with its zone; without one, local to the log.
fn moment(text: &str) -> Result<Stamp, String> {
    if let Ok(time) = chrono::DateTime::parse_from_rfc3339(text) {
        return Ok(Stamp::zoned(time.naive_local(), time.offset().local_minus_utc()));
    }
    text.parse()
        .map(Stamp::dated)
        .map_err(|_| "give a time such as 2026-11-25T13:00:07Z".to_owned())
}

/// A choice of attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// One of them.
    One(AttemptChoice),
    /// One report for each.
    All,
}

fn attempt(text: &str) -> Result<Attempt, String> {
    match text {
        "last-failed" => Ok(Attempt::One(AttemptChoice::LastFailed)),
        "all" => Ok(Attempt::All),
        _ => match text.parse() {
            Ok(n) if n > 0 => Ok(Attempt::One(AttemptChoice::Number(n))),
            _ => Err("give the number of an attempt from 1, or last-failed, or all".to_owned()),
        },
    }
}

/// `10s`, `500ms`, `2m`, `1h`, or seconds without a unit.
fn duration(text: &str) -> Result<Duration, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit {
        "" | "s" => Some(1.0),
        "ms" => Some(0.001),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    scale
        .zip(number.parse::<f64>().ok())
        .and_then(|(scale, number)| Duration::try_from_secs_f64(number * scale).ok())
        .ok_or_else(|| "give a time such as 10s, 500ms or 2m".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(args: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("coroner").chain(args.iter().copied()))
    }

    #[test]
    fn the_parser_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn paths_and_commands_are_told_apart() {
        let cli = parse(&["./explain", "-", "--format", "json"]).unwrap();
        assert!(cli.command.is_none());
        assert_eq!(cli.examine.paths, ["./explain", "-"].map(PathBuf::from));
        assert!(matches!(
            parse(&["explain", "gpu-oom"]).unwrap().command,
            Some(Command::Explain { .. })
        ));
        assert!(matches!(
            parse(&["catalog"]).unwrap().command,
            Some(Command::Catalog { action: None, .. })
        ));
    }

    #[test]
    fn values_are_read_and_nonsense_is_refused() {
        let cli = parse(&["--settle", "500ms", "--attempt", "2", "--fail-on", "failed,degraded"]).unwrap();
        assert_eq!(cli.examine.pipe.settle, Duration::from_millis(500));
        assert_eq!(cli.examine.attempt, Some(Attempt::One(AttemptChoice::Number(2))));
        assert_eq!(cli.examine.judging.fail_on.unwrap(), ["failed", "degraded"]);
        assert_eq!(
            parse(&["--settle", "1.5m"]).unwrap().examine.pipe.settle,
            Duration::from_secs(90)
        );
        for bad in [
            ["--settle", "soon"],
            ["--settle", "-1s"],
            ["--attempt", "0"],
            ["--format", "yaml"],
        ] {
            assert_eq!(parse(&bad).unwrap_err().exit_code(), 2, "{bad:?}");
        }
    }
}
