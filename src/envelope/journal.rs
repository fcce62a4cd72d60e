//! Host logs: journald's text layouts, syslog (RFC 3164 and 5424) and the kernel ring buffer.
//!
//! Owns their grammars. JSON from journald is `json`'s, the export format is `blocks`'.

use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, i64 as integer};
use nom::combinator::opt;
use nom::sequence::{delimited, preceded};
use nom::{IResult, Parser};

use super::said::Said;
use super::{fields, stamps};

/// The unit given to lines of the kernel, whether they came through syslog or from `dmesg`.
const KERNEL: &str = "kernel";

/// `node-a vllm[24]: text` after any of the stamps of journald and syslog. With `sure` a bare `name: ` is taken as
/// well; without, only a form that no other text has.
pub(super) fn host<'a>(s: &'a str, sure: bool, said: &mut Said<'a>) -> Option<&'a str> {
    let (at, rest) = if s.starts_with(|c: char| c.is_ascii_digit()) {
        stamps::iso(s)
            .filter(|(_, rest)| rest.starts_with(' '))
            .or_else(|| unix(s))?
    } else {
        stamps::month_day(s).or_else(|| stamps::full(s))?
    };
    let rest = identity(rest.strip_prefix(' ')?, sure, said)?;
    said.at(at);
    Some(rest)
}

/// `1795962823.312510 node-a …`, journald's short-unix.
fn unix(s: &str) -> Option<(crate::time::Stamp, &str)> {
    let (seconds, rest) = s.split_at_checked("1795962823.312510".len())?;
    (seconds.as_bytes().get(10) == Some(&b'.') && rest.starts_with(' ')).then_some(())?;
    Some((stamps::epoch(seconds.parse().ok()?)?, rest))
}

/// `node-a vllm[24]: ` or `node-a kernel: `
fn identity<'a>(s: &'a str, sure: bool, said: &mut Said<'a>) -> Option<&'a str> {
    fn parts(s: &str) -> IResult<&str, (&str, &str, Option<i64>)> {
        let host = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':'));
        // A transient unit or a path can stand for the identifier; a blank cannot.
        let name = take_while1(|c: char| c.is_ascii_graphic() && !matches!(c, '[' | ']' | ':' | '"' | '\'' | '='));
        let pid = delimited(char('['), integer, char(']'));
        (host, preceded(char(' '), name), opt(pid)).parse(s)
    }
    let (rest, (host, name, pid)) = parts(s).ok()?;
    let rest = rest.strip_prefix(':')?;
    if host.ends_with(':') || (pid.is_none() && name != KERNEL && !sure) {
        return None;
    }
    said.node = Some(host);
    said.unit = Some(name);
    said.pid = pid;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `<13>Nov 29 …` (RFC 3164) and `<34>1 2026-…Z host app pid msgid - text` (RFC 5424). Also the level in front of raw
/// kernel messages.
pub(super) fn priority<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    fn number(s: &str) -> IResult<&str, i64> {
        delimited(tag("<"), integer, tag(">")).parse(s)
    }
    let (rest, priority) = number(s).ok()?;
    let priority = u8::try_from(priority).ok().filter(|p| *p < 192)?;
    let inner = match rest.strip_prefix("1 ") {
        Some(rest) => rfc5424(rest, said),
        None => host(rest, true, said).or_else(|| uptime(rest, said)),
    }?;
    said.level = Some(severity(priority % 8));
    Some(inner)
}

fn rfc5424<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let mut fields = s.splitn(6, ' ');
    let (stamp, host, app, pid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let (_id, rest) = (fields.next()?, fields.next()?);
    let known = |s: &'a str| (s != "-").then_some(s);
    let rest = match rest.strip_prefix('-') {
        Some(rest) => rest,
        None => structured_data(rest)?,
    };
    if let Some((at, _)) = stamps::iso(stamp) {
        said.at(at);
    }
    said.node = known(host);
    said.unit = known(app);
    said.pid = pid.parse().ok();
    let rest = rest.strip_prefix(' ').unwrap_or(rest);
    Some(rest.strip_prefix('\u{feff}').unwrap_or(rest))
}

