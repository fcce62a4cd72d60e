//! The rules that are compiled into the program.
//!
//! Owns their texts, which `build.rs` writes, and reading an entry of them when it is first asked for: a log needs few of
//! them, and to read all would take longer than to examine most logs. Never changes a rule; what rule files change of
//! them is joined in `pack`.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use super::literals::Literals;
use super::matcher::Signature;
use super::schema::{CauseDef, DataFile, RemedyDef};
use super::structure::Structure;
use super::{CatalogError, Causes, syntax};

include!(concat!(env!("OUT_DIR"), "/index.rs"));

const SIGNATURES: &str = include_str!(concat!(env!("OUT_DIR"), "/signatures.json"));
const CAUSES: &str = include_str!(concat!(env!("OUT_DIR"), "/causes.json"));
const REMEDIES: &str = include_str!(concat!(env!("OUT_DIR"), "/remedies.json"));
const STRUCTURE: &str = include_str!(concat!(env!("OUT_DIR"), "/structure.json"));

/// All entries.
///
/// # Errors
/// When one is broken, which a test rules out.
pub(super) fn all() -> Result<DataFile, CatalogError> {
    Ok(DataFile {
        signature: read(SIGNATURES)?,
        cause: read(CAUSES)?,
        remedy: read(REMEDIES)?,
        ..read(STRUCTURE)?
    })
}

/// How many signatures there are.
pub(super) const fn signatures() -> usize {
    SPANS.len()
}

/// A signature; none for a broken one, which a test rules out.
pub(super) fn signature(index: usize) -> Option<Signature> {
    let (start, end) = *SPANS.get(index)?;
    let def = read(SIGNATURES.get(start..end)?).ok()?;
    Signature::new(def, causes()).ok()
}

/// The causes.
pub(super) fn causes() -> &'static Causes {
    static READ: LazyLock<Causes> = LazyLock::new(|| Causes::new(read::<Vec<CauseDef>>(CAUSES).unwrap_or_default()));
    &READ
}

/// The remedies.
pub(super) fn remedies() -> &'static [RemedyDef] {
    static READ: LazyLock<Vec<RemedyDef>> = LazyLock::new(|| read(REMEDIES).unwrap_or_default());
    &READ
}

/// The tables of frames, places and exceptions.
pub(super) fn structure() -> &'static Structure {
    static READ: LazyLock<Structure> = LazyLock::new(|| {
        let rules: DataFile = read(STRUCTURE).unwrap_or_default();
        Structure::new(rules.frame, rules.place, rules.exception)
    });
    &READ
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, CatalogError> {
    serde_json::from_str(text).map_err(|e| syntax("(built in)", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_read_by_itself() {
        let all = all().unwrap();
        assert_eq!(signatures(), all.signature.len());
        for (i, def) in all.signature.iter().enumerate() {
            let signature = signature(i).unwrap_or_else(|| panic!("{} cannot be read", def.id));
            assert_eq!(signature.def.id, def.id);
        }
        assert_eq!(causes().all().len(), all.cause.len());
        assert_eq!(remedies().len(), all.remedy.len());
        assert_eq!(
            structure().rows(),
            all.frame.len() + all.place.len() + all.exception.len()
        );
    }
}
