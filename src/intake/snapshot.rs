//! A file as it is when it is opened.
//!
//! Owns what becomes of a file that changes while it is read: what is appended later is left out, so that a log that
//! is written faster than it is read has an end; what is cut off is missed. Both are noted.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

const GREW: u8 = 1;
const SHRANK: u8 = 2;

/// What happened to a file since it was opened.
#[derive(Debug, Clone, Default)]
pub struct Change(Arc<AtomicU8>);

impl Change {
    /// The change in a sentence.
    pub fn told(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Relaxed) {
            GREW => Some("it grew while it was read; what was written after the start is not examined"),
            SHRANK => Some("it was cut short while it was read; what was cut off is not examined"),
            _ => None,
        }
    }
}

/// The bytes that a file had when it was opened.
pub struct Snapshot {
    file: File,
    size: u64,
    left: u64,
    change: Change,
}

impl Snapshot {
    /// Takes a file at its present size. One without a size, as those of the kernel are, is read to its end.
    pub fn new(file: File) -> io::Result<Self> {
        let size = match file.metadata()? {
            meta if meta.is_file() && meta.len() > 0 => meta.len(),
            _ => u64::MAX,
        };
        Ok(Self {
            file,
            size,
            left: size,
            change: Change::default(),
        })
    }

    /// What will have happened to the file when its end is read.
    pub fn change(&self) -> Change {
        self.change.clone()
    }
}

impl Read for Snapshot {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = self.file.read(buf.get_mut(..room).unwrap_or_default())?;
        self.left -= n as u64;
        if n == 0 && !buf.is_empty() && self.size != u64::MAX {
            let change = match self.left {
                0 if self.file.metadata().is_ok_and(|meta| meta.len() > self.size) => GREW,
                0 => 0,
                _ => SHRANK,
            };
            self.change.0.store(change, Ordering::Relaxed);
        }
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;

    use super::*;

    fn read_in_two(change: impl FnOnce(&File)) -> (String, Option<&'static str>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::write(&path, "one\ntwo\n").unwrap();
        let mut snapshot = Snapshot::new(File::open(&path).unwrap()).unwrap();
        let mut head = [0; 4];
        snapshot.read_exact(&mut head).unwrap();
        change(&File::options().append(true).open(&path).unwrap());
        let mut text = String::from_utf8(head.to_vec()).unwrap();
        snapshot.read_to_string(&mut text).unwrap();
        (text, snapshot.change().told())
    }

    #[test]
    fn what_changes_while_it_is_read_is_told() {
        assert_eq!(read_in_two(|_| ()), ("one\ntwo\n".to_owned(), None));
        let (text, told) = read_in_two(|mut file| file.write_all(b"three\n").unwrap());
        assert_eq!(text, "one\ntwo\n");
        assert!(told.unwrap().starts_with("it grew"));
        let (text, told) = read_in_two(|file| file.set_len(2).unwrap());
        assert_eq!(text, "one\n");
        assert!(told.unwrap().starts_with("it was cut short"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_kernel_is_read_to_its_end() {
        let mut text = String::new();
        let mut snapshot = Snapshot::new(File::open("/proc/version").unwrap()).unwrap();
        snapshot.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Linux") && snapshot.change().told().is_none());
    }
}
