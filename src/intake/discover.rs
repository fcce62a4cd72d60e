//! Which inputs the given paths stand for.
//!
//! Owns the walk through folders and the decision what is a log. Never reads more than the head of a file, except of
//! an archive.

use std::collections::HashSet;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ignore::{DirEntry, WalkBuilder};

use super::limits::Limits;
use super::{InputSpec, KERNEL, STDIN, archive, display_name, explain, is_kernel, order, sniff, zip};

/// Whether something left out is missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipKind {
    /// It was asked for, or may be a log, and could not be read.
    Unreadable,
    /// Hidden, binary or no file: left out on purpose, and counted.
    PassedOver,
}

/// Something that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the file, or of the folder in which several were left out.
    pub input: String,
    /// Why, as a phrase or sentence without a final full stop.
    pub why: String,
    /// Whether it is missed.
    pub kind: SkipKind,
}

/// What the given paths stand for.
#[derive(Debug, Clone, Default)]
pub struct Discovery {
    /// Inputs by name, whatever the order in which they are given.
    pub inputs: Vec<InputSpec>,
    /// What is left out.
    pub skipped: Vec<Skipped>,
    /// Every file that was opened for it, archives and what is no log among them.
    pub opened: Vec<PathBuf>,
    /// Bytes of members of archives that are held in memory.
    pub(super) held: usize,
}

impl Discovery {
    pub(super) fn unreadable(&mut self, input: String, why: String) {
        let kind = SkipKind::Unreadable;
        self.skipped.push(Skipped { input, why, kind });
    }

    pub(super) fn passed_over(&mut self, folder: &str, count: u64, what: &str) {
        if count > 0 {
            let why = format!(
                "{count} {what} {} left out",
                if count == 1 { "entry is" } else { "entries are" }
            );
            self.skipped.push(Skipped {
                input: folder.to_owned(),
                why,
                kind: SkipKind::PassedOver,
            });
        }
    }
}

/// Finds the inputs: files, folders with everything below them, archives, `-`. No path stands for standard input.
///
/// A file that is given twice, or reached by several links, is read once.
pub fn discover(paths: &[PathBuf], limits: &Limits) -> Discovery {
    let mut search = Search {
        limits,
        found: Discovery::default(),
        seen: HashSet::new(),
    };
    if paths.is_empty() {
        search.stdin();
    }
    for path in paths {
        search.given(path);
    }
    order::sort_inputs(&mut search.found.inputs);
    search.found
}

/// Whether the members of the file are held in memory when it is read: it is a tar archive.
pub fn holds_members(path: &Path, limits: &Limits) -> bool {
    InputSpec::file(path)
        .head(limits)
        .is_ok_and(|head| sniff::is_tar(&head))
}

/// The files of one incident that a walk has found, judged by how they look, like those of a folder. A file that
/// stands alone and is no log is unreadable, with the reason.
pub fn gather(files: &[PathBuf], limits: &Limits) -> Discovery {
    let mut search = Search {
        limits,
        found: Discovery::default(),
        seen: HashSet::new(),
    };
    let mut files = files.to_vec();
    order::sort(&mut files);
    let mut binary = 0;
    for file in &files {
        if let Taken::Binary(what) = search.file(file, false) {
            binary += 1;
            if files.len() == 1 {
                let why = format!("it is {what}, which is not read as a log");
                search.found.unreadable(display_name(file), why);
            }
        }
    }
    if let Some(folder) = files.first().and_then(|f| f.parent()).filter(|_| files.len() > 1) {
        search.found.passed_over(&display_name(folder), binary, "binary");
    }
    order::sort_inputs(&mut search.found.inputs);
    search.found
}

struct Search<'a> {
    limits: &'a Limits,
    found: Discovery,
    seen: HashSet<PathBuf>,
}

/// What became of a file of a folder.
#[derive(PartialEq, Eq)]
enum Taken {
    Done,
    /// No log but this.
    Binary(&'static str),
}

impl Search<'_> {
    fn stdin(&mut self) {
        if self.seen.insert(PathBuf::from(STDIN)) {
            self.found.inputs.push(InputSpec::stdin());
        }
    }

    fn given(&mut self, path: &Path) {
        if path == Path::new(STDIN) || path == Path::new("/dev/stdin") {
            return self.stdin();
        }
        match path.metadata() {
            Err(e) => self.found.unreadable(display_name(path), explain(&e)),
            Ok(meta) if meta.is_dir() && is_kernel(path) => {
                self.found.unreadable(display_name(path), KERNEL.to_owned());
            }
            Ok(meta) if meta.is_dir() => self.folder(path),
            Ok(meta) if meta.is_file() => {
                self.file(path, true);
            }
            Ok(meta) if is_open_pipe(path, meta.file_type()) => self.found.inputs.push(InputSpec::file(path)),
            Ok(meta) => {
                let why = format!("it is {}", special(meta.file_type()));
                self.found.unreadable(display_name(path), why);
            }
        }
    }

