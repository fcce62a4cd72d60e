//! The headers of what runs under and around an engine: Ray, NCCL, torch and the kernel.
//!
//! Owns their grammars. Never looks into the message.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_till1};
use nom::character::complete::{char, digit1, one_of, space0, space1};
use nom::combinator::{opt, recognize, verify};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

use super::parts::{compact_stamp, date_time, fail, file_and_line, level_name, rank_prefix};
use super::{Header, Level};
use crate::event::{Coords, Program};
use crate::time::Stamp;

/// `[2026-11-25 12:00:00,123 E 18 77] (raylet) node_manager.cc:3199: msg`.
pub(super) fn ray_native(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, _) = char('[')(input)?;
    let (rest, stamp) = date_time(rest, ' ')?;
    let (rest, (_, letter, _, pid, _, _, _)) = (
        char(' '),
        one_of("DIWECF"),
        char(' '),
        digit1,
        char(' '),
        digit1,
        char(']'),
    )
        .parse(rest)?;
    let (rest, component) = opt(preceded(
        char(' '),
        delimited(char('('), take_till1(|c| c == ')'), char(')')),
    ))
    .parse(rest)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let (rest, file) = match (file_and_line, tag(": ")).parse(rest) {
        Ok((rest, (file, _))) => (rest, Some(file)),
        Err(_) => (rest, None),
    };
    let level = Level::parse(letter.encode_utf8(&mut [0; 4]));
    let pid = pid.parse().ok();
    let header = Header {
        program: Program::Ray,
        label: component,
        pid,
        level,
        stamp: Some(stamp),
        file,
        ..Header::default()
    };
    Ok((rest, header))
}

/// `2026-11-25 12:00:00,123\tINFO worker.py:123 -- msg`, with `(component)` when logged to standard error.
pub(super) fn ray_python(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, stamp) = date_time(input, ' ')?;
    let (rest, _) = alt((tag("\t"), space1)).parse(rest)?;
    let (rest, level) = level_name(rest)?;
    let (rest, _) = space1(rest)?;
    let (rest, label) = opt(terminated(
        delimited(char('('), take_till1(|c| c == ')'), char(')')),
        space1,
    ))
    .parse(rest)?;
    let (rest, (file, _)) = (file_and_line, tag(" -- ")).parse(rest)?;
    let program = Program::Ray;
    Ok((
        rest,
        Header {
            program,
            label,
            level: Some(level),
            stamp: Some(stamp),
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `host:pid:tid [dev] file.cc:1 (func) NCCL WARN msg`, with an optional bracketed stamp in front.
pub(super) fn nccl(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, stamp) = opt(terminated(
        delimited(char('['), |i| date_time(i, ' '), char(']')),
        space0,
    ))
    .parse(input)?;
    let (rest, host) = verify(take_till1(|c: char| c == ':' || c.is_whitespace()), |h: &str| {
        h.len() < 256
    })
    .parse(rest)?;
    let (rest, (_, pid, _, _, _)) = (char(':'), digit1, char(':'), digit1, char(' ')).parse(rest)?;
    let (rest, device) = opt(terminated(
        delimited(char('['), recognize((opt(char('-')), digit1)), char(']')),
        char(' '),
    ))
    .parse(rest)?;
    // What may stand between device and the word NCCL: a file with line, a function, a trace time. OFI prints C++ signatures.
    let Some(at) = rest
        .get(..rest.floor_char_boundary(400))
        .and_then(|head| super::NCCL.find(head.as_bytes()))
    else {
        return fail(input);
    };
    let (between, word) = rest.split_at(at);
    let word = word.get("NCCL ".len()..).unwrap_or("");
    let (rest, level) = alt((
        tag("INFO"),
        tag("WARN"),
        tag("TRACE"),
        tag("CALL"),
        tag("ABORT"),
        tag("ATTN"),
    ))
    .parse(word)?;
    let level = match level {
        "WARN" | "ABORT" => Level::Error,
        "INFO" | "ATTN" => Level::Info,
        _ => Level::Debug,
    };
    let file = between.split([':', ' ']).next().filter(|f| !f.is_empty());
    let coords = Coords {
        local: device.and_then(|d: &str| d.parse().ok()),
        ..Coords::default()
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let (program, pid) = (Program::Nccl, pid.parse().ok());
    Ok((
        rest,
        Header {
            program,
            pid,
            host: Some(host),
            coords,
            level: Some(level),
            stamp,
            file,
            ..Header::default()
        },
    ))
}

/// An NCCL line whose head was cut off: `init.cc:904 NCCL WARN msg`, `NCCL WARN msg`.
pub(super) fn nccl_cut(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, file) = opt(terminated(file_and_line, char(' '))).parse(input)?;
    let (rest, (_, level, _)) = (tag("NCCL "), alt((tag("WARN"), tag("INFO"), tag("ATTN"))), char(' ')).parse(rest)?;
    let level = if level == "WARN" { Level::Error } else { Level::Info };
    Ok((
        rest,
        Header {
            program: Program::Nccl,
            level: Some(level),
            file,
            ..Header::default()
        },
    ))
}

/// `[rank0]:[E1118 20:32:23.957487695 ProcessGroupNCCL.cpp:681] msg`; up to 2.3 without the time.
pub(super) fn torch_native(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, rank) = opt(rank_prefix).parse(input)?;
    let (rest, (_, letter)) = (char('['), one_of("IWEF")).parse(rest)?;
    let (rest, stamp) = opt(compact_stamp).parse(rest)?;
    let (rest, (_, file, _)) = (char(' '), file_and_line, char(']')).parse(rest)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let level = Level::parse(letter.encode_utf8(&mut [0; 4]));
    Ok((
        rest,
        Header {
            program: Program::Torch,
            rank,
            level,
            stamp: stamp.flatten(),
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `E1125 12:00:00.123456 4242 torch/distributed/elastic/multiprocessing/api.py:1003] msg`.
pub(super) fn torch_python(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, letter) = one_of("IWEFVC")(input)?;
    let (rest, stamp) = compact_stamp(rest)?;
    let (rest, (_, pid, _, file, _)) = (space1, digit1, space1, file_and_line, char(']')).parse(rest)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let level = Level::parse(letter.encode_utf8(&mut [0; 4]));
    let (program, pid) = (Program::Torch, pid.parse().ok());
    Ok((
        rest,
        Header {
            program,
            pid,
            level,
            stamp,
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `[12345.678901] NVRM: …` of dmesg, and `[Tue Nov 25 12:00:00 2026] …` of `dmesg -T`.
pub(super) fn kernel_stamp(input: &str) -> IResult<&str, Header<'_>> {
    if let Ok((rest, _)) = terminated(delimited(char('['), kernel_seconds, char(']')), char(' ')).parse(input) {
        return Ok((
            rest,
            Header {
                program: Program::Kernel,
                ..Header::default()
            },
        ));
    }
    let (rest, text) = delimited(char('['), take_till1(|c| c == ']'), char(']')).parse(input)?;
    let Ok(local) = chrono::NaiveDateTime::parse_from_str(text.get(4..).unwrap_or(""), "%b %e %H:%M:%S %Y") else {
        return fail(input);
    };
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Ok((
        rest,
        Header {
            program: Program::Kernel,
            stamp: Some(Stamp::dated(local)),
            ..Header::default()
        },
    ))
}

pub(super) fn kernel_seconds(input: &str) -> IResult<&str, &str> {
    recognize((space0, digit1, char('.'), verify(digit1, |d: &str| d.len() == 6))).parse(input)
}
