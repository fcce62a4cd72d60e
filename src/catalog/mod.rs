//! The catalog: what messages, places in code and exceptions mean, as data.
//!
//! Owns loading the data files, the indexes over them and the look-ups. Never reads a log file and never
//! weighs one match against another event: that is the verdict's work.

pub mod audit;
pub mod captures;
pub mod check;
pub mod coverage;
mod literals;
pub mod matcher;
pub mod notes;
mod pattern;
pub mod schema;
pub mod structure;
mod trials;

use std::collections::HashMap;
use std::sync::OnceLock;

use xxhash_rust::xxh3::xxh3_64;

use crate::event::SignatureId;
use matcher::{Filter, Signature};
use schema::{CauseDef, DataFile, RemedyDef, Role};
use structure::Structure;

/// The data files compiled into the program, each with its name for error messages and its content as JSON, which is
/// read in a tenth of the time; `build.rs` writes them.
const DATA: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/catalog_data.rs"));

/// A data file that cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum CatalogError {
    /// The file is not valid TOML or has an unknown key.
    #[error("rule file {file} cannot be read: {text}")]
    #[diagnostic(help("see src/catalog/README.md for the format of a rule file"))]
    Syntax {
        /// File name.
        file: String,
        /// What the parser says, with line and column.
        text: String,
    },
    /// An entry is wrong.
    #[error("rule file {file}, entry {id}: {text}")]
    #[diagnostic(help("correct the entry; `coroner catalog check DIR` runs its samples"))]
    Entry {
        /// File name.
        file: String,
        /// Id of the entry.
        id: String,
        /// What is wrong.
        text: String,
    },
}

/// A data file as it was read.
struct Source {
    file: String,
    hash: u64,
    data: Result<DataFile, String>,
}

/// The data files compiled into the program.
fn built_in() -> impl Iterator<Item = Source> {
    DATA.iter().map(|(file, text)| Source {
        file: (*file).to_owned(),
        hash: xxh3_64(text.as_bytes()),
        data: serde_json::from_str(text).map_err(|e| e.to_string()),
    })
}

/// All rules in force.
pub struct Catalog {
    signatures: Vec<Signature>,
    filter: Filter,
    causes: Vec<CauseDef>,
    cause_index: HashMap<String, usize>,
    remedies: Vec<RemedyDef>,
    structure: Structure,
    hash: String,
}

impl Catalog {
    /// The rules compiled into the program.
    ///
    /// # Errors
    /// When a data file is broken, which a test rules out for the files in the repository.
    pub fn load() -> Result<Self, CatalogError> {
        Self::build(built_in(), &|_| true)
    }

    /// The compiled-in rules, loaded once for the whole program.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn shared() -> Result<&'static Self, &'static CatalogError> {
        static SHARED: OnceLock<Result<Catalog, CatalogError>> = OnceLock::new();
        SHARED.get_or_init(Self::load).as_ref()
    }

    /// The compiled-in rules without any signature of a root cause: what structure alone gives.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn without_root_signatures() -> Result<Self, CatalogError> {
        Self::build(built_in(), &|role| !matches!(role, Role::Root | Role::Degraded))
    }

    /// Rules from texts, each with a name for error messages.
    ///
    /// # Errors
    /// When a text is not valid TOML or an entry is wrong.
    pub fn from_texts(texts: &[(&str, &str)]) -> Result<Self, CatalogError> {
        let read = |(file, text): &(&str, &str)| Source {
            file: (*file).to_owned(),
            hash: xxh3_64(text.as_bytes()),
            data: toml::from_str(text).map_err(|e| e.to_string()),
        };
        Self::build(texts.iter().map(read), &|_| true)
    }

    fn build(sources: impl Iterator<Item = Source>, keep: &dyn Fn(Role) -> bool) -> Result<Self, CatalogError> {
        let mut all = DataFile::default();
        let mut owners = Vec::new();
        let mut hashes = Vec::new();
        for Source { file, hash, data } in sources {
            let mut one = data.map_err(|text| CatalogError::Syntax {
                file: file.clone(),
                text,
            })?;
            hashes.extend(hash.to_le_bytes());
            one.signature.retain(|s| keep(s.role));
            owners.extend(one.signature.iter().map(|_| file.clone()));
            all.signature.append(&mut one.signature);
            all.frame.append(&mut one.frame);
            all.place.append(&mut one.place);
            all.exception.append(&mut one.exception);
            all.cause.append(&mut one.cause);
            all.remedy.append(&mut one.remedy);
        }
        let cause_index: HashMap<_, _> = all.cause.iter().enumerate().map(|(i, c)| (c.id.clone(), i)).collect();
        let mut signatures = Vec::with_capacity(all.signature.len());
        for (def, file) in all.signature.into_iter().zip(owners) {
            let strength = strength_of(&all.cause, &cause_index, def.cause.as_deref());
            let id = def.id.clone();
            let signature = Signature::new(def, strength).map_err(|text| CatalogError::Entry { file, id, text })?;
            signatures.push(signature);
        }
        Ok(Self {
            filter: Filter::new(&signatures),
            signatures,
            causes: all.cause,
            cause_index,
            remedies: all.remedy,
            structure: Structure::new(all.frame, all.place, all.exception),
            hash: format!("{:016x}", xxh3_64(&hashes)),
        })
    }

    /// All signatures, in the order of the data files.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// The signature of a match, or of an event that may have none.
    pub fn signature(&self, id: impl Into<Option<SignatureId>>) -> Option<&Signature> {
        id.into().and_then(|id| self.signatures.get(id.0 as usize))
    }

    /// The literal filter over all signatures.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Frame and exception tables.
    pub fn structure(&self) -> &Structure {
        &self.structure
    }

    /// All causes.
    pub fn causes(&self) -> &[CauseDef] {
        &self.causes
    }

    /// One cause.
    pub fn cause(&self, id: &str) -> Option<&CauseDef> {
        self.cause_index.get(id).and_then(|&i| self.causes.get(i))
    }

    /// Strength of a cause id.
    pub fn strength(&self, cause: &str) -> Strength {
        strength_of(&self.causes, &self.cause_index, Some(cause))
    }

    /// All remedies.
    pub fn remedies(&self) -> &[RemedyDef] {
        &self.remedies
    }

    /// Hash of the rules, stable for the same rules.
    pub fn hash(&self) -> &str {
        &self.hash
    }
}

fn strength_of(causes: &[CauseDef], index: &HashMap<String, usize>, id: Option<&str>) -> Strength {
    let Some(id) = id else { return Strength::Strong };
    match index.get(id).and_then(|&i| causes.get(i)).map(|c| c.strength.as_str()) {
        Some("weak") => Strength::Weak,
        Some("generic") => Strength::Generic,
        _ if id.starts_with("unknown.") => Strength::Weak,
        _ => Strength::Strong,
    }
}

/// How much a cause id says, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Strength {
    /// Says only that something died.
    Weak,
    /// What a cut log leaves of a more specific cause.
    Generic,
    /// Names a mechanism.
    Strong,
}
