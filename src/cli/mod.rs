//! The command line: parse, act, answer with an exit status.
//!
//! Owns everything between the shell and the library. `coroner::examine` does the work.

mod args;
mod error;
mod examine;
mod exit;
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
use std::panic;

use clap::Parser;

use crate::catalog::Catalog;
use crate::explain::{self, reference};
use crate::report::json;
use args::{CatalogAction, Cli, Command, PageFormat};
use error::CliError;
use exit::{CLEAN, NO_REPORT};
use output::{Output, complain, remark};

/// Runs the program with the given arguments, its own name first, and returns the exit status.
pub fn run(args: impl IntoIterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version come this way too; that nobody reads them is no error.
            let _ = e.print();
            return u8::try_from(e.exit_code()).unwrap_or(NO_REPORT);
        }
    };
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

fn act(cli: &Cli) -> Result<u8, CliError> {
    match &cli.command {
        None if cli.examine.schema => {
            Output::Stdout.write(&json::schema())?;
            Ok(CLEAN)
        }
        None => examine::run(&cli.examine),
        Some(Command::Scan(args)) => scan::run(args),
        Some(Command::Explain { id, format, .. }) => {
            let catalog = Catalog::load()?;
            Output::Stdout.write(&pages(&catalog, id.as_deref(), *format)?)?;
            Ok(CLEAN)
        }
        Some(Command::Catalog {
            action,
            rules,
            coverage,
            audit,
        }) => {
            let rules = rules.rules;
            let (text, status) = match (action, coverage, audit) {
                (Some(CatalogAction::Check { dir }), ..) => rules::check(dir)?,
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
