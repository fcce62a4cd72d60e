//! The limits that keep memory and time bounded whatever the input is.
//!
//! Owns the figures. Never enforces them: each part of the intake does so for itself and says when it did.

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Limits of reading. The defaults are the documented ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes kept of one line: the first three quarters, and of the last quarter the whole `\r` segments. 256 KiB.
    pub line_bytes: usize,
    /// Bytes asked for in one read. 256 KiB.
    pub block_bytes: usize,
    /// Bytes of an input shown to detection before its first line is taken. 256 KiB.
    pub sample_bytes: usize,
    /// Bytes of a newest-first source that are held to be read in reverse, bookkeeping included. 64 MiB.
    pub reverse_bytes: usize,
    /// Bytes read from one input after decompression. 64 GiB.
    pub text_bytes: u64,
    /// Largest growth by decompression, once [`free_growth_bytes`](Self::free_growth_bytes) is passed. 500 to 1.
    pub growth: u64,
    /// Bytes a compressed input may yield whatever its size. 1 GiB.
    pub free_growth_bytes: u64,
    /// Memory a single decompressor may take. 256 MiB.
    pub decoder_bytes: u64,
    /// Bytes of the members of archives that are held in memory, in compressed form. 256 MiB.
    pub archive_bytes: usize,
    /// Bytes that the events of one examination take while it is read; a report needs up to three times as much for a
    /// moment. 192 MiB.
    pub event_bytes: usize,
    /// Inputs of one examination; what a folder or an archive has beyond that is left out. 20,000.
    pub inputs: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 256 * KIB,
            block_bytes: 256 * KIB,
            sample_bytes: 256 * KIB,
            reverse_bytes: 64 * MIB,
            text_bytes: 64 << 30,
            growth: 500,
            free_growth_bytes: 1 << 30,
            decoder_bytes: 256 << 20,
            archive_bytes: 256 * MIB,
            event_bytes: 192 * MIB,
            inputs: 20_000,
        }
    }
}

impl Limits {
    /// Memory that an examination with the default limits stays below, whatever it reads. 1 GiB.
    pub const MEMORY: u64 = 1 << 30;

    /// The least that [`within`](Self::within) goes by, which the program, its rules and its buffers need. 64 MiB.
    pub const LEAST_MEMORY: u64 = 64 << 20;

    /// The limits of an examination that may take `memory` bytes: what is held is cut in proportion, what is read in
    /// one piece stays.
    pub fn within(memory: u64) -> Self {
        let default = Self::default();
        let memory = memory.max(Self::LEAST_MEMORY);
        let share = |bytes: usize| {
            let scaled = u128::try_from(bytes).unwrap_or(u128::MAX) * u128::from(memory) / u128::from(Self::MEMORY);
            usize::try_from(scaled).unwrap_or(usize::MAX)
        };
        Self {
            reverse_bytes: share(default.reverse_bytes),
            decoder_bytes: share(usize::try_from(default.decoder_bytes).unwrap_or(usize::MAX)) as u64,
            archive_bytes: share(default.archive_bytes),
            event_bytes: share(default.event_bytes),
            ..default
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_follow_the_memory_and_stop_at_what_the_program_needs() {
        assert_eq!(Limits::within(Limits::MEMORY), Limits::default());
        let half = Limits::within(Limits::MEMORY / 2);
        assert_eq!(half.archive_bytes, 128 * MIB);
        assert_eq!(half.line_bytes, Limits::default().line_bytes);
        assert_eq!(Limits::within(0), Limits::within(Limits::LEAST_MEMORY));
        assert!(Limits::within(u64::MAX).event_bytes > 1 << 40);
    }
}
