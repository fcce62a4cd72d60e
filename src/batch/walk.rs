//! The walk: from paths to incidents, one at a time and in order of path.
//!
//! Owns which files of a tree count and to which incident each belongs. Never reads a file, and holds no more than
//! the incident at hand, except where a pattern draws files together from everywhere.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use ignore::overrides::OverrideBuilder;
use ignore::{DirEntry, WalkBuilder};

use super::incident::{Incident, Reach, Rule, one_launch};
use super::sink;
use crate::intake::{KERNEL, display_name, explain, is_kernel, leads_to_kernel};
use crate::store::Identity;

/// Name of the files with patterns of what a scan leaves out. A `.gitignore` does not count: it often lists logs.
const IGNORE_FILE: &str = ".coronerignore";

/// What to scan.
#[derive(Debug, Clone, Default)]
pub struct Choice {
    /// Files and folders.
    pub roots: Vec<PathBuf>,
    /// Patterns of the files to take, or with `!` in front to leave out.
    pub globs: Vec<String>,
    /// Leave out what was last written before.
    pub since: Option<SystemTime>,
    /// What is one incident.
    pub rule: Rule,
    /// The file, behind all links, that the scan writes to: no log.
    pub output: Option<PathBuf>,
}

/// What the walk comes upon.
#[derive(Debug, Clone)]
pub enum Found {
    /// Something to examine.
    Incident(Incident),
    /// Something that cannot be.
    Unreadable {
        /// Its path.
        source: String,
        /// Why.
        text: String,
    },
}

/// Incidents left out by the choice of `since`, counted as the walk goes on.
pub type Older = Arc<AtomicU64>;

/// Raised when the walk comes upon the output of the scan, and that file is a log: then the walk ends, so that
/// nothing is overwritten.
pub type Clash = Arc<AtomicBool>;

/// Begins a walk.
///
/// # Errors
/// When one of the globs is none.
pub fn walk(choice: Choice) -> Result<Walk, ignore::Error> {
    // What `logs/` names is called like what `logs` names.
    let mut roots: Vec<PathBuf> = choice.roots.iter().map(|root| root.components().collect()).collect();
    roots.sort();
    let real: Vec<PathBuf> = roots.iter().filter_map(|r| r.canonicalize().ok()).collect();
    // A path below another one would be scanned twice.
    roots.retain(|root| {
        root.canonicalize()
            .map_or(true, |own| !real.iter().any(|r| own != *r && own.starts_with(r)))
    });
    let kernel: Vec<PathBuf> = roots.extract_if(.., |root| root.is_dir() && is_kernel(root)).collect();
    roots.dedup_by_key(|root| root.canonicalize().unwrap_or_else(|_| root.clone()));
    let mut globs = OverrideBuilder::new("");
    for glob in &choice.globs {
        globs.add(glob)?;
    }
    let inner = match roots.split_first() {
        None => None,
        Some((first, rest)) => {
            let mut builder = WalkBuilder::new(first);
            rest.iter().for_each(|root| {
                builder.add(root);
            });
            let links = Mutex::new(HashSet::new());
            builder
                .standard_filters(false)
                .add_custom_ignore_filename(IGNORE_FILE)
                .overrides(globs.build()?)
                .follow_links(true)
                .sort_by_file_name(std::ffi::OsStr::cmp)
                .filter_entry(move |entry| {
                    entry.depth() == 0 || (!is_hidden(entry) && !leads_to_kernel(entry) && is_new(entry, &real, &links))
                });
            Some(builder.build())
        }
    };
    let mut walk = Walk {
        inner,
        rule: choice.rule,
        since: choice.since,
        open: Vec::new(),
        drawn: BTreeMap::new(),
        ready: VecDeque::new(),
        older: Older::default(),
        own: choice.output.map(Own::new),
        clash: Clash::default(),
    };
    kernel.iter().for_each(|root| walk.unreadable(root, KERNEL));
    Ok(walk)
}

/// The output of the scan.
struct Own {
    path: PathBuf,
    identity: Option<Identity>,
    /// What it holds is no log, but what an earlier scan wrote.
    written: bool,
}

impl Own {
    fn new(path: PathBuf) -> Self {
        Self {
            identity: Identity::of(&path),
            written: sink::is_output(&path),
            path,
        }
    }

    /// Whether an entry is the output or an unfinished one of it.
    fn is(&self, path: &Path, meta: Option<&Metadata>) -> bool {
        self.is_output(meta) || sink::is_partial(&self.path, path)
    }

    fn is_output(&self, meta: Option<&Metadata>) -> bool {
        self.identity.is_some() && self.identity == meta.and_then(Identity::told)
    }
}

fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().to_string_lossy().starts_with('.')
}

/// Whether an entry is no link to what the walk comes upon anyway. This also ends loops.
fn is_new(entry: &DirEntry, roots: &[PathBuf], links: &Mutex<HashSet<u64>>) -> bool {
    if !entry.path_is_symlink() {
        return true;
    }
    // A link to nothing is passed on: the walk tells of it.
    let Ok(target) = entry.path().canonicalize() else {
        return true;
    };
    let walked = |root: &PathBuf| target.strip_prefix(root).is_ok_and(|rest| !has_hidden(rest));
    let mut hasher = DefaultHasher::new();
    target.hash(&mut hasher);
    !roots.iter().any(walked)
        && links
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(hasher.finish())
}

