//! What an input is, told from its first bytes and never from its name.
//!
//! Owns the magic numbers and the test for binary content. Never reads: it is given bytes.

use super::utf16::Order;

/// A coding that has to be undone before lines can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// gzip, one member or several.
    Gzip,
    /// Zstandard.
    Zstd,
    /// xz.
    Xz,
    /// bzip2.
    Bzip2,
    /// That of a ZIP archive for one of its members.
    Zip,
    /// UTF-16 with a byte-order mark.
    Utf16(Order),
}

impl Coding {
    /// The name used in notes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Xz => "xz",
            Self::Bzip2 => "bzip2",
            Self::Zip => "ZIP",
            Self::Utf16(_) => "UTF-16",
        }
    }
}

/// `?` stands for any byte; no magic number here contains one.
const CODINGS: [(&[u8], Coding); 7] = [
    (b"\x1f\x8b\x08", Coding::Gzip),
    (b"\x28\xb5\x2f\xfd", Coding::Zstd),
    (b"\xfd7zXZ\x00", Coding::Xz),
    (b"BZh?1AY&SY", Coding::Bzip2),
    (b"BZh?\x17\x72\x45\x38\x50\x90", Coding::Bzip2),
    (b"\xff\xfe", Coding::Utf16(Order::Little)),
    (b"\xfe\xff", Coding::Utf16(Order::Big)),
];

/// Whether the first bytes settle the coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sniffed {
    /// They do: this coding, or none.
    Settled(Option<Coding>),
    /// They are the beginning of a magic number.
    NeedsMore,
}

/// The coding of an input that begins with `head`.
pub fn coding(head: &[u8]) -> Sniffed {
    let agrees = |magic: &[u8]| head.iter().zip(magic).all(|(h, m)| h == m || *m == b'?');
    let mut candidates = CODINGS.iter().filter(|(magic, _)| agrees(magic));
    match candidates.next() {
        Some((magic, coding)) if head.len() >= magic.len() => Sniffed::Settled(Some(*coding)),
        Some(_) => match candidates.find(|(magic, _)| head.len() >= magic.len()) {
            Some((_, coding)) => Sniffed::Settled(Some(*coding)),
            None => Sniffed::NeedsMore,
        },
        None => Sniffed::Settled(None),
    }
}

/// Whether this is the first block of a tar archive.
pub fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar")
}

/// Whether this is the beginning of a ZIP archive, which may be empty.
pub fn is_zip(head: &[u8]) -> bool {
    [b"PK\x03\x04", b"PK\x05\x06"]
        .iter()
        .any(|magic| head.starts_with(*magic))
}

/// Formats that are no text whatever else is in them, and what to say of each.
const FOREIGN: [(&[u8], &str); 14] = [
    (b"PK\x03\x04", "a ZIP archive"),
    (b"PK\x05\x06", "a ZIP archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"\x04\x22\x4d\x18", "an lz4 file"),
    (b"\x7fELF", "a program, library or core dump"),
    (b"\x89PNG\r\n\x1a\n", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"%PDF-", "a PDF document"),
    (b"SQLite format 3\x00", "a database"),
    (b"GGUF", "model weights"),
    (b"PAR1", "a Parquet table"),
    (b"\x80\x02", "a Python pickle"),
];

/// The name of a format that cannot be a log, if `head` begins one.
pub fn foreign(head: &[u8]) -> Option<&'static str> {
    // safetensors: a 64-bit length, then JSON.
    if let [low @ .., 0, 0, 0, 0, b'{'] = head.get(..9).unwrap_or_default()
        && low != [0; 4]
    {
        return Some("model weights");
    }
    FOREIGN
        .iter()
        .find(|(magic, _)| head.starts_with(magic))
        .map(|(_, what)| *what)
}

/// Whether the first bytes of a file look like anything but text.
///
/// A log may hold NUL bytes: a hole that rotation left at its start, or a few from a torn write. It may also be in a
/// legacy encoding. Binary content shows itself by control characters, or by NULs throughout.
pub fn is_binary(head: &[u8]) -> bool {
    let hole = head.iter().take_while(|&&b| b == 0).count();
    let (_, head) = head.split_at(hole);
    let nuls = count(head, |b| b == 0);
    let controls = count(head, |b| {
        (b < 0x20 || b == 0x7f) && !matches!(b, 0 | 0x07..=0x0d | 0x1b)
    });
    nuls * 10 > head.len() || controls * 20 > head.len()
}

fn count(bytes: &[u8], is: impl Fn(u8) -> bool) -> usize {
    // Few enough for a byte to count them, which lets the compiler look at many at once.
    let counted = |few: &[u8]| few.iter().fold(0u8, |n, &b| n.wrapping_add(u8::from(is(b))));
    bytes.chunks(255).map(|few| usize::from(counted(few))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_is_settled_by_its_whole_magic_number_only() {
        assert_eq!(coding(b""), Sniffed::NeedsMore);
        assert_eq!(coding(b"B"), Sniffed::NeedsMore);
        assert_eq!(coding(b"BZh9"), Sniffed::NeedsMore);
        assert_eq!(coding(b"BZh9 is no"), Sniffed::Settled(None));
        assert_eq!(coding(b"BZh91AY&SY"), Sniffed::Settled(Some(Coding::Bzip2)));
        assert_eq!(coding(b"INFO"), Sniffed::Settled(None));
        assert_eq!(
            coding(b"\xff\xfeI\x00"),
            Sniffed::Settled(Some(Coding::Utf16(Order::Little)))
        );
    }

    #[test]
    fn logs_with_holes_colours_and_legacy_text_are_no_binaries() {
        let mut hole = vec![0; 4096];
        hole.extend_from_slice(b"INFO 11-25 12:00:00 still a log\n");
        assert!(!is_binary(&hole));
        assert!(!is_binary(b"\x1b[36m(Worker pid=1)\x1b[0m INFO \x08\x08 50%\r\x0c\n"));
        assert!(!is_binary(b"\xb4\xed\xce\xf3 \xc4\xda\xb4\xe6\n"));
        assert!(!is_binary(b"half a \x00 record\n"));
        assert!(!is_binary(b""));
    }

    #[test]
    fn binaries_are_told_by_content() {
        let noise: Vec<u8> = (0..4096u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
            .collect();
        assert!(is_binary(&noise));
        assert!(is_binary(b"I\x00N\x00F\x00O\x00"));
        assert_eq!(foreign(b"\x7fELF\x02\x01"), Some("a program, library or core dump"));
        assert_eq!(
            foreign(b"\x10\x01\x00\x00\x00\x00\x00\x00{\"a\":1}"),
            Some("model weights")
        );
        assert_eq!(foreign(b"INFO 11-25"), None);
    }
}
