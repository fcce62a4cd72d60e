//! The log headers of the programs: who speaks, when, how loud, and where the message begins.
//!
//! Owns one nom grammar per header form. Never looks into the message behind it.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_till, take_till1, take_while, take_while_m_n, take_while1};
use nom::character::complete::{char, digit1, one_of, space0, space1};
use nom::combinator::{opt, recognize, verify};
use nom::sequence::{delimited, preceded, terminated};
use nom::{IResult, Parser};

use crate::event::{Coords, Program};
use crate::time::Stamp;

/// Loudness of a line, quietest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// DEBUG, TRACE.
    Debug,
    /// INFO.
    Info,
    /// WARNING.
    Warning,
    /// ERROR.
    Error,
    /// CRITICAL, FATAL.
    Fatal,
}

impl Level {
    /// Reads a level name or letter.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "TRACE" | "DEBUG" | "D" => Self::Debug,
            "INFO" | "I" | "NOTICE" => Self::Info,
            "WARNING" | "WARN" | "W" => Self::Warning,
            "ERROR" | "E" | "ERR" => Self::Error,
            "CRITICAL" | "FATAL" | "F" | "C" | "CRIT" | "EMERGENCY" | "ALERT" => Self::Fatal,
            _ => return None,
        })
    }
}

/// A parsed header.
#[derive(Debug, Clone, Default)]
pub struct Header<'a> {
    /// Program by the form of the header.
    pub program: Program,
    /// Whether there was any log header (a bare process label is none).
    pub logged: bool,
    /// Process label.
    pub label: Option<&'a str>,
    /// Process id.
    pub pid: Option<i64>,
    /// Host.
    pub host: Option<&'a str>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Coordinates read from the label.
    pub coords: Coords,
    /// Level.
    pub level: Option<Level>,
    /// Time stamp.
    pub stamp: Option<Stamp>,
    /// Source file of the message, without its line number.
    pub file: Option<&'a str>,
    /// What stands behind.
    pub message: &'a str,
}

/// The grammar of one header form: what stands behind it, and what it says.
type Form = fn(&str) -> IResult<&str, Header<'_>>;

/// Reads the header of a line. Every line has one: the empty header with the whole line as its message.
pub fn parse(text: &str) -> Header<'_> {
    let first = text.as_bytes().first().copied().unwrap_or(b' ');
    let mut header = Header {
        message: text,
        ..Header::default()
    };
    let mut rest = text;
    // Labels come in front of everything else, and may nest: the innermost is the speaker.
    if first == b'(' {
        while let Ok((after, (label, pid))) = vllm_label(rest) {
            header.program = Program::Vllm;
            header.label = Some(label);
            header.pid = Some(pid);
            header.coords = coords_of_label(label);
            header.rank = rank_of_label(label).or(header.rank);
            rest = after;
            header.message = rest;
        }
    }
    let forms: &[Form] = match rest.as_bytes().first() {
        Some(b'[') => &[nccl, sglang, ray_native, torch_native, bracketed_python, kernel_stamp],
        Some(b'0'..=b'9') => &[ray_python, loguru, nccl, dashed_python],
        Some(b'D' | b'I' | b'W' | b'E' | b'F' | b'C' | b'T') => {
            &[vllm_log, torch_python, uvicorn, glog, colon_python, nccl]
        }
        Some(b' ' | b'\t') | None => &[],
        _ => &[nccl],
    };
    let cut = [nccl_cut as Form];
    let forms = forms.iter().chain(if rest.contains("NCCL ") { &cut[..] } else { &[] });
    for form in forms {
        if let Ok((message, found)) = form(rest) {
            return merge(header, found, message);
        }
    }
    header
}

fn merge<'a>(label: Header<'a>, log: Header<'a>, message: &'a str) -> Header<'a> {
    let mut coords = log.coords;
    coords.fill_from(&label.coords);
    Header {
        // A vLLM label in front of another program's line (a patched stream) names the process, not the grammar.
        program: log.program,
        logged: true,
        label: label.label.or(log.label),
        pid: label.pid.or(log.pid),
        host: log.host,
        rank: log.rank.or(label.rank),
        coords,
        level: log.level,
        stamp: log.stamp,
        file: log.file,
        message,
    }
}

