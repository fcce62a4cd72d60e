//! Entries of one kind, each read when it is first asked for.
//!
//! Owns their order, which is that of their numbers, and finding them by a key. A log needs few of the built-in entries, and to read all would take
//! longer than to examine most logs. Never knows what an entry says.

use std::sync::OnceLock;

use super::keys::Keys;

/// The texts of entries, and how one is read.
pub struct Texts<T> {
    /// All of them, in one.
    pub text: &'static str,
    /// Where each stands in it, bytes.
    pub spans: &'static [(u32, u32)],
    /// Reads one; none for a broken one, which a test rules out.
    pub read: fn(&str) -> Option<T>,
}

/// Entries by their numbers.
pub struct Entries<T> {
    slots: Vec<OnceLock<Option<Box<T>>>>,
    texts: Texts<T>,
}

impl<T> Entries<T> {
    /// Those of these texts.
    pub fn of(texts: Texts<T>) -> Self {
        Self {
            slots: texts.spans.iter().map(|_| OnceLock::new()).collect(),
            texts,
        }
    }

    /// One of them.
    pub fn get(&self, number: u32) -> Option<&T> {
        let number = number as usize;
        let read = || {
            let (start, end) = *self.texts.spans.get(number)?;
            let text = self.texts.text.get(start as usize..end as usize)?;
            (self.texts.read)(text).map(Box::new)
        };
        self.slots.get(number)?.get_or_init(read).as_deref()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> + Clone {
        (0..self.slots.len() as u32).filter_map(|number| self.get(number))
    }
}

impl<T> From<Vec<T>> for Entries<T> {
    fn from(entries: Vec<T>) -> Self {
        Self {
            slots: entries
                .into_iter()
                .map(|entry| OnceLock::from(Some(Box::new(entry))))
                .collect(),
            texts: Texts {
                text: "",
                spans: &[],
                read: |_| None,
            },
        }
    }
}

/// Entries with the keys by which they are found.
pub struct Table<T> {
    entries: Entries<T>,
    keys: Keys,
}

impl<T> Table<T> {
    /// Entries that have a table of their keys.
    pub fn new(entries: Entries<T>, keys: Keys) -> Self {
        Self { entries, keys }
    }

    /// Entries of which these are the keys.
    pub fn keyed(entries: Vec<T>, keys: impl Fn(&T) -> Vec<&str>) -> Self {
        let numbered = (0..).zip(&entries);
        let keys = Keys::new(numbered.flat_map(|(i, entry)| keys(entry).into_iter().map(move |key| (key, i))));
        Self::new(entries.into(), keys)
    }

    /// All of them, in order.
    pub fn all(&self) -> impl Iterator<Item = &T> + Clone {
        self.entries.iter()
    }

    /// One of them.
    pub fn get(&self, number: u32) -> Option<&T> {
        self.entries.get(number)
    }

    /// Those that have a key, in order.
    pub fn having(&self, key: &str) -> impl Iterator<Item = &T> {
        self.keys.get(key).filter_map(|number| self.get(number))
    }

    /// Their keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }
}
