//! Which entries have a key.
//!
//! Owns the search in tables of keys, which `build.rs` makes for the built-in entries. Never knows what the keys are.

use std::borrow::Cow;
use std::ops::Range;

use super::index::{self, KeyTable};

/// Keys in order, each with the number of an entry that has it.
#[derive(Debug, PartialEq, Eq)]
pub struct Keys {
    /// The keys, one behind the other.
    text: Cow<'static, str>,
    /// Where each ends in the text, bytes.
    ends: Cow<'static, [u32]>,
    /// The entry of each.
    entries: Cow<'static, [u32]>,
}

impl From<KeyTable> for Keys {
    fn from(table: KeyTable) -> Self {
        Self {
            text: table.text.into(),
            ends: table.ends.into(),
            entries: table.entries.into(),
        }
    }
}

impl Keys {
    /// The keys of entries, each with the number of its entry.
    pub fn new<'k>(keys: impl IntoIterator<Item = (&'k str, u32)>) -> Self {
        index::keys(keys).into()
    }

    /// A table that was made before, as [`index::keys`] makes it.
    pub const fn of_table(text: &'static str, ends: &'static [u32], entries: &'static [u32]) -> Self {
        Self {
            text: Cow::Borrowed(text),
            ends: Cow::Borrowed(ends),
            entries: Cow::Borrowed(entries),
        }
    }

    /// The entries that have this key, in order.
    pub fn get(&self, key: &str) -> impl Iterator<Item = u32> {
        let same = self
            .starting_with(key)
            .take_while(move |(found, _)| found.len() == key.len());
        same.map(|(_, entry)| entry)
    }

    /// The keys that start so, in order, each with an entry that has it.
    pub fn starting_with(&self, start: &str) -> impl Iterator<Item = (&str, u32)> {
        let (mut low, mut high) = (0, self.ends.len());
        while low < high {
            let middle = low.midpoint(high);
            let key = self.text.as_bytes().get(self.span(middle)).unwrap_or_default();
            match key < start.as_bytes() {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        (low..self.ends.len())
            .map(|i| (self.key(i), self.entries.get(i).copied().unwrap_or(u32::MAX)))
            .take_while(move |(key, _)| key.starts_with(start))
    }

    fn key(&self, i: usize) -> &str {
        self.text.get(self.span(i)).unwrap_or_default()
    }

    fn span(&self, i: usize) -> Range<usize> {
        let end = |i: usize| self.ends.get(i).map_or(0, |end| *end as usize);
        i.checked_sub(1).map_or(0, end)..end(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_found_with_all_its_entries() {
        let keys = Keys::new([
            ("load", 3),
            ("load_model", 1),
            ("load", 0),
            ("", 5),
            ("init", 2),
            ("größe", 4),
        ]);
        let get = |key: &str| keys.get(key).collect::<Vec<_>>();
        assert_eq!(get("load"), [0, 3]);
        assert_eq!(get("load_model"), [1]);
        assert_eq!(get("größe"), [4]);
        assert_eq!(get(""), [5]);
        assert!(get("loa").is_empty() && get("z").is_empty() && get("aaa").is_empty());
        let starting: Vec<_> = keys.starting_with("load").collect();
        assert_eq!(starting, [("load", 0), ("load", 3), ("load_model", 1)]);
        assert_eq!(Keys::new([]).starting_with("").count(), 0);
    }
}
