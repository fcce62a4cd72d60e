//! What an earlier scan has already examined.
//!
//! Owns the mark of stored content and the index over earlier records. Holds a few dozen bytes of a record; the record
//! itself stays in its file until it is asked for.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::digest::Digest;
use super::incident::Incident;
use crate::report::text::safe_lines;

/// Files up to this size, in bytes, are marked by all of their content, larger ones by samples of as much.
const WHOLE: u64 = 4 << 20;
/// Bytes of one sample.
const SAMPLE: u64 = 64 << 10;
/// Samples of a large file, the first at its start and the last at its end.
const SAMPLES: u64 = WHOLE / SAMPLE;

/// A mark of the stored content of an incident: its files, their sizes and their bytes, of large files samples of them.
/// A log that has grown, or was written anew, has another one. `None` when a file cannot be read.
pub fn mark(incident: &Incident) -> Option<String> {
    let mut hasher = Xxh3::new();
    hasher.update(&[u8::from(incident.whole)]);
    let mut files: Vec<&PathBuf> = incident.files.iter().collect();
    files.sort();
    for path in files {
        if incident.whole {
            hasher.update(path.as_os_str().as_encoded_bytes());
        }
        add(&mut hasher, path).ok()?;
    }
    Some(format!("x1:{:016x}", hasher.digest()))
}

fn add(hasher: &mut Xxh3, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    hasher.update(&size.to_le_bytes());
    let mut bytes = Vec::new();
    if size <= WHOLE {
        file.take(WHOLE).read_to_end(&mut bytes)?;
        hasher.update(&bytes);
        return Ok(());
    }
    for n in 0..SAMPLES {
        file.seek(SeekFrom::Start((size - SAMPLE) / (SAMPLES - 1) * n))?;
        bytes.clear();
        (&mut file).take(SAMPLE).read_to_end(&mut bytes)?;
        hasher.update(&bytes);
    }
    // The division leaves a rest: the very end is sampled in any case, since logs grow there.
    file.seek(SeekFrom::Start(size - SAMPLE))?;
    bytes.clear();
    file.take(SAMPLE).read_to_end(&mut bytes)?;
    hasher.update(&bytes);
    Ok(())
}

/// The records of earlier scans.
#[derive(Debug, Default)]
pub struct Known {
    files: Vec<Mutex<File>>,
    entries: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    content: u64,
    file: usize,
    at: u64,
    len: usize,
}

impl Known {
    /// Indexes the records in the given files that were made on the same basis. A file that is not there, a torn line
    /// and an error record are passed over: what they stand for is examined again.
    ///
    /// # Errors
    /// When a file that is there cannot be read.
    pub fn read(paths: &[PathBuf], basis: &str) -> io::Result<Self> {
        let mut known = Self::default();
        for path in paths {
            match File::open(path) {
                Ok(file) => known.index(file, basis)?,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(e),
            }
        }
        Ok(known)
    }

    fn index(&mut self, file: File, basis: &str) -> io::Result<()> {
        let mut lines = BufReader::new(file);
        let mut line = Vec::new();
        let mut at = 0;
        while lines.read_until(b'\n', &mut line)? > 0 {
            let digest = std::str::from_utf8(&line).ok().and_then(|text| Digest::of(text).ok());
            if let Some(digest) = digest.filter(|_| line.ends_with(b"\n"))
                && let (Some(content), Some(own)) = (digest.scan.content, digest.scan.basis)
                && own == basis
            {
                let entry = Entry {
                    content: xxh3_64(content.as_bytes()),
                    file: self.files.len(),
                    at,
                    len: line.len(),
                };
                self.entries.insert(xxh3_64(digest.source.as_bytes()), entry);
            }
            at += line.len() as u64;
            line.clear();
        }
        self.files.push(Mutex::new(lines.into_inner()));
        Ok(())
    }

    /// The line of the record of this source with this content.
    pub fn line(&self, source: &str, content: Option<&str>) -> Option<String> {
        let source = safe_lines(source);
        let entry = self.entries.get(&xxh3_64(source.as_bytes()))?;
        if entry.content != xxh3_64(content?.as_bytes()) {
            return None;
        }
        let mut file = self
            .files
            .get(entry.file)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(entry.at)).ok()?;
        let mut bytes = vec![0; entry.len];
        file.read_exact(&mut bytes).ok()?;
        let line = String::from_utf8(bytes).ok()?;
        // The file may have changed since it was indexed, and two names may share a hash.
        Digest::of(&line).ok().filter(|digest| digest.source == source)?;
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn incident(path: &Path) -> Incident {
        Incident::file(path.to_owned(), None, 0)
    }

    #[test]
    fn a_mark_changes_with_the_content_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::write(&path, "one").unwrap();
        let one = mark(&incident(&path)).unwrap();
        fs::write(dir.path().join("b.log"), "one").unwrap();
        assert_eq!(mark(&incident(&dir.path().join("b.log"))), Some(one.clone()));
        fs::write(&path, "two").unwrap();
        assert_ne!(mark(&incident(&path)).unwrap(), one);
        assert_eq!(mark(&incident(&dir.path().join("none"))), None);
    }

    #[test]
    fn a_large_file_that_grows_or_is_rotated_has_another_mark() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("big.log");
        let mut bytes = vec![b'x'; (WHOLE + 12_345) as usize];
        fs::write(&path, &bytes).unwrap();
        let first = mark(&incident(&path)).unwrap();
        assert_eq!(mark(&incident(&path)).unwrap(), first);
        *bytes.last_mut().unwrap() = b'y';
        fs::write(&path, &bytes).unwrap();
        let second = mark(&incident(&path)).unwrap();
        bytes.push(b'y');
        fs::write(&path, &bytes).unwrap();
        assert!(first != second && mark(&incident(&path)).unwrap() != second);
    }

    #[test]
    fn records_are_found_again_by_source_content_and_basis() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let line = |source: &str, content: &str, basis: &str| {
            format!("{{\"source\":\"{source}\",\"scan\":{{\"content\":\"{content}\",\"basis\":\"{basis}\"}}}}\n")
        };
        let a = line("a", "1", "now");
        let text = format!(
            "{}{a}{{\"source\":\"e\",\"error\":{{}}}}\n{}",
            line("b", "1", "then"),
            &line("c", "1", "now")[..30]
        );
        fs::write(&path, text).unwrap();
        let known = Known::read(&[path, dir.path().join("absent")], "now").unwrap();
        assert_eq!(known.line("a", Some("1")), Some(a));
        assert_eq!(known.line("a", Some("2")), None);
        assert_eq!(known.line("a", None), None);
        for other in ["b", "c", "e"] {
            assert_eq!(known.line(other, Some("1")), None, "{other}");
        }
    }
}
