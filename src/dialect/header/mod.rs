//! The log headers of the programs: who speaks, when, how loud, and where the message begins.
//!
//! Owns the choice among the header forms, one nom grammar each, and the labels of processes. Never looks into the
//! message behind it.

mod cluster;
mod engines;
mod loggers;
mod parts;

use std::sync::LazyLock;

use memchr::memmem;
use nom::bytes::complete::take_till1;
use nom::character::complete::char;
use nom::sequence::delimited;
use nom::{IResult, Parser};

use cluster::{kernel_stamp, nccl, nccl_cut, ray_native, ray_python, torch_native, torch_python};
use engines::{sglang, vllm_log};
use loggers::{bracketed_python, colon_python, dashed_python, glog, loguru, uvicorn};
use parts::fail;

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
            "INFO" | "I" | "NOTICE" | "SUCC" | "VINFO" => Self::Info,
            "WARNING" | "WARN" | "W" | "VWARN" => Self::Warning,
            "ERROR" | "E" | "ERR" | "VERR" => Self::Error,
            "CRITICAL" | "FATAL" | "F" | "C" | "CRIT" | "EMERGENCY" | "ALERT" | "PANIC" => Self::Fatal,
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

impl Header<'_> {
    /// Whether the line may tell of an end: what a logger puts at a lower level than ERROR may have been handled.
    pub(super) fn is_grave(&self) -> bool {
        self.level.is_none_or(|level| level >= Level::Error)
    }
}

/// Built once: it is asked of every line.
static NCCL: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("NCCL "));

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
        Some(b'[') => &[nccl, bracketed_python, sglang, ray_native, torch_native, kernel_stamp],
        Some(b'0'..=b'9') => &[ray_python, loguru, nccl, dashed_python],
        Some(b'D' | b'I' | b'W' | b'E' | b'F' | b'C' | b'T') => {
            &[vllm_log, torch_python, uvicorn, glog, colon_python, nccl]
        }
        Some(b' ' | b'\t') | None => &[],
        _ => &[nccl],
    };
    let cut = [nccl_cut as Form];
    let forms = forms.iter().chain(if NCCL.find(rest.as_bytes()).is_some() {
        &cut[..]
    } else {
        &[]
    });
    for form in forms {
        if let Ok((message, found)) = form(rest) {
            return stamped_again(&header, &found, message).unwrap_or_else(|| merge(header, found, message));
        }
    }
    header
}

/// A stamp that something put in front of lines which have whole headers of their own: those speak.
fn stamped_again<'a>(label: &Header<'a>, outer: &Header<'a>, message: &'a str) -> Option<Header<'a>> {
    let bare = outer.stamp.is_some() && outer.level.is_none() && outer.label.is_none() && outer.file.is_none();
    let inner = bare.then(|| parse(message))?;
    let whole = inner.logged && inner.level.is_some() && inner.stamp.is_some();
    whole.then(|| merge(label.clone(), inner.clone(), inner.message))
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
            (h.rank, h.stamp.map(|s| s.printed())),
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
            "E20261125 12:00:00.123456  42 etcd_helper.cpp:33] failed",
            Program::Unknown,
            Some(Level::Error),
            "failed",
        );
        assert_eq!((h.pid, h.file), (None, Some("etcd_helper.cpp")));
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
        for (line, message) in [
            (
                "[2026-03-05 14:28:30,815] [ERROR] [MainThread] [engine.worker] >>>   File \"x\"",
                "  File \"x\"",
            ),
            ("[2026-03-05 14:28:30,815] [worker-3] [ERROR] - msg", "msg"),
            ("[2026-03-05 14:28:30 +0000] [12] [ERROR]   File \"x\"", "  File \"x\""),
            ("[2026-03-05 14:28:30,815] [ERROR] [rank3] lost", "[rank3] lost"),
            (
                "2026-03-05 14:28:30,815 - engine - ERROR -   File \"x\"",
                "  File \"x\"",
            ),
        ] {
            check(line, Program::Unknown, Some(Level::Error), message);
        }
        check(
            "[2026-03-05 14:28:30,815] [ERROR] [MainThread] [vllm.worker.worker_base] >>> msg",
            Program::Vllm,
            Some(Level::Error),
            "msg",
        );
    }

    #[test]
    fn a_stamp_in_front_of_a_whole_header() {
        let h = check(
            "[2026-12-22 21:26:34] 2026-12-22 13:26:34,574\tWARNING worker.py:2037 -- A worker died",
            Program::Ray,
            Some(Level::Warning),
            "A worker died",
        );
        assert_eq!(h.file, Some("worker.py"));
        check(
            "[2026-12-22 21:26:34] ERROR 12-22 13:26:34 [core.py:9] EngineCore failed to start.",
            Program::Vllm,
            Some(Level::Error),
            "EngineCore failed to start.",
        );
        check(
            "[2026-12-22 21:26:34] ERROR is no header",
            Program::Sglang,
            None,
            "ERROR is no header",
        );
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
