//! Time stamps that transports put in front of a line.
//!
//! Owns the parsing of the forms below into [`Stamp`]. It decides nothing: whether a stamp at the start of a line was
//! put there by a transport or by the program is the callers' question.

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime};

use crate::time::Stamp;

/// The year of stamps that print none; the same leap year as `time` assumes.
const ASSUMED_YEAR: i32 = 2000;

/// Whether `s` starts with `pattern`, in which `#` stands for any digit.
pub(super) fn looks(s: &[u8], pattern: &[u8]) -> bool {
    s.len() >= pattern.len()
        && pattern.iter().zip(s).all(|(p, b)| match p {
            b'#' => b.is_ascii_digit(),
            _ => p == b,
        })
}

/// `2026-11-25T12:00:00[.123456789][Z|+01:00|+0100]`, with `T` or a blank, `-` or `/`, `.` or `,`.
pub(super) fn iso(s: &str) -> Option<(Stamp, &str)> {
    let b = s.as_bytes();
    if !(looks(b, b"####-##-##") || looks(b, b"####/##/##")) || !matches!(b.get(10), Some(b'T' | b' ')) {
        return None;
    }
    let year = i32::try_from(number(b.get(..4)?)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(b.get(5..7)?)?, number(b.get(8..10)?)?)?;
    let (time, rest) = clock(s.get(11..)?)?;
    let (offset, rest) = zone(rest);
    Some((stamp(date.and_time(time), true, offset), rest))
}

/// `[2026-11-25 12:00:00]`, with nothing else in the brackets.
pub(super) fn bracketed(s: &str) -> Option<(Stamp, &str)> {
    let (at, rest) = iso(s.strip_prefix('[')?)?;
    Some((at, rest.strip_prefix(']')?))
}

/// `Nov 25 13:00:07[.123456]`, as syslog, journald and `ts` print it.
pub(super) fn month_day(s: &str) -> Option<(Stamp, &str)> {
    let month = month(s)?;
    let rest = s.get(3..)?.strip_prefix(' ')?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=2).contains(&digits) {
        return None;
    }
    let (day, rest) = rest.split_at_checked(digits)?;
    let day = number(day.as_bytes())?;
    let (time, rest) = clock(rest.strip_prefix(' ')?)?;
    let date = NaiveDate::from_ymd_opt(ASSUMED_YEAR, month, day)?;
    Some((stamp(date.and_time(time), false, None), rest))
}

/// `Sun Feb 23 16:24:18 2025`, as `dmesg -T` and `date` print it (local time; `date` adds a zone name before the year).
pub(super) fn weekday(s: &str) -> Option<(Stamp, &str)> {
    let rest = skip_weekday(s)?;
    let (without_year, rest) = month_day(rest)?;
    let (year, rest) = rest.strip_prefix(' ')?.split_at_checked(4)?;
    let year = number(year.as_bytes())?;
    let local = without_year.local.date();
    let date = NaiveDate::from_ymd_opt(
        year as i32,
        chrono::Datelike::month(&local),
        chrono::Datelike::day(&local),
    )?;
    Some((stamp(date.and_time(without_year.local.time()), true, None), rest))
}

/// `Sun 2026-11-29 14:23:40 UTC`, as `journalctl -o short-full` prints it.
pub(super) fn full(s: &str) -> Option<(Stamp, &str)> {
    let (mut at, rest) = iso(skip_weekday(s)?)?;
    match rest.strip_prefix(" UTC") {
        Some(rest) => {
            at.offset = Some(0);
            Some((at, rest))
        }
        // Any other zone is a name, which says no offset that could be relied on.
        None => {
            let zone = rest.strip_prefix(' ')?;
            let end = zone.find(' ').filter(|&end| (2..=5).contains(&end))?;
            Some((at, zone.get(end..)?))
        }
    }
}

/// `HH:MM:SS[.fraction]` without a date; gives no stamp, only what follows.
pub(super) fn time_of_day(s: &str) -> Option<&str> {
    Some(clock(s)?.1)
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, told apart by their size.
pub(super) fn epoch(value: f64) -> Option<Stamp> {
    let seconds = match value.abs() {
        v if v < 1e11 => value,
        v if v < 1e14 => value / 1e3,
        v if v < 1e17 => value / 1e6,
        _ => value / 1e9,
    };
    // Before 2001 or after 2100 it is some other number.
    if !(1e9..4.2e9).contains(&seconds) {
        return None;
    }
    let whole = seconds.floor();
    // Fractions are kept to the microsecond: an f64 has no more.
    let nanos = ((seconds - whole) * 1e6).round().min(999_999.0) as u32 * 1000;
    let utc = DateTime::from_timestamp(whole as i64, nanos)?;
    Some(stamp(utc.naive_utc(), true, Some(0)))
}

/// A stamp as a field of a structured record holds it, in any of the forms above.
pub(super) fn field(s: &str) -> Option<Stamp> {
    let s = s.trim();
    if let Some((at, rest)) = iso(s).or_else(|| month_day(s)) {
        return rest.trim().is_empty().then_some(at);
    }
    if looks(s.as_bytes(), b"##-## ##:##:##") {
        return month_number(s);
    }
    s.parse::<f64>().ok().and_then(epoch)
}

/// `11-25 13:00:07`, vLLM's date format.
fn month_number(s: &str) -> Option<Stamp> {
    let b = s.as_bytes();
    let date = NaiveDate::from_ymd_opt(ASSUMED_YEAR, number(b.get(..2)?)?, number(b.get(3..5)?)?)?;
    let (time, _) = clock(s.get(6..)?)?;
    Some(stamp(date.and_time(time), false, None))
}

fn skip_weekday(s: &str) -> Option<&str> {
    ["Mon ", "Tue ", "Wed ", "Thu ", "Fri ", "Sat ", "Sun "]
        .iter()
        .find_map(|day| s.strip_prefix(day))
}

fn month(s: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let name = s.get(..3)?;
    NAMES.iter().position(|n| *n == name).map(|i| i as u32 + 1)
}

fn clock(s: &str) -> Option<(NaiveTime, &str)> {
    let b = s.as_bytes();
    if !looks(b, b"##:##:##") {
        return None;
    }
    let (h, m, sec) = (number(b.get(..2)?)?, number(b.get(3..5)?)?, number(b.get(6..8)?)?);
    let mut nanos = 0;
    let mut end = 8;
    if let Some([b'.' | b',', fraction @ ..]) = b.get(8..) {
        let digits = fraction.iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            // What is finer than a nanosecond is left out.
            let places = fraction.iter().take(digits).chain(std::iter::repeat(&b'0')).take(9);
            nanos = places.fold(0, |n, digit| n * 10 + u32::from(digit - b'0'));
            end = 9 + digits;
        }
    }
    Some((NaiveTime::from_hms_nano_opt(h, m, sec, nanos)?, s.get(end..)?))
}

