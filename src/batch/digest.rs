//! What a scan needs of a record once it is written: read back from its line, so that a record of an earlier scan
//! counts like a new one.
//!
//! Owns the choice of fields and the time a launch counts for. Never holds more than one record.

use chrono::{DateTime, Datelike, NaiveDateTime};
use serde::Deserialize;

/// The fields of a report or an error record that a scan uses.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Digest {
    pub source: String,
    pub program: Program,
    pub outcome: Option<String>,
    pub headline: String,
    pub engine: Engine,
    pub phase: Option<String>,
    pub cause: Option<Cause>,
    pub root: Option<Root>,
    pub exception: Option<Exception>,
    pub launch: Launch,
    pub fingerprint: Option<String>,
    pub examined: Examined,
    pub error: Option<Failure>,
    pub scan: Scan,
}

/// What made the record.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Program {
    pub version: String,
    pub catalog: String,
}

/// The engine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Engine {
    pub name: Option<String>,
    pub version: Option<String>,
}

/// The cause.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Cause {
    pub id: String,
    pub title: String,
    pub confidence: Option<f64>,
}

/// The line that states the cause.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Root {
    pub input: String,
    pub line: u64,
    pub time: Option<String>,
    pub time_local: Option<String>,
    pub time_after: Option<String>,
    pub process: Option<String>,
    pub rank: Option<u32>,
    pub node: Option<String>,
    pub text: String,
}

/// The exception.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Exception {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
}

/// The launch.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Launch {
    pub model: Option<String>,
    pub started: Option<String>,
    pub died: Option<String>,
    pub seconds_to_death: Option<f64>,
    pub world_size: Option<u32>,
    pub nodes: Option<u32>,
    pub gpus: Option<u32>,
}

/// What was read.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Examined {
    pub files: u64,
    pub bytes: u64,
    pub lines: u64,
}

/// Why there is no report.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Failure {
    pub id: String,
    pub text: String,
}

/// What the scan itself adds.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Scan {
    pub content: Option<String>,
    pub modified: Option<String>,
    pub basis: Option<String>,
    pub unread: Vec<Unread>,
}

/// A file of a report that was not read, or not to its end.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "the fields are those of the report")]
pub struct Unread {
    pub input: String,
    pub why: String,
}

impl Digest {
    /// Reads a record.
    ///
    /// # Errors
    /// When the line is no record, such as one that was cut off.
    pub fn of(line: &str) -> serde_json::Result<Self> {
        serde_json::from_str(line)
    }

    /// The digest of a record that cannot be read back, so that it counts as a failure of its input.
    pub fn torn(source: &str, why: &serde_json::Error) -> Self {
        Self {
            source: source.to_owned(),
            error: Some(Failure {
                id: "program.record".to_owned(),
                text: format!("its record cannot be read back: {why}"),
            }),
            ..Self::default()
        }
    }

    /// The id of the cause.
    pub fn cause_id(&self) -> Option<&str> {
        self.cause.as_ref().map(|cause| cause.id.as_str())
    }

    /// GPU-hours between the start and the death, where the log tells both and the number of GPUs. A wrong stamp among
    /// thousands of logs must not outweigh all others: what took longer than a month is not counted.
    pub fn gpu_hours(&self) -> Option<f64> {
        const MONTH: f64 = 30.0 * 86_400.0;
        let gpus = self.launch.gpus.or(self.launch.world_size)?;
        let seconds = self.launch.seconds_to_death.filter(|s| (0.0..=MONTH).contains(s))?;
        // Multiples of a power of two add up to the same sum in any order.
        const STEP: f64 = 1_048_576.0;
        Some((seconds * f64::from(gpus) / 3600.0 * STEP).round() / STEP)
    }

    /// When the launch died, or started, as far as the log tells. A stamp without a year takes it from the time the
    /// file was written.
    pub fn log_time(&self) -> Option<NaiveDateTime> {
        let root = self.root.as_ref();
        let stamps = [
            root.and_then(|r| r.time.as_deref()),
            self.launch.died.as_deref(),
            root.and_then(|r| r.time_local.as_deref()),
            root.and_then(|r| r.time_after.as_deref()),
            self.launch.started.as_deref(),
        ];
        let modified = self.modified();
        stamps.into_iter().flatten().find_map(|stamp| parse(stamp, modified))
    }

    /// When the file was last written.
    pub fn modified(&self) -> Option<NaiveDateTime> {
        self.scan.modified.as_deref().and_then(|text| parse(text, None))
    }

    /// The time the launch counts for: that of the log, or else that of the file.
    pub fn time(&self) -> Option<NaiveDateTime> {
        self.log_time().or_else(|| self.modified())
    }
}

/// A stamp as reports print it: with a zone, with a date, or with month and day alone.
fn parse(stamp: &str, modified: Option<NaiveDateTime>) -> Option<NaiveDateTime> {
    if let Ok(zoned) = DateTime::parse_from_rfc3339(stamp) {
        return Some(zoned.naive_utc());
    }
    const DATED: &str = "%Y-%m-%dT%H:%M:%S%.f";
    if let Ok(dated) = NaiveDateTime::parse_from_str(stamp, DATED) {
        return Some(dated);
    }
    // The file was written when the launch died or later: the newest such day up to then. A day of grace for zones.
    let limit = modified?.checked_add_days(chrono::Days::new(1))?;
    let in_year = |year: i32| NaiveDateTime::parse_from_str(&format!("{year}-{stamp}"), DATED).ok();
    (0..=4)
        .filter_map(|back| in_year(limit.year() - back))
        .find(|time| *time <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_and_a_torn_one_is_not() {
        let line = r#"{"schema":"coroner.report/1","source":"a","outcome":"failed","cause":{"id":"x.y"},"more":[1]}"#;
        let digest = Digest::of(line).unwrap();
        assert_eq!((digest.source.as_str(), digest.cause_id()), ("a", Some("x.y")));
        assert!(Digest::of(&line[..40]).is_err());
    }

    #[test]
    fn the_year_comes_from_the_file_where_the_log_has_none() {
        let mut digest = Digest::default();
        digest.launch.died = Some("12-31T23:50:00".into());
        assert_eq!(digest.time(), None);
        digest.scan.modified = Some("2026-01-01T00:05:00Z".into());
        assert_eq!(digest.time().unwrap().to_string(), "2025-12-31 23:50:00");
        digest.launch.died = Some("02-29T10:00:00.5".into());
        assert_eq!(digest.time().unwrap().year(), 2024);
        digest.launch.died = Some("2026-11-25T13:00:00+01:00".into());
        assert_eq!(digest.time().unwrap().to_string(), "2026-11-25 12:00:00");
    }

    #[test]
    fn gpu_hours_need_a_duration_and_a_size() {
        let mut digest = Digest::default();
        digest.launch.seconds_to_death = Some(900.0);
        assert_eq!(digest.gpu_hours(), None);
        digest.launch.world_size = Some(8);
        assert_eq!(digest.gpu_hours(), Some(2.0));
        digest.launch.seconds_to_death = Some(1e8);
        assert_eq!(digest.gpu_hours(), None);
    }
}
