//! What the lines of programs look like at their start.
//!
//! Owns the one question that decides whether a doubtful prefix is a transport's: does a known program line follow it?
//! Reads only the first bytes of a line and takes nothing from it.

use memchr::memmem;

use super::stamps::looks;
use super::{container, stamps};

const LEVELS: [&str; 8] = [
    "INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "TRACE", "WARN", "FATAL",
];

/// How far into a line a header is looked for.
const HEADER: usize = 256;

/// Whether `s` starts like a line of a program whose grammar is known: a logger header, a process prefix, a Python
/// traceback line, an NCCL header.
pub(super) fn program(s: &str) -> bool {
    let b = s.as_bytes();
    match b.first() {
        Some(b'(') => process(s) || s.starts_with("(raylet") || s.starts_with("(autoscaler +"),
        Some(b'[') => {
            looks(b, b"[####-##-## ##:##:##")
                || s.starts_with("[rank") && rank(s).is_some()
                || b.get(1..).is_some_and(glog)
                || nccl(s).is_some()
        }
        Some(b' ') => s.starts_with("  File \"") && s.contains(", line "),
        Some(b'0'..=b'9') => looks(b, b"####-##-## ##:##:##,###") || nccl(s).is_some(),
        Some(b'A'..=b'Z') => {
            s.starts_with("Traceback (most recent call last)")
                || s.starts_with("Loading safetensors checkpoint shards")
                || glog(b)
                || levelled(s)
                || nccl(s).is_some()
        }
        Some(b'a'..=b'z') => nccl(s).is_some(),
        _ => false,
    }
}

/// Whether `s` starts like a program line that no logger puts behind a stamp in brackets: one with a stamp or a process
/// of its own, or a frame of a traceback.
pub(super) fn of_another_stamp(s: &str) -> bool {
    match s.as_bytes().first() {
        Some(b'0'..=b'9') if stamps::iso(s).is_some_and(|(at, _)| at.offset.is_some()) => true,
        Some(b'(' | b' ' | b'0'..=b'9') => program(s) && nccl(s).is_none(),
        Some(b'[') => program(s),
        Some(b'A'..=b'Z') if glog(s.as_bytes()) || LEVELS.iter().any(|level| dated(s, level)) => true,
        _ => container::piped(s).is_some_and(|(_, _, text)| program(text)),
    }
}

/// Whether `s` starts like the line in which Python names an exception, `torch.OutOfMemoryError: …`.
pub(super) fn exception(s: &str) -> bool {
    let Some((name, _)) = s.split_at(s.floor_char_boundary(HEADER)).0.split_once(": ") else {
        return false;
    };
    ["Error", "Exception", "Interrupt"]
        .iter()
        .any(|end| name.ends_with(end))
        && name.split('.').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
}

/// `INFO:     ` (uvicorn), or vLLM's level and stamp.
fn levelled(s: &str) -> bool {
    // Most words are no level, and this is asked of every word near the start of a line.
    if !matches!(
        s.as_bytes(),
        [b'I' | b'W' | b'E' | b'D' | b'C' | b'T' | b'F', b'A'..=b'Z', ..]
    ) {
        return false;
    }
    LEVELS.iter().any(|level| {
        s.strip_prefix(level).is_some_and(|rest| {
            rest.strip_prefix(':')
                .is_some_and(|behind| padding(behind) + level.len() + 1 == 10 && behind.starts_with(' '))
        }) || dated(s, level)
    })
}

/// `INFO 11-25 13:00:07` of vLLM, with this level.
fn dated(s: &str, level: &str) -> bool {
    s.strip_prefix(level)
        .is_some_and(|rest| looks(rest.as_bytes(), b" ##-## ##:##:##"))
}

/// Bytes of white space at the start.
fn padding(s: &str) -> usize {
    s.len() - s.trim_start().len()
}

/// `E1125 12:00:00.123` (Google's layout, used by torch and abseil).
fn glog(b: &[u8]) -> bool {
    matches!(b, [b'I' | b'W' | b'E' | b'F', stamp @ ..]
        if looks(stamp, b"#### ##:##:##.") || looks(stamp, b"### ##:##:##."))
}

/// `(NAME pid=123`
fn process(s: &str) -> bool {
    let b = near(s.as_bytes());
    pid(b).is_some_and(|at| {
        let (before, pid) = b.split_at(at);
        let count = |wanted: u8| before.iter().filter(|b| **b == wanted).count();
        // `NVRM: Xid (PCI:0000:5d:00): 45, pid=88123` names a pid behind its parenthesis.
        let within = count(b'(') > count(b')');
        within && matches!(before, [.., b' ' | b'(']) && pid.get(4).is_some_and(u8::is_ascii_digit)
    })
}

