//! Time stamps as logs print them: often without a year, often without a zone.
//!
//! Owns the stamp type and its comparison. Never asks the clock of the examining machine.

use chrono::{DateTime, FixedOffset, NaiveDateTime, SecondsFormat};

/// The year assumed for stamps that print none; only differences between such stamps are used.
const ASSUMED_YEAR: i32 = 2000;

/// Two stamps of one launch lie closer together, in days; one of those that do not is wrong.
const FURTHEST_DAYS: i64 = 3653;

/// A time stamp with what is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Local date and time; the year is arbitrary unless `year_known`.
    pub local: NaiveDateTime,
    /// Whether the log printed the year.
    pub year_known: bool,
    /// Offset from UTC in seconds, where printed.
    pub offset: Option<i32>,
}

impl Stamp {
    /// A stamp with a full date and an offset in seconds east of UTC.
    pub fn zoned(local: NaiveDateTime, offset: i32) -> Self {
        Self {
            local,
            year_known: true,
            offset: Some(offset),
        }
    }

    /// A stamp with a full date and no zone.
    pub fn dated(local: NaiveDateTime) -> Self {
        Self {
            local,
            year_known: true,
            offset: None,
        }
    }

    /// A stamp without a year (vLLM's `11-25 13:00:07`, torch's `[E1125 …]`, syslog's `Nov 25 …`).
    pub fn yearless(month: u32, day: u32, h: u32, m: u32, s: u32, nanos: u32) -> Option<Self> {
        let local = chrono::NaiveDate::from_ymd_opt(ASSUMED_YEAR, month, day)?.and_hms_nano_opt(h, m, s, nanos)?;
        Some(Self {
            local,
            year_known: false,
            offset: None,
        })
    }

    /// The stamp in the form it stands in the log, normalised: `11-25T13:00:07` or `2026-11-25T13:00:07.123`.
    pub fn printed(&self) -> String {
        let form = match self.year_known {
            true => "%Y-%m-%dT%H:%M:%S%.f",
            false => "%m-%dT%H:%M:%S%.f",
        };
        self.local.format(form).to_string()
    }

    /// Whether it has no fraction of a second.
    pub fn is_whole(&self) -> bool {
        use chrono::Timelike;
        self.local.nanosecond() == 0
    }

    /// RFC 3339 in the log's own zone, if date and zone are known.
    pub fn rfc3339(&self) -> Option<String> {
        if !self.year_known {
            return None;
        }
        let zone = FixedOffset::east_opt(self.offset?)?;
        let utc = self.local.checked_sub_offset(zone)?;
        Some(DateTime::<FixedOffset>::from_naive_utc_and_offset(utc, zone).to_rfc3339_opts(SecondsFormat::AutoSi, true))
    }

    /// Seconds from `earlier` to `self`, where the two can be compared: both with a zone, or both without.
    /// A stamp without a year is compared by month and day alone. None if ten years and more lie between them.
    pub fn seconds_since(&self, earlier: &Self) -> Option<f64> {
        let (a, b) = (self.comparable(earlier)?, earlier.comparable(self)?);
        let delta = a.signed_duration_since(b);
        (delta.num_days().abs() < FURTHEST_DAYS).then_some(delta.num_milliseconds() as f64 / 1000.0)
    }

    fn comparable(&self, other: &Self) -> Option<NaiveDateTime> {
        use chrono::Datelike;
        let mut at = self.local;
        match (self.offset, other.offset) {
            (Some(offset), Some(_)) => at = at.checked_sub_offset(FixedOffset::east_opt(offset)?)?,
            (None, None) => {}
            // One of the two has no zone: read both as local times. Right when containers log in UTC, off by the zone otherwise.
            _ => {}
        }
        if self.year_known && !other.year_known {
            at = at.with_year(ASSUMED_YEAR)?;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_without_a_year_compares_by_month_and_day() {
        let a = Stamp::yearless(11, 25, 13, 0, 7, 0).unwrap();
        let b = Stamp::dated("2026-11-25T13:00:10".parse().unwrap());
        assert_eq!(b.seconds_since(&a), Some(3.0));
        assert_eq!(a.rfc3339(), None);
        assert_eq!(a.printed(), "11-25T13:00:07");
    }

    #[test]
    fn stamps_of_other_ages_are_not_compared() {
        let now = Stamp::zoned("2026-11-25T13:00:00".parse().unwrap(), 0);
        for far in ["9999-12-31T23:59:59", "0001-01-01T00:00:00", "2036-11-28T13:00:00"] {
            let far = Stamp::zoned(far.parse().unwrap(), 86_399);
            assert_eq!(far.seconds_since(&now), None);
            assert_eq!(now.seconds_since(&far), None);
            assert!(far.rfc3339().is_some());
        }
    }

    #[test]
    fn zones_are_taken_into_account_when_both_have_one() {
        let a = Stamp::zoned("2026-11-25T13:00:00".parse().unwrap(), 3600);
        let b = Stamp::zoned("2026-11-25T12:00:05".parse().unwrap(), 0);
        assert_eq!(b.seconds_since(&a), Some(5.0));
        assert_eq!(a.rfc3339().as_deref(), Some("2026-11-25T13:00:00+01:00"));
    }
}
