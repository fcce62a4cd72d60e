//! Where the records of a scan are written.
//!
//! Owns the file that appears only when it is complete, and the unfinished one beside it that an interrupted scan
//! leaves for the next. Never knows what is written.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::store::{self, Access, Place};

/// What stands between the name of an output and the number of an unfinished one.
const PARTIAL: &str = ".partial.";

/// How the outputs of a scan begin, whatever their form.
const BEGINNINGS: [&str; 5] = [
    "{\"schema\":\"coroner.",
    "source,outcome,cause,",
    "# Launches\n",
    "<!doctype html>",
    "PAR1",
];

/// An output under way.
pub enum Target {
    /// Standard output.
    Stdout,
    /// A pipe or device.
    Stream(File),
    /// A file.
    File(Pending),
}

/// A file that takes its name when it is complete.
pub struct Pending {
    name: PathBuf,
    partial: PathBuf,
    file: File,
}

impl Target {
    /// An output to a place.
    ///
    /// # Errors
    /// When it cannot be opened, or no file can be made beside it.
    pub fn at(place: &Place) -> io::Result<Self> {
        match place {
            Place::Stdout => Ok(Self::Stdout),
            Place::Stderr => store::stream(Path::new("/dev/stderr")).map(Self::Stream),
            Place::Stream(path) => store::stream(path).map(Self::Stream),
            Place::File(name) => Self::file(name),
        }
    }

    /// A file called `name` once it is complete.
    fn file(name: &Path) -> io::Result<Self> {
        let last = partials(name)?.last().map_or(0, |(n, _)| *n);
        for n in last + 1.. {
            let partial = beside(name, n);
            match store::begin(&partial, name, Access::Kept) {
                Ok(file) => {
                    let name = name.to_owned();
                    return Ok(Self::File(Pending { name, partial, file }));
                }
                // Another scan with the same output was faster.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Writes at once: what is written survives the end of the program.
    ///
    /// # Errors
    /// Those of the system.
    pub fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(bytes)?;
                out.flush()
            }
            Self::Stream(file) | Self::File(Pending { file, .. }) => file.write_all(bytes),
        }
    }

    /// Gives a file its name, in place of what had it, and removes what interrupted scans have left.
    ///
    /// # Errors
    /// Those of the system; the unfinished file is then still there.
    pub fn complete(self) -> io::Result<()> {
        let Self::File(Pending { name, partial, file }) = self else {
            return Ok(());
        };
        store::settle(file, &partial, &name)?;
        for (_, left) in partials(&name)? {
            fs::remove_file(left)?;
        }
        Ok(())
    }

    /// Removes what was begun of a file.
    pub fn discard(self) {
        if let Self::File(pending) = self {
            // What was begun is of no use; that it cannot be removed changes nothing.
            let _ = fs::remove_file(pending.partial);
        }
    }

    /// Where the records of an output that is given up stay.
    pub fn partial(&self) -> Option<&Path> {
        match self {
            Self::Stdout | Self::Stream(_) => None,
            Self::File(pending) => Some(&pending.partial),
        }
    }
}

/// Whether a file is the unfinished output that a scan to `name` has left, or is writing.
pub fn is_partial(name: &Path, file: &Path) -> bool {
    let numbered = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (Some(own), Some(other)) = (name.file_name(), file.file_name()) else {
        return false;
    };
    let rest = other.to_string_lossy();
    let rest = rest.strip_prefix(&*own.to_string_lossy());
    rest.and_then(|rest| rest.strip_prefix(PARTIAL)).is_some_and(numbered)
        && store::folder(file)
            .canonicalize()
            .is_ok_and(|folder| folder == store::folder(name))
}

/// Whether a file is empty or looks like the output of a scan, so that a scan may replace it although it stands among
/// the logs.
pub fn is_output(path: &Path) -> bool {
    let longest = BEGINNINGS.iter().map(|b| b.len()).max().unwrap_or(0);
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(longest as u64).read_to_end(&mut head));
    read.is_ok()
        && (head.is_empty()
            || BEGINNINGS
                .iter()
                .any(|beginning| head.starts_with(beginning.as_bytes())))
}

fn beside(name: &Path, n: u32) -> PathBuf {
    let mut text = name.as_os_str().to_owned();
    text.push(format!("{PARTIAL}{n}"));
    text.into()
}

/// The unfinished files of an output, oldest first.
fn partials(name: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let prefix = format!("{}{PARTIAL}", name.file_name().unwrap_or_default().to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(store::folder(name))? {
        let file = entry?.file_name();
        let number = file
            .to_string_lossy()
            .strip_prefix(&prefix)
            .and_then(|n| n.parse().ok());
        found.extend(number.map(|n| (n, beside(name, n))));
    }
    found.sort();
    Ok(found)
}

/// The files that hold records of earlier scans to this output: the output itself, and what interrupted ones have left.
///
/// # Errors
/// When the folder cannot be read.
pub fn earlier(name: &Path) -> io::Result<Vec<PathBuf>> {
    let left = partials(name)?.into_iter().map(|(_, path)| path);
    Ok(std::iter::once(name.to_owned()).chain(left).collect())
}

/// Whether an unfinished output has anything in it; one that has not is removed.
pub fn remains(partial: &Path) -> bool {
    let empty = fs::metadata(partial).is_ok_and(|meta| meta.len() == 0);
    // That it cannot be removed changes nothing.
    !empty || fs::remove_file(partial).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_complete_and_leftovers_go() {
        let dir = tempfile::tempdir().unwrap();
        let name = dir.path().join("out.ndjson");
        fs::write(&name, "old\n").unwrap();
        let mut given_up = Target::file(&name).unwrap();
        given_up.write("half\n").unwrap();
        let left = given_up.partial().unwrap().to_owned();
        drop(given_up);
        assert_eq!(fs::read_to_string(&left).unwrap(), "half\n");
        assert_eq!(earlier(&name).unwrap(), [name.clone(), left.clone()]);

        let mut target = Target::file(&name).unwrap();
        target.write("new\n").unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), "old\n");
        target.complete().unwrap();
        assert_eq!(fs::read_to_string(&name).unwrap(), "new\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        assert!(Target::file(&dir.path().join("no/folder/out")).is_err());
    }

    #[test]
    fn what_a_scan_wrote_is_told_from_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().canonicalize().unwrap();
        let at = |name: &str| folder.join(name);
        for (text, own) in [
            ("", true),
            ("{\"schema\":\"coroner.error/1\",", true),
            ("source,outcome,cause,more", true),
            ("# Launches\n\n1", true),
            ("INFO 11-25 12:00:00 vLLM", false),
            ("{\"schema\": 1}", false),
        ] {
            fs::write(at("f"), text).unwrap();
            assert_eq!(is_output(&at("f")), own, "{text}");
        }
        assert!(is_partial(&at("out"), &at("out.partial.12")));
        for other in [
            "out",
            "out.partial.",
            "out.partial.1x",
            "other.partial.1",
            "sub/out.partial.1",
        ] {
            assert!(!is_partial(&at("out"), &at(other)), "{other}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_device_is_written_straight_to() {
        let place = Place::of(Path::new("/dev/null")).unwrap();
        let mut target = Target::at(&place).unwrap();
        target.write("x").unwrap();
        assert_eq!(target.partial(), None);
        target.complete().unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }
}
