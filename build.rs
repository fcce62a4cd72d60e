//! Joins the catalog's data files, so that adding one touches no code, and puts them into the form in which the program
//! starts fastest: the entries of each kind as JSON, where each stands in it, and tables by which they are found.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::Value;

#[path = "src/catalog/index.rs"]
#[allow(dead_code, reason = "the program looks into the tables that are made here")]
mod index;

/// The entries of each kind, in the order of the files.
type Entries = BTreeMap<String, Vec<Value>>;

/// The name of a table of keys, and the keys of an entry in it.
type KeysOf = (&'static str, fn(&Value) -> Vec<&str>);

/// The kinds of entries, each with the keys by which its entries are found.
const KINDS: [(&str, &[KeysOf]); 6] = [
    ("signature", &[]),
    ("cause", &[("CAUSE_IDS", |cause| texts(&cause["id"]))]),
    ("remedy", &[("REMEDY_CAUSES", |remedy| names(&remedy["for"]))]),
    (
        "frame",
        &[
            ("FRAME_MODULES", |frame| texts(&frame["module"])),
            ("FRAME_FUNCTIONS", |frame| texts(&frame["function"])),
        ],
    ),
    (
        "place",
        &[
            ("PLACE_MODULES", |place| texts(&place["module"])),
            ("PLACE_SUBJECTS", |place| texts(&place["of"])),
        ],
    ),
    (
        "exception",
        &[("EXCEPTION_TYPES", |exception| texts(&exception["type"]))],
    ),
];

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src/catalog/data");
    println!("cargo::rerun-if-changed={}", root.display());
    println!("cargo::rerun-if-changed=src/catalog/index.rs");
    let mut entries = joined(&root)?;
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut out = String::new();
    for (kind, keys) in KINDS {
        let entries = entries.remove(kind).unwrap_or_default();
        let (text, spans) = text(&entries)?;
        hasher.update(text.as_bytes());
        let name = kind.to_uppercase();
        out += &constant(&format!("{name}_TEXT"), "&str", &text);
        out += &constant(&format!("{name}_SPANS"), "&[(u32, u32)]", &spans.as_slice());
        for (name, keys) in keys {
            let keys = (0..)
                .zip(&entries)
                .flat_map(|(i, e)| keys(e).into_iter().map(move |key| (key, i)));
            let table = index::keys(keys);
            out += &format!(
                "pub(super) const {name}: Keys = Keys::of_table({:?}, &{:?}, &{:?});\n",
                table.text, table.ends, table.entries
            );
        }
        if kind == "signature" {
            out += &literals(&entries);
        }
    }
    if let Some(kind) = entries.keys().next() {
        return Err(io::Error::other(format!("there are no entries of the kind `{kind}`")));
    }
    out += &constant("HASH", "u64", &hasher.digest());
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(folder.join("built_in.rs"), out)
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

/// Entries as a JSON list, and where each stands in it, bytes.
fn text(entries: &[Value]) -> io::Result<(String, Vec<(usize, usize)>)> {
    let mut text = "[".to_owned();
    let mut spans = Vec::new();
    for entry in entries {
        if !spans.is_empty() {
            text.push(',');
        }
        let start = text.len();
        text.push_str(&serde_json::to_string(entry)?);
        spans.push((start, text.len()));
    }
    text.push(']');
    Ok((text, spans))
}

/// A text, or the texts of a list.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => value.as_str().into_iter().collect(),
    }
}

/// The names in a table.
fn names(value: &Value) -> Vec<&str> {
    value
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect()
}

/// The index over the literals of signatures, as Rust text.
fn literals(signatures: &[Value]) -> String {
    let literals = (0..).zip(signatures).flat_map(|(i, entry)| {
        let literals = texts(&entry["literal"]);
        literals.into_iter().map(move |literal| (literal, i))
    });
    let index = index::index(literals);
    let tables = |name: &str, t: &index::Tables| {
        format!(
            "pub(super) const {name}: Literals = Literals::of_tables({:?}, &{:?}, &{:?}, &{:?});\n",
            t.text, t.ends, t.marks, t.grams
        )
    };
    [
        tables("LITERALS", &index.literals),
        tables("DIGITLESS", &index.digitless),
        constant("OWNERS", "&[(u32, u32)]", &index.owners.as_slice()),
    ]
    .concat()
}

/// A constant, as Rust text.
fn constant(name: &str, kind: &str, value: &dyn Debug) -> String {
    let sign = if kind.starts_with("&[") { "&" } else { "" };
    format!("pub(super) const {name}: {kind} = {sign}{value:?};\n")
}
