//! Equal failures share a fingerprint, whatever the pids, hosts, times and addresses; different ones do not.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::cases;
use coroner::catalog::Catalog;
use coroner::intake::{InputSpec, Limits, discover};
use coroner::{Options, examine};
use regex::{Captures, Regex};

/// The log of the same failure of another launch.
fn other(text: &str) -> String {
    let pid = Regex::new(r"\bpid[=: ]{1,2}(\d{2,7})\b").unwrap();
    let pids: Vec<String> = pid.captures_iter(text).map(|c| c[1].to_owned()).collect();
    let number = Regex::new(r"\b\d{2,7}\b").unwrap();
    let text = number.replace_all(text, |c: &Captures<'_>| match pids.iter().any(|pid| *pid == c[0]) {
        true => (c[0].parse::<u64>().unwrap() + 100_003).to_string(),
        false => c[0].to_owned(),
    });
    let host = Regex::new(r"\b(?:node|gpu|host)-([a-z]|\d{1,3})\b").unwrap();
    let text = host.replace_all(&text, "gx7-$1");
    let address = Regex::new(r"\b0x[0-9a-f]{6,}\b").unwrap();
    let text = address.replace_all(&text, "0x7fffdeadbeef");
    let day = Regex::new(r"\b11-(2[0-9]|30)([ T]\d\d:)").unwrap();
    day.replace_all(&text, "03-$1$2").into_owned()
}

/// Fingerprint and cause.
fn fingerprint(inputs: &[InputSpec]) -> Option<(String, String)> {
    let report = examine(Catalog::shared(), inputs, &Options::default());
    let print = report.fingerprint.filter(|_| report.outcome.id() == "failed");
    print.zip(report.cause.map(|cause| cause.id))
}

fn changed(path: &Path) -> Vec<InputSpec> {
    let found = discover(&[path.to_owned()], &Limits::default());
    let inputs = found.inputs.iter();
    inputs
        .map(|input| {
            let bytes = fs::read(&input.name).unwrap();
            InputSpec::memory(input.name.clone(), other(&String::from_utf8_lossy(&bytes)).into_bytes())
        })
        .collect()
}

#[test]
fn the_same_failure_elsewhere_has_the_same_fingerprint() {
    let mut causes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut failures = 0;
    for case in cases() {
        for path in [case.log(), case.folder()].into_iter().flatten() {
            let found = discover(std::slice::from_ref(&path), &Limits::default());
            let Some(own) = fingerprint(&found.inputs) else {
                continue;
            };
            failures += 1;
            assert_eq!(fingerprint(&changed(&path)).as_ref(), Some(&own), "{}", path.display());
            let (print, cause) = own;
            causes.entry(print).or_default().push(cause);
        }
    }
    assert!(failures > 30, "{failures}");
    for (print, mut causes) in causes {
        causes.dedup();
        assert_eq!(causes.len(), 1, "{print}: {causes:?}");
    }
}
