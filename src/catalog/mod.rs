//! The catalog: what messages, places in code and exceptions mean, as data.
//!
//! Owns loading the data files, the indexes over them and the look-ups. Never reads a log file and never
//! weighs one match against another event: that is the verdict's work.

pub mod audit;
pub mod captures;
pub mod check;
pub mod coverage;
pub mod matcher;
pub mod notes;
pub mod schema;
pub mod structure;
mod trials;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::event::SignatureId;
use matcher::{Filter, Signature};
use schema::{CauseDef, DataFile, RemedyDef, Role};
use structure::Structure;

/// The data files compiled into the program, with their names for error messages; `build.rs` lists the folder.
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
        Self::from_texts(DATA)
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
        Self::build(DATA, &|role| !matches!(role, Role::Root | Role::Degraded))
    }

    /// Rules from texts, each with a name for error messages.
    ///
    /// # Errors
    /// When a text is not valid TOML or an entry is wrong.
    pub fn from_texts(texts: &[(&str, &str)]) -> Result<Self, CatalogError> {
        Self::build(texts, &|_| true)
    }

    fn build(texts: &[(&str, &str)], keep: &dyn Fn(Role) -> bool) -> Result<Self, CatalogError> {
        let mut all = DataFile::default();
        let mut owners = Vec::new();
        for (file, text) in texts {
            let mut one: DataFile = toml::from_str(text).map_err(|e| CatalogError::Syntax {
                file: (*file).to_owned(),
                text: e.to_string(),
            })?;
            one.signature.retain(|s| keep(s.role));
            owners.extend(one.signature.iter().map(|_| *file));
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
            let signature = Signature::new(def, strength).map_err(|text| CatalogError::Entry {
                file: file.to_owned(),
                id,
                text,
            })?;
            signatures.push(signature);
        }
        let filter = Filter::new(&signatures).map_err(|e| CatalogError::Entry {
            file: "all".to_owned(),
            id: "literals".to_owned(),
            text: e.to_string(),
        })?;
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        texts.iter().for_each(|(_, text)| hasher.update(text.as_bytes()));
        Ok(Self {
            signatures,
            filter,
            causes: all.cause,
            cause_index,
            remedies: all.remedy,
            structure: Structure::new(all.frame, all.place, all.exception),
            hash: format!("{:016x}", hasher.digest()),
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
