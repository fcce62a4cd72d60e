//! Pseudonyms: which one stands for what.
//!
//! Owns their form and their memory. One original has one pseudonym within all reports of a run; with a key, or with
//! the same map file, also across runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// What is replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A token, password, key or credential.
    Secret,
    /// A host or pod.
    Node,
    /// An IPv4 or IPv6 address.
    Ip,
    /// A hardware address.
    Mac,
    /// A user.
    User,
    /// An e-mail address.
    Email,
    /// A bucket of an object store.
    Bucket,
    /// Folders below a home folder.
    Path,
    /// A model.
    Model,
    /// A match of a custom pattern.
    Custom,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Secret,
        Self::Node,
        Self::Ip,
        Self::Mac,
        Self::User,
        Self::Email,
        Self::Bucket,
        Self::Path,
        Self::Model,
        Self::Custom,
    ];

    /// The word that its pseudonyms begin with.
    pub fn id(self) -> &'static str {
        match self {
            Self::Secret => "secret",
            Self::Node => "node",
            Self::Ip => "ip",
            Self::Mac => "mac",
            Self::User => "user",
            Self::Email => "email",
            Self::Bucket => "bucket",
            Self::Path => "path",
            Self::Model => "model",
            Self::Custom => "custom",
        }
    }
}

/// A map file that is none.
#[derive(Debug, Error)]
#[error("it holds no map of pseudonyms: {0}")]
pub struct MapError(#[from] serde_json::Error);

/// The schema id of a map file.
const MAP_SCHEMA: &str = "coroner.redaction-map/1";

#[derive(Serialize, Deserialize)]
struct MapFile {
    schema: String,
    /// Pseudonym → original.
    names: BTreeMap<String, String>,
}

/// The pseudonyms given so far.
#[derive(Debug, Default)]
pub struct Names {
    key: Option<String>,
    /// Those of a map file, which many can share.
    loaded: Arc<HashMap<(Kind, String), String>>,
    given: HashMap<(Kind, String), String>,
    last: HashMap<Kind, u64>,
}

impl Names {
    /// Without a key pseudonyms are numbered as they come; with one they are made from it, the same in every run.
    pub fn new(key: Option<String>) -> Self {
        Self { key, ..Self::default() }
    }

    /// Names for another report that know the key and the map file of these, and nothing that was given since. With a
    /// key both give the same pseudonyms.
    pub fn apart(&self) -> Self {
        Self {
            key: self.key.clone(),
            loaded: Arc::clone(&self.loaded),
            given: HashMap::new(),
            last: self.last.clone(),
        }
    }

    /// Takes over, for the map, what others have given.
    pub fn collect(&mut self, others: &Self) {
        for ((kind, original), name) in &others.given {
            if *kind != Kind::Secret {
                self.given.insert((*kind, original.clone()), name.clone());
            }
        }
    }

    /// The pseudonym of an original.
    pub fn pseudonym(&mut self, kind: Kind, original: &str) -> String {
        let asked = (kind, original.to_owned());
        if let Some(name) = self.given.get(&asked).or_else(|| self.loaded.get(&asked)) {
            return name.clone();
        }
        let name = match &self.key {
            // What is made from a secret could be tried against guesses: a number says nothing.
            Some(key) if kind != Kind::Secret => format!("{}-{}", kind.id(), digest(key, kind, original)),
            _ => {
                let n = self.last.entry(kind).or_default();
                *n += 1;
                format!("{}-{n}", kind.id())
            }
        };
        self.given.insert(asked, name.clone());
        name
    }

    /// Takes over the pseudonyms of a map file.
    pub fn load(&mut self, text: &str) -> Result<(), MapError> {
        let file: MapFile = serde_json::from_str(text)?;
        for (name, original) in file.names {
            let Some((word, number)) = name.split_once('-') else {
                continue;
            };
            let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.id() == word) else {
                continue;
            };
            if let Ok(n) = number.parse::<u64>() {
                let last = self.last.entry(kind).or_default();
                *last = n.max(*last);
            }
            Arc::make_mut(&mut self.loaded).insert((kind, original), name);
        }
        Ok(())
    }

    /// The map file: what each pseudonym stands for. Secrets never enter it.
    pub fn map(&self) -> String {
        let names = self
            .loaded
            .iter()
            .chain(&self.given)
            .filter(|((kind, _), _)| *kind != Kind::Secret)
            .map(|((_, original), name)| (name.clone(), original.clone()))
            .collect();
        let file = MapFile {
            schema: MAP_SCHEMA.to_owned(),
            names,
        };
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }
}

/// 32 bits of the keyed hash: enough to tell the hosts of a report apart, and nothing to compute them back from.
fn digest(key: &str, kind: Kind, original: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((key.len() as u64).to_le_bytes());
    for part in [key, kind.id(), "\0", original] {
        hash.update(part.as_bytes());
    }
    hash.finalize()
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_run_by_kind_and_a_key_makes_them_lasting() {
        let mut names = Names::default();
        assert_eq!(names.pseudonym(Kind::Node, "gpu-a"), "node-1");
        assert_eq!(names.pseudonym(Kind::Node, "gpu-b"), "node-2");
        assert_eq!(names.pseudonym(Kind::Ip, "10.1.2.3"), "ip-1");
        assert_eq!(names.pseudonym(Kind::Node, "gpu-a"), "node-1");
        let keyed = |key: &str, host: &str| Names::new(Some(key.into())).pseudonym(Kind::Node, host);
        assert_eq!(keyed("k", "gpu-b"), keyed("k", "gpu-b"));
        assert_ne!(keyed("k", "gpu-b"), keyed("other", "gpu-b"));
        assert_ne!(keyed("k", "gpu-b"), keyed("k", "gpu-a"));
        assert_eq!(
            Names::new(Some("k".into())).pseudonym(Kind::Secret, "hunter2"),
            "secret-1"
        );
    }

    #[test]
    fn a_map_is_taken_over_and_holds_no_secret() {
        let mut names = Names::default();
        names.pseudonym(Kind::Node, "gpu-a");
        names.pseudonym(Kind::Secret, "hunter2");
        let map = names.map();
        assert!(!map.contains("hunter2") && map.contains("gpu-a"), "{map}");
        let mut next = Names::default();
        next.load(&map).unwrap();
        assert_eq!(next.pseudonym(Kind::Node, "gpu-c"), "node-2");
        assert_eq!(next.pseudonym(Kind::Node, "gpu-a"), "node-1");
        assert!(next.load("[]").is_err());
        let mut apart = next.apart();
        assert_eq!(apart.pseudonym(Kind::Node, "gpu-a"), "node-1");
        apart.pseudonym(Kind::User, "alice");
        next.collect(&apart);
        let map = next.map();
        assert!(
            map.contains("alice") && map.contains("gpu-a") && map.contains("gpu-c"),
            "{map}"
        );
    }
}
