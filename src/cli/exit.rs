//! The exit status.
//!
//! Owns what each status means and which verdicts `--fail-on` chooses. Never prints.

use crate::catalog::{Catalog, family};
use crate::report::model::{Outcome, Report};

/// Nothing that was to be reported by the status.
pub const CLEAN: u8 = 0;
/// A failure whose cause is known, or another verdict chosen by `--fail-on`.
pub const FAILED: u8 = 1;
/// No report could be made.
pub const NO_REPORT: u8 = 2;
/// A failure of unknown cause.
pub const UNKNOWN: u8 = 3;
/// Some inputs of a scan could not be read.
pub const SOME_UNREAD: u8 = 4;
/// A signal ended a scan.
pub const INTERRUPTED: u8 = 130;

const OUTCOMES: [Outcome; 6] = [
    Outcome::Failed,
    Outcome::Healthy,
    Outcome::Degraded,
    Outcome::Running,
    Outcome::Stopped,
    Outcome::NoLaunch,
];

/// The verdicts that make the status 1 or 3.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailOn(Vec<String>);

impl FailOn {
    /// Outcomes, cause families and causes; an unknown word is given back.
    pub fn new(words: &[String], catalog: &Catalog) -> Result<Self, String> {
        let words: Vec<String> = words
            .iter()
            .map(|w| w.trim().to_owned())
            .filter(|w| !w.is_empty())
            .collect();
        let known = |word: &str| {
            OUTCOMES.iter().any(|o| o.id() == word)
                || word == "unknown"
                || catalog.causes().any(|c| c.id == word || family(&c.id) == word)
        };
        match words.iter().find(|w| !known(w)) {
            Some(unknown) => Err(unknown.clone()),
            None => Ok(Self(words)),
        }
    }

    /// Whether a verdict is in the list.
    pub fn chooses(&self, outcome: &str, cause: Option<&str>) -> bool {
        self.0
            .iter()
            .any(|word| word == outcome || cause.is_some_and(|id| word == id || word == family(id)))
    }

    /// The status for one report.
    pub fn status(&self, report: &Report) -> u8 {
        if !self.chooses(report.outcome.id(), report.cause.as_ref().map(|c| c.id.as_str())) {
            return CLEAN;
        }
        let unknown =
            report.outcome == Outcome::Failed && report.cause.as_ref().is_none_or(|c| family(&c.id) == "unknown");
        if unknown { UNKNOWN } else { FAILED }
    }
}
