//! Forms of lines that said nothing: how often each was read, and whose it is.
//!
//! Owns the counting by which the further lines of a form need not be read. What a form is, `echoes` and `bars` say;
//! whether a line said nothing is the reader's answer.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Lines of one form that are read before the others only repeat them.
pub(super) const COPIES: u8 = 2;

/// Forms by their hashes, each with whose it is.
#[derive(Debug)]
pub(super) struct Forms<W> {
    forms: HashMap<u64, Form<W>, BuildHasherDefault<Same>>,
    /// Forms remembered.
    most: usize,
}

/// What is known of a form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form<W> {
    whose: W,
    /// Lines of it that said nothing.
    copies: u8,
    /// Whether its figures matter, so that a line of it is not like another.
    pub(super) figures: bool,
}

impl<W: Copy> Form<W> {
    /// Whose a further line is, if lines enough were read.
    pub(super) fn whose(&self) -> Option<W> {
        (self.copies >= COPIES).then_some(self.whose)
    }
}

impl<W: Copy + PartialEq> Forms<W> {
    /// Room for so many.
    pub(super) fn new(most: usize) -> Self {
        Self {
            forms: HashMap::default(),
            most,
        }
    }

    /// Whether none is known.
    pub(super) fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// What is known of a form.
    pub(super) fn get(&self, key: u64) -> Option<&Form<W>> {
        self.forms.get(&key)
    }

    /// Counts a line that said nothing, if there is room. When there are enough of them `always` says whether any line of
    /// the form says nothing; if not, its figures matter. Gives whether they do.
    pub(super) fn count(&mut self, key: u64, whose: W, always: impl FnOnce() -> bool) -> bool {
        if self.forms.len() >= self.most && !self.forms.contains_key(&key) {
            return false;
        }
        let form = self.forms.entry(key).or_insert(Form {
            whose,
            copies: 0,
            figures: false,
        });
        // A line without a speaker of its own may be another's.
        form.copies = match form.whose == whose {
            true => COPIES.min(form.copies + 1),
            false => 0,
        };
        form.whose = whose;
        form.figures = form.figures || form.copies == COPIES && !always();
        form.figures
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.forms.clear();
    }

    /// How many are known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.forms.len()
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
