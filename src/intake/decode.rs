//! From stored bytes to text: compression by content, in as many layers as there are, and UTF-16.
//!
//! Owns decompression and its limits. Never fails on damage: what could be read is given, and a note says what is
//! missing.

use std::fs::File;
use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::limits::Limits;
use super::snapshot::{Ahead, Change, Snapshot};
use super::sniff::{self, Coding, Sniffed};
use super::utf16::Utf16;
use super::zip;

/// Compression inside compression is undone this often; more is an attack or a mistake.
const LAYERS: usize = 3;

type Bytes = Box<dyn Read + Send>;

/// An open input: decompressed bytes, and notes on what could not be read.
pub struct Source {
    inner: Bytes,
    layers: Vec<Coding>,
    stored: Arc<AtomicU64>,
    given: u64,
    limits: Limits,
    notes: Vec<String>,
    /// Why the input was not read to its end.
    missed: Option<String>,
    stop: Option<Arc<AtomicBool>>,
    done: bool,
    /// What happens to the file below.
    change: Option<Change>,
    /// What lies ahead, where the bytes are those of the file.
    ahead: Option<Ahead>,
}

impl Source {
    /// Undoes the codings of a file as it is now.
    pub fn file(file: File, limits: &Limits) -> io::Result<Self> {
        let snapshot = Snapshot::new(file)?;
        let (change, ahead) = (snapshot.change(), snapshot.ahead());
        let mut source = Self::new(snapshot, limits)?;
        source.change = Some(change);
        source.ahead = ahead.filter(|_| source.layers.is_empty());
        Ok(source)
    }

    /// Undoes the codings of `raw`. Reads a few bytes to tell them, which waits for a pipe; an error here means that
    /// nothing at all can be read.
    pub fn new(raw: impl Read + Send + 'static, limits: &Limits) -> io::Result<Self> {
        let (inner, stored) = counted(raw);
        Self::undo(inner, stored, Vec::new(), limits)
    }

    /// Undoes the codings of a member of a ZIP archive: what the archive does to it, then its own.
    pub(super) fn member(member: &zip::Member, limits: &Limits) -> io::Result<Self> {
        let (inner, stored) = counted(member.open()?);
        Self::undo(member.unpack(inner), stored, vec![Coding::Zip], limits)
    }

    fn undo(mut inner: Bytes, stored: Arc<AtomicU64>, mut layers: Vec<Coding>, limits: &Limits) -> io::Result<Self> {
        let mut missed = None;
        loop {
            let (whole, coding) = match sniffed(inner) {
                Ok(pair) => pair,
                Err(e) if layers.is_empty() => return Err(e),
                // Damage inside a layer: met again, and noted, by the first read.
                Err(e) => (Box::new(Failing(Some(e))) as Bytes, None),
            };
            inner = whole;
            match coding {
                Some(coding) if layers.len() < LAYERS => {
                    inner = layer(inner, coding, limits)?;
                    layers.push(coding);
                }
                // What is left is no text.
                Some(coding) => {
                    inner = Box::new(io::empty());
                    missed = Some(format!(
                        "it is compressed more than {LAYERS} times, which no log is: the {} data in it is not read",
                        coding.name()
                    ));
                    break;
                }
                None => break,
            }
        }
        Ok(Self {
            inner,
            layers,
            stored,
            given: 0,
            limits: *limits,
            notes: missed.iter().cloned().collect(),
            missed,
            stop: None,
            done: false,
            change: None,
            ahead: None,
        })
    }

