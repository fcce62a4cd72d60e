//! Which of many literals stand in a text.
//!
//! Owns the search. An automaton over as many texts would be larger than the processor's caches and take longer to build
//! than most logs take to read; here each position of a text costs one look at a table of 8 KiB (see `index`). Never
//! knows whose the literals are.

use std::borrow::Cow;

use super::index::{self, Marks, Tables};

/// A set of literals; one that is shorter than four bytes is never found.
#[derive(Clone)]
pub struct Literals {
    /// The literals, one behind the other.
    text: Cow<'static, str>,
    /// Where each ends in the text, bytes.
    ends: Cow<'static, [u32]>,
    /// The grams by their hashes.
    marks: Cow<'static, Marks>,
    /// Grams in order, each with its literal and its place in it.
    grams: Cow<'static, [(u32, u32, u32)]>,
}

impl From<Tables> for Literals {
    fn from(tables: Tables) -> Self {
        Self {
            text: tables.text.into(),
            ends: tables.ends.into(),
            marks: Cow::Owned(tables.marks),
            grams: tables.grams.into(),
        }
    }
}

impl Literals {
    /// Tables that were made before, as [`index::tables`] makes them.
    pub const fn of_tables(
        text: &'static str,
        ends: &'static [u32],
        marks: &'static Marks,
        grams: &'static [(u32, u32, u32)],
    ) -> Self {
        Self {
            text: Cow::Borrowed(text),
            ends: Cow::Borrowed(ends),
            marks: Cow::Borrowed(marks),
            grams: Cow::Borrowed(grams),
        }
    }

    /// A literal by its number.
    pub fn text(&self, slot: u32) -> &str {
        let slot = slot as usize;
        let start = slot.checked_sub(1).and_then(|before| self.ends.get(before));
        let end = self.ends.get(slot).map(|end| *end as usize);
        let range = start.map_or(0, |start| *start as usize)..end.unwrap_or_default();
        self.text.get(range).unwrap_or_default()
    }

    /// The literals that stand in `text`, each with the byte at which it first does, in no order.
    pub fn find(&self, text: &str) -> Vec<(u32, usize)> {
        let bytes = text.as_bytes();
        let mut found: Vec<(u32, usize)> = Vec::new();
        let mut from = 0;
        while let Some((at, gram)) = first(&self.marks, bytes, from) {
            from = at + 1;
            let first = self.grams.partition_point(|(g, ..)| *g < gram);
            let same = self.grams.get(first..).unwrap_or_default();
            for &(_, slot, offset) in same.iter().take_while(|(g, ..)| *g == gram) {
                let start = at.checked_sub(offset as usize);
                let stands = start
                    .and_then(|start| bytes.get(start..))
                    .is_some_and(|rest| rest.starts_with(self.text(slot).as_bytes()));
                if let Some(start) = start
                    && stands
                    && !found.iter().any(|(known, _)| *known == slot)
                {
                    found.push((slot, start));
                }
            }
        }
        found
    }
}

/// The first gram of a text from this byte on that has a mark. A loop of its own, which keeps all it needs in registers.
#[inline(never)]
fn first(marks: &Marks, bytes: &[u8], from: usize) -> Option<(usize, u32)> {
    let mut rest = index::grams(bytes.get(from..)?);
    rest.find(|(_, gram)| index::has(marks, *gram))
        .map(|(at, gram)| (from + at, gram))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literals(texts: &[&str]) -> Literals {
        index::tables(texts.iter().copied()).into()
    }

    #[test]
    fn each_literal_is_found_where_it_first_stands() {
        let set = literals(&["abcd", "bcde", "cdefgh", "abcd and more", "never", "ends"]);
        let mut found = set.find("xx abcde abcd and more, which ends");
        found.sort_unstable();
        assert_eq!(found, [(0, 3), (1, 4), (3, 9), (5, 30)]);
        assert_eq!(set.find("abc"), []);
        assert_eq!(set.text(1), "bcde");
    }

    #[test]
    fn a_literal_of_common_words_only_is_found_too() {
        let set = literals(&[
            "INFO",
            "Traceback (most recent call last):",
            "größer",
            "\n    return self",
        ]);
        assert_eq!(set.find("- INFO: nichts ist größer").len(), 2);
        assert_eq!(set.find("Traceback (most recent call last):"), [(1, 0)]);
        assert_eq!(set.find("in f\n    return self.x"), [(3, 4)]);
    }

    #[test]
    fn every_literal_of_the_catalog_finds_itself() {
        let catalog = crate::catalog::Catalog::built_in();
        let mut texts: Vec<String> = catalog.signatures().flat_map(|s| s.def.literal.clone()).collect();
        texts.sort();
        texts.dedup();
        let set = Literals::from(index::tables(texts.iter().map(String::as_str)));
        let stands = |found: &[(u32, usize)], slot: usize| found.iter().any(|(s, at)| *s as usize == slot && *at == 3);
        for (slot, text) in texts.iter().enumerate() {
            let line = format!("-> {text} ...");
            let found = set.find(&line);
            assert!(stands(&found, slot), "{text}");
            assert_eq!(
                found.len(),
                texts.iter().filter(|t| line.contains(*t)).count(),
                "{text}"
            );
        }
    }
}
