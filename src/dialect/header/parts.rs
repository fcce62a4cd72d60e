//! What headers are made of: levels, stamps, file and line.
//!
//! Owns the small grammars that several headers share. Never reads a whole header.

use nom::bytes::complete::{tag, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, one_of};
use nom::combinator::{opt, verify};
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};

use super::Level;
use crate::time::Stamp;

pub(super) fn rank_prefix(input: &str) -> IResult<&str, u32> {
    let (rest, digits) = delimited(tag("[rank"), digit1, tag("]:")).parse(input)?;
    digits.parse().map_or_else(|_| fail(input), |rank| Ok((rest, rank)))
}

/// `1118 20:32:23.957487695`: the month has one or two digits, the day always two.
pub(super) fn compact_stamp(input: &str) -> IResult<&str, Option<Stamp>> {
    let (rest, date) = verify(digit1, |d: &str| d.len() == 3 || d.len() == 4).parse(input)?;
    let (rest, (h, m, s, nanos)) = preceded(char(' '), clock).parse(rest)?;
    let (month, day) = date.split_at(date.len() - 2);
    let stamp = month
        .parse()
        .ok()
        .zip(day.parse().ok())
        .and_then(|(mo, d)| Stamp::yearless(mo, d, h, m, s, nanos));
    Ok((rest, stamp))
}

pub(super) fn level_name(input: &str) -> IResult<&str, Level> {
    let (rest, name) = take_while_m_n(3, 8, |c: char| c.is_ascii_uppercase())(input)?;
    Level::parse(name).map_or_else(|| fail(input), |level| Ok((rest, level)))
}

/// `path/file.py:123`.
pub(super) fn file_and_line(input: &str) -> IResult<&str, &str> {
    let name = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '<' | '>'));
    let (rest, (file, _, _)) = (name, char(':'), digit1).parse(input)?;
    Ok((rest, file))
}

pub(super) fn two(input: &str) -> IResult<&str, u32> {
    let (rest, digits) = take_while_m_n(2, 2, |c: char| c.is_ascii_digit())(input)?;
    digits.parse().map_or_else(|_| fail(input), |n| Ok((rest, n)))
}

/// `12:00:07` with up to nine fractional digits behind `.` or `,`: hours, minutes, seconds, nanoseconds.
pub(super) fn clock(input: &str) -> IResult<&str, (u32, u32, u32, u32)> {
    let (rest, (h, _, m, _, s)) = (two, char(':'), two, char(':'), two).parse(input)?;
    let (rest, fraction) = opt(preceded(one_of(".,"), digit1)).parse(rest)?;
    let nanos = fraction.map_or(0, |f: &str| {
        let digits: String = f.chars().chain("000000000".chars()).take(9).collect();
        digits.parse().unwrap_or(0)
    });
    Ok((rest, (h, m, s, nanos)))
}

/// `2026-11-25 12:00:07.123` with `between` separating date and clock.
pub(super) fn date_time(input: &str, between: char) -> IResult<&str, Stamp> {
    let (rest, (year, _, month, _, day, _)) = (
        take_while_m_n(4, 4, |c: char| c.is_ascii_digit()),
        char('-'),
        two,
        char('-'),
        two,
        char(between),
    )
        .parse(input)?;
    let (rest, (h, m, s, nanos)) = clock(rest)?;
    let local = year
        .parse()
        .ok()
        .and_then(|year| chrono::NaiveDate::from_ymd_opt(year, month, day))
        .and_then(|date| date.and_hms_nano_opt(h, m, s, nanos));
    local.map_or_else(|| fail(input), |local| Ok((rest, Stamp::dated(local))))
}

pub(super) fn fail<T>(input: &str) -> IResult<&str, T> {
    Err(nom::Err::Error(nom::error::Error::new(
        input,
        nom::error::ErrorKind::Verify,
    )))
}