fn has_hidden(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part, Component::Normal(name) if name.to_string_lossy().starts_with('.')))
}

/// A walk under way.
pub struct Walk {
    inner: Option<ignore::Walk>,
    rule: Rule,
    since: Option<SystemTime>,
    /// Folders that are incidents and not yet walked to their end, each inside the one before it.
    open: Vec<(PathBuf, Incident)>,
    /// Incidents that a pattern draws together.
    drawn: BTreeMap<String, Incident>,
    ready: VecDeque<Found>,
    older: Older,
    own: Option<Own>,
    clash: Clash,
}

impl Walk {
    /// The flag of a clash with the output.
    pub fn clash(&self) -> Clash {
        Arc::clone(&self.clash)
    }

    /// The count of incidents left out because they are older.
    pub fn older(&self) -> Older {
        Arc::clone(&self.older)
    }

    fn entry(&mut self, entry: DirEntry) {
        let path = entry.path();
        self.leave(path);
        let open = self.open.last();
        let inside = open.is_some_and(|(_, incident)| incident.deep);
        let own = open.is_some_and(|(folder, incident)| incident.whole && path.parent() == Some(folder.as_path()));
        match entry.file_type() {
            Some(kind) if kind.is_dir() => {
                let by_name = !matches!(self.rule, Rule::Pattern(_)) && !inside;
                let reach = by_name.then(|| one_launch(path)).flatten();
                if reach.is_some() || (!inside && matches!(self.rule, Rule::Folder)) {
                    let mut incident = Incident::group(display_name(path));
                    incident.whole = reach.is_some();
                    incident.deep = reach == Some(Reach::Tree);
                    self.open.push((path.to_owned(), incident));
                }
            }
            Some(kind) if kind.is_file() => self.file(&entry),
            _ if inside || own => {}
            _ if entry.is_stdin() => self.unreadable(path, "standard input is one incident: use `coroner -`"),
            // A link that leads nowhere, a pipe, a socket, a device.
            _ => match fs::metadata(path) {
                Err(e) => self.unreadable(path, &explain(&e)),
                Ok(_) => self.unreadable(path, "it is a pipe, socket or device, not a file"),
            },
        }
    }

    /// Completes the folders that do not hold the path.
    fn leave(&mut self, path: &Path) {
        while let Some((_, incident)) = self.open.pop_if(|(folder, _)| !path.starts_with(folder)) {
            self.complete(incident);
        }
    }

    fn file(&mut self, entry: &DirEntry) {
        let meta = entry.metadata().ok();
        if let Some(own) = self.own.as_ref().filter(|own| own.is(entry.path(), meta.as_ref())) {
            if own.is_output(meta.as_ref()) && !own.written {
                self.clash.store(true, Ordering::Relaxed);
                self.inner = None;
                self.open.clear();
            }
            return;
        }
        let modified = meta.as_ref().and_then(|m| m.modified().ok());
        let bytes = meta.map_or(0, |m| m.len());
        let path = entry.path().to_owned();
        if let Some((folder, incident)) = self.open.last_mut()
            && (incident.deep || path.parent() == Some(folder.as_path()))
        {
            return incident.add(path, modified, bytes);
        }
        let alone = Incident::file(path, modified, bytes);
        match self.rule.key(&alone.source) {
            Some(key) => {
                let drawn = self
                    .drawn
                    .entry(key)
                    .or_insert_with_key(|key| Incident::group(key.clone()));
                alone
                    .files
                    .into_iter()
                    .for_each(|path| drawn.add(path, modified, bytes));
            }
            None => self.complete(alone),
        }
    }

    fn unreadable(&mut self, path: &Path, text: &str) {
        self.ready.push_back(Found::Unreadable {
            source: display_name(path),
            text: text.to_owned(),
        });
    }

    fn complete(&mut self, mut incident: Incident) {
        if incident.files.is_empty() {
            return;
        }
        if self
            .since
            .zip(incident.modified)
            .is_some_and(|(since, last)| last < since)
        {
            self.older.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // What `--incident dir` took for one folder is one launch however many files it has.
        incident.whole |= incident.files.len() > 1 || matches!(self.rule, Rule::Folder);
        self.ready.push_back(Found::Incident(incident));
    }

    fn failure(&mut self, error: &ignore::Error) {
        if is_loop(error) {
            return;
        }
        let why = error.io_error().map_or_else(|| error.to_string(), explain);
        match path_of(error) {
            Some(path) => {
                self.leave(path);
                self.unreadable(path, &why);
            }
            None => self.unreadable(Path::new("?"), &why),
        }
    }

    fn end(&mut self) {
        while let Some((_, incident)) = self.open.pop() {
            self.complete(incident);
        }
        for (_, incident) in std::mem::take(&mut self.drawn) {
            self.complete(incident);
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        loop {
            if let Some(found) = self.ready.pop_front() {
                return Some(found);
            }
            match self.inner.as_mut()?.next() {
                Some(Ok(entry)) => self.entry(entry),
                Some(Err(error)) => self.failure(&error),
                None => {
                    self.inner = None;
                    self.end();
                    return self.ready.pop_front();
                }
            }
        }
    }
}

/// A link that leads back up shows nothing new, and is no loss.
fn is_loop(error: &ignore::Error) -> bool {
    match error {
        ignore::Error::Loop { .. } => true,
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithPath { err, .. } => is_loop(err),
        _ => false,
    }
}

fn path_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } => path_of(err),
        _ => None,
    }
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
