//! The headers of vLLM and SGLang.
//!
//! Owns their grammars, with what pastes take off them. Never looks into the message.

use nom::bytes::complete::take_till;
use nom::character::complete::char;
use nom::combinator::opt;
use nom::sequence::terminated;
use nom::{IResult, Parser};

use super::Header;
use super::loggers::uvicorn;
use super::parts::{clock, date_time, fail, file_and_line, level_name, two};
use crate::event::{Coords, Program};
use crate::time::Stamp;

/// `11-25 12:00:00 `.
pub(super) fn vllm_stamp(input: &str) -> IResult<&str, Option<Stamp>> {
    let (rest, (month, _, day, _)) = (two, char('-'), two, char(' ')).parse(input)?;
    let (rest, (h, m, s, nanos)) = terminated(clock, char(' ')).parse(rest)?;
    Ok((rest, Stamp::yearless(month, day, h, m, s, nanos)))
}

/// `INFO 11-25 12:00:00 [core.py:77] msg`, without the opening bracket up to 0.7.3; a paste may have lost the time.
pub(super) fn vllm_log(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, level) = level_name(input)?;
    let (rest, _) = char(' ')(rest)?;
    let (rest, stamp) = opt(vllm_stamp).parse(rest)?;
    let (rest, bracket) = opt(char('[')).parse(rest)?;
    let (rest, file) = file_and_line(rest)?;
    let (rest, _) = char(']')(rest)?;
    // Without a time only the brackets tell a header from prose.
    if stamp.is_none() && bracket.is_none() {
        return fail(input);
    }
    let stamp = stamp.flatten();
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Ok((
        rest,
        Header {
            program: Program::Vllm,
            level: Some(level),
            stamp,
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `[2026-11-25 12:00:00.123 DP0 TP1] msg`.
pub(super) fn sglang(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, _) = char('[')(input)?;
    let (rest, stamp) = date_time(rest, ' ')?;
    let (rest, tags) = take_till(|c| c == ']' || c == '\n')(rest)?;
    let (rest, _) = char(']')(rest)?;
    if !tags.is_empty() && !tags.starts_with(' ') {
        return fail(input);
    }
    let tags = tags.trim();
    let mut coords = Coords::default();
    for word in tags.split_whitespace() {
        let split = word.find(|c: char| c.is_ascii_digit()).unwrap_or(word.len());
        let (name, number) = word.split_at(split);
        let number = number.trim_matches(|c| c == '[' || c == ']').parse().ok();
        match name {
            "TP" => coords.tp = number,
            "DP" => coords.dp = number,
            "PP" => coords.pp = number,
            "EP" => coords.ep = number,
            "ATTN_CP" | "MOE_DP" | "encode_server" | "encode_dp_worker[" => {}
            _ => return fail(input),
        }
    }
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let label = (!tags.is_empty()).then_some(tags);
    let (rest, level) = match uvicorn(rest) {
        Ok((inner, header)) => (inner, header.level),
        Err(_) => (rest, None),
    };
    let program = Program::Sglang;
    Ok((
        rest,
        Header {
            program,
            label,
            coords,
            level,
            stamp: Some(stamp),
            ..Header::default()
        },
    ))
}
