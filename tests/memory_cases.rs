//! Every memory failure of a larger collection, where one is at hand, gets a change with a value – or is told which
//! figure the log lacks for it.

mod common;

use std::path::{Path, PathBuf};

use common::examine;
use coroner::report::model::{Remedy, Report};

const COLLECTION: &str = "../shared/cases";
const MEMORY: &[&str] = &["gpu-oom.", "gpu-mem.", "host-mem."];

fn is_memory(cause: &str) -> bool {
    MEMORY.iter().any(|family| cause.starts_with(family))
}

/// The labelled memory failures below a folder: log and cause.
fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let label: serde_json::Value = serde_json::from_str(&text).unwrap();
            let log = path.with_extension("log");
            if label["outcome"] == "failed" && label["cause"].as_str().is_some_and(is_memory) && log.is_file() {
                found.push(log);
            }
        }
    }
}

/// A sum with its figures, or a process named with what it holds.
fn has_a_value(remedy: &Remedy) -> bool {
    remedy.arithmetic.is_some() || remedy.title.contains(" GiB")
}

fn says_what_is_missing(remedy: &Remedy) -> bool {
    remedy.why.contains("No value is computed: the log does not state ")
}

fn told(report: &Report) -> bool {
    report
        .remedies
        .iter()
        .any(|remedy| has_a_value(remedy) || says_what_is_missing(remedy))
}

#[test]
fn memory_failures_get_a_value_or_the_name_of_the_missing_figure() {
    let mut logs = Vec::new();
    collect(Path::new(COLLECTION), &mut logs);
    if logs.is_empty() {
        println!("no collection is at hand: only the corpus is looked at");
    }
    collect(Path::new("corpus"), &mut logs);
    logs.sort();
    assert!(logs.len() >= 10, "{} logs", logs.len());
    let (mut valued, mut silent) = (0, Vec::new());
    for log in &logs {
        let report = examine(std::slice::from_ref(log));
        let cause = report.cause.as_ref().map_or("", |cause| cause.id.as_str());
        if !is_memory(cause) {
            continue;
        }
        valued += usize::from(report.remedies.iter().any(has_a_value));
        if !told(&report) {
            silent.push(format!("{} ({cause})", log.display()));
        }
    }
    assert!(silent.is_empty(), "neither value nor missing figure: {silent:#?}");
    assert!(valued * 2 > logs.len(), "{valued} of {} have a value", logs.len());
}