fn zone(s: &str) -> (Option<i32>, &str) {
    if let Some(rest) = s.strip_prefix('Z') {
        return (Some(0), rest);
    }
    match offset(s) {
        Some((seconds, rest)) => (Some(seconds), rest),
        None => (None, s),
    }
}

/// `+01:00` and `-0130` in seconds. Offsets of a day and more are none; those in use end at 14 hours.
fn offset(s: &str) -> Option<(i32, &str)> {
    let (sign, digits) = match s.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, s.strip_prefix('+')?),
    };
    let (hours, rest) = digits.split_at_checked(2)?;
    let (minutes, rest) = rest.strip_prefix(':').unwrap_or(rest).split_at_checked(2)?;
    let hours = number(hours.as_bytes()).filter(|hours| *hours < 24)?;
    let minutes = number(minutes.as_bytes()).filter(|minutes| *minutes < 60)?;
    Some((sign * i32::try_from(hours * 3600 + minutes * 60).ok()?, rest))
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0u32, |n, b| {
        b.is_ascii_digit().then_some(())?;
        n.checked_mul(10)?.checked_add(u32::from(b - b'0'))
    })
}

fn stamp(local: NaiveDateTime, year_known: bool, offset: Option<i32>) -> Stamp {
    Stamp {
        local,
        year_known,
        offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_stamps_keep_their_zone_and_fraction() {
        let (at, rest) = iso("2026-11-29T14:30:04.319170111+00:00 stderr F x").unwrap();
        assert_eq!(
            (at.printed().as_str(), at.offset, rest),
            ("2026-11-29T14:30:04.319170111", Some(0), " stderr F x")
        );
        let (at, _) = iso("2026-11-29T14:30:04+0130 x").unwrap();
        assert_eq!((at.offset, at.printed().as_str()), (Some(5400), "2026-11-29T14:30:04"));
        let (at, rest) = iso("2026-11-29 14:30:04,320\tWARNING").unwrap();
        assert_eq!(
            (at.offset, at.printed().as_str(), rest),
            (None, "2026-11-29T14:30:04.320", "\tWARNING")
        );
    }

    #[test]
    fn printed_forms_agree_with_the_constructors_of_the_stamp_type() {
        let (at, _) = iso("2026-11-29T14:30:04.5Z").unwrap();
        assert_eq!(at, Stamp::zoned(at.local, 0));
        let (at, _) = iso("2026-11-29T14:30:04.000001").unwrap();
        assert_eq!(at, Stamp::dated(at.local));
        let (at, _) = month_day("Nov  5 13:00:07.25 x").unwrap();
        assert_eq!(Some(at), Stamp::yearless(11, 5, 13, 0, 7, 250_000_000));
    }

    #[test]
    fn other_forms() {
        assert_eq!(
            weekday("Sun Feb 23 16:24:18 2025] NVRM").unwrap().0.printed(),
            "2025-02-23T16:24:18"
        );
        assert_eq!(full("Sun 2026-11-29 14:23:40 UTC node-a").unwrap().0.offset, Some(0));
        assert_eq!(full("Sun 2026-11-29 14:23:40 CET node-a").unwrap().1, " node-a");
        assert_eq!(
            epoch(1_795_962_823_312_510.0).unwrap().printed(),
            "2026-11-29T14:33:43.312510"
        );
        assert_eq!(field("11-25 13:00:07").unwrap().printed(), "11-25T13:00:07");
        assert_eq!(field("1795962823.5").unwrap().offset, Some(0));
    }

    #[test]
    fn what_is_no_stamp() {
        for text in [
            "2026-13-29T14:30:04Z",
            "2026-11-29",
            "Nox 25 13:00:07",
            "Nov 25",
            "2026-11-29T14:3",
            "é026-11-29T14:30:04",
        ] {
            assert!(iso(text).is_none() && month_day(text).is_none(), "{text}");
        }
        assert!(epoch(12345.0).is_none());
    }
}
