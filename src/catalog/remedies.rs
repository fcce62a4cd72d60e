//! The remedies in force.
//!
//! Owns the look-up by cause. Never chooses among them: that is `remedy`'s work.

use super::causes::family;
use super::entries::Table;
use super::schema::RemedyDef;

/// The remedies, by cause id or `family.*`.
pub struct Remedies(pub(super) Table<RemedyDef>);

impl Remedies {
    /// All of them, in the order of the data files.
    pub fn all(&self) -> impl Iterator<Item = &RemedyDef> + Clone {
        self.0.all()
    }

    /// Those for a cause or its family, in the order of the data files.
    pub fn of_cause(&self, cause: &str) -> impl Iterator<Item = &RemedyDef> {
        let family = format!("{}.*", family(cause));
        let keys = self.0.keys();
        let mut numbers: Vec<u32> = keys.get(cause).chain(keys.get(&family)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().filter_map(|number| self.0.get(number))
    }
}

impl From<Vec<RemedyDef>> for Remedies {
    fn from(all: Vec<RemedyDef>) -> Self {
        Self(Table::keyed(all, |def| {
            def.applies.keys().map(String::as_str).collect()
        }))
    }
}
