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
pub mod pack;
mod pattern;
pub mod schema;
pub mod structure;
mod trials;

use std::collections::HashMap;
use std::iter;
use std::sync::OnceLock;

use crate::event::SignatureId;
use matcher::{Filter, Signature};
use pack::{RuleFault, RuleFile};
use schema::{CauseDef, DataFile, RemedyDef, Role};
use structure::Structure;

/// The data files compiled into the program, joined and as JSON, which is read in a tenth of the time; `build.rs`
/// writes them.
const DATA: &str = include_str!(concat!(env!("OUT_DIR"), "/catalog.json"));

/// A data file that cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum CatalogError {
    /// The file is not valid TOML or has an unknown key.
    #[error("rule file {file} cannot be read: {text}")]
    Syntax {
        /// File name.
        file: String,
        /// What the parser says, with line and column.
        text: String,
    },
    /// An entry is wrong.
    #[error("rule {id}: {text}")]
    Entry {
        /// Id of the entry.
        id: String,
        /// What is wrong.
        text: String,
    },
    /// A rule file that was added is wrong at a place that can be shown.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Added(Box<RuleFault>),
}

impl From<RuleFault> for CatalogError {
    fn from(fault: RuleFault) -> Self {
        Self::Added(Box::new(fault))
    }
}

/// What of the built-in rules is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BuiltIn {
    /// All of them.
    #[default]
    All,
    /// No signature of a root cause: what structure alone gives.
    Structure,
    /// None.
    Nothing,
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
        Self::with_files(BuiltIn::All, &[])
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
        Self::with_files(BuiltIn::Structure, &[])
    }

    /// Rules from texts, each with a name for error messages.
    ///
    /// # Errors
    /// When a text is not valid TOML or an entry is wrong.
    pub fn from_texts(texts: &[(&str, &str)]) -> Result<Self, CatalogError> {
        let mut rules = DataFile::default();
        for (file, text) in texts {
            rules.take_entries(toml::from_str(text).map_err(|e| syntax(file, &e))?);
        }
        Self::index(rules, 0, &[], hashed(texts.iter().map(|(_, text)| *text)))
    }

    /// The built-in rules and what rule files add to them, change of them and take out of force.
    ///
    /// # Errors
    /// When an entry of a file is wrong, or names a built-in one that does not exist.
    pub fn with_files(built_in: BuiltIn, files: &[RuleFile]) -> Result<Self, CatalogError> {
        let data = match built_in {
            BuiltIn::Nothing => "{}",
            _ => DATA,
        };
        let mut rules = serde_json::from_str(data).map_err(|e| syntax("(built in)", &e))?;
        let added = pack::join(&mut rules, files)?;
        let own = rules.signature.split_off(rules.signature.len() - added);
        if built_in == BuiltIn::Structure {
            rules
                .signature
                .retain(|s| !matches!(s.role, Role::Root | Role::Degraded));
        }
        rules.signature.extend(own);
        let hash = hashed(iter::once(data).chain(files.iter().map(|file| file.text.as_str())));
        Self::index(rules, added, files, hash)
    }

    /// The indexes over rules of which the last signatures, so many, are added by rule files.
    fn index(rules: DataFile, added: usize, files: &[RuleFile], hash: String) -> Result<Self, CatalogError> {
        let built_in = rules.signature.len() - added;
        let cause_index: HashMap<_, _> = rules.cause.iter().enumerate().map(|(i, c)| (c.id.clone(), i)).collect();
        let mut signatures = Vec::with_capacity(rules.signature.len());
        for (i, def) in rules.signature.into_iter().enumerate() {
            let strength = match def.weak {
                true => Strength::Weak,
                false => strength_of(&rules.cause, &cause_index, def.cause.as_deref()),
            };
            let id = def.id.clone();
            let broken = |(key, text): (&str, String)| match pack::blamed(files, "signature", &id) {
                Some((file, part)) => file.fault(part.key(key), text, "").into(),
                None => CatalogError::Entry { id: id.clone(), text },
            };
            let mut signature = Signature::new(def, strength).map_err(broken)?;
            if i >= built_in {
                signature.added = true;
                signature.compile_pattern().map_err(broken)?;
            }
            signatures.push(signature);
        }
        Ok(Self {
            filter: Filter::new(&signatures),
            signatures,
            causes: rules.cause,
            cause_index,
            remedies: rules.remedy,
            structure: Structure::new(rules.frame, rules.place, rules.exception),
            hash,
        })
    }

    /// All signatures, in the order of the data files.
    pub fn signatures(&self) -> &[Signature] {
        &self.signatures
    }

    /// Literals of the signatures that rule files add, by which their lines are to be found in a long log. What only
    /// counts near other lines has none.
    pub fn added_literals(&self) -> impl Iterator<Item = &str> {
        let aside = |role| matches!(role, Role::Benign | Role::Note | Role::Phase);
        let added = self.signatures.iter().filter(move |s| s.added && !aside(s.def.role));
        added.flat_map(|s| s.def.literal.iter().map(String::as_str))
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

fn syntax(file: &str, error: &dyn std::fmt::Display) -> CatalogError {
    CatalogError::Syntax {
        file: file.to_owned(),
        text: error.to_string(),
    }
}

fn hashed<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    texts.for_each(|text| hasher.update(text.as_bytes()));
    format!("{:016x}", hasher.digest())
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
