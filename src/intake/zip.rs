//! Members of a ZIP archive as inputs of their own.
//!
//! Owns the reading of its table of contents, which says where each member stands, and the check of what is unpacked.
//! A member is read from the archive when it is opened: nothing is held in memory, nothing is written to disk.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rawzip::{CompressionMethod, Crc32, RECOMMENDED_BUFFER_SIZE, ZipArchive, ZipFileHeaderRecord};

use super::discover::Discovery;
use super::limits::Limits;
use super::{InputSpec, Origin, display_name, explain, sniff};

/// Endings of members that only a document, a program package or a file of weights has. They are ZIP archives too, and
/// what is in them are no logs.
const PACKAGES: [&str; 5] = [
    "[Content_Types].xml",
    "META-INF/MANIFEST.MF",
    ".dist-info/RECORD",
    "/data.pkl",
    ".npy",
];

/// A member: where it stands in which file, and what it has to be.
#[derive(Debug, Clone)]
pub(super) struct Member {
    path: PathBuf,
    place: Range<u64>,
    deflated: bool,
    size: u64,
    /// Checksum of the unpacked bytes, where the archive itself is what packs them.
    crc: Option<u32>,
}

impl Member {
    /// The stored bytes.
    pub(super) fn open(&self) -> io::Result<impl Read + Send + use<>> {
        let mut file = File::open(&self.path)?;
        file.seek(SeekFrom::Start(self.place.start))?;
        Ok(file.take(self.place.end - self.place.start))
    }

    /// The member's own bytes, of its stored ones. What it has to be is checked at its end.
    pub(super) fn unpack(&self, stored: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        let inner: Box<dyn Read + Send> = match self.deflated {
            true => Box::new(flate2::read::DeflateDecoder::new(stored)),
            false => stored,
        };
        Box::new(Checked {
            inner,
            crc: Crc32::new(),
            left: self.size,
            expected: self.crc,
        })
    }
}

/// Whether a file is a ZIP archive as it is stored, and not only inside of a compression.
pub(super) fn is_archive(path: &Path) -> bool {
    let mut head = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && sniff::is_zip(&head)
}

/// Adds the members of the archive to `found`, unless it is a package that holds no logs: then gives what it is.
pub(super) fn members(path: &Path, limits: &Limits, found: &mut Discovery) -> Option<&'static str> {
    let name = display_name(path);
    let mut list = List {
        archive: &name,
        path,
        limits,
        room: limits.inputs.saturating_sub(found.inputs.len()),
        found: Discovery::default(),
        places: Vec::new(),
        hidden: 0,
        binary: 0,
    };
    let read = list.read();
    if let Err(End::Package) = read {
        return Some("a document, program package or file of weights");
    }
    found.inputs.append(&mut list.found.inputs);
    found.skipped.append(&mut list.found.skipped);
    found.passed_over(&name, list.hidden, "hidden");
    found.passed_over(&name, list.binary, "binary");
    if let Err(End::Unreadable(why)) = read {
        found.unreadable(name, why);
    }
    None
}

/// Why a table of contents is not read to its end.
enum End {
    Package,
    Unreadable(String),
}

struct List<'a> {
    archive: &'a str,
    path: &'a Path,
    limits: &'a Limits,
    /// Members that may still become inputs.
    room: usize,
    found: Discovery,
    /// Where members stand.
    places: Vec<(u64, u64)>,
    hidden: u64,
    binary: u64,
}

impl List<'_> {
    fn read(&mut self) -> Result<(), End> {
        let cut = |e: &dyn std::fmt::Display| End::Unreadable(format!("the archive cannot be read to its end: {e}"));
        let file = File::open(self.path).map_err(|e| End::Unreadable(explain(&e)))?;
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(|_| {
            End::Unreadable("the archive has no table of contents at its end: it is cut off or damaged".to_owned())
        })?;
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(|e| cut(&e))? {
            let raw = String::from_utf8_lossy(entry.file_path().as_bytes()).replace('\\', "/");
            let name = display_name(Path::new(raw.trim_start_matches("./").trim_start_matches('/')));
            if PACKAGES.iter().any(|end| name.ends_with(end)) {
                return Err(End::Package);
            }
            if entry.is_dir() || entry.mode().is_symlink() {
                continue;
            }
            if name.split('/').any(|part| part.starts_with('.')) {
                self.hidden += 1;
                continue;
            }
            let member = format!("{}!/{name}", self.archive);
            if self.found.inputs.len() >= self.room {
                let why = format!("more than {} inputs are not read at once", self.limits.inputs);
                self.found.unreadable(member, why);
                break;
            }
            let place = archive.get_entry(entry.wayfinder()).map_err(|e| cut(&e))?;
            self.places.push(place.compressed_data_range());
            self.member(member, &entry, place.compressed_data_range());
        }
        // What is unpacked is bounded by what is stored as long as no byte is unpacked twice.
        self.places.sort_unstable();
        if self.places.windows(2).any(|pair| matches!(pair, [a, b] if b.0 < a.1)) {
            self.found = Discovery::default();
            return Err(End::Unreadable(
                "its members overlap, which those of no log archive do".to_owned(),
            ));
        }
        Ok(())
    }

    fn member(&mut self, name: String, entry: &ZipFileHeaderRecord<'_>, (start, end): (u64, u64)) {
        let method = entry.compression_method();
        let deflated = method == CompressionMethod::DEFLATE;
        // What these put into an archive is told, and undone, like any compressed file.
        let plain = [
            CompressionMethod::STORE,
            CompressionMethod::BZIP2,
            CompressionMethod::ZSTD,
            CompressionMethod::XZ,
        ];
        if entry.flags().is_encrypted() {
            return self.found.unreadable(name, "it is encrypted".to_owned());
        }
        if !deflated && !plain.contains(&method) {
            let why = format!("its compression, method {}, is not known", method.as_u16());
            return self.found.unreadable(name, why);
        }
        let unpacked = deflated || method == CompressionMethod::STORE;
        let input = InputSpec {
            name,
            size: Some(entry.uncompressed_size_hint()),
            origin: Origin::Zipped(Member {
                path: self.path.to_owned(),
                place: start..end,
                deflated,
                size: if unpacked {
                    entry.uncompressed_size_hint()
                } else {
                    end - start
                },
                crc: if unpacked { Some(entry.crc32()) } else { None },
            }),
        };
        match input.head(self.limits) {
            Ok(head) if sniff::is_tar(&head) || sniff::is_zip(&head) => {
                let why = "an archive inside an archive is not opened: unpack it first";
                self.found.unreadable(input.name, why.to_owned());
            }
            Ok(head) if sniff::foreign(&head).is_some() || sniff::is_binary(&head) => self.binary += 1,
            Ok(_) => self.found.inputs.push(input),
            Err(e) => self.found.unreadable(input.name, explain(&e)),
        }
    }
}

/// Unpacked bytes that have to be so many, with this checksum.
struct Checked<R> {
    inner: R,
    crc: Crc32,
    left: u64,
    expected: Option<u32>,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.left = self.left.saturating_sub(n as u64);
        if let Some(expected) = self.expected {
            self.crc.update(buf.get(..n).unwrap_or_default());
            if n == 0 && !buf.is_empty() {
                self.expected = None;
                if self.left > 0 {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                if self.crc.checksum() != expected {
                    return Err(io::Error::new(ErrorKind::InvalidData, "its checksum is wrong"));
                }
            }
        }
        Ok(n)
    }
}

#[cfg(test)]
#[path = "zip_tests.rs"]
mod tests;
