//! Joins the catalog's data files, so that adding one touches no code, and turns them into JSON, which the program
//! reads faster at every start.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src/catalog/data");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<PathBuf> = fs::read_dir(&root)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    files.sort();
    // The entries of one kind stand together, in the order of the files.
    let mut joined: BTreeMap<String, Vec<toml::Value>> = BTreeMap::new();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let broken = |text: &str| io::Error::other(format!("{}: {text}", file.display()));
        let tables: toml::Table = fs::read_to_string(file)?
            .parse()
            .map_err(|e: toml::de::Error| broken(&e.to_string()))?;
        for (kind, entries) in tables {
            match entries {
                toml::Value::Array(entries) => joined.entry(kind).or_default().extend(entries),
                _ => return Err(broken(&format!("`{kind}` is no list of entries"))),
            }
        }
    }
    fs::write(out.join("catalog.json"), serde_json::to_vec(&joined)?)
}
