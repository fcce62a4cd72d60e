//! The redaction that the command line asks for, and its map file.
//!
//! Owns the file of `--redact-map`: only its owner may read it, and it is replaced whole or not at all.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::error::CliError;
use super::output::remark;
use super::shared_args::{Redact, RedactLevel};
use crate::batch::record::Redaction;
use crate::redact::{Level, Names, Redactor};
use crate::store::{self, Access, Place};

impl Redact {
    /// The level that is asked for.
    pub fn level(&self) -> Level {
        match self.level {
            RedactLevel::Secrets => Level::Secrets,
            RedactLevel::Identity => Level::Identity,
            RedactLevel::All => Level::All,
        }
    }

    /// The redactor that is asked for.
    pub fn redactor(&self) -> Result<Redactor, CliError> {
        self.remark_idle();
        Ok(Redactor::new(
            self.level(),
            self.patterns.clone(),
            self.names(self.key.clone())?,
        ))
    }

    /// Says that patterns are given and not used.
    fn remark_idle(&self) {
        if !self.patterns.is_empty() && self.level() < Level::All {
            remark("--redact-pattern takes effect at --redact all only: nothing is replaced by it");
        }
    }

    /// What a scan takes out of its records, which are made side by side. Without a key one is made up, so that a name
    /// has the same pseudonym in all of them.
    pub fn of_scan(&self) -> Result<Redaction, CliError> {
        self.remark_idle();
        let level = self.level();
        let made_up = || (level > Level::Secrets).then(random_key);
        let names = self.names(self.key.clone().or_else(made_up))?;
        Ok(Redaction {
            level,
            patterns: self.patterns.clone(),
            given: self.map.is_some().then(|| Mutex::new(names.apart())),
            names,
        })
    }

    /// Writes the map file of a scan, if one is asked for.
    pub fn keep_of_scan(&self, redaction: &Redaction) -> Result<(), CliError> {
        match &redaction.given {
            Some(given) => self.keep(&given.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Ok(()),
        }
    }

    /// Pseudonyms made with this key, and those of the map file.
    pub fn names(&self, key: Option<String>) -> Result<Names, CliError> {
        let mut names = Names::new(key);
        if let Some(file) = &self.map {
            match fs::read_to_string(file) {
                Ok(text) => names.load(&text).map_err(|e| failed(file, &e.to_string()))?,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(failed(file, &e.to_string())),
            }
        }
        Ok(names)
    }

    /// Writes the map file, if one is asked for.
    pub fn keep(&self, names: &Names) -> Result<(), CliError> {
        let Some(file) = &self.map else { return Ok(()) };
        match Place::of(file) {
            Ok(Place::File(path)) => store::replace(&path, &names.map(), Access::Private),
            Ok(_) => return Err(failed(file, "it is no file")),
            Err(e) => Err(e),
        }
        .map_err(|e| failed(file, &e.to_string()))
    }
}

/// A key that nobody can guess, good for one run.
fn random_key() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}

fn failed(file: &Path, text: &str) -> CliError {
    CliError::RedactMap {
        file: file.display().to_string(),
        text: text.to_owned(),
    }
}
