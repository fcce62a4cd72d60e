//! The causes in force.
//!
//! Owns the look-up by id and how much an id says. Never decides which cause a log has.

use super::entries::Table;
use super::schema::CauseDef;

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

/// The family of a cause: `gpu-oom` of `gpu-oom.graph-capture`.
pub fn family(cause: &str) -> &str {
    cause.split('.').next().unwrap_or(cause)
}

/// The causes, by their ids.
pub struct Causes(pub(super) Table<CauseDef>);

impl From<Vec<CauseDef>> for Causes {
    fn from(all: Vec<CauseDef>) -> Self {
        Self(Table::keyed(all, |def| vec![def.id.as_str()]))
    }
}

impl Causes {
    /// All of them, in the order of the data files.
    pub fn all(&self) -> impl Iterator<Item = &CauseDef> + Clone {
        self.0.all()
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<&CauseDef> {
        self.0.having(id).next()
    }

    /// Strength of a cause id; of none, that of a signature that needs no cause.
    pub fn strength(&self, id: Option<&str>) -> Strength {
        let Some(id) = id else { return Strength::Strong };
        match self.get(id).map(|c| c.strength.as_str()) {
            Some("weak") => Strength::Weak,
            Some("generic") => Strength::Generic,
            _ if id.starts_with("unknown.") => Strength::Weak,
            _ => Strength::Strong,
        }
    }
}
