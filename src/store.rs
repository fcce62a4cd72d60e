//! Files that the program writes: whole or not at all.
//!
//! Owns where an output really goes and how it gets there: links are followed; a file is replaced in one step and
//! keeps its mode and owner; a pipe or device is written straight to. Never knows what is written.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Links in a row, as many as Linux follows.
const LINKS: usize = 40;

/// Where an output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Standard output, under whatever name.
    Stdout,
    /// Standard error.
    Stderr,
    /// A file, which need not exist: its path behind all links.
    File(PathBuf),
    /// What is no file and is written straight to: a pipe, a terminal, another device.
    Stream(PathBuf),
}

impl Place {
    /// The place that a path names.
    ///
    /// # Errors
    /// When it names a folder or a disk, when its folder does not exist, and those of the system.
    pub fn of(path: &Path) -> io::Result<Self> {
        let mut at = path.to_owned();
        for _ in 0..LINKS {
            if let Some(place) = descriptor(&at) {
                return Ok(place);
            }
            match fs::symlink_metadata(&at) {
                Ok(meta) if meta.is_symlink() => at = folder(&at).join(fs::read_link(&at)?),
                Ok(meta) => return Self::existing(&at, &meta),
                Err(e) if e.kind() == ErrorKind::NotFound => return Self::absent(&at),
                Err(e) => return Err(e),
            }
        }
        Err(io::Error::other("its links lead to no file"))
    }

    fn existing(at: &Path, meta: &Metadata) -> io::Result<Self> {
        if meta.is_file() {
            return at.canonicalize().map(Self::File);
        }
        if meta.is_dir() {
            return Err(io::Error::other("it is a folder"));
        }
        if is_disk(meta) {
            return Err(io::Error::other("it is a disk"));
        }
        Ok(Self::Stream(at.to_owned()))
    }

    fn absent(at: &Path) -> io::Result<Self> {
        let folder = folder(at).canonicalize().map_err(|e| match e.kind() {
            ErrorKind::NotFound => io::Error::other("its folder does not exist"),
            _ => e,
        })?;
        match at.file_name() {
            Some(name) => Ok(Self::File(folder.join(name))),
            None => Err(io::Error::other("it is a folder")),
        }
    }

    /// The file there, if there is one; equal for two names of one file.
    pub fn identity(&self) -> Option<Identity> {
        match self {
            Self::File(path) => Identity::of(path),
            _ => None,
        }
    }
}

/// `/dev/stdout` and the other names of what is open already. A file behind one is not replaced: whoever opened it
/// would not see it.
fn descriptor(path: &Path) -> Option<Place> {
    match path.to_str()? {
        "/dev/stdout" | "/dev/fd/1" | "/proc/self/fd/1" => return Some(Place::Stdout),
        "/dev/stderr" | "/dev/fd/2" | "/proc/self/fd/2" => return Some(Place::Stderr),
        _ => {}
    }
    let folder = folder(path).canonicalize().ok()?;
    (folder.starts_with("/proc") && folder.ends_with("fd")).then(|| Place::Stream(path.to_owned()))
}

/// What makes a file itself, whatever its name: device and number on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity(u64, u64);

impl Identity {
    /// That of a file; none where there is no file.
    pub fn of(path: &Path) -> Option<Self> {
        path.metadata().ok().as_ref().and_then(Self::told)
    }

    /// That of an open file; none of a pipe, a terminal or another device.
    pub fn open(file: &File) -> Option<Self> {
        file.metadata().ok().as_ref().and_then(Self::told)
    }

    /// What the metadata of a file tell.
    #[cfg(unix)]
    pub fn told(meta: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        meta.is_file().then(|| Self(meta.dev(), meta.ino()))
    }

    /// What the metadata of a file tell.
    #[cfg(not(unix))]
    pub fn told(_: &Metadata) -> Option<Self> {
        None
    }
}

#[cfg(unix)]
fn is_disk(meta: &Metadata) -> bool {
    std::os::unix::fs::FileTypeExt::is_block_device(&meta.file_type())
}

#[cfg(not(unix))]
fn is_disk(_: &Metadata) -> bool {
    false
}

/// The folder of a path.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// As the file had it before; a new file, as the user's mask says.
    Kept,
    /// Its owner alone.
    Private,
}