    /// Ends here as soon as `stop` is true.
    pub fn stop_when(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// What lies ahead, if it can be read from any place.
    pub fn ahead(&self) -> Option<&Ahead> {
        self.ahead.as_ref()
    }

    /// Bytes given or passed over so far.
    fn given(&self) -> u64 {
        self.given + self.ahead.as_ref().map_or(0, Ahead::passed)
    }

    /// What could not be read, in sentences; complete once the end has been read.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Why the input was not read to its end, if so; known once what there is has been read.
    pub fn missed(&self) -> Option<&str> {
        self.missed.as_deref()
    }

    /// Adds a note from where the bytes came from.
    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    fn end(&mut self, note: String) -> io::Result<usize> {
        self.done = true;
        self.missed = Some(note.clone());
        self.notes.push(note);
        Ok(0)
    }

    /// Why no more may be given, if a limit is reached.
    fn over_limit(&self) -> Option<String> {
        let stored = self.stored.load(Ordering::Relaxed);
        if self.given() >= self.limits.text_bytes {
            return Some(format!(
                "only the first {} bytes are read: the input is larger than coroner's limit",
                self.given()
            ));
        }
        let grown = !self.layers.is_empty()
            && self.given() >= self.limits.free_growth_bytes
            && self.given() / self.limits.growth > stored;
        grown.then(|| {
            format!(
                "reading ends after {} bytes: the compressed data grows more than {} times, which no log does",
                self.given, self.limits.growth
            )
        })
    }

    fn damage(&self, e: &io::Error) -> String {
        let kind = match self.layers.iter().rev().find(|l| !matches!(l, Coding::Utf16(_))) {
            Some(coding) => format!("the {} data", coding.name()),
            None => "the input".to_owned(),
        };
        match e.kind() {
            ErrorKind::UnexpectedEof => format!(
                "{kind} is cut off: only the first {} bytes of text could be read",
                self.given()
            ),
            _ => format!(
                "{kind} cannot be read behind its first {} bytes of text: {e}",
                self.given()
            ),
        }
    }
}

impl Read for Source {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.done {
            return Ok(0);
        }
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.done = true;
            self.notes
                .push(format!("reading was interrupted after {} bytes", self.given()));
            return Ok(0);
        }
        if let Some(note) = self.over_limit() {
            return self.end(note);
        }
        match self.inner.read(buf) {
            Ok(0) if !buf.is_empty() => {
                self.done = true;
                let told = self.change.as_ref().and_then(Change::told);
                self.notes.extend(told.map(str::to_owned));
                Ok(0)
            }
            Ok(n) => {
                self.given += n as u64;
                Ok(n)
            }
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut
                ) =>
            {
                Err(e)
            }
            Err(e) => {
                let note = self.damage(&e);
                self.end(note)
            }
        }
    }
}

/// Reads just enough of `inner` to tell its coding, and gives it back whole.
fn sniffed(mut inner: Bytes) -> io::Result<(Bytes, Option<Coding>)> {
    let mut head = Vec::with_capacity(16);
    let mut block = [0; 16];
    let coding = loop {
        match sniff::coding(&head) {
            Sniffed::Settled(coding) => break coding,
            Sniffed::NeedsMore => {}
        }
        match inner.read(&mut block) {
            Ok(0) => break None,
            Ok(n) => head.extend(block.iter().take(n)),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if head.is_empty() => return Err(e),
            Err(e) => {
                inner = Box::new(Failing(Some(e)));
                break None;
            }
        }
    };
    Ok((Box::new(Cursor::new(head).chain(inner)), coding))
}

fn layer(inner: Bytes, coding: Coding, limits: &Limits) -> io::Result<Bytes> {
    Ok(match coding {
        Coding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(inner)),
        Coding::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(inner)),
        Coding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(inner)?;
            decoder.window_log_max(limits.decoder_bytes.max(1 << 10).ilog2())?;
            Box::new(decoder)
        }
        Coding::Xz => {
            let stream =
                liblzma::stream::Stream::new_stream_decoder(limits.decoder_bytes, liblzma::stream::CONCATENATED)?;
            Box::new(liblzma::read::XzDecoder::new_stream(inner, stream))
        }
        Coding::Utf16(order) => Box::new(Utf16::new(inner, order)),
        // The archive undoes its own, and no first bytes tell of it.
        Coding::Zip => inner,
    })
}

/// A reader whose bytes are counted.
fn counted(raw: impl Read + Send + 'static) -> (Bytes, Arc<AtomicU64>) {
    let count = Arc::new(AtomicU64::new(0));
    let counting = Counting {
        inner: raw,
        count: Arc::clone(&count),
    };
    (Box::new(counting), count)
}

