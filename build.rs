//! Joins the catalog's data files, so that adding one touches no code, and puts them into the form in which the program
//! starts fastest: JSON, where each signature stands, and the tables by which their literals are found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::Value;

#[path = "src/catalog/index.rs"]
#[allow(dead_code, reason = "the program looks into the tables that are made here")]
mod index;

/// The kinds of entries that are read together: the tables that say where in the code an exception arose, and its type.
const STRUCTURE: [&str; 3] = ["frame", "place", "exception"];

/// The entries of each kind, in the order of the files.
type Entries = BTreeMap<String, Vec<Value>>;

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src/catalog/data");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=src/catalog/index.rs");
    let mut entries = joined(&root)?;
    let mut take = |kind: &str| entries.remove(kind).unwrap_or_default();
    let signatures = take("signature");
    let kinds = [
        ("causes.json", Value::Array(take("cause"))),
        ("remedies.json", Value::Array(take("remedy"))),
        (
            "structure.json",
            Value::Object(
                STRUCTURE
                    .map(|kind| (kind.to_owned(), take(kind).into()))
                    .into_iter()
                    .collect(),
            ),
        ),
    ];
    if let Some(kind) = entries.keys().next() {
        return Err(io::Error::other(format!("there are no entries of the kind `{kind}`")));
    }
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    for (file, value) in kinds {
        let text = serde_json::to_string(&value)?;
        hasher.update(text.as_bytes());
        fs::write(out.join(file), text)?;
    }
    let mut text = "[".to_owned();
    let mut spans = Vec::new();
    for entry in &signatures {
        let start = text.len();
        text.push_str(&serde_json::to_string(entry)?);
        spans.push((start, text.len()));
        text.push(',');
    }
    text.truncate(text.trim_end_matches(',').len());
    text.push(']');
    hasher.update(text.as_bytes());
    fs::write(out.join("signatures.json"), text)?;
    let index = [
        format!("pub(super) const HASH: u64 = {};\n", hasher.digest()),
        format!(
            "pub(super) static SPANS: [(usize, usize); {}] = {spans:?};\n",
            spans.len()
        ),
        filter(&signatures),
    ];
    fs::write(out.join("index.rs"), index.concat())
}

/// All data files in one.
fn joined(root: &Path) -> io::Result<Entries> {
    let mut files: Vec<PathBuf> = fs::read_dir(root)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let mut joined = Entries::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let broken = |text: &str| io::Error::other(format!("{}: {text}", file.display()));
        let tables: BTreeMap<String, Value> =
            toml::from_str(&fs::read_to_string(file)?).map_err(|e| broken(&e.to_string()))?;
        for (kind, entries) in tables {
            match entries {
                Value::Array(entries) => joined.entry(kind).or_default().extend(entries),
                _ => return Err(broken(&format!("`{kind}` is no list of entries"))),
            }
        }
    }
    Ok(joined)
}

/// The index over the literals, as Rust text.
fn filter(signatures: &[Value]) -> String {
    let literals = signatures.iter().enumerate().flat_map(|(i, entry)| {
        let literals = entry["literal"].as_array().into_iter().flatten();
        literals
            .filter_map(Value::as_str)
            .map(move |literal| (literal, i as u32))
    });
    let index = index::index(literals);
    let tables = |name: &str, t: &index::Tables| {
        format!(
            "pub(super) static {name}: Literals = Literals::of_tables({:?}, &{:?}, &{:?}, &{:?});\n",
            t.text, t.ends, t.marks, t.grams
        )
    };
    let (count, owners) = (index.owners.len(), index.owners);
    [
        tables("LITERALS", &index.literals),
        tables("DIGITLESS", &index.digitless),
        format!("pub(super) static OWNERS: [(u32, u32); {count}] = {owners:?};\n"),
    ]
    .concat()
}