/// `(EngineCore_DP0 pid=77) `, `(VllmWorker rank=1 pid=8) `; Ray's own prefix is peeled before.
fn vllm_label(input: &str) -> IResult<&str, (&str, i64)> {
    let (rest, inner) =
        delimited(char('('), take_till1(|c| c == ')' || c == '(' || c == '\n'), char(')')).parse(input)?;
    let Some((label, pid)) = inner.rsplit_once(" pid=") else {
        return fail(input);
    };
    let Ok(pid) = pid.parse() else { return fail(input) };
    let named = label.starts_with(|c: char| c.is_ascii_alphabetic())
        && label
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '=' | ' ' | '.' | ':'));
    if !named || label.len() > 64 {
        return fail(input);
    }
    Ok((rest.strip_prefix(' ').unwrap_or(rest), (label, pid)))
}

/// `11-25 12:00:00 `.
fn vllm_stamp(input: &str) -> IResult<&str, Option<Stamp>> {
    let (rest, (month, _, day, _)) = (two, char('-'), two, char(' ')).parse(input)?;
    let (rest, (h, m, s, nanos)) = terminated(clock, char(' ')).parse(rest)?;
    Ok((rest, Stamp::yearless(month, day, h, m, s, nanos)))
}

/// `INFO 11-25 12:00:00 [core.py:77] msg`, without the opening bracket up to 0.7.3; a paste may have lost the time.
fn vllm_log(input: &str) -> IResult<&str, Header<'_>> {
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
fn sglang(input: &str) -> IResult<&str, Header<'_>> {
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

/// `[2026-11-25 12:00:00,123 E 18 77] (raylet) node_manager.cc:3199: msg`.
fn ray_native(input: &str) -> IResult<&str, Header<'_>> {
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
fn ray_python(input: &str) -> IResult<&str, Header<'_>> {
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
fn nccl(input: &str) -> IResult<&str, Header<'_>> {
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
        .and_then(|head| head.find("NCCL "))
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
fn nccl_cut(input: &str) -> IResult<&str, Header<'_>> {
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
fn torch_native(input: &str) -> IResult<&str, Header<'_>> {
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
fn torch_python(input: &str) -> IResult<&str, Header<'_>> {
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

/// `E0000 00:00:1764420604.123456   18 tcp_server_posix.cc:378] msg` of gRPC and absl.
fn glog(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, letter) = one_of("IWEF")(input)?;
    let (rest, _) = (take_while_m_n(4, 4, |c: char| c.is_ascii_digit()), char(' ')).parse(rest)?;
    let (rest, _) = take_while1(|c: char| c.is_ascii_digit() || matches!(c, ':' | '.'))(rest)?;
    let (rest, (_, pid, _, file, _)) = (space1, digit1, space1, file_and_line, char(']')).parse(rest)?;
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    let level = Level::parse(letter.encode_utf8(&mut [0; 4]));
    Ok((
        rest,
        Header {
            pid: pid.parse().ok(),
            level,
            file: Some(file),
            ..Header::default()
        },
    ))
}

/// `INFO:     Started server process [1]`.
fn uvicorn(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, level) = level_name(input)?;
    let (rest, _) = (char(':'), tag("  "), space0).parse(rest)?;
    Ok((
        rest,
        Header {
            level: Some(level),
            ..Header::default()
        },
    ))
}

