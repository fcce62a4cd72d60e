//! `coroner catalog`: the rules in force, the list of causes, and the check of rule files.
//!
//! Owns what the two print. Reads rule files, never a log.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::args::Rules;
use super::error::CliError;
use super::exit::{CLEAN, FAILED, family};
use crate::catalog::{Catalog, CatalogError, check};

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
        "\n{} causes, {} signatures, {} remedies; rules {}\n\
         The number before a title is that of the signatures that lead to the cause. `coroner explain ID` has more.",
        catalog.causes().len(),
        catalog.signatures().len(),
        catalog.remedies().len(),
        catalog.hash()
    );
    out
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
        "{} files, {} signatures, {} causes, {} remedies: {} faults",
        files.len(),
        catalog.signatures().len(),
        catalog.causes().len(),
        catalog.remedies().len(),
        faults.len()
    );
    Ok((out, if faults.is_empty() { CLEAN } else { FAILED }))
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
