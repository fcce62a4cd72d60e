//! Intake: from paths to lines.
//!
//! Owns everything that touches files: which inputs there are, how they are opened and decompressed, and where their
//! lines end. Never interprets a line, and never fails because of what an input contains.

mod archive;
mod decode;
mod discover;
mod limits;
mod lines;
mod order;
mod snapshot;
mod sniff;
mod utf16;
mod zip;

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use decode::Source;
pub use discover::{Discovery, SkipKind, Skipped, discover, gather, holds_members, leads_to_kernel};
pub use limits::Limits;
pub use lines::{HeldLines, Line, LineReader};
pub use order::sort_inputs;
pub use snapshot::Ahead;
pub use sniff::{Sniffed, coding, is_tar, is_zip};

/// Name of standard input, as a path and in reports.
pub const STDIN: &str = "-";

/// One input: where it is and what it is called in the report.
#[derive(Clone)]
pub struct InputSpec {
    /// The path as given, `-` for standard input, `a.tar.gz!/dir/x.log` or `a.zip!/dir/x.log` for a member of an
    /// archive.
    pub name: String,
    /// Stored size in bytes, where it is known before reading.
    pub size: Option<u64>,
    origin: Origin,
}

#[derive(Clone)]
enum Origin {
    Stdin,
    File(PathBuf),
    Memory { bytes: Arc<[u8]>, notes: Vec<String> },
    Zipped(zip::Member),
}

impl InputSpec {
    /// Standard input.
    pub fn stdin() -> Self {
        Self {
            name: STDIN.to_owned(),
            size: None,
            origin: Origin::Stdin,
        }
    }

    /// A file, which need not exist yet.
    pub fn file(path: &Path) -> Self {
        Self {
            name: display_name(path),
            size: path.metadata().ok().filter(std::fs::Metadata::is_file).map(|m| m.len()),
            origin: Origin::File(path.to_owned()),
        }
    }

    /// Bytes in memory, compressed or not.
    pub fn memory(name: impl Into<String>, bytes: impl Into<Arc<[u8]>>) -> Self {
        let bytes = bytes.into();
        Self {
            name: name.into(),
            size: Some(bytes.len() as u64),
            origin: Origin::Memory {
                bytes,
                notes: Vec::new(),
            },
        }
    }

    /// Whether this is standard input, which can be read only once and may never end.
    pub fn is_stdin(&self) -> bool {
        matches!(self.origin, Origin::Stdin)
    }

    /// Opens the input and undoes its compression. The error says in a sentence why it cannot be read at all; what is
    /// wrong further in becomes a note of the [`Source`].
    pub fn open(&self, limits: &Limits) -> io::Result<Source> {
        match &self.origin {
            Origin::Stdin => Source::new(io::stdin(), limits),
            Origin::File(path) => Source::file(File::open(path)?, limits),
            Origin::Memory { bytes, notes } => {
                let mut source = Source::new(Cursor::new(Arc::clone(bytes)), limits)?;
                notes.iter().for_each(|n| source.note(n.clone()));
                Ok(source)
            }
            Origin::Zipped(member) => Source::member(member, limits),
        }
        .map_err(|e| io::Error::new(e.kind(), explain(&e)))
    }

    /// The first bytes of the text, for detection.
    fn head(&self, limits: &Limits) -> io::Result<Vec<u8>> {
        const PROBE: u64 = 32 << 10;
        let mut head = Vec::new();
        self.open(limits)?.take(PROBE).read_to_end(&mut head)?;
        Ok(head)
    }
}

impl fmt::Debug for InputSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputSpec")
            .field("name", &self.name)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// A path as text that is safe to print on one line.
pub fn display_name(path: &Path) -> String {
    let text = path.to_string_lossy();
    match text.contains(char::is_control) {
        true => text.replace(char::is_control, "\u{fffd}"),
        false => text.into_owned(),
    }
}

/// Whether a folder belongs to the kernel: what it shows are no logs, and reading some of it never ends.
pub fn is_kernel(folder: &Path) -> bool {
    cfg!(target_os = "linux")
        && folder
            .canonicalize()
            .is_ok_and(|real| ["/proc", "/sys"].iter().any(|own| real.starts_with(own)))
}

/// What is said of such a folder.
pub const KERNEL: &str = "it is a folder of the kernel, which holds no logs";

/// What is wrong and what to do, for the errors people meet.
pub fn explain(e: &io::Error) -> String {
    let e = innermost(e);
    // `FilesystemLoop` is not stable: ELOOP of Linux, and of the BSDs.
    if matches!(e.raw_os_error(), Some(40 | 62)) && e.to_string().contains("symbolic link") {
        return "its links lead in a circle".to_owned();
    }
    match e.kind() {
        ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        ErrorKind::PermissionDenied => "this user may not read it; run coroner as its owner or copy it".to_owned(),
        ErrorKind::IsADirectory => "it is a folder".to_owned(),
        _ => e.to_string(),
    }
}

/// The error of the system inside of one that a walk has wrapped.
fn innermost(e: &io::Error) -> &io::Error {
    let mut at = e;
    while let Some(inner) = at.get_ref().and_then(|inner| {
        let own = inner.downcast_ref::<io::Error>();
        own.or_else(|| inner.source()?.downcast_ref::<io::Error>())
    }) {
        at = inner;
    }
    at
}
