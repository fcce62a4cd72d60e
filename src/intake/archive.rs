//! Members of a tar archive as inputs of their own.
//!
//! Owns the reading of archives. The archive is read once, and its members are held compressed, so that opening them
//! later costs one pass each and a folder of logs in a `.tar.gz` fits in memory. Nothing is written to disk.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::sync::Arc;

use super::decode::Source;
use super::discover::Discovery;
use super::limits::Limits;
use super::sniff::{self, Sniffed};
use super::{InputSpec, Origin, display_name};

/// Level of the compression members are held with: logs shrink ten times and more at the speed of a read.
const HOLD_LEVEL: i32 = 1;

/// Bytes of the headers of one member: its name, owner and times, none of which takes a kilobyte. They are read into
/// memory whole, so one that claims gigabytes is an attack.
const HEADERS: u64 = 1 << 20;

/// Adds the members of the archive `name` to `found`.
pub(super) fn members(name: &str, source: Source, limits: &Limits, found: &mut Discovery) {
    let room = Rc::new(Cell::new(None));
    let mut archive = tar::Archive::new(Roomed {
        inner: source,
        room: Rc::clone(&room),
    });
    let mut hidden = 0;
    let mut binary = 0;
    let failure = archive.entries().and_then(|mut entries| {
        loop {
            room.set(Some(HEADERS));
            let Some(entry) = entries.next() else { break };
            let mut entry = entry?;
            room.set(None);
            if !entry.header().entry_type().is_file() {
                io::copy(&mut entry, &mut io::sink())?;
                continue;
            }
            let path = entry.path()?.into_owned();
            let path = path.strip_prefix(".").unwrap_or(&path);
            if path.iter().any(|part| part.to_string_lossy().starts_with('.')) {
                hidden += 1;
                io::copy(&mut entry, &mut io::sink())?;
                continue;
            }
            let member = format!("{name}!/{}", display_name(path).trim_start_matches('/'));
            if found.inputs.len() >= limits.inputs {
                found.unreadable(
                    member,
                    format!("more than {} inputs are not read at once", limits.inputs),
                );
                break;
            }
            let stated = entry.size();
            let (bytes, taken) = pack(&mut entry, limits.archive_bytes.saturating_sub(found.held))?;
            let Some(bytes) = bytes else {
                found.unreadable(
                    member,
                    "what is in archives is too large to be held in memory: unpack it and give its folder".into(),
                );
                continue;
            };
            found.held += bytes.len();
            let notes = if taken < stated {
                vec![format!(
                    "the archive is cut off: only {taken} of the {stated} bytes of this member are in it"
                )]
            } else {
                Vec::new()
            };
            let input = InputSpec {
                name: member,
                size: Some(taken),
                origin: Origin::Memory { bytes, notes },
            };
            match input.head(limits) {
                Ok(head) if sniff::is_tar(&head) || sniff::is_zip(&head) => {
                    found.unreadable(
                        input.name,
                        "an archive inside an archive is not opened: unpack it first".into(),
                    );
                }
                Ok(head) if sniff::foreign(&head).is_some() || sniff::is_binary(&head) => binary += 1,
                Ok(_) => found.inputs.push(input),
                Err(e) => found.unreadable(input.name, super::explain(&e)),
            }
        }
        Ok(())
    });
    if let Err(e) = failure {
        found.unreadable(name.to_owned(), format!("the archive cannot be read to its end: {e}"));
    }
    for note in archive.into_inner().inner.notes() {
        found.unreadable(name.to_owned(), note.clone());
    }
    found.passed_over(name, hidden, "hidden");
    found.passed_over(name, binary, "binary");
}

/// Reads a member and gives it in compressed form, `None` if that is larger than `room`, with the bytes read.
/// The member is read to its end in any case, for the archive to go on.
fn pack(member: &mut impl Read, room: usize) -> io::Result<(Option<Arc<[u8]>>, u64)> {
    let mut head = Vec::new();
    member.take(16).read_to_end(&mut head)?;
    let compressed = matches!(sniff::coding(&head), Sniffed::Settled(Some(_)));
    let mut rest = head.as_slice().chain(member);
    let mut kept = Bounded {
        bytes: Vec::new(),
        room,
        full: false,
    };
    let taken = if compressed {
        io::copy(&mut rest, &mut kept)?
    } else {
        let mut encoder = zstd::stream::write::Encoder::new(&mut kept, HOLD_LEVEL)?;
        let taken = io::copy(&mut rest, &mut encoder)?;
        encoder.finish()?;
        taken
    };
    Ok(((!kept.full).then(|| kept.bytes.into()), taken))
}

/// A reader that gives no more than there is room for, where that is limited.
struct Roomed<R> {
    inner: R,
    /// Bytes that may still be read; as many as there are where it is `None`.
    room: Rc<Cell<Option<u64>>>,
}

impl<R: Read> Read for Roomed<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(room) = self.room.get() else {
            return self.inner.read(buf);
        };
        if room == 0 && !buf.is_empty() {
            return Err(io::Error::other(format!(
                "the headers of a member take more than {HEADERS} bytes"
            )));
        }
        let n = self.inner.by_ref().take(room).read(buf)?;
        self.room.set(Some(room - n as u64));
        Ok(n)
    }
}

/// A buffer that stops growing at a limit.
struct Bounded {
    bytes: Vec<u8>,
    room: usize,
    full: bool,
}

impl Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.full || self.bytes.len() + part.len() > self.room {
            self.full = true;
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(part);
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
