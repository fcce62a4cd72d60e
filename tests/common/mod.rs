//! The corpus and how the tests examine it.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};

use coroner::catalog::Catalog;
use coroner::intake::{Limits, discover};
use coroner::report::model::Report;
use serde::Deserialize;

/// A label, as far as the tests use it. Its fields are described in `corpus/README.md`.
#[derive(Debug, Deserialize)]
pub struct Case {
    pub id: String,
    pub outcome: String,
    pub phase: Option<String>,
    pub cause: Option<String>,
    #[serde(default)]
    pub acceptable_outcomes: Vec<String>,
    #[serde(default)]
    pub acceptable_phases: Vec<String>,
    #[serde(default)]
    pub acceptable_causes: Vec<String>,
    #[serde(default)]
    pub root_lines: Vec<u64>,
    #[serde(default)]
    pub consequence_lines: Vec<u64>,
    #[serde(default)]
    pub roots: Vec<Places>,
    #[serde(default)]
    pub consequences: Vec<Places>,
    #[serde(default)]
    pub inputs: Vec<String>,
    pub session_supports: Option<bool>,
}

/// Lines of one file of a folder.
#[derive(Debug, Deserialize)]
pub struct Places {
    pub input: String,
    pub lines: Vec<u64>,
}

impl Case {
    /// The path of this case with the given ending, relative to the package, so that reports name it the same everywhere.
    pub fn path(&self, ending: &str) -> PathBuf {
        Path::new("corpus").join(format!("{}{ending}", self.id))
    }

    /// The log beside the label.
    pub fn log(&self) -> Option<PathBuf> {
        Some(self.path(".log")).filter(|path| path.is_file())
    }

    /// The folder beside the label, where it shows what the label says.
    pub fn folder(&self) -> Option<PathBuf> {
        Some(self.path(".d")).filter(|path| path.is_dir() && self.session_supports != Some(false))
    }
}

/// All cases, by id.
pub fn cases() -> Vec<Case> {
    let entries = fs::read_dir("corpus").expect("the corpus stands beside the tests");
    let mut labels: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
    labels.retain(|path| path.extension().is_some_and(|e| e == "json"));
    labels.sort();
    assert!(labels.len() > 30, "the corpus has shrunk to {} cases", labels.len());
    let read = |path: &PathBuf| serde_json::from_str(&fs::read_to_string(path).unwrap());
    labels
        .iter()
        .map(|path| read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
        .collect()
}

/// One case.
pub fn case(id: &str) -> Case {
    cases()
        .into_iter()
        .find(|case| case.id == id)
        .unwrap_or_else(|| panic!("no case {id}"))
}

/// Examines paths as the command line does.
pub fn examine(paths: &[PathBuf]) -> Report {
    examine_with(paths, &coroner::Options::default())
}

/// Examines paths as the command line does.
pub fn examine_with(paths: &[PathBuf], options: &coroner::Options) -> Report {
    let found = discover(paths, &Limits::default());
    coroner::examine(Catalog::shared().unwrap(), &found.inputs, options)
}

/// Number of lines of a file.
pub fn lines_of(path: &Path) -> u64 {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    bytes.split_inclusive(|b| *b == b'\n').count() as u64
}
