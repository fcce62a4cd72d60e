//! What the catalog finds in a message.
//!
//! Owns the memory of long messages: settings of ten kilobytes stand in a log once for each process, and a look at
//! every byte of them costs more than all else that is done with the line. Never interprets a match.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Reader;
use crate::catalog::captures::Captured;
use crate::catalog::matcher::Text;
use crate::event::SignatureId;

/// Bytes of the shortest message that is remembered.
const LONG: usize = 1024;
/// Messages remembered.
const MOST: usize = 256;

/// The signature that fits a message, and what its groups say.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub id: SignatureId,
    pub captured: Captured,
}

impl Reader<'_> {
    /// Looks a message up, whose line has a log header of a known program (`headed`) which names this source file.
    pub(super) fn find(&mut self, text: &str, headed: bool, file: Option<&str>) -> Option<Found> {
        let find = |reader: &Self| {
            let hit = reader.catalog.find(Text::Message { text, headed, file })?;
            let captured = reader.captured(&hit);
            Some(Found { id: hit.id, captured })
        };
        if text.len() < LONG {
            return find(self);
        }
        let header = xxh3_64_with_seed(file.unwrap_or_default().as_bytes(), u64::from(headed));
        let key = xxh3_64_with_seed(text.as_bytes(), header);
        if let Some(known) = self.long.get(&key) {
            return known.clone();
        }
        let found = find(self);
        if self.long.len() >= MOST {
            self.long.clear();
        }
        self.long.insert(key, found.clone());
        found
    }
}
