//! Which lines of a launch under way only repeat what their process said before.
//!
//! Owns the memory of NCCL's lines at INFO level. When hundreds of ranks start, each prints thousands of lines that
//! state nothing but a channel or a tree. A few of one process and one form are read; those that follow differ in
//! figures alone, and are noted as heard. Never decides that a line says nothing: that is the reader's answer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use memchr::memmem;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Ends the part of a line that names its process.
const MARK: &[u8] = b"NCCL INFO ";
/// Lines of one process and form that are read before the others are echoes.
const COPIES: u8 = 4;
/// Bytes of the longest line that can be one.
const LONGEST: usize = 256;
/// Bytes that are looked at together.
const WORD: usize = 32;
/// Forms remembered, each of one process: thousands of processes have a dozen each.
const FORMS: usize = 1 << 16;

/// Forms of lines that said nothing, with their speakers.
#[derive(Debug, Default)]
pub(super) struct Echoes {
    forms: HashMap<u64, Form, BuildHasherDefault<Same>>,
    /// Where the mark ended in the last line; most lines of a log are alike in this.
    behind_mark: usize,
}

#[derive(Debug, Clone, Copy)]
struct Form {
    speaker: usize,
    copies: u8,
}

impl Echoes {
    /// The speaker of a line that only repeats what was read of it.
    pub(super) fn speaker(&mut self, line: &[u8]) -> Option<usize> {
        let key = self.key(line)?;
        let form = self.forms.get(&key).filter(|form| form.copies >= COPIES);
        form.map(|form| form.speaker)
    }

    /// Counts a line that was read, if it is of the kind that is remembered here and said nothing: then `quiet` tells
    /// its speaker. `always` says whether any line of its form says nothing; it is asked before one becomes an echo.
    pub(super) fn learn(&mut self, line: &[u8], quiet: impl FnOnce() -> Option<usize>, always: impl FnOnce() -> bool) {
        let Some(key) = self.key(line) else { return };
        let Some(speaker) = quiet() else { return };
        if self.forms.len() < FORMS || self.forms.contains_key(&key) {
            let form = self.forms.entry(key).or_insert(Form { speaker, copies: 0 });
            // A line without a speaker of its own may be another's.
            let other = form.speaker != speaker || form.copies + 1 == COPIES && !always();
            form.copies = if other { 0 } else { COPIES.min(form.copies + 1) };
            form.speaker = speaker;
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.forms.clear();
    }

    /// What stands before the mark, to the letter, and what stands behind it, whatever its digits are.
    fn key(&mut self, line: &[u8]) -> Option<u64> {
        if line.len() > LONGEST {
            return None;
        }
        let marked = line.get(..self.behind_mark).is_some_and(|head| head.ends_with(MARK));
        if !marked {
            self.behind_mark = memmem::find(line, MARK)? + MARK.len();
        }
        let (process, said) = line.split_at_checked(self.behind_mark)?;
        let mut form = [0; LONGEST];
        form.get_mut(..said.len())?.copy_from_slice(said);
        // Whole words of the processor's, also over the end.
        let (words, _) = form.as_chunks_mut::<WORD>();
        for word in words.iter_mut().take(said.len().div_ceil(WORD)) {
            *word = word.map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
        }
        Some(xxh3_64_with_seed(form.get(..said.len())?, xxh3_64(process)))
    }
}

/// A hasher for what is a hash already.
#[derive(Debug, Default)]
struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM";

    #[test]
    fn a_line_is_an_echo_once_its_form_was_read_a_few_times() {
        let mut echoes = Echoes::default();
        for _ in 0..COPIES {
            assert_eq!(echoes.speaker(LINE), None);
            echoes.learn(LINE, || Some(7), || true);
            echoes.learn(LINE, || None, || true);
        }
        assert_eq!(echoes.speaker(LINE), Some(7));
        let other = b"node-a:4101:5101 [1] NCCL INFO Channel 14/0 : 99[1] -> 88[2] via P2P/CUMEM";
        assert_eq!(echoes.speaker(other), Some(7));
        for new in [
            // Another process, other words, another length, a longer line, no line of NCCL's.
            &b"node-a:4102:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM"[..],
            b"node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 11[1] -> 12[2] via SHM/direct",
            b"node-a:4101:5101 [1] NCCL INFO Channel 03/0 : 111[1] -> 12[2] via P2P/CUMEM",
            &[LINE, &[b' '; LONGEST]].concat(),
            b"Channel 03/0 : 11[1] -> 12[2] via P2P/CUMEM",
        ] {
            assert_eq!(echoes.speaker(new), None, "{}", String::from_utf8_lossy(new));
        }
        echoes.clear();
        assert_eq!(echoes.speaker(LINE), None);
    }

    #[test]
    fn a_form_that_two_speakers_share_is_no_echo() {
        let mut echoes = Echoes::default();
        for n in 0..100 {
            echoes.learn(LINE, || Some(n % 2), || true);
            assert_eq!(echoes.speaker(LINE), None);
        }
    }

    #[test]
    fn a_form_whose_figures_matter_is_no_echo() {
        let mut echoes = Echoes::default();
        for _ in 0..100 {
            echoes.learn(LINE, || Some(1), || false);
            assert_eq!(echoes.speaker(LINE), None);
        }
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