    fn folder(&mut self, folder: &Path) {
        let name = display_name(folder);
        let hidden = Arc::new(AtomicU64::new(0));
        let count_hidden = Arc::clone(&hidden);
        // Logs are often listed in a .gitignore, so no ignore file counts. Links are followed: `session_latest`, and
        // everything in /var/log/containers, is one.
        let walk = WalkBuilder::new(folder)
            .standard_filters(false)
            .follow_links(true)
            .sort_by_file_name(std::ffi::OsStr::cmp)
            .filter_entry(move |entry| {
                let hide = entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.');
                count_hidden.fetch_add(u64::from(hide), Ordering::Relaxed);
                !hide && !leads_to_kernel(entry)
            })
            .build();
        let (mut files, mut binary, mut others) = (Vec::new(), 0, 0);
        for entry in walk {
            match entry {
                Ok(entry) => match entry.file_type() {
                    Some(t) if t.is_file() && files.len() < self.limits.inputs => files.push(entry.into_path()),
                    Some(t) if t.is_file() => {
                        let why = format!(
                            "more than {} files of a folder are not read at once",
                            self.limits.inputs
                        );
                        self.found.unreadable(name.clone(), why);
                        break;
                    }
                    Some(t) if t.is_dir() => {}
                    _ => others += 1,
                },
                Err(e) => self.unwalkable(&name, &e),
            }
        }
        order::sort(&mut files);
        for file in &files {
            if self.file(file, false) != Taken::Done {
                binary += 1;
            }
        }
        self.found.passed_over(&name, hidden.load(Ordering::Relaxed), "hidden");
        self.found.passed_over(&name, binary, "binary");
        self.found
            .passed_over(&name, others, "special (socket, pipe or device)");
    }

    fn unwalkable(&mut self, folder: &str, e: &ignore::Error) {
        // A link that leads back up shows nothing new, and is no loss.
        if is_loop(e) {
            return;
        }
        let path = error_path(e).map_or_else(|| folder.to_owned(), display_name);
        let why = e.io_error().map_or_else(|| e.to_string(), explain);
        self.found.unreadable(path, why);
    }

    /// Takes a file for an input, unless it cannot be one. A file given by name is not judged by how it looks: a
    /// damaged log is a log.
    fn file(&mut self, path: &Path, named: bool) -> Taken {
        if path.canonicalize().is_ok_and(|real| !self.seen.insert(real)) {
            return Taken::Done;
        }
        self.found.opened.push(path.to_owned());
        let input = InputSpec::file(path);
        match input.head(self.limits) {
            Err(e) => self.found.unreadable(input.name, explain(&e)),
            Ok(head) if sniff::is_tar(&head) => match input.open(self.limits) {
                Ok(source) => archive::members(&input.name, source, self.limits, &mut self.found),
                Err(e) => self.found.unreadable(input.name, explain(&e)),
            },
            Ok(head) if sniff::is_zip(&head) && zip::is_archive(path) => {
                if let Some(what) = zip::members(path, self.limits, &mut self.found) {
                    return self.foreign(input.name, what, named);
                }
            }
            Ok(head) => match sniff::foreign(&head) {
                Some(what) => return self.foreign(input.name, what, named),
                None if !named && sniff::is_binary(&head) => return Taken::Binary("a binary file"),
                None => self.found.inputs.push(input),
            },
        }
        Taken::Done
    }

    fn foreign(&mut self, name: String, what: &'static str, named: bool) -> Taken {
        if !named {
            return Taken::Binary(what);
        }
        self.found
            .unreadable(name, format!("it is {what}, which is not read as a log"));
        Taken::Done
    }
}

/// Whether a folder on the way down is one of the kernel, or a link to one. Only such names are looked at: a walk of
/// many files would pay for more.
pub fn leads_to_kernel(entry: &DirEntry) -> bool {
    let named = entry.file_name() == "proc" || entry.file_name() == "sys";
    (named || entry.path_is_symlink()) && entry.file_type().is_some_and(|t| t.is_dir()) && is_kernel(entry.path())
}

fn is_loop(e: &ignore::Error) -> bool {
    match e {
        ignore::Error::Loop { .. } => true,
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithPath { err, .. } => is_loop(err),
        _ => false,
    }
}

fn error_path(e: &ignore::Error) -> Option<&Path> {
    match e {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } => error_path(err),
        _ => None,
    }
}

#[cfg(unix)]
fn special(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_fifo() => "a named pipe, which may wait for ever: read it with `coroner < PIPE`",
        () if kind.is_socket() => "a socket, which holds no log",
        () => "a device, which holds no log",
    }
}

/// `<(…)` of a shell: a pipe that is open already, so that opening it cannot hang on a missing writer.
#[cfg(unix)]
fn is_open_pipe(path: &Path, kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_fifo() && ["/dev/fd", "/proc/self/fd"].iter().any(|dir| path.starts_with(dir))
}

#[cfg(not(unix))]
fn is_open_pipe(_: &Path, _: FileType) -> bool {
    false
}

#[cfg(not(unix))]
fn special(_: FileType) -> &'static str {
    "a device, which holds no log"
}

#[cfg(test)]
#[path = "discover_tests.rs"]
mod tests;
