//! Which lines of a launch under way only repeat what their process said before.
//!
//! Owns the memory of NCCL's lines at INFO level. When hundreds of ranks start, each prints thousands of lines that
//! state nothing but a channel or a tree. A few of one process and one form are read; those that follow differ in
//! figures alone, or in nothing where figures matter, and are noted as heard. Never decides that a line says nothing:
//! that is the reader's answer.

use memchr::memmem;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::forms::Forms;

/// Ends the part of a line that names its process.
const MARK: &[u8] = b"NCCL INFO ";
/// Bytes of the longest line that can be one.
const LONGEST: usize = 256;
/// Bytes that are looked at together.
const WORD: usize = 32;
/// Forms and lines remembered, each of one process: thousands of processes have a dozen each.
const FORMS: usize = 1 << 16;

/// Forms of lines that said nothing, and single lines of forms in which the figures matter, with their speakers.
#[derive(Debug)]
pub(super) struct Echoes {
    /// Small numbers: the table is larger than the nearest caches.
    forms: Forms<u32>,
    /// Where the mark ended in the last line; most lines of a log are alike in this.
    behind_mark: usize,
    /// Room for a line behind its mark, and for a word more.
    masked: [u8; LONGEST + WORD],
}

impl Default for Echoes {
    fn default() -> Self {
        Self {
            forms: Forms::new(FORMS),
            behind_mark: 0,
            masked: [0; LONGEST + WORD],
        }
    }
}

impl Echoes {
    /// The speaker of a line of this key that only repeats what was read of it.
    pub(super) fn speaker(&self, key: u64, line: &[u8]) -> Option<usize> {
        let mut form = self.forms.get(key)?;
        // Where its figures matter, only a line that was read to the letter is known.
        if form.figures {
            form = self.forms.get(letters(line))?;
        }
        form.whose().map(|speaker| speaker as usize)
    }

    /// Counts a line that was read, if it is of the kind that is remembered here and said nothing: then `quiet` tells
    /// its speaker. `always` says whether any line of its form says nothing; it is asked before one becomes an echo.
    pub(super) fn learn(&mut self, line: &[u8], quiet: impl FnOnce() -> Option<usize>, always: impl FnOnce() -> bool) {
        let Some(key) = self.key(line) else { return };
        let Some(speaker) = quiet().and_then(|speaker| u32::try_from(speaker).ok()) else {
            return;
        };
        if self.forms.count(key, speaker, always) {
            self.forms.count(letters(line), speaker, || true);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.forms.clear();
    }

    /// What a line is known by, if it is of the kind that is remembered here: what stands before the mark, to the letter,
    /// and what stands behind it, whatever its digits are.
    pub(super) fn key(&mut self, line: &[u8]) -> Option<u64> {
        if line.len() > LONGEST {
            return None;
        }
        let marked = line.get(..self.behind_mark).is_some_and(|head| head.ends_with(MARK));
        if !marked {
            self.behind_mark = memmem::find(line, MARK)? + MARK.len();
        }
        // From the line to the room in whole words of the processor's, the last one up to the end of the line: what is
        // written in other pieces than it is read in waits for itself.
        let (head, tail) = line.split_at(self.behind_mark);
        let (words, _) = tail.as_chunks();
        let (room, _) = self.masked.as_chunks_mut();
        let mut places = room.iter_mut();
        for (word, place) in words.iter().zip(&mut places) {
            mask(word, place);
        }
        mask(line.last_chunk()?, places.next()?);
        let masked = self.masked.get(..(words.len() + 1) * WORD)?;
        Some(xxh3_64_with_seed(masked, xxh3_64(head) ^ line.len() as u64))
    }
}

/// Writes a word with a nought for each digit.
#[inline]
fn mask(word: &[u8; WORD], place: &mut [u8; WORD]) {
    *place = *word;
    for byte in place {
        *byte = if byte.is_ascii_digit() { b'0' } else { *byte };
    }
}

/// What stands for a line with its figures, and for no form.
fn letters(line: &[u8]) -> u64 {
    xxh3_64_with_seed(line, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::territory::forms::COPIES;

    fn speaker(echoes: &mut Echoes, line: &[u8]) -> Option<usize> {
        let key = echoes.key(line)?;
        echoes.speaker(key, line)
    }

    const LINE: &[u8] = b"node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM";

    #[test]
    fn a_line_is_an_echo_once_its_form_was_read_a_few_times() {
        let mut echoes = Echoes::default();
        for _ in 0..COPIES {
            assert_eq!(speaker(&mut echoes, LINE), None);
            echoes.learn(LINE, || Some(7), || true);
            echoes.learn(LINE, || None, || true);
        }
        assert_eq!(speaker(&mut echoes, LINE), Some(7));
        let other = b"node-a:4101:5101 [1] NCCL INFO Channel 14/0 : 99[1] -> 88[2] via P2P/CUMEM";
        assert_eq!(speaker(&mut echoes, other), Some(7));
        for new in [
            // Another process, other words, another length, a longer line, no line of NCCL's.
            &b"node-a:4102:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM"[..],
            b"node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via SHM/direct",
            b"node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 111[1] -> 12[2] via P2P/CUMEM",
            &[LINE, &[b' '; LONGEST]].concat(),
            b"Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM",
        ] {
            assert_eq!(speaker(&mut echoes, new), None, "{}", String::from_utf8_lossy(new));
        }
        echoes.clear();
        assert_eq!(speaker(&mut echoes, LINE), None);
    }

    #[test]
    fn a_form_that_two_speakers_share_is_no_echo() {
        let mut echoes = Echoes::default();
        for n in 0..100 {
            echoes.learn(LINE, || Some(n % 2), || true);
            assert_eq!(speaker(&mut echoes, LINE), None);
        }
    }

    #[test]
    fn where_figures_matter_only_the_same_line_is_an_echo() {
        let mut echoes = Echoes::default();
        let zeros = b"node-a:4101:5101 [1] NCCL INFO Channel 00/0 : 00[0] -> 00[0] via P2P/CUMEM";
        for _ in 0..2 * COPIES {
            echoes.learn(zeros, || Some(1), || false);
        }
        assert_eq!(
            (speaker(&mut echoes, zeros), speaker(&mut echoes, LINE)),
            (Some(1), None)
        );
        for _ in 0..2 * COPIES {
            echoes.learn(LINE, || Some(1), || false);
        }
        assert_eq!(speaker(&mut echoes, LINE), Some(1));
        let other = b"node-a:4101:5101 [1] NCCL INFO Channel 14/0 : 99[1] -> 88[2] via P2P/CUMEM";
        assert_eq!(speaker(&mut echoes, other), None);
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut echoes = Echoes::default();
        for n in 0..2 * FORMS {
            echoes.learn(
                format!("node:{n}:1 [0] NCCL INFO Ring 0").as_bytes(),
                || Some(n),
                || true,
            );
        }
        assert_eq!(echoes.forms.len(), FORMS);
    }
}
