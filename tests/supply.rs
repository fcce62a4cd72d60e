//! What the program is built from: few dependencies, each used, once, from the registry, under licences that `deny.toml`
//! allows, and none that needs a newer compiler than the package says.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Dependencies named in the manifest. One more is a decision: completions and the manual page are made by two small
/// crates of the parser's own authors; the engine below `regex` and its small sister, by the same authors, compile fast.
const MOST: usize = 36;

/// What `rustc` compiles for. Dependencies of other systems are not downloaded where nobody builds for those.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap()
        .to_owned()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(["--filter-platform", &host()])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn table(file: &str) -> toml::Table {
    fs::read_to_string(file).unwrap().parse().unwrap()
}

fn sources(folder: &Path, text: &mut String) {
    let paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    for path in paths {
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|e| e == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_dependency_is_used() {
    let manifest = table("Cargo.toml");
    let mut text = String::new();
    sources(Path::new("src"), &mut text);
    let named = manifest["dependencies"].as_table().unwrap();
    assert!(named.len() <= MOST, "{} dependencies", named.len());
    let unused = |named: &toml::Table, text: &str| -> Vec<String> {
        let path = |name: &&String| format!("{}::", name.replace('-', "_"));
        named
            .keys()
            .filter(|name| !text.contains(&path(name)))
            .cloned()
            .collect()
    };
    assert_eq!(unused(named, &text), [""; 0]);
    sources(Path::new("tests"), &mut text);
    sources(Path::new("benches"), &mut text);
    assert_eq!(unused(manifest["dev-dependencies"].as_table().unwrap(), &text), [""; 0]);
}

#[test]
fn licences_sources_and_compiler_fit() {
    let allowed = table("deny.toml");
    let allowed: Vec<&str> = allowed["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|l| l.as_str())
        .collect();
    let own = table("Cargo.toml")["package"]["rust-version"]
        .as_str()
        .unwrap()
        .to_owned();
    let minor = |version: &str| version.split('.').nth(1).unwrap().parse::<u32>().unwrap();
    let metadata = metadata();
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        *versions.entry(name).or_default() += 1;
        let licence = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
        let licence = licence.replace(['(', ')'], " ");
        // An exception only adds to what a licence allows.
        let fits = |one: &str| allowed.contains(&one.trim().split(" WITH ").next().unwrap());
        let free = licence.split(" AND ").all(|part| part.split(" OR ").any(fits));
        assert!(free, "{name}: {licence}");
        if name == env!("CARGO_PKG_NAME") {
            continue;
        }
        let source = package["source"].as_str().unwrap_or_default();
        assert!(
            source.starts_with("registry+https://github.com/rust-lang/crates.io-index"),
            "{name}: {source}"
        );
        if let Some(needed) = package["rust_version"].as_str() {
            assert!(minor(needed) <= minor(&own), "{name} needs Rust {needed}");
        }
    }
    let twice: Vec<&str> = versions
        .iter()
        .filter(|(_, n)| **n > 1)
        .map(|(name, _)| *name)
        .collect();
    assert_eq!(twice, ["syn", "unicode-width"], "as in deny.toml");
}