/// `ERROR:module.name:msg` of `logging.basicConfig`.
fn colon_python(input: &str) -> IResult<&str, Header<'_>> {
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
fn dashed_python(input: &str) -> IResult<&str, Header<'_>> {
    let (rest, stamp) = date_time(input, ' ')?;
    let (rest, _) = space1(rest)?;
    let separator = |i| alt((tag("- "), tag("| "), tag(": "))).parse(i);
    let (rest, _) = opt(separator).parse(rest)?;
    // The level comes first, or behind one or two short fields.
    let mut here = rest;
    for _ in 0..3 {
        if let Ok((after, level)) = level_name(here) {
            let (after, _) = (space0, opt(alt((tag("- "), tag("| "), tag(": "), tag(":"))))).parse(after)?;
            let after = after.trim_start_matches(' ');
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
fn loguru(input: &str) -> IResult<&str, Header<'_>> {
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

/// `[2026-01-30 12:00:00,123] torch.distributed.elastic: [ERROR] msg`, `[2026-… +0000] [12] [INFO] msg`.
fn bracketed_python(input: &str) -> IResult<&str, Header<'_>> {
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
    let (rest, level) = delimited(char('['), level_name, char(']')).parse(rest)?;
    let program = if module.starts_with("torch.") {
        Program::Torch
    } else {
        Program::Unknown
    };
    let rest = rest.trim_start_matches(' ');
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

/// `[12345.678901] NVRM: …` of dmesg, and `[Tue Nov 25 12:00:00 2026] …` of `dmesg -T`.
fn kernel_stamp(input: &str) -> IResult<&str, Header<'_>> {
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

fn kernel_seconds(input: &str) -> IResult<&str, &str> {
    recognize((space0, digit1, char('.'), verify(digit1, |d: &str| d.len() == 6))).parse(input)
}

fn rank_prefix(input: &str) -> IResult<&str, u32> {
    let (rest, digits) = delimited(tag("[rank"), digit1, tag("]:")).parse(input)?;
    digits.parse().map_or_else(|_| fail(input), |rank| Ok((rest, rank)))
}

/// `1118 20:32:23.957487695`: the month has one or two digits, the day always two.
fn compact_stamp(input: &str) -> IResult<&str, Option<Stamp>> {
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

fn level_name(input: &str) -> IResult<&str, Level> {
    let (rest, name) = take_while_m_n(4, 8, |c: char| c.is_ascii_uppercase())(input)?;
    Level::parse(name).map_or_else(|| fail(input), |level| Ok((rest, level)))
}

/// `path/file.py:123`.
fn file_and_line(input: &str) -> IResult<&str, &str> {
    let name = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-' | '<' | '>'));
    let (rest, (file, _, _)) = (name, char(':'), digit1).parse(input)?;
    Ok((rest, file))
}

fn two(input: &str) -> IResult<&str, u32> {
    let (rest, digits) = take_while_m_n(2, 2, |c: char| c.is_ascii_digit())(input)?;
    digits.parse().map_or_else(|_| fail(input), |n| Ok((rest, n)))
}

/// `12:00:07` with up to nine fractional digits behind `.` or `,`: hours, minutes, seconds, nanoseconds.
fn clock(input: &str) -> IResult<&str, (u32, u32, u32, u32)> {
    let (rest, (h, _, m, _, s)) = (two, char(':'), two, char(':'), two).parse(input)?;
    let (rest, fraction) = opt(preceded(one_of(".,"), digit1)).parse(rest)?;
    let nanos = fraction.map_or(0, |f: &str| {
        let digits: String = f.chars().chain("000000000".chars()).take(9).collect();
        digits.parse().unwrap_or(0)
    });
    Ok((rest, (h, m, s, nanos)))
}

/// `2026-11-25 12:00:07.123` with `between` separating date and clock.
fn date_time(input: &str, between: char) -> IResult<&str, Stamp> {
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

fn fail<T>(input: &str) -> IResult<&str, T> {
    Err(nom::Err::Error(nom::error::Error::new(
        input,
        nom::error::ErrorKind::Verify,
    )))
}

/// `Worker_DP0_PP1_TP2_EP3`, `VllmWorker TP0`, `VllmWorker PP0_TP1`, `EngineCore_DP1`, `sglang::scheduler_TP0_EP0`.
pub fn coords_of_label(label: &str) -> Coords {
    let mut coords = Coords::default();
    for part in label.split(['_', ' ', '-']) {
        let split = part.find(|c: char| c.is_ascii_digit()).unwrap_or(part.len());
        let (name, number) = part.split_at(split);
        let number = number.parse().ok();
        match name {
            "TP" => coords.tp = number,
            "PP" => coords.pp = number,
            "DP" => coords.dp = number,
            "EP" => coords.ep = number,
            _ => {}
        }
    }
    coords
}

/// `VllmWorker rank=3`, `VllmWorker-3`, `rank3`.
pub fn rank_of_label(label: &str) -> Option<u32> {
    let number = label
        .strip_prefix("VllmWorker rank=")
        .or_else(|| label.strip_prefix("VllmWorker-"))
        .or_else(|| label.strip_prefix("rank"))?;
    number.trim_start_matches('=').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<'a>(line: &'a str, program: Program, level: Option<Level>, message: &str) -> Header<'a> {
        let header = parse(line);
        assert_eq!(header.program, program, "{line}");
        assert_eq!(header.level, level, "{line}");
        assert_eq!(header.message, message, "{line}");
        header
    }

    #[test]
    fn vllm_headers_of_every_generation() {
        check(
            "INFO 11-25 12:00:00 core.py:77] msg",
            Program::Vllm,
            Some(Level::Info),
            "msg",
        );
        let h = check(
            "(EngineCore_DP0 pid=77) (Worker_TP1 pid=91) ERROR 11-25 12:00:00 [v1/core.py:77]   File \"x\"",
            Program::Vllm,
            Some(Level::Error),
            "  File \"x\"",
        );
        assert_eq!((h.label, h.pid, h.coords.tp), (Some("Worker_TP1"), Some(91), Some(1)));
        let h = check("(VllmWorker rank=3 pid=8) Traceback", Program::Vllm, None, "Traceback");
        assert_eq!((h.rank, h.logged), (Some(3), false));
        check("ERROR [core.py:77] msg", Program::Vllm, Some(Level::Error), "msg");
        check("ERROR core.py:77] msg", Program::Unknown, None, "ERROR core.py:77] msg");
        check("init.cc:904 NCCL WARN x", Program::Nccl, Some(Level::Error), "x");
        check("(global lru) used: 0%", Program::Unknown, None, "(global lru) used: 0%");
    }

    #[test]
    fn sglang_ray_torch_and_nccl_headers() {
        let h = check(
            "[2026-11-25 12:00:00 DP0 TP1] Load weight begin.",
            Program::Sglang,
            None,
            "Load weight begin.",
        );
        assert_eq!((h.coords.dp, h.coords.tp), (Some(0), Some(1)));
        check(
            "[2026-11-25 12:00:00] INFO:     Started",
            Program::Sglang,
            Some(Level::Info),
            "Started",
        );
        let h = check(
            "[2026-11-25 12:00:00,123 E 18 77] (raylet) node_manager.cc:31: msg",
            Program::Ray,
            Some(Level::Error),
            "msg",
        );
        assert_eq!((h.label, h.pid), (Some("raylet"), Some(18)));
        check(
            "[2026-11-25 12:00:00,123 I 18 18] core_worker.cc:8: msg",
            Program::Ray,
            Some(Level::Info),
            "msg",
        );
        check(
            "2026-11-25 12:00:00,123\tWARNING worker.py:1 -- msg",
            Program::Ray,
            Some(Level::Warning),
            "msg",
        );
        let h = check(
            "[rank3]:[E129 16:38:47.123456789 ProcessGroupNCCL.cpp:681] [Rank 3] x",
            Program::Torch,
            Some(Level::Error),
            "[Rank 3] x",
        );
        assert_eq!(
            (h.rank, h.stamp.map(|s| s.printed.to_string())),
            (Some(3), Some("01-29T16:38:47.123456789".to_owned()))
        );
        check(
            "[E ProcessGroupNCCL.cpp:474] x",
            Program::Torch,
            Some(Level::Error),
            "x",
        );
        check(
            "E1125 12:00:00.123456 42 torch/api.py:10] failed",
            Program::Torch,
            Some(Level::Error),
            "failed",
        );
        let h = check(
            "node-a:41:51 [3] init.cc:904 NCCL WARN Duplicate GPU",
            Program::Nccl,
            Some(Level::Error),
            "Duplicate GPU",
        );
        assert_eq!((h.host, h.pid, h.coords.local), (Some("node-a"), Some(41), Some(3)));
        check(
            "[2026-11-29 14:37:57] node-a:9:9 [-1] NCCL INFO x",
            Program::Nccl,
            Some(Level::Info),
            "x",
        );
    }

    #[test]
    fn other_loggers_and_no_header_at_all() {
        check(
            "INFO:     Application startup complete.",
            Program::Unknown,
            Some(Level::Info),
            "Application startup complete.",
        );
        check(
            "2026-11-25 12:00:00,123 - mod.x - ERROR - msg",
            Program::Unknown,
            Some(Level::Error),
            "msg",
        );
        check(
            "[Tue Nov 25 12:00:00 2026] NVRM: Xid",
            Program::Kernel,
            None,
            "NVRM: Xid",
        );
        check("[12345.678901] NVRM: Xid", Program::Kernel, None, "NVRM: Xid");
        check("ValueError: x", Program::Unknown, None, "ValueError: x");
        check(
            "  File \"x\", line 1, in f",
            Program::Unknown,
            None,
            "  File \"x\", line 1, in f",
        );
        check("", Program::Unknown, None, "");
    }
}