struct Counting<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.count.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Gives an error that was met too early.
struct Failing(Option<io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gz(text: &[u8]) -> Vec<u8> {
        let mut e = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        e.write_all(text).unwrap();
        e.finish().unwrap()
    }

    fn zst(text: &[u8]) -> Vec<u8> {
        zstd::stream::encode_all(text, 3).unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut e = liblzma::write::XzEncoder::new(Vec::new(), 3);
        e.write_all(text).unwrap();
        e.finish().unwrap()
    }

    fn bz2(text: &[u8]) -> Vec<u8> {
        let mut e = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        e.write_all(text).unwrap();
        e.finish().unwrap()
    }

    type Packer = fn(&[u8]) -> Vec<u8>;

    const PACKERS: [(&str, Packer); 4] = [("gzip", gz), ("zstd", zst), ("xz", xz), ("bzip2", bz2)];

    fn read(bytes: Vec<u8>, limits: &Limits) -> (Vec<u8>, Vec<String>) {
        let mut source = Source::new(Cursor::new(bytes), limits).unwrap();
        let mut out = Vec::new();
        source.read_to_end(&mut out).unwrap();
        (out, source.notes().to_vec())
    }

    /// Numbered lines with some noise, so that a packed file has many blocks.
    fn text() -> Vec<u8> {
        (0..60_000u64)
            .flat_map(|n| format!("INFO line {n} {:x}\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).into_bytes())
            .collect()
    }

    #[test]
    fn each_format_whole() {
        for (name, pack) in PACKERS {
            assert_eq!(read(pack(&text()), &Limits::default()), (text(), vec![]), "{name}");
            assert_eq!(read(pack(b""), &Limits::default()), (vec![], vec![]), "{name}, empty");
        }
    }

    #[test]
    fn each_format_in_several_parts() {
        for (name, pack) in PACKERS {
            let both = [pack(b"one\n"), pack(b"two\n")].concat();
            assert_eq!(
                read(both, &Limits::default()),
                (b"one\ntwo\n".to_vec(), vec![]),
                "{name}"
            );
        }
    }

    #[test]
    fn each_format_cut_off_gives_what_it_holds_and_a_note() {
        for (name, pack) in PACKERS {
            let packed = pack(&text());
            let (out, notes) = read(packed[..packed.len() * 7 / 10].to_vec(), &Limits::default());
            assert!(
                !out.is_empty() && text().starts_with(&out),
                "{name}: {} bytes",
                out.len()
            );
            assert_eq!(
                notes,
                [format!(
                    "the {name} data is cut off: only the first {} bytes of text could be read",
                    out.len()
                )]
            );
        }
    }

    #[test]
    fn each_format_damaged_or_mere_magic_is_a_note_and_no_error() {
        for (name, pack) in PACKERS {
            let mut packed = pack(&text());
            let middle = packed.len() / 2;
            packed[middle..].fill(0xa5);
            // gzip has no checksum before its end, so what it gives behind the damage may be nonsense.
            assert_eq!(read(packed.clone(), &Limits::default()).1.len(), 1, "{name}");
            let (out, notes) = read(packed[..10].to_vec(), &Limits::default());
            assert_eq!((out.len(), notes.len()), (0, 1), "{name}");
        }
    }

    #[test]
    fn layers_are_undone_one_by_one() {
        let utf16: Vec<u8> = "\u{feff}Fehler: ä\n"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        assert_eq!(read(gz(&xz(&utf16)), &Limits::default()).0, "Fehler: ä\n".as_bytes());
        let thrice = gz(&gz(&xz(b"text\n")));
        assert_eq!(read(thrice.clone(), &Limits::default()), (b"text\n".to_vec(), vec![]));
        let (out, notes) = read(gz(&thrice), &Limits::default());
        assert_eq!((out.len(), notes.len()), (0, 1));
        assert!(
            notes[0].contains("more than 3 times") && notes[0].contains("xz"),
            "{notes:?}"
        );
    }

    #[test]
    fn data_that_grows_without_end_is_cut() {
        let limits = Limits {
            free_growth_bytes: 1 << 20,
            ..Limits::default()
        };
        let (out, notes) = read(gz(&vec![b'\n'; 32 << 20]), &limits);
        assert!(out.len() < 32 << 20);
        assert!(notes[0].contains("grows more than 500 times"), "{notes:?}");
        let (out, notes) = read(vec![b'\n'; 8 << 20], &limits);
        assert_eq!((out.len(), notes.len()), (8 << 20, 0), "plain text does not grow");
    }

    #[test]
    fn short_and_plain_inputs_are_left_alone() {
        for plain in [
            &b""[..],
            b"\x1f",
            b"BZ",
            b"BZh9 nothing packed",
            b"\xef\xbb\xbfINFO\n",
            b"\x00\x01\x02",
        ] {
            assert_eq!(read(plain.to_vec(), &Limits::default()), (plain.to_vec(), vec![]));
        }
    }
}