/// Makes the file `beside`, which [`settle`] will put in the place of `name`.
///
/// # Errors
/// When `beside` is there, when `name` may not be written to, and those of the system.
pub fn begin(beside: &Path, name: &Path, access: Access) -> io::Result<File> {
    let old = match OpenOptions::new().write(true).open(name) {
        Ok(file) => Some(file.metadata()?),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if access == Access::Private || old.is_some() {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let file = options.open(beside)?;
    if let Some(old) = old {
        dress(&file, &old, access)?;
    }
    Ok(file)
}

/// Gives a file the owner and mode of the one that it replaces.
#[cfg(unix)]
fn dress(file: &File, old: &Metadata, access: Access) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only a privileged user can; for others the file becomes theirs, as with every program that replaces one.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    match access {
        Access::Kept => file.set_permissions(old.permissions()),
        Access::Private => Ok(()),
    }
}

#[cfg(not(unix))]
fn dress(_: &File, _: &Metadata, _: Access) -> io::Result<()> {
    Ok(())
}

/// Puts a file that is complete in the place of `name`.
///
/// # Errors
/// Those of the system; `name` is then as it was.
pub fn settle(file: File, beside: &Path, name: &Path) -> io::Result<()> {
    file.sync_all()?;
    drop(file);
    fs::rename(beside, name)
}

/// Writes a file whole or not at all: beside it first, then in its place.
///
/// # Errors
/// Those of the system; what was there before is then as it was.
pub fn replace(name: &Path, text: &str, access: Access) -> io::Result<()> {
    let mut last = name.file_name().unwrap_or_default().to_owned();
    last.push(format!(".{}.part", std::process::id()));
    let beside = name.with_file_name(last);
    let mut file = begin(&beside, name, access)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| settle(file, &beside, name));
    if written.is_err() {
        // What was begun is of no use to anybody; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Opens a pipe or device to be written to. A pipe waits for its reader, as in a shell.
///
/// # Errors
/// Those of the system.
pub fn stream(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(path)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn links_lead_to_their_file_whether_it_exists_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        fs::write(at("real"), "old").unwrap();
        symlink("real", at("one")).unwrap();
        symlink(at("one"), at("two")).unwrap();
        symlink("new", at("dangling")).unwrap();
        symlink("loop", at("loop")).unwrap();
        assert_eq!(Place::of(&at("two")).unwrap(), Place::File(at("real")));
        assert_eq!(Place::of(&at("dangling")).unwrap(), Place::File(at("new")));
        assert!(Place::of(&at("loop")).is_err());
        assert_eq!(Place::of(dir.path()).unwrap_err().to_string(), "it is a folder");
        assert_eq!(
            Place::of(&at("no/such")).unwrap_err().to_string(),
            "its folder does not exist"
        );
    }

    #[test]
    fn what_is_no_file_is_told_apart() {
        let of = |path: &str| Place::of(Path::new(path)).unwrap();
        assert_eq!(of("/dev/stdout"), Place::Stdout);
        assert_eq!(of("/dev/stderr"), Place::Stderr);
        assert_eq!(of("/dev/null"), Place::Stream("/dev/null".into()));
        let dir = tempfile::tempdir().unwrap();
        symlink("/dev/null", dir.path().join("link")).unwrap();
        assert_eq!(
            Place::of(&dir.path().join("link")).unwrap(),
            Place::Stream("/dev/null".into())
        );
    }

    #[test]
    fn two_names_of_a_file_are_one() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("a"), "").unwrap();
        fs::write(at("b"), "").unwrap();
        fs::hard_link(at("a"), at("hard")).unwrap();
        assert_eq!(Identity::of(&at("a")), Identity::of(&at("hard")));
        assert_ne!(Identity::of(&at("a")), Identity::of(&at("b")));
        assert_eq!(Identity::of(&at("none")), None);
        assert_eq!(Identity::of(Path::new("/dev/null")), None);
    }

    #[test]
    fn a_file_keeps_its_mode_and_a_private_one_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for old in [0o600, 0o640, 0o664] {
            fs::write(at("kept"), "old").unwrap();
            fs::set_permissions(at("kept"), fs::Permissions::from_mode(old)).unwrap();
            replace(&at("kept"), "new", Access::Kept).unwrap();
            assert_eq!(
                (mode(&at("kept")), fs::read_to_string(at("kept")).unwrap().as_str()),
                (old, "new")
            );
        }
        replace(&at("map"), "x", Access::Private).unwrap();
        assert_eq!(mode(&at("map")), 0o600);
        fs::set_permissions(at("map"), fs::Permissions::from_mode(0o644)).unwrap();
        replace(&at("map"), "y", Access::Private).unwrap();
        assert_eq!(mode(&at("map")), 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_cannot_be_written_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone/x");
        assert!(replace(&gone, "x", Access::Kept).is_err());
        // A folder has the name: the file cannot be put there.
        fs::create_dir(dir.path().join("folder")).unwrap();
        assert!(replace(&dir.path().join("folder"), "x", Access::Kept).is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
