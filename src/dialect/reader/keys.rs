//! The key by which the lines of one speaker's traceback belong together.
//!
//! Owns what two lines must have in common. Never says who the speaker is.

use std::hash::{Hash, Hasher};

use crate::dialect::header::Header;
use crate::record::Record;

/// The key of a line's speaker for tracebacks: lines of one logger call, or raw lines of one process.
pub(super) fn key_of(record: &Record<'_>, head: &Header<'_>) -> u64 {
    let mut hasher = Keys::default();
    let tag = &record.tag;
    (
        &tag.node,
        &tag.container,
        &tag.pid,
        &tag.rank,
        &tag.local,
        &tag.task,
        &tag.ray,
    )
        .hash(&mut hasher);
    (
        head.label,
        head.pid,
        head.host,
        head.rank,
        head.logged,
        head.level,
        head.file,
    )
        .hash(&mut hasher);
    hasher.finish()
}

/// A hasher for a few short fields, of which every line needs one: its beginning and end cost nothing.
#[derive(Default)]
struct Keys(u64);

impl Keys {
    fn add(&mut self, word: u64) {
        let mixed = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xe703_7ed1_a0b4_28db_u128;
        self.0 = (mixed as u64) ^ ((mixed >> 64) as u64);
    }
}

impl Hasher for Keys {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let last = rest
            .iter()
            .fold(rest.len() as u64, |word, &byte| word << 8 | u64::from(byte));
        self.add(last);
    }

    fn write_u8(&mut self, n: u8) {
        self.add(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.add(u64::from(n));
    }

    fn write_u64(&mut self, n: u64) {
        self.add(n);
    }

    fn write_usize(&mut self, n: usize) {
        self.add(n as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
