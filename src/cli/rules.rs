//! `coroner catalog`: the rules in force, the list of causes, the check and the draft of rule files, and what covers
//! the notes.
//!
//! Owns what they print. Reads rule files and notes; logs to see which rules decide them, and to draft one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ignore::Walk;
use rayon::prelude::*;

use super::args::Looks;
use super::error::CliError;
use super::exit::{CLEAN, FAILED};
use super::output::told as told_faults;
use super::shared_args::RuleChoice;
use crate::catalog::audit::audit as audited;
use crate::catalog::coverage::{Plan, coverage as covered};
use crate::catalog::notes::{self, Note};
use crate::catalog::pack::RuleFile;
use crate::catalog::schema::DataFile;
use crate::catalog::{BuiltIn, Catalog, CatalogError, family};
use crate::examine::{self, Examiner, Options};
use crate::intake::{InputSpec, Limits, discover};
use crate::pack;
use crate::redact::{Level, Names, Redactor};
use crate::report::text::plural;

/// The variable that holds the paths of rule files, separated as in `PATH`.
pub const VARIABLE: &str = "CORONER_RULES";

impl RuleChoice {
    /// What of the built-in rules is in force.
    pub fn built_in(&self) -> BuiltIn {
        match self.rules.iter().any(|path| path.as_os_str() == "none") {
            true => BuiltIn::Structure,
            false => BuiltIn::All,
        }
    }

    /// The catalog with these rules.
    pub fn load(&self) -> Result<Catalog, CliError> {
        Ok(Catalog::with_files(self.built_in(), &self.files()?)?)
    }

    /// The rule files that are added.
    fn files(&self) -> Result<Vec<RuleFile>, CliError> {
        let set = std::env::var_os(VARIABLE).filter(|_| self.rules.is_empty());
        let set: Vec<PathBuf> = set.iter().flat_map(std::env::split_paths).collect();
        let given = self
            .rules
            .iter()
            .chain(&set)
            .filter(|path| !path.as_os_str().is_empty());
        let mut files = Vec::new();
        for path in given.filter(|path| !["all", "none"].iter().any(|word| path.as_os_str() == *word)) {
            files.append(&mut rule_files(path)?);
        }
        Ok(files)
    }
}

/// The rule files of a folder, by name, or the one that a path names.
///
/// # Errors
/// When there is none, or one cannot be read or parsed.
pub fn rule_files(path: &Path) -> Result<Vec<RuleFile>, CliError> {
    let fault = |text: String| CliError::Rules {
        dir: path.display().to_string(),
        text,
    };
    let texts = read(path).map_err(|e| fault(e.to_string()))?;
    if texts.is_empty() {
        return Err(fault("there is no .toml file in it".to_owned()));
    }
    let parse = |(name, text): &(String, String)| RuleFile::parse(name, text);
    let files: Result<Vec<RuleFile>, CatalogError> = texts.iter().map(parse).collect();
    Ok(files?)
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
            .filter(|s| s.def.cause.as_ref().is_some_and(leads))
            .count();
        let _ = writeln!(out, "  {:<32} {known:>3}  {}", cause.id, cause.title);
    }
    let _ = writeln!(
        out,
        "\n{}, {}, {}; rules {}\n\
         The number before a title is that of the signatures that lead to the cause. `coroner explain ID` has more.",
        told(catalog.causes().count(), "cause"),
        told(catalog.signatures().count(), "signature"),
        told(catalog.remedies().count(), "remedy"),
        catalog.hash()
    );
    out
}

fn told(n: usize, one: &str) -> String {
    plural(n as u64, one)
}

/// What is wrong with the rule files of a folder, and the status: 1 when something is, and not only a warning.
pub fn check(dir: &Path, alone: bool, looks: &Looks) -> Result<(String, u8), CliError> {
    let files = rule_files(dir)?;
    let built_in = if alone { BuiltIn::Nothing } else { BuiltIn::All };
    let catalog = Catalog::with_files(built_in, &files)?;
    let faults = pack::check::check(&catalog, &files);
    let warnings = faults.iter().filter(|fault| fault.warning).count();
    let wrong = faults.len() - warnings;
    let count = |of: fn(&DataFile) -> usize| files.iter().map(|file| of(&file.rules)).sum();
    let mut out = told_faults(&faults, looks);
    let _ = writeln!(
        out,
        "{}, {}, {}, {}: {}, {}",
        told(files.len(), "file"),
        told(count(|rules| rules.signature.len()), "signature"),
        told(count(|rules| rules.cause.len()), "cause"),
        told(count(|rules| rules.remedy.len()), "remedy"),
        told(wrong, "fault"),
        told(warnings, "warning")
    );
    Ok((out, if wrong == 0 { CLEAN } else { FAILED }))
}

/// The skeleton of a rule for the failure that logs tell of.
pub fn draft(paths: &[PathBuf], rules: &RuleChoice) -> Result<String, CliError> {
    let catalog = rules.load()?;
    let limits = Limits::default();
    let found = discover(paths, &limits);
    let mut examiner = Examiner::new(&catalog, Options::default());
    found.skipped.iter().for_each(|s| examiner.skip(&s.input, &s.why));
    found.inputs.iter().for_each(|input| examiner.read(input));
    let mut report = examiner.report();
    if report.examined.files == 0 {
        let skipped = &report.examined.skipped;
        return Err(CliError::nothing_readable(
            skipped.iter().map(|s| (s.input.as_str(), s.why.as_str())),
        ));
    }
    Redactor::new(Level::Secrets, Vec::new(), Names::new(None)).apply(&mut report);
    pack::draft::draft(&report).map_err(CliError::no_draft)
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

/// Name and text of the rule files, by name, or of the one that is named.
fn read(dir: &Path) -> std::io::Result<Vec<(String, String)>> {
    if dir.is_file() {
        return Ok(vec![(dir.display().to_string(), fs::read_to_string(dir)?)]);
    }
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
