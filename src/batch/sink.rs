//! Where the records of a scan are written.
//!
//! Owns the file that appears only when it is complete, and the unfinished one beside it that an interrupted scan
//! leaves for the next. Never knows what is written.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What stands between the name of an output and the number of an unfinished one.
const PARTIAL: &str = ".partial.";

/// An output under way.
pub enum Target {
    /// Standard output.
    Stdout,
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
    /// A file called `name` once it is complete.
    ///
    /// # Errors
    /// When no file can be made beside it.
    pub fn file(name: &Path) -> io::Result<Self> {
        let last = partials(name)?.last().map_or(0, |(n, _)| *n);
        for n in last + 1.. {
            let partial = beside(name, n);
            match OpenOptions::new().write(true).create_new(true).open(&partial) {
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
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(text.as_bytes())?;
                out.flush()
            }
            Self::File(pending) => pending.file.write_all(text.as_bytes()),
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
        file.sync_all()?;
        fs::rename(&partial, &name)?;
        for (_, left) in partials(&name)? {
            fs::remove_file(left)?;
        }
        Ok(())
    }

    /// Where the records of an output that is given up stay.
    pub fn partial(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(pending) => Some(&pending.partial),
        }
    }
}

fn beside(name: &Path, n: u32) -> PathBuf {
    let mut text = name.as_os_str().to_owned();
    text.push(format!("{PARTIAL}{n}"));
    text.into()
}

/// The unfinished files of an output, oldest first.
fn partials(name: &Path) -> io::Result<Vec<(u32, PathBuf)>> {
    let folder = match name.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let prefix = format!("{}{PARTIAL}", name.file_name().unwrap_or_default().to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
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
}
