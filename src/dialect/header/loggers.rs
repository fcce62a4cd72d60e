//! The headers of loggers that no program owns: glog, uvicorn, loguru and the common forms of Python's logging.
//!
//! Owns their grammars. Never says which program printed a line unless the logger's name does.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, digit1, one_of, space0, space1};
use nom::combinator::{opt, verify};
use nom::multi::many_m_n;
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

use super::parts::{date_time, fail, file_and_line, level_name};
use super::{Header, Level};
use crate::event::Program;

/// `E0000 00:00:1764420604.123456   18 tcp_server_posix.cc:378] msg` of gRPC and absl; glog itself prints the year too,
/// `E20261129 12:00:07.123456  2211 client.cpp:33] msg`, and a thread where the others have the process.
pub(super) fn glog(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, letter) = one_of("IWEF")(input)?;
    let date = verify(digit1, |d: &str| matches!(d.len(), 4 | 8));
    let (rest, (date, _)) = (date, char(' ')).parse(rest)?;
    let (rest, _) = take_while1(|c: char| c.is_ascii_digit() || matches!(c, ':' | '.'))(rest)?;
    let (rest, (_, pid, _, file, _)) = (space1, digit1, space1, file_and_line, char(']')).parse(rest)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let level = Level::parse(letter.encode_utf8(&mut [0; 4]));
    Ok((
        rest,
        Header {
            pid: pid.parse().ok().filter(|_| date.len() == 4),
            level,
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `INFO:     Started server process [1]`.
pub(super) fn uvicorn(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, level) = level_name(input)?;
    let (rest, _) = (char(':'), alt((tag("  "), tag("\t"))), space0).parse(rest)?;
    Ok((
        rest,
        Header {
            level: Some(level),
            ..Header::default()
        },
    ))
}

/// `ERROR:module.name:msg` of `logging.basicConfig`.
pub(super) fn colon_python(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, level) = level_name(input)?;
    let (rest, _) = char(':')(rest)?;
    let (rest, _) = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))(rest)?;
    let (rest, _) = char(':')(rest)?;
    Ok((
        rest,
        Header {
            level: Some(level),
            ..Header::default()
        },
    ))
}

/// `2026-11-25 12:00:00,123 - module - ERROR - msg` and its commonest relatives.
pub(super) fn dashed_python(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, stamp) = date_time(input, ' ')?;
    let (rest, _) = space1(rest)?;
    let separator = |i| alt((tag("- "), tag("| "), tag(": "))).parse(i);
    let (rest, _) = opt(separator).parse(rest)?;
    // The level comes first, or behind one or two short fields.
    let mut here = rest;
    for _ in 0..3 {
        if let Ok((after, level)) = level_name(here) {
            let (after, _) = (space0, opt(alt((tag("- "), tag("| "), tag(": "), tag(":"))))).parse(after)?;
            return Ok((
                after,
                Header {
                    level: Some(level),
                    stamp: Some(stamp),
                    ..Header::default()
                },
            ));
        }
        let field = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/' | '[' | ']'));
        let (after, _) = (field, space1, opt(separator)).parse(here)?;
        here = after;
    }
    fail(input)
}

/// `2026-11-25 12:00:00.123 | ERROR    | module:function:12 - msg` of loguru.
pub(super) fn loguru(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, stamp) = date_time(input, ' ')?;
    let (rest, (_, level, _, _)) = (tag(" | "), level_name, space0, tag("| ")).parse(rest)?;
    let (rest, file) =
        take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '<' | '>' | ':'))(rest)?;
    let (rest, _) = tag(" - ")(rest)?;
    Ok((
        rest,
        Header {
            level: Some(level),
            stamp: Some(stamp),
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `[2026-01-30 12:00:00,123] torch.distributed.elastic: [ERROR] msg`, `[2026-… +0000] [12] [INFO] msg`,
/// `[2026-…] [ERROR] [MainThread] [module] >>> msg`. Indentation of the message is kept.
pub(super) fn bracketed_python(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, _) = char('[')(input)?;
    let (rest, stamp) = date_time(rest, ' ')?;
    let (rest, _) = (
        opt(preceded(
            char(' '),
            take_while1(|c: char| c == '+' || c == '-' || c.is_ascii_digit()),
        )),
        char(']'),
        space0,
    )
        .parse(rest)?;
    let (rest, pid) = opt(terminated(delimited(char('['), digit1, char(']')), space0)).parse(rest)?;
    let name = take_while(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    let (rest, (module, _)) = (name, opt(tag(": "))).parse(rest)?;
    let (rest, before) = many_m_n(0, 2, terminated(bracketed_name, space0)).parse(rest)?;
    let (rest, level) = delimited(char('['), level_name, char(']')).parse(rest)?;
    // More fields are told from a message in brackets by the mark that ends them.
    let marked = (
        many_m_n(0, 3, preceded(space0, bracketed_name)),
        space0,
        alt((tag(">>>"), tag("-"), tag("|"), tag(":"))),
    );
    let (rest, marked) = opt(marked).parse(rest)?;
    let behind = marked.map(|(fields, _, _)| fields).unwrap_or_default();
    let program = [module]
        .into_iter()
        .chain(before)
        .chain(behind)
        .find_map(program_of_module)
        .unwrap_or_default();
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let pid = pid.and_then(|p: &str| p.parse().ok());
    Ok((
        rest,
        Header {
            program,
            pid,
            level: Some(level),
            stamp: Some(stamp),
            ..Header::default()
        },
    ))
}

/// The program whose logger has this name.
fn program_of_module(name: &str) -> Option<Program> {
    Some(match name.split('.').next()? {
        "torch" => Program::Torch,
        "vllm" => Program::Vllm,
        "sglang" => Program::Sglang,
        "ray" => Program::Ray,
        _ => return None,
    })
}

/// `[MainThread]`, `[module.name]`: a field of a header, and no level.
fn bracketed_name(input: &str) -> IResult<&str, &str> {
    let name = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ':'));
    verify(delimited(char('['), name, char(']')), |name: &str| {
        Level::parse(name).is_none()
    })
    .parse(input)
}
