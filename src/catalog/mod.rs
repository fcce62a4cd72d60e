//! The catalog: what messages, places in code and exceptions mean, as data.
//!
//! Owns loading the data files, the indexes over them and the look-ups. Never reads a log file and never
//! weighs one match against another event: that is the verdict's work.

pub mod audit;
mod built_in;
pub mod captures;
mod causes;
pub mod check;
pub mod coverage;
mod entries;
mod index;
mod keys;
mod literals;
pub mod matcher;
mod modules;
pub mod notes;
pub mod pack;
mod pattern;
mod remedies;
pub mod schema;
pub mod structure;
mod trials;

use std::sync::LazyLock;

use crate::event::SignatureId;
use causes::Causes;
use entries::Entries;
use matcher::{Filter, Hit, Signature, Text};
use pack::{RuleFault, RuleFile};
use remedies::Remedies;
use schema::{CauseDef, DataFile, RemedyDef, Role};
use structure::Structure;

pub use causes::{Strength, family};

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
    signatures: Entries<Signature>,
    filter: Filter,
    /// What rule files make of the other built-in definitions; none where those are in force as they are.
    own: Option<Definitions>,
    hash: String,
}

/// What signatures lead to.
struct Definitions {
    causes: Causes,
    remedies: Remedies,
    structure: Structure,
}

impl Catalog {
    /// The rules compiled into the program, of which each is read when it is first needed.
    pub fn built_in() -> Self {
        Self {
            signatures: built_in::signatures(),
            filter: Filter::built_in(),
            own: None,
            hash: format!("{:016x}", built_in::HASH),
        }
    }

    /// The same, once for the whole program.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Catalog> = LazyLock::new(Catalog::built_in);
        &SHARED
    }

    /// The compiled-in rules without any signature of a root cause: what structure alone gives.
    ///
    /// # Errors
    /// When a built-in entry is broken, which a test rules out.
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
        Self::index(rules, 0, &[], hashed(0, texts.iter().map(|(_, text)| *text)))
    }

    /// The built-in rules and what rule files add to them, change of them and take out of force.
    ///
    /// # Errors
    /// When an entry of a file is wrong, or names a built-in one that does not exist.
    pub fn with_files(built_in: BuiltIn, files: &[RuleFile]) -> Result<Self, CatalogError> {
        let (mut rules, known) = match (built_in, files) {
            (BuiltIn::All, []) => return Ok(Self::built_in()),
            (BuiltIn::Nothing, _) => (DataFile::default(), 0),
            (BuiltIn::All | BuiltIn::Structure, _) => (built_in::all()?, built_in::HASH),
        };
        let added = pack::join(&mut rules, files)?;
        let own = rules.signature.split_off(rules.signature.len() - added);
        if built_in == BuiltIn::Structure {
            rules
                .signature
                .retain(|s| !matches!(s.role, Role::Root | Role::Degraded));
        }
        rules.signature.extend(own);
        let hash = hashed(known, files.iter().map(|file| file.text.as_str()));
        Self::index(rules, added, files, hash)
    }

    /// The indexes over rules of which the last signatures, so many, are added by rule files.
    fn index(rules: DataFile, added: usize, files: &[RuleFile], hash: String) -> Result<Self, CatalogError> {
        let built_in = rules.signature.len() - added;
        let causes = Causes::from(rules.cause);
        let mut signatures = Vec::with_capacity(rules.signature.len());
        for (i, def) in rules.signature.into_iter().enumerate() {
            let id = def.id.clone();
            let broken = |(key, text): (&str, String)| match pack::blamed(files, "signature", &id) {
                Some((file, part)) => file.fault(part.key(key), text, "").into(),
                None => CatalogError::Entry { id: id.clone(), text },
            };
            let mut signature = Signature::new(def, &causes).map_err(broken)?;
            if i >= built_in {
                signature.added = true;
                signature.compile_pattern().map_err(broken)?;
            }
            signatures.push(signature);
        }
        Ok(Self {
            filter: Filter::new(&signatures),
            signatures: signatures.into(),
            own: Some(Definitions {
                causes,
                remedies: rules.remedy.into(),
                structure: Structure::new(rules.frame, rules.place, rules.exception),
            }),
            hash,
        })
    }

    /// All signatures, in the order of the data files.
    pub fn signatures(&self) -> impl Iterator<Item = &Signature> + Clone {
        self.signatures.iter()
    }

    /// Literals of the signatures that rule files add, by which their lines are to be found in a long log. What only
    /// counts near other lines has none.
    pub fn added_literals(&self) -> impl Iterator<Item = &str> {
        let aside = |role| matches!(role, Role::Benign | Role::Note | Role::Phase);
        let own = self.own.iter().flat_map(|_| self.signatures());
        let added = own.filter(move |s| s.added && !aside(s.def.role));
        added.flat_map(|s| s.def.literal.iter().map(String::as_str))
    }

    /// The signature of a match, or of an event that may have none.
    pub fn signature(&self, id: impl Into<Option<SignatureId>>) -> Option<&Signature> {
        id.into().and_then(|id| self.signatures.get(id.0))
    }

    /// The signature that fits `text` best, if any.
    pub fn find<'t>(&self, text: Text<'t>) -> Option<Hit<'t>> {
        self.filter.find(&self.signatures, text)
    }

    /// Whether, whatever the digits of a line are, none of the signatures comes before this one, which matches in it; for
    /// none, whether none can match.
    pub fn holds_only(&self, line: &[u8], only: Option<SignatureId>) -> bool {
        self.filter.holds_only(&self.signatures, line, only)
    }

    /// Frame and exception tables.
    pub fn structure(&self) -> &Structure {
        self.own
            .as_ref()
            .map_or_else(|| built_in::structure(), |own| &own.structure)
    }

    /// All causes, in the order of the data files.
    pub fn causes(&self) -> impl Iterator<Item = &CauseDef> + Clone {
        self.causes_by_id().all()
    }

    /// One cause.
    pub fn cause(&self, id: &str) -> Option<&CauseDef> {
        self.causes_by_id().get(id)
    }

    /// The title of a cause, its id where no entry has one.
    pub fn title(&self, id: &str) -> String {
        self.cause(id)
            .map_or_else(|| id.to_owned(), |cause| cause.title.clone())
    }

    /// Strength of a cause id.
    pub fn strength(&self, cause: &str) -> Strength {
        self.causes_by_id().strength(Some(cause))
    }

    fn causes_by_id(&self) -> &Causes {
        self.own.as_ref().map_or_else(|| built_in::causes(), |own| &own.causes)
    }

    /// All remedies, in the order of the data files.
    pub fn remedies(&self) -> impl Iterator<Item = &RemedyDef> + Clone {
        self.remedies_by_cause().all()
    }

    /// The remedies for a cause or its family, in the order of the data files.
    pub fn remedies_of(&self, cause: &str) -> impl Iterator<Item = &RemedyDef> {
        self.remedies_by_cause().of_cause(cause)
    }

    fn remedies_by_cause(&self) -> &Remedies {
        self.own
            .as_ref()
            .map_or_else(|| built_in::remedies(), |own| &own.remedies)
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

/// The hash of rules: that of the built-in ones, and the texts that go with them.
fn hashed<'t>(built_in: u64, texts: impl Iterator<Item = &'t str>) -> String {
    let mut hasher = xxhash_rust::xxh3::Xxh3::with_seed(built_in);
    texts.for_each(|text| hasher.update(text.as_bytes()));
    format!("{:016x}", hasher.digest())
}
