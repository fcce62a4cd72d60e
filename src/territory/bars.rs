//! Which lines of a launch under way only show a progress bar again.
//!
//! Owns the memory of lines in which a bar was drawn over and over, state after state behind carriage returns: all of
//! them together are one line of many kilobytes, of which the last state counts. Those of one form differ in figures
//! alone. Never decides that a line says nothing: that is the reader's answer.

use memchr::memchr;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::Voice;
use super::forms::Forms;

/// Bytes at the beginning of a line in which a first state and its end must stand.
const HEAD: usize = 512;
/// Forms remembered.
const FORMS: usize = 1 << 12;
/// Bytes that are looked at together.
const BLOCK: usize = 1024;

/// Forms of lines with bars that said nothing.
#[derive(Debug)]
pub(super) struct Bars {
    forms: Forms<Voice>,
}

impl Default for Bars {
    fn default() -> Self {
        Self {
            forms: Forms::new(FORMS),
        }
    }
}

impl Bars {
    /// Whose a line is that only shows again what was read of it, and what of it is shown.
    pub(super) fn voice(&self, line: &[u8]) -> Option<Voice> {
        if self.forms.is_empty() {
            return None;
        }
        let form = self.forms.get(key(line)?)?;
        form.whose().filter(|_| !form.figures)
    }

    /// Counts a line that was read, if it is of the kind that is remembered here and said nothing: then `quiet` tells
    /// whose it is. `always` says whether any line of its form says nothing; it is asked before others are not read.
    pub(super) fn learn(&mut self, line: &[u8], quiet: Option<Voice>, always: impl FnOnce() -> bool) {
        if let Some(voice) = quiet
            && let Some(key) = key(line)
        {
            self.forms.count(key, voice, always);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.forms.clear();
    }
}

/// What stands before the strokes of the first state, to the letter, and all behind it, whatever its digits are.
fn key(line: &[u8]) -> Option<u64> {
    let start = line.get(..HEAD.min(line.len()))?;
    memchr(b'\r', start)?;
    let (label, states) = line.split_at(memchr(b'|', start)?);
    let mut hash = xxh3_64(label);
    let mut masked = [0; BLOCK];
    for block in states.chunks(BLOCK) {
        let room = masked.get_mut(..block.len())?;
        for (to, from) in room.iter_mut().zip(block) {
            *to = if from.is_ascii_digit() { b'0' } else { *from };
        }
        hash = xxh3_64_with_seed(room, hash);
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::territory::forms::COPIES;

    const VOICE: Voice = Voice {
        speaker: 7,
        shown: 20,
        counted: true,
    };

    fn line(label: &str, step: usize) -> Vec<u8> {
        let state = |step: usize| format!("\r{label}: {step}%|##   | {step}/24 [00:0{}<00:09]", step % 10);
        (10..50).map(|n| state(n + step)).collect::<String>().into_bytes()
    }

    #[test]
    fn a_bar_is_shown_again_once_its_form_was_read_twice() {
        let mut bars = Bars::default();
        let first = line("Loading", 0);
        for _ in 0..COPIES {
            assert_eq!(bars.voice(&first), None);
            bars.learn(&first, None, || true);
            bars.learn(&first, Some(VOICE), || true);
        }
        assert_eq!(bars.voice(&first), Some(VOICE));
        let mut figures = first.clone();
        let last = figures.len() - 2;
        figures[last] = b'1';
        assert_eq!(bars.voice(&figures), Some(VOICE));
        for other in [
            // Another label, more states, a word, no state before the last.
            line("Capture", 0),
            [first.as_slice(), b"\rLoading"].concat(),
            [&first[..last], b"x]"].concat(),
            first[1..40].to_vec(),
            Vec::new(),
        ] {
            assert_eq!(bars.voice(&other), None, "{}", String::from_utf8_lossy(&other));
        }
        bars.clear();
        assert_eq!(bars.voice(&first), None);
    }

    #[test]
    fn what_two_speakers_show_or_figures_tell_is_read() {
        let mut bars = Bars::default();
        let shown = line("Loading", 0);
        for speaker in 0..100 {
            bars.learn(&shown, Some(Voice { speaker, ..VOICE }), || true);
            assert_eq!(bars.voice(&shown), None);
        }
        for _ in 0..100 {
            bars.learn(&shown, Some(VOICE), || false);
            assert_eq!(bars.voice(&shown), None);
        }
    }

    #[test]
    fn the_memory_is_bounded() {
        let mut bars = Bars::default();
        for n in 0..2 * FORMS {
            bars.learn(&line(&format!("Loading {n}"), 0), Some(VOICE), || true);
        }
        assert_eq!(bars.forms.len(), FORMS);
    }
}
