//! The redaction that the command line asks for, and its map file.
//!
//! Owns the file of `--redact-map`: only its owner may read it, and it is replaced whole or not at all.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::args::{Redact, RedactLevel};
use super::error::CliError;
use super::output;
use crate::redact::{Level, Names, Redactor};

impl Redact {
    /// The redactor that is asked for.
    pub fn redactor(&self) -> Result<Redactor, CliError> {
        let mut names = Names::new(self.key.clone());
        if let Some(file) = &self.map {
            match fs::read_to_string(file) {
                Ok(text) => names.load(&text).map_err(|e| failed(file, &e.to_string()))?,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => return Err(failed(file, &e.to_string())),
            }
        }
        let level = match self.level {
            RedactLevel::Secrets => Level::Secrets,
            RedactLevel::Identity => Level::Identity,
            RedactLevel::All => Level::All,
        };
        Ok(Redactor::new(level, self.patterns.clone(), names))
    }

    /// Writes the map file, if one is asked for.
    pub fn keep(&self, redactor: &Redactor) -> Result<(), CliError> {
        let Some(file) = &self.map else { return Ok(()) };
        output::replace(file, &redactor.names().map(), true).map_err(|e| failed(file, &e.to_string()))
    }
}

fn failed(file: &Path, text: &str) -> CliError {
    CliError::RedactMap {
        file: file.display().to_string(),
        text: text.to_owned(),
    }
}
