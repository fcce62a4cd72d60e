//! The command line: parse, act, answer with an exit status.
//!
//! Owns everything between the shell and the library. `coroner::examine` does the work.

mod args;
mod clean;
mod config;
mod error;
mod examine;
mod exit;
mod feed;
mod memory;
mod output;
mod pipe;
mod progress;
mod redact;
mod rules;
mod scan;
mod scan_args;
mod shared_args;
mod targets;

use std::ffi::OsString;
use std::io;
use std::panic;

use clap::{CommandFactory, FromArgMatches, Parser};

use crate::catalog::Catalog;
use crate::catalog::schema::json_schema;
use crate::explain::{self, reference};
use crate::report::json;
use crate::report::text::safe_lines;
use args::{CatalogAction, Cli, Command, PageFormat};
use config::Config;
use error::CliError;
use exit::{CLEAN, NO_REPORT};
use output::{Output, complain, dress_errors, put, remark};

/// Runs the program with the given arguments, its own name first, and returns the exit status.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match parsed(args) {
        Ok(cli) => cli,
        Err(Refused::Usage(e)) => {
            // Help and version come this way too; that nobody reads them is no error. An error quotes arguments, which
            // may be names of files: it must not act on a terminal.
            let _ = match e.use_stderr() {
                true => put(io::stderr(), &safe_lines(&e.render().to_string())),
                false => e.print(),
            };
            return u8::try_from(e.exit_code()).unwrap_or(NO_REPORT);
        }
        Err(Refused::Settings(error)) => {
            complain(*error);
            return NO_REPORT;
        }
    };
    dress_errors(&cli.looks);
    match panic::catch_unwind(|| act(&cli)) {
        Ok(Ok(status)) => status,
        Ok(Err(error)) => {
            complain(error);
            NO_REPORT
        }
        Err(_) => {
            remark("this is a fault of coroner itself; please report it with the message above");
            NO_REPORT
        }
    }
}

/// Why nothing is done.
enum Refused {
    Usage(clap::Error),
    Settings(Box<CliError>),
}

/// The command line, and what a settings file says where it does not.
fn parsed(args: impl IntoIterator<Item = OsString>) -> Result<Cli, Refused> {
    let args = command_first(args.into_iter().collect());
    let cli = Cli::try_parse_from(&args).map_err(Refused::Usage)?;
    let settings = |e| Refused::Settings(Box::new(e));
    let Some(config) = Config::of(&cli.looks).map_err(settings)? else {
        return Ok(cli);
    };
    let parser = config.apply(Cli::command()).map_err(settings)?;
    let matches = parser.try_get_matches_from(args).map_err(Refused::Usage)?;
    Cli::from_arg_matches(&matches).map_err(Refused::Usage)
}

/// Options of every command may stand before its name; the parser wants them behind.
fn command_first(mut args: Vec<OsString>) -> Vec<OsString> {
    let mut at = 1;
    while let Some(arg) = args.get(at).and_then(|arg| arg.to_str()) {
        at += match arg {
            "--ascii" | "--no-config" => 1,
            "--color" | "--config" => 2,
            _ if arg.starts_with("--color=") || arg.starts_with("--config=") => 1,
            name => {
                if Cli::command().find_subcommand(name).is_some()
                    && let Some(head) = args.get_mut(1..=at)
                {
                    head.rotate_right(1);
                }
                break;
            }
        };
    }
    args
}

/// The manual page of the program or of a command, `scan` or `catalog check`.
fn manual(command: &[String]) -> Result<Vec<u8>, CliError> {
    let mut parser = Cli::command();
    parser.build();
    let mut page = &parser;
    for name in command {
        let commands = || page.get_subcommands().map(clap::Command::get_name);
        page = page.find_subcommand(name).ok_or_else(|| CliError::NoCommand {
            name: command.join(" "),
            known: commands().collect::<Vec<_>>().join(", "),
        })?;
    }
    let mut text = Vec::new();
    clap_mangen::Man::new(page.clone())
        .render(&mut text)
        .map_err(CliError::Output)?;
    Ok(text)
}

fn act(cli: &Cli) -> Result<u8, CliError> {
    match &cli.command {
        None if cli.examine.schema => {
            Output::Stdout.write(&json::schema())?;
            Ok(CLEAN)
        }
        None => examine::run(&cli.examine, &cli.looks),
        Some(Command::Scan(args)) => scan::run(args, &cli.looks),
        Some(Command::Completions { shell }) => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "coroner", &mut text);
            Output::Stdout.write(&String::from_utf8_lossy(&text))?;
            Ok(CLEAN)
        }
        Some(Command::Man { command }) => {
            Output::Stdout.write(&String::from_utf8_lossy(&manual(command)?))?;
            Ok(CLEAN)
        }
        Some(Command::Explain { id, format, rules, .. }) => {
            let catalog = rules.load()?;
            let pages = pages(&catalog, id.as_deref(), *format)?;
            let html = *format == PageFormat::Html;
            Output::Stdout.write(&if html { pages } else { cli.looks.text(pages) })?;
            Ok(CLEAN)
        }
        Some(Command::Catalog {
            action,
            rules,
            coverage,
            audit,
        }) => {
            let (text, status) = match (action, coverage, audit) {
                (Some(CatalogAction::Check { dir, alone }), ..) => rules::check(dir, *alone, &cli.looks)?,
                (Some(CatalogAction::Draft { paths }), ..) => (rules::draft(paths, rules)?, CLEAN),
                (Some(CatalogAction::Schema), ..) => (json_schema(), CLEAN),
                (None, Some(dir), _) => rules::coverage(&rules.load()?, dir)?,
                (None, None, Some(dir)) => rules::audit(&rules.load()?, dir)?,
                (None, None, None) => (rules::list(&rules.load()?), CLEAN),
            };
            Output::Stdout.write(&text)?;
            Ok(status)
        }
    }
}

/// The page of an id, or all pages.
fn pages(catalog: &Catalog, id: Option<&str>, format: PageFormat) -> Result<String, CliError> {
    let ids: Vec<&str> = match id {
        Some(id) => vec![id],
        None => explain::ids(catalog).collect(),
    };
    let mut pages = Vec::new();
    for id in &ids {
        pages.push(explain::page(catalog, id).ok_or_else(|| CliError::unknown_id(catalog, id))?);
    }
    let title = id.unwrap_or("What coroner knows");
    Ok(match format {
        PageFormat::Terminal => pages.join("\n"),
        PageFormat::Markdown => reference::markdown(catalog, &ids),
        PageFormat::Html => reference::html(catalog, title, &ids),
    })
}
