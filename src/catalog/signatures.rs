//! All signatures in force, each read when it is first asked for.
//!
//! Owns their order, which is that of their numbers. Never matches a text (see `matcher`).

use std::sync::OnceLock;

use super::built_in;
use super::matcher::Signature;
use crate::event::SignatureId;

/// Signatures by their numbers.
pub struct Signatures(Vec<OnceLock<Option<Box<Signature>>>>);

impl Signatures {
    /// The built-in ones.
    pub fn built_in() -> Self {
        Self((0..built_in::signatures()).map(|_| OnceLock::new()).collect())
    }

    /// One of them.
    pub fn get(&self, id: SignatureId) -> Option<&Signature> {
        let index = id.0 as usize;
        let slot = self.0.get(index)?;
        slot.get_or_init(|| built_in::signature(index).map(Box::new)).as_deref()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Signature> {
        (0..self.0.len()).filter_map(|i| self.get(SignatureId(i as u32)))
    }
}

impl From<Vec<Signature>> for Signatures {
    fn from(all: Vec<Signature>) -> Self {
        Self(all.into_iter().map(|s| OnceLock::from(Some(Box::new(s)))).collect())
    }
}