/// Where the first `pid=` stands in the part of a line in which a header is looked for.
pub(super) fn pid(b: &[u8]) -> Option<usize> {
    let mut signs = memchr::memchr_iter(b'=', near(b));
    signs.find_map(|at| at.checked_sub(3).filter(|start| b.get(*start..at) == Some(b"pid")))
}

/// `[rank12]:`: the rank and what follows the colon.
pub(super) fn rank(s: &str) -> Option<(u32, &str)> {
    let (digits, rest) = s.strip_prefix("[rank")?.split_once("]:")?;
    (digits.len() <= 6).then_some(())?;
    Some((digits.parse().ok()?, rest))
}

/// The host of an NCCL header, `host:123:456 [7] … NCCL INFO`, with or without a stamp before it.
pub(super) fn nccl(s: &str) -> Option<&str> {
    let s = match s.strip_prefix('[') {
        Some(stamped) => {
            stamped
                .split_at_checked(memmem::find(stamped.as_bytes(), b"] ")? + 2)?
                .1
        }
        None => s,
    };
    let end = memchr::memchr2(b':', b' ', near(s.as_bytes())).filter(|&at| at > 0)?;
    let (host, tail) = s.split_at_checked(end)?;
    nccl_tail(near(tail.as_bytes())).then_some(host)
}

/// `:123:456 [7] … NCCL INFO`
pub(super) fn nccl_tail(b: &[u8]) -> bool {
    let Some(b) = colon_number(b).and_then(colon_number) else {
        return false;
    };
    matches!(b, [b' ', b'[' | b'N', ..]) && memmem::find(near(b), b"NCCL ").is_some()
}

fn colon_number(b: &[u8]) -> Option<&[u8]> {
    let b = b.strip_prefix(b":")?;
    let digits = b.iter().take_while(|c| c.is_ascii_digit()).count();
    if (1..=10).contains(&digits) {
        b.get(digits..)
    } else {
        None
    }
}

/// The part of a line in which a header is looked for.
fn near(b: &[u8]) -> &[u8] {
    b.get(..HEADER).unwrap_or(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_lines() {
        for line in [
            "INFO 11-25 13:00:07 [core.py:1] x",
            "INFO:     Started server process [7]",
            "WARNING:  x",
            "(EngineCore_DP0 pid=77) x",
            "(raylet, ip=10.0.0.2) x",
            "(MapBatches(infer) pid=77) x",
            "[2026-11-25 13:00:07 TP0] x",
            "2026-11-25 13:00:07,123\tINFO worker.py:1 -- x",
            "Traceback (most recent call last):",
            "  File \"a.py\", line 3, in f",
            "[rank0]: Traceback",
            "[W1129 14:30:38.075346056 socket.cpp:207] [c10d] x",
            "E129 16:38:47.125 123 api.py:1] x",
            "node-a:4565:6135 [5] NCCL INFO x",
            "[2026-11-25 13:00:07] node-a:1:2 [0] init.cc:1 NCCL WARN x",
            "node-a:1:2 NCCL CALL ncclAllReduce()",
        ] {
            assert!(program(line), "{line}");
        }
    }

    #[test]
    fn no_program_lines() {
        for line in [
            "(PCI:0000:5d:00): 45, pid=88123, name=x",
            "(x) pid=1",
            "an INFO 11-25 13:00:07",
        ] {
            assert!(!program(line), "{line}");
        }
    }

    #[test]
    fn exceptions() {
        for line in [
            "ValueError: x",
            "torch.OutOfMemoryError: CUDA",
            "ray.exceptions.RayTaskError: y",
        ] {
            assert!(exception(line), "{line}");
        }
        for line in [
            "",
            "Error",
            "an Error: x",
            "raise ValueError: x",
            "a..Error: x",
            "ERROR: x",
            "3Error: x",
        ] {
            assert!(!exception(line), "{line}");
        }
    }

    #[test]
    fn other_lines() {
        for line in [
            "",
            "ERROR: no",
            "ValueError: 3",
            "    raise X",
            "a:1:2 b",
            "(global lru) x",
            "name: value",
            "3: x",
            ":1:2 [0] NCCL INFO",
        ] {
            assert!(!program(line), "{line}");
        }
    }
}