/// What follows `[id name="value" …][…]`; a `]` inside a value is escaped.
fn structured_data(s: &str) -> Option<&str> {
    let mut rest = s.strip_prefix('[')?;
    loop {
        (_, rest) = fields::split_unescaped(rest, ']')?;
        match rest.strip_prefix('[') {
            Some(more) => rest = more,
            None => return Some(rest),
        }
    }
}

/// `[Sun Feb 23 16:24:18 2025] text` of `dmesg -T`.
pub(super) fn kernel_date<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (at, rest) = stamps::weekday(s.strip_prefix('[')?)?;
    let rest = rest.strip_prefix(']')?;
    said.at(at);
    said.unit = Some(KERNEL);
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `[ 3638.245420] text` of `dmesg`, and journald's short-monotonic, where host and identifier follow.
pub(super) fn uptime<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (seconds, rest) = s.strip_prefix('[')?.split_once(']')?;
    let (whole, fraction) = seconds.trim_start().split_once('.')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() != 6 || whole.len() > 12 {
        return None;
    }
    let rest = rest.strip_prefix(' ')?;
    Some(identity(rest, false, said).unwrap_or_else(|| {
        said.unit = Some(KERNEL);
        rest
    }))
}

/// The name of a syslog severity.
pub(super) fn severity(level: u8) -> &'static str {
    match level {
        0..=2 => "CRITICAL",
        3 => "ERROR",
        4 => "WARNING",
        5 => "NOTICE",
        6 => "INFO",
        _ => "DEBUG",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Option<(&str, Said<'_>)> {
        let mut said = Said::default();
        let rest = match line.as_bytes()[0] {
            b'<' => priority(line, &mut said),
            b'[' => kernel_date(line, &mut said).or_else(|| uptime(line, &mut said)),
            _ => host(line, false, &mut said),
        };
        rest.map(|rest| (rest, said))
    }

    #[test]
    fn journald_layouts() {
        for line in [
            "Nov 29 14:23:40 node-a vllm[24]:   File",
            "Nov 29 14:23:40.923423 node-a vllm[24]:   File",
            "2026-11-29T14:23:40+0000 node-a vllm[24]:   File",
            "2026-11-29T14:23:40.923423+0000 node-a vllm[24]:   File",
            "Sun 2026-11-29 14:23:40 UTC node-a vllm[24]:   File",
            "1795962823.312510 node-a vllm[24]:   File",
            "[ 3638.245420] node-a vllm[24]:   File",
            "<14>Nov 29 14:23:40 node-a vllm[24]:   File",
            "<14>1 2026-11-29T14:23:40Z node-a vllm 24 - -   File",
            "<14>1 2026-11-29T14:23:40Z node-a vllm 24 ID [a b=\"\\]\"][c] \u{feff}  File",
        ] {
            let (rest, said) = said(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (rest, said.node, said.unit, said.pid),
                ("  File", Some("node-a"), Some("vllm"), Some(24)),
                "{line}"
            );
        }
    }

    #[test]
    fn kernel_lines() {
        for line in [
            "Nov 29 14:23:40 node-a kernel: Memory cgroup out of memory",
            "[Sun Nov 29 14:23:40 2026] Memory cgroup out of memory",
            "[12345.678901] Memory cgroup out of memory",
            "<3>[12345.678901] Memory cgroup out of memory",
        ] {
            let (rest, said) = said(line).unwrap_or_else(|| panic!("{line}"));
            assert_eq!(
                (rest, said.unit),
                ("Memory cgroup out of memory", Some("kernel")),
                "{line}"
            );
        }
    }

    #[test]
    fn program_text_is_no_host_line() {
        for line in [
            "Nov 29 14:23:40 Process EngineCore_DP0:",
            "Nov 29 14:23:40 torch.OutOfMemoryError: CUDA out of memory",
            "2026-11-29 14:23:40,123\tINFO worker.py:1 -- x",
            "[2026-11-29 14:23:40] x",
            "[0.5] x",
            "<unknown>",
            "1795962823 x",
        ] {
            assert!(said(line).is_none(), "{line}");
        }
    }
}
