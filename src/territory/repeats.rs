//! Which tier-1 lines only repeat what was said before.
//!
//! Owns the memory of line shapes. A server that answers one request in fifty with the same traceback would otherwise
//! be read in full, although it says nothing new after the first few. A new launch forgets everything.

use std::collections::HashMap;

/// Copies of a line that count as tier 1 before it is only a repetition.
const COPIES: u8 = 16;
/// Shapes remembered; a line of a further shape always counts.
const SHAPES: usize = 8192;
/// Bytes at the beginning of a line, and before and after its gate, that make its shape.
const HEAD: usize = 160;
const BEFORE: usize = 64;
const BEHIND: usize = 192;

/// Shapes seen, and how often.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    seen: HashMap<u64, u8>,
}

impl Repeats {
    /// Whether lines of this shape have been heard often enough.
    pub(super) fn known(&self, line: &[u8], gate: usize) -> bool {
        self.seen.get(&shape(line, gate)).is_some_and(|&n| n >= COPIES)
    }

    /// Counts a line, and says whether lines of its shape were heard often enough before.
    pub(super) fn count(&mut self, line: &[u8], gate: usize) -> bool {
        let shape = shape(line, gate);
        if let Some(n) = self.seen.get_mut(&shape) {
            *n = n.saturating_add(1);
            return *n > COPIES;
        }
        if self.seen.len() < SHAPES {
            self.seen.insert(shape, 1);
        }
        false
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.seen.clear();
    }
}

/// Bytes behind a gate that must be there to tell a line's shape, unless the line ends before.
pub(super) fn reach() -> usize {
    BEHIND.max(HEAD)
}

/// The words of a line without figures, addresses and identifiers.
fn shape(line: &[u8], gate: usize) -> u64 {
    let head = line.get(..HEAD.min(line.len())).unwrap_or_default();
    let from = gate.saturating_sub(BEFORE).max(head.len());
    let rest = line.get(from..(gate + BEHIND).min(line.len())).unwrap_or_default();
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for word in [head, rest]
        .into_iter()
        .flat_map(|part| part.split(|b| !b.is_ascii_alphanumeric()))
    {
        if word.iter().all(u8::is_ascii_alphabetic) && !word.iter().all(u8::is_ascii_hexdigit) {
            for &byte in word {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            hash = hash.rotate_left(7);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_and_identifiers_are_no_part_of_a_shape() {
        let a = b"INFO 11-25 12:01:02 request chatcmpl-9f3a-beef failed: KeyError: 17";
        let b = b"INFO 12-03 09:44:59 request chatcmpl-01bc-dead failed: KeyError: 3";
        let c = b"INFO 12-03 09:44:59 request chatcmpl-01bc-dead failed: IndexError: 3";
        assert_eq!(shape(a, 44), shape(b, 44));
        assert_ne!(shape(b, 44), shape(c, 44));
    }

    #[test]
    fn a_line_counts_until_it_only_repeats() {
        let mut repeats = Repeats::default();
        let line = b"ValueError: bad request";
        let counted = (0..100).filter(|_| !repeats.count(line, 0)).count();
        assert_eq!(counted, usize::from(COPIES));
        assert!(repeats.known(line, 0));
        assert!(!repeats.known(b"TypeError: bad request", 0));
        repeats.clear();
        assert!(!repeats.known(line, 0));
    }

    #[test]
    fn the_memory_is_bounded_and_what_does_not_fit_counts() {
        let mut repeats = Repeats::default();
        let word = |mut n: usize| {
            let mut word = Vec::new();
            for _ in 0..6 {
                word.push(b'g' + (n % 20) as u8);
                n /= 20;
            }
            word
        };
        for n in 0..20_000 {
            assert!(!repeats.count(&word(n), 0));
        }
        assert_eq!(repeats.seen.len(), SHAPES);
        assert!((0..50).all(|_| !repeats.count(&word(19_999), 0)));
    }
}
