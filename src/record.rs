//! What the envelope hands to the dialects: one line of one program, without its transport.
//!
//! Owns the record type. Never interprets the text: that is the dialects' work.

use std::borrow::Cow;
use std::sync::Arc;

use crate::time::Stamp;

/// Standard output or standard error, where the transport says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The source in a `(name pid=…, ip=…)` prefix of Ray's driver output.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RayTag {
    /// Actor class, task name, `raylet`, `autoscaler` or `gcs_server`; empty for `(pid=123)`.
    pub name: Arc<str>,
    /// Process id of the worker.
    pub pid: Option<i64>,
    /// IP address; absent means the driver's own node.
    pub ip: Option<Arc<str>>,
}

impl RayTag {
    /// Whether it is one of Ray's own daemons, which run none of a launch's code.
    pub fn is_daemon(&self) -> bool {
        matches!(&*self.name, "raylet" | "autoscaler" | "gcs_server")
    }
}

/// Everything the transport said about a line. Shared between the lines that have the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Tag {
    /// Host, pod or node name.
    pub node: Option<Arc<str>>,
    /// Container or compose service.
    pub container: Option<Arc<str>>,
    /// systemd unit or syslog identifier.
    pub unit: Option<Arc<str>>,
    /// Process id that the transport printed (journald, syslog).
    pub pid: Option<i64>,
    /// Global rank that torch printed in front of the line (`[rank0]: `).
    pub rank: Option<u32>,
    /// Rank within its node that torchrun printed in front of the line (`--tee`).
    pub local: Option<u32>,
    /// Number of the task that a launcher printed (`srun -l`, `mpirun --tag-output`).
    pub task: Option<u32>,
    /// Stream.
    pub stream: Option<Stream>,
    /// Ray's driver prefix.
    pub ray: Option<RayTag>,
    /// Severity field of a structured transport, upper case.
    pub level: Option<Arc<str>>,
}

/// One record.
#[derive(Debug, Clone)]
pub struct Record<'a> {
    /// Line number from 1 in the decompressed input.
    pub line: u64,
    /// Byte offset of that line.
    pub byte: u64,
    /// The program's own text: no ANSI sequences, no trailing carriage return, valid UTF-8.
    pub text: Cow<'a, str>,
    /// The whole line as a person should see it: control characters removed, nothing peeled.
    pub shown: Cow<'a, str>,
    /// What the transport said.
    pub tag: Arc<Tag>,
    /// The transport's time stamp.
    pub stamp: Option<Stamp>,
    /// `[repeated N× across cluster]`: N, else 0.
    pub repeated: u32,
}
