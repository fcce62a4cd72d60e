//! No remedy names a flag or a variable that the launch's version lacks: every remedy, for every engine it is for, in
//! every version that rules cover, against the table of what the versions have.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::evidence::testing::Case;
use super::select::advise;
use super::versions;
use crate::catalog::Catalog;
use crate::catalog::schema::RemedyDef;

/// Engine → flag or variable → versions.
type Table = BTreeMap<String, BTreeMap<String, String>>;

/// Versions at which something comes, changes or goes.
const VLLM: &[&str] = &[
    "0.4.3", "0.5.5", "0.6.3", "0.6.6", "0.7.3", "0.8.2", "0.8.5", "0.9.0", "0.9.2", "0.10.1.1", "0.10.2", "0.11.0",
    "0.11.2", "0.12.0", "0.13.0", "0.14.1", "0.16.0", "0.17.0", "0.18.0", "0.19.1", "0.20.0", "0.25.1", "0.33.0",
];
const SGLANG: &[&str] = &[
    "0.3.6", "0.4.3", "0.4.6", "0.4.10", "0.5.2", "0.5.5", "0.5.8", "0.5.9", "0.5.13", "0.5.17", "0.5.18", "0.5.23",
];

fn table() -> Table {
    toml::from_str(include_str!("../catalog/flags.toml")).expect("the table of flags is TOML")
}

/// The flags and engine variables that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let words = Regex::new(r"(?:^|[^\w-])(--[a-z][a-z0-9-]+|(?:VLLM|SGLANG|SGL)_[A-Z0-9_]+)").unwrap();
    words.captures_iter(text).map(|found| found[1].to_owned()).collect()
}

/// What a launch of this engine and version is told by this remedy: title, and what is set.
fn told(def: &RemedyDef, engine: &str, version: &str) -> Option<String> {
    let case = Case::figures(&[]);
    let cause = def.applies.keys().next()?;
    let cause = cause
        .strip_suffix(".*")
        .map_or(cause.clone(), |family| format!("{family}.other"));
    // Conditions on the evidence choose among remedies, they do not make a flag exist.
    let bare = RemedyDef {
        when: Vec::new(),
        unless: Vec::new(),
        formula: None,
        ..def.clone()
    };
    let advice = advise(None, &[bare], &case.evidence(&cause, engine, version, ""));
    let remedy = advice.remedies.first()?;
    let set = remedy
        .change
        .iter()
        .filter(|change| matches!(change.kind.as_str(), "flag" | "env"));
    let set: Vec<String> = set
        .map(|change| format!("{} {}", change.name, change.to.as_deref().unwrap_or_default()))
        .collect();
    let plain = def.plain_title.as_deref().unwrap_or_default();
    Some(format!("{} {} {plain} {}", remedy.title, def.title, set.join(" ")))
}

#[test]
fn no_launch_is_told_to_set_what_its_version_lacks() {
    let table = table();
    let mut checked = 0;
    for def in Catalog::shared().remedies() {
        for (engine, all) in [("vllm", VLLM), ("sglang", SGLANG)] {
            for version in all {
                let Some(text) = told(def, engine, version) else {
                    continue;
                };
                for name in named(&text) {
                    let of_any = table.values().any(|flags| flags.contains_key(&name));
                    let Some(range) = table[engine].get(&name) else {
                        // Flags of other programs (docker, ray, sbatch) stand in remedies for any engine only.
                        assert!(!of_any && def.engines.is_empty(), "{}: {engine} has no {name}", def.id);
                        continue;
                    };
                    assert!(
                        versions::admits(range, Some(version)),
                        "{}: {engine} {version} has no {name}, which exists in {range:?}",
                        def.id
                    );
                    checked += 1;
                }
            }
        }
    }
    assert!(checked > 500, "{checked} names checked");
}

#[test]
fn every_row_of_the_table_is_a_range_and_is_used() {
    let catalog = Catalog::shared();
    let text: String = catalog
        .remedies()
        .flat_map(|def| {
            let titles = [Some(def.title.clone()), def.plain_title.clone()].into_iter().flatten();
            titles.chain(def.change.iter().map(|change| change.name.clone()))
        })
        .collect::<Vec<_>>()
        .join(" ");
    let used = named(&text);
    for (engine, flags) in table() {
        for (name, range) in flags {
            assert!(versions::Range::parse(&range).is_some(), "{engine} {name}: {range}");
            assert!(used.contains(&name), "{engine} {name} is in no remedy");
        }
    }
}

#[test]
fn renamed_flags_come_in_the_spelling_of_the_version() {
    let catalog = Catalog::shared();
    let names = |cause: &str, engine: &str, version: &str| {
        let case = Case::figures(&[]);
        let found = advise(
            catalog.cause(cause),
            catalog.remedies_of(cause),
            &case.evidence(cause, engine, version, ""),
        );
        let changes = found.remedies.iter().flat_map(|remedy| &remedy.change);
        changes.map(|change| change.name.clone()).collect::<BTreeSet<_>>()
    };
    for (cause, engine, version, has, lacks) in [
        (
            "gpu-oom.graph-capture",
            "vllm",
            "0.10.2",
            "--cuda-graph-sizes",
            "--max-cudagraph-capture-size",
        ),
        (
            "gpu-oom.graph-capture",
            "vllm",
            "0.25.1",
            "--max-cudagraph-capture-size",
            "--cuda-graph-sizes",
        ),
        (
            "gpu-oom.graph-capture",
            "vllm",
            "0.8.5",
            "--compilation-config",
            "--cuda-graph-sizes",
        ),
        (
            "gpu-oom.graph-capture",
            "sglang",
            "0.5.9",
            "--cuda-graph-max-bs",
            "--cuda-graph-max-bs-decode",
        ),
        (
            "gpu-oom.graph-capture",
            "sglang",
            "0.5.23",
            "--cuda-graph-max-bs-decode",
            "--cuda-graph-max-bs",
        ),
        (
            "gpu-mem.imbalance",
            "sglang",
            "0.4.6",
            "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK",
            "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK",
        ),
        (
            "gpu-mem.imbalance",
            "sglang",
            "0.5.9",
            "SGLANG_ENABLE_TP_MEMORY_INBALANCE_CHECK",
            "SGL_DISABLE_TP_MEMORY_INBALANCE_CHECK",
        ),
        (
            "config.speculative",
            "vllm",
            "0.7.3",
            "--speculative-model",
            "--speculative-config",
        ),
        (
            "config.speculative",
            "vllm",
            "0.25.1",
            "--speculative-config",
            "--speculative-model",
        ),
    ] {
        let found = names(cause, engine, version);
        assert!(
            found.contains(has) && !found.contains(lacks),
            "{engine} {version}: {found:?}"
        );
    }
}
