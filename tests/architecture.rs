//! Holds the code against `ARCHITECTURE.md`: the table of modules and the invariants that can be read off the text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// The code of one file: no comments, no tests.
struct Code {
    module: String,
    path: PathBuf,
    text: String,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
        match path.is_dir() {
            true => sources(&path, found),
            false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            false => {}
        }
    }
}

fn code() -> Vec<Code> {
    let mut paths = Vec::new();
    sources(Path::new("src"), &mut paths);
    paths.sort();
    let is_test = |path: &PathBuf| {
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        stem.ends_with("tests") || stem.ends_with("_test") || stem == "sample"
    };
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let first = path
            .components()
            .nth(1)
            .unwrap()
            .as_os_str()
            .to_string_lossy()
            .into_owned();
        Code {
            module: first.trim_end_matches(".rs").to_owned(),
            text: code.collect::<Vec<_>>().join("\n"),
            path,
        }
    };
    paths.into_iter().filter(|path| !is_test(path)).map(read).collect()
}

/// The table `| module | may use |` of the page.
fn table() -> BTreeMap<String, BTreeSet<String>> {
    let page = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| module | may use |"))
        .skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let row = |row: &str| {
        let cells = cells(row);
        let uses = cells[2]
            .split(", ")
            .filter(|name| !name.is_empty())
            .map(ToOwned::to_owned);
        (cells[1].clone(), uses.collect())
    };
    rows.map(row).collect()
}

#[test]
fn modules_use_what_the_table_allows_and_no_more() {
    let table = table();
    let path = Regex::new(r"\bcrate::(\w+)").unwrap();
    let mut used: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for code in code()
        .iter()
        .filter(|code| !matches!(code.module.as_str(), "main" | "lib"))
    {
        let own = used.entry(code.module.clone()).or_default();
        let names = path.captures_iter(&code.text).map(|found| found[1].to_owned());
        own.extend(names.filter(|name| *name != code.module));
    }
    for (module, used) in &used {
        let Some(allowed) = table.get(module) else {
            panic!("src/{module} has no row in the table of ARCHITECTURE.md");
        };
        let beyond: Vec<_> = used.difference(allowed).collect();
        assert!(
            beyond.is_empty(),
            "{module} uses {beyond:?}, which ARCHITECTURE.md does not allow"
        );
        let idle: Vec<_> = allowed.difference(used).collect();
        assert!(
            idle.is_empty(),
            "{module} no longer uses {idle:?}: take them out of ARCHITECTURE.md"
        );
    }
    let gone: Vec<_> = table.keys().filter(|module| !used.contains_key(*module)).collect();
    assert!(
        gone.is_empty(),
        "ARCHITECTURE.md lists modules that do not exist: {gone:?}"
    );
}

/// No file of these modules (or, with `others`, of all but these) contains the pattern.
fn forbid(pattern: &str, modules: &[&str], others: bool) {
    let pattern = Regex::new(pattern).unwrap();
    let mut looked = 0;
    for code in code()
        .iter()
        .filter(|code| modules.contains(&code.module.as_str()) != others)
    {
        looked += 1;
        if let Some(found) = pattern.find(&code.text) {
            panic!(
                "{}: `{}`, see the invariants in ARCHITECTURE.md",
                code.path.display(),
                found.as_str()
            );
        }
    }
    assert!(looked > 0, "no file of {modules:?}");
}

#[test]
fn what_text_means_is_data() {
    let causes = coroner::catalog::Catalog::shared().causes();
    let families: BTreeSet<&str> = causes.filter_map(|cause| cause.id.split('.').next()).collect();
    let families: Vec<&str> = families.into_iter().collect();
    let cause = format!(r#""(?:{})\.[a-z][a-z-]*[a-z]""#, families.join("|"));
    forbid(
        &cause,
        &[
            "intake",
            "envelope",
            "dialect",
            "record",
            "event",
            "territory",
            "launch",
        ],
        false,
    );
}

#[test]
fn the_verdict_searches_no_text() {
    let search = r"\b(?:regex|aho_corasick|memchr|nom)::";
    forbid(
        search,
        &["launch", "verdict", "ledger", "remedy", "assemble", "report", "event"],
        false,
    );
}

#[test]
fn only_the_edges_touch_files() {
    forbid(
        r"\bstd::fs\b|\bfs::|\bFile::|\bio::stdin\b",
        &["intake", "batch", "cli", "catalog", "store", "main"],
        true,
    );
    // The catalog reads notes, never a log.
    let catalog = code().into_iter().filter(|code| code.module == "catalog");
    let readers = catalog.filter(|code| code.text.contains("fs::")).map(|code| code.path);
    assert_eq!(readers.collect::<Vec<_>>(), [Path::new("src/catalog/notes.rs")]);
}

#[test]
fn only_the_edges_ask_the_time_and_print() {
    forbid(
        r"\b(?:SystemTime|Instant|Utc|Local)::now\b",
        &["cli", "batch", "main"],
        true,
    );
    forbid(r"\be?print(?:ln)?!", &["cli", "main"], true);
}

#[test]
fn the_page_describes_every_module_and_no_test_that_is_gone() {
    let page = fs::read_to_string("ARCHITECTURE.md").unwrap();
    for module in table().keys() {
        assert!(page.contains(&format!("\n**{module}** – ")), "no paragraph on {module}");
    }
    let test = Regex::new(r"`(tests/\w+\.rs)`").unwrap();
    for name in test.captures_iter(&page).map(|found| found[1].to_owned()) {
        assert!(Path::new(&name).is_file(), "{name} does not exist");
    }
}
