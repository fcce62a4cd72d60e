//! What the lines of programs look like at their start.
//!
//! Owns the one question that decides whether a doubtful prefix is a transport's: does a known program line follow it?
//! Reads only the first bytes of a line and takes nothing from it.

use memchr::memmem;

use super::stamps::looks;

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
                || glog(&b[1..])
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

/// `INFO 11-25 13:00:07` (vLLM), `INFO:     ` (uvicorn).
fn levelled(s: &str) -> bool {
    LEVELS.iter().any(|level| {
        s.strip_prefix(level).is_some_and(|rest| {
            looks(rest.as_bytes(), b" ##-## ##:##:##")
                || (rest.starts_with(": ") && level.len() + rest.len() - rest[1..].trim_start().len() == 10)
        })
    })
}

/// `E1125 12:00:00.123` (Google's layout, used by torch and abseil).
fn glog(b: &[u8]) -> bool {
    matches!(b.first(), Some(b'I' | b'W' | b'E' | b'F'))
        && (looks(&b[1..], b"#### ##:##:##.") || looks(&b[1..], b"### ##:##:##."))
}

/// `(NAME pid=123`
fn process(s: &str) -> bool {
    let b = s.as_bytes();
    memmem::find(&b[..b.len().min(HEADER)], b"pid=")
        .is_some_and(|at| matches!(b[at - 1], b' ' | b'(') && b.get(at + 4).is_some_and(u8::is_ascii_digit))
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
        Some(stamped) => stamped.split_once("] ")?.1,
        None => s,
    };
    let b = &s.as_bytes()[..s.len().min(HEADER)];
    let colon = memchr::memchr2(b':', b' ', b).filter(|&at| at > 0 && b[at] == b':')?;
    nccl_tail(&b[colon..]).then(|| &s[..colon])
}

/// `:123:456 [7] … NCCL INFO`
pub(super) fn nccl_tail(b: &[u8]) -> bool {
    let Some(b) = colon_number(b).and_then(colon_number) else {
        return false;
    };
    let b = &b[..b.len().min(HEADER)];
    b.starts_with(b" ") && matches!(b.get(1), Some(b'[' | b'N')) && memmem::find(b, b"NCCL ").is_some()
}

fn colon_number(b: &[u8]) -> Option<&[u8]> {
    let b = b.strip_prefix(b":")?;
    let digits = b.iter().take_while(|c| c.is_ascii_digit()).count();
    (1..=10).contains(&digits).then(|| &b[digits..])
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
