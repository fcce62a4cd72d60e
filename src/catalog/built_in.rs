//! The rules that are compiled into the program.
//!
//! Owns their texts and tables, which `build.rs` writes, and how an entry is read. Never changes a rule; what rule files
//! change of them is joined in `pack`.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;

use super::causes::Causes;
use super::entries::{Entries, Table, Texts};
use super::keys::Keys;
use super::literals::Literals;
use super::matcher::Signature;
use super::remedies::Remedies;
use super::schema::DataFile;
use super::structure::Structure;
use super::{CatalogError, syntax};

include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// All entries.
///
/// # Errors
/// When one is broken, which a test rules out.
pub(super) fn all() -> Result<DataFile, CatalogError> {
    fn list<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, CatalogError> {
        serde_json::from_str(text).map_err(|e| syntax("(built in)", &e))
    }
    Ok(DataFile {
        signature: list(SIGNATURE_TEXT)?,
        frame: list(FRAME_TEXT)?,
        place: list(PLACE_TEXT)?,
        exception: list(EXCEPTION_TEXT)?,
        cause: list(CAUSE_TEXT)?,
        remedy: list(REMEDY_TEXT)?,
        ..DataFile::default()
    })
}

/// The signatures.
pub(super) fn signatures() -> Entries<Signature> {
    Entries::of(Texts {
        text: SIGNATURE_TEXT,
        spans: SIGNATURE_SPANS,
        read: |text| Signature::new(serde_json::from_str(text).ok()?, causes()).ok(),
    })
}

/// The causes.
pub(super) fn causes() -> &'static Causes {
    static CAUSES: LazyLock<Causes> = LazyLock::new(|| Causes(table(CAUSE_TEXT, CAUSE_SPANS, CAUSE_IDS)));
    &CAUSES
}

/// The remedies.
pub(super) fn remedies() -> &'static Remedies {
    static REMEDIES: LazyLock<Remedies> = LazyLock::new(|| Remedies(table(REMEDY_TEXT, REMEDY_SPANS, REMEDY_CAUSES)));
    &REMEDIES
}

/// The tables of frames, places and exceptions.
pub(super) fn structure() -> &'static Structure {
    static STRUCTURE: LazyLock<Structure> = LazyLock::new(|| Structure {
        frames: table(FRAME_TEXT, FRAME_SPANS, FRAME_MODULES),
        functions: FRAME_FUNCTIONS,
        places: table(PLACE_TEXT, PLACE_SPANS, PLACE_MODULES),
        subjects: PLACE_SUBJECTS,
        exceptions: table(EXCEPTION_TEXT, EXCEPTION_SPANS, EXCEPTION_TYPES),
    });
    &STRUCTURE
}

fn table<T: DeserializeOwned>(text: &'static str, spans: &'static [(u32, u32)], keys: Keys) -> Table<T> {
    let read: fn(&str) -> Option<T> = |text| serde_json::from_str(text).ok();
    Table::new(Entries::of(Texts { text, spans, read }), keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_read_by_itself_and_is_found_by_its_keys() {
        let all = all().unwrap();
        let read = signatures();
        assert_eq!(read.iter().count(), all.signature.len());
        assert!(read.iter().zip(&all.signature).all(|(one, def)| one.def.id == def.id));
        assert_eq!(causes().all().count(), all.cause.len());
        for cause in &all.cause {
            assert_eq!(causes().get(&cause.id).map(|c| &c.title), Some(&cause.title));
        }
        assert_eq!(remedies().all().count(), all.remedy.len());
        for remedy in &all.remedy {
            for cause in remedy.applies.keys() {
                assert!(remedies().of_cause(cause).any(|r| r.id == remedy.id), "{cause}");
            }
        }
        let tables = structure();
        assert_eq!(tables.frames.all().count(), all.frame.len());
        assert_eq!(tables.places.all().count(), all.place.len());
        assert_eq!(tables.exceptions.all().count(), all.exception.len());
        for row in &all.exception {
            assert_eq!(
                tables.exceptions.having(&row.kind).count(),
                1,
                "{} stands twice",
                row.kind
            );
        }
        let owned = Structure::new(all.frame, all.place, all.exception);
        assert!(owned.functions == tables.functions && owned.frames.keys() == tables.frames.keys());
        assert!(owned.places.keys() == tables.places.keys() && owned.subjects == tables.subjects);
        assert!(owned.exceptions.keys() == tables.exceptions.keys());
    }
}
