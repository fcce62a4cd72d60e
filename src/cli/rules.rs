//! `coroner catalog`: the rules in force, the list of causes, the check of rule files, and what covers the notes.
//!
//! Owns what they print. Reads rule files and notes; logs only to see which rules decide them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::Walk;
use rayon::prelude::*;

use super::error::CliError;
use super::exit::{CLEAN, FAILED, family};
use super::shared_args::Rules;
use crate::catalog::audit::audit as audited;
use crate::catalog::coverage::{Plan, coverage as covered};
use crate::catalog::notes::{self, Note};
use crate::catalog::{Catalog, CatalogError, check};
use crate::examine::{self, Options};
use crate::intake::InputSpec;
use crate::report::text::plural;

impl Rules {
    /// The catalog with these rules.
    pub fn load(self) -> Result<Catalog, CatalogError> {
        match self {
            Self::All => Catalog::load(),
            Self::None => Catalog::without_root_signatures(),
        }
    }
}

/// All causes by family, with the number of signatures that lead to each.
pub fn list(catalog: &Catalog) -> String {
    let mut out = String::new();
    let mut last = "";
    for cause in catalog.causes() {
        if family(&cause.id) != last {
            last = family(&cause.id);
            let _ = writeln!(out, "{}{last}", if out.is_empty() { "" } else { "\n" });
        }
        let whole_family = format!("{last}.*");
        let leads = |id: &String| *id == cause.id || *id == whole_family;
        let known = catalog
            .signatures()
            .iter()
            .filter(|s| s.def.cause.as_ref().is_some_and(leads))
            .count();
        let _ = writeln!(out, "  {:<32} {known:>3}  {}", cause.id, cause.title);
    }
    let _ = writeln!(
        out,
        "\n{}, {}, {}; rules {}\n\
         The number before a title is that of the signatures that lead to the cause. `coroner explain ID` has more.",
        told(catalog.causes().len(), "cause"),
        told(catalog.signatures().len(), "signature"),
        told(catalog.remedies().len(), "remedy"),
        catalog.hash()
    );
    out
}

fn told(n: usize, one: &str) -> String {
    plural(n as u64, one)
}

/// What the samples in the rule files of a folder say, and the status: 1 when one is answered wrongly.
pub fn check(dir: &Path) -> Result<(String, u8), CliError> {
    let files = read(dir).map_err(|e| CliError::Rules {
        dir: dir.display().to_string(),
        text: e.to_string(),
    })?;
    if files.is_empty() {
        return Err(CliError::Rules {
            dir: dir.display().to_string(),
            text: "there is no .toml file in it".to_owned(),
        });
    }
    let texts: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (name.as_str(), text.as_str()))
        .collect();
    let catalog = Catalog::from_texts(&texts)?;
    let faults = check::check(&catalog);
    let mut out = String::new();
    for fault in &faults {
        let _ = writeln!(out, "{fault}");
    }
    let _ = writeln!(
        out,
        "{}, {}, {}, {}: {}",
        told(files.len(), "file"),
        told(catalog.signatures().len(), "signature"),
        told(catalog.causes().len(), "cause"),
        told(catalog.remedies().len(), "remedy"),
        told(faults.len(), "fault")
    );
    Ok((out, if faults.is_empty() { CLEAN } else { FAILED }))
}

/// Which signature covers each message that the notes of a folder quote, and the status: 1 when one is a gap.
pub fn coverage(catalog: &Catalog, dir: &Path) -> Result<(String, u8), CliError> {
    let table = covered(catalog, &Plan::load()?, &read_notes(dir)?);
    let status = if table.gaps() == 0 { CLEAN } else { FAILED };
    Ok((table.to_string(), status))
}

/// What vouches for the signatures, and the status: 1 when nothing vouches for one.
pub fn audit(catalog: &Catalog, dir: &Path) -> Result<(String, u8), CliError> {
    let answers = audited(
        catalog,
        &Plan::load()?,
        &read_notes(dir)?,
        &decided(catalog, &dir.join("cases")),
    );
    let status = if answers.faults() == 0 { CLEAN } else { FAILED };
    Ok((answers.to_string(), status))
}

fn read_notes(dir: &Path) -> Result<Vec<Note>, CliError> {
    let fault = |text: String| CliError::Notes {
        dir: dir.display().to_string(),
        text,
    };
    let notes = notes::read(dir).map_err(|e| fault(e.to_string()))?;
    if notes.is_empty() {
        return Err(fault("there is no .md file in it".to_owned()));
    }
    Ok(notes)
}

/// Signature of the root line → logs (`NAME.log`) below a folder that it decides.
fn decided(catalog: &Catalog, dir: &Path) -> BTreeMap<String, Vec<String>> {
    let files = Walk::new(dir).filter_map(|e| e.ok().map(ignore::DirEntry::into_path));
    let mut logs: Vec<PathBuf> = files.filter(|p| p.extension().is_some_and(|e| e == "log")).collect();
    logs.sort();
    let root = |log: &PathBuf| {
        let report = examine::examine(catalog, &[InputSpec::file(log)], &Options::default());
        let root = report.evidence.into_iter().find(|e| e.role == "root")?;
        Some((root.signature?, log.display().to_string()))
    };
    let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (signature, log) in logs.par_iter().filter_map(root).collect::<Vec<_>>() {
        out.entry(signature).or_default().push(log);
    }
    out
}

/// Name and text of the rule files, by name.
fn read(dir: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.push((path.display().to_string(), fs::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}
