//! A file as it is when it is opened.
//!
//! Owns what becomes of a file that changes while it is read: what is appended later is left out, so that a log that
//! is written faster than it is read has an end; what is cut off is missed. Both are noted. Also what lies ahead of the
//! place where it is read, for those who look there first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

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

/// What lies ahead in a file of a known size, for any thread to read while another reads the file from its beginning.
#[derive(Debug, Clone)]
pub struct Ahead {
    file: Arc<File>,
    size: u64,
    /// Bytes passed over so far.
    passed: Arc<AtomicU64>,
}

impl Ahead {
    /// The size of the file when it was opened, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buf` from the byte at `at` on, and says how much of it, which is less only at the end of the file.
    ///
    /// # Errors
    /// What the system answers.
    pub fn read(&self, buf: &mut [u8], at: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(room) = buf.get_mut(done..).filter(|room| !room.is_empty()) {
            match read_at(&self.file, room, at + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }

    /// Lets the one who reads the file from its beginning pass over the next bytes.
    pub fn pass(&self, bytes: u64) {
        self.passed.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes passed over so far.
    pub(super) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Relaxed)
    }
}

/// Reads at some place of a file without a trace.
#[cfg(unix)]
fn read_at(file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buf, at)
}

/// There is no such call: nobody looks ahead here.
#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The bytes that a file had when it was opened.
pub struct Snapshot {
    file: Arc<File>,
    size: u64,
    left: u64,
    change: Change,
    /// Bytes of [`Ahead`] that were passed over.
    passed: u64,
    ahead: Ahead,
}

impl Snapshot {
    /// Takes a file at its present size. One without a size, as those of the kernel are, is read to its end.
    pub fn new(file: File) -> io::Result<Self> {
        let size = match file.metadata()? {
            meta if meta.is_file() && meta.len() > 0 => meta.len(),
            _ => u64::MAX,
        };
        let file = Arc::new(file);
        Ok(Self {
            size,
            left: size,
            change: Change::default(),
            passed: 0,
            ahead: Ahead {
                file: Arc::clone(&file),
                size,
                passed: Arc::default(),
            },
            file,
        })
    }

    /// What lies ahead, if that is known and can be read from any place.
    pub fn ahead(&self) -> Option<Ahead> {
        (cfg!(unix) && self.size != u64::MAX).then(|| self.ahead.clone())
    }

    /// What will have happened to the file when its end is read.
    pub fn change(&self) -> Change {
        self.change.clone()
    }
}

impl Read for Snapshot {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let passed = self.ahead.passed();
        if passed > self.passed {
            let more = passed - self.passed;
            (&*self.file).seek(SeekFrom::Current(i64::try_from(more).unwrap_or(i64::MAX)))?;
            self.left = self.left.saturating_sub(more);
            self.passed = passed;
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX).min(buf.len());
        let n = (&*self.file).read(buf.get_mut(..room).unwrap_or_default())?;
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

    #[cfg(unix)]
    #[test]
    fn what_lies_ahead_is_read_without_a_trace_and_passed_over_at_will() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut snapshot = Snapshot::new(File::open(&path).unwrap()).unwrap();
        let ahead = snapshot.ahead().unwrap();
        let mut seen = [0; 8];
        assert_eq!(ahead.read(&mut seen, 8).unwrap(), 6);
        assert_eq!((&seen[..6], ahead.size()), (&b"three\n"[..], 14));
        let mut head = [0; 4];
        snapshot.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"one\n");
        ahead.pass(4);
        let mut rest = String::new();
        snapshot.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "three\n");
        assert_eq!(snapshot.change().told(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_the_kernel_is_read_to_its_end() {
        let mut text = String::new();
        let mut snapshot = Snapshot::new(File::open("/proc/version").unwrap()).unwrap();
        snapshot.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("Linux") && snapshot.change().told().is_none());
        assert!(snapshot.ahead().is_none());
    }
}
