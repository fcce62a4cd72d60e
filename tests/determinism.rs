//! The same input gives the same report, byte for byte: whatever the seed of hash tables (each process has its own), the
//! number of threads, the locale, the time zone and the order in which files are named.

mod common;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use assert_cmd::cargo::CommandCargoExt;
use common::cases;

fn output(args: &[&str], env: &[(&str, &str)]) -> Vec<u8> {
    let output = Command::cargo_bin("coroner")
        .unwrap()
        .args(args)
        .envs(env.iter().copied())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(!output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn inputs() -> Vec<PathBuf> {
    cases()
        .iter()
        .flat_map(|case| [case.log(), case.folder()])
        .flatten()
        .collect()
}

#[test]
fn reports_do_not_depend_on_seeds_locale_or_zone() {
    const HERE: [(&str, &str); 3] = [("TZ", "UTC"), ("LC_ALL", "C"), ("LANG", "C")];
    const THERE: [(&str, &str); 3] = [
        ("TZ", "Pacific/Kiritimati"),
        ("LC_ALL", "tr_TR.UTF-8"),
        ("LANG", "ar_EG"),
    ];
    for path in inputs() {
        let path = path.to_str().unwrap();
        let args = ["--format", "json", "--redact", "all", "--redact-key", "k", path];
        assert!(output(&args, &HERE) == output(&args, &THERE), "{path}");
    }
}

#[test]
fn a_scan_does_not_depend_on_its_threads() {
    let scan = |jobs: &str, format: &str| output(&["scan", "-q", "--jobs", jobs, "--format", format, "corpus"], &[]);
    for format in ["json", "csv"] {
        assert!(scan("1", format) == scan("7", format), "{format}");
    }
    for format in ["summary", "html"] {
        let unordered = output(&["scan", "-q", "--unordered", "--format", format, "corpus"], &[]);
        assert!(unordered == scan("1", format), "{format}");
    }
}

#[test]
fn the_verdict_does_not_depend_on_the_order_of_files() {
    for case in cases() {
        let Some(folder) = case.folder() else { continue };
        let found = coroner::intake::discover(&[folder], &coroner::intake::Limits::default());
        let told = |inputs: &[coroner::intake::InputSpec]| {
            let catalog = coroner::catalog::Catalog::shared();
            let report = coroner::examine(catalog, inputs, &coroner::Options::default());
            let cause = report.cause.map(|c| (c.id, c.confidence));
            let root = report.root.map(|r| (r.place.input, r.place.line, r.place.process));
            let remedies: Vec<String> = report.remedies.into_iter().map(|r| r.id).collect();
            (report.outcome, report.phase, cause, root, remedies)
        };
        let mut inputs = found.inputs;
        let before = told(&inputs);
        inputs.reverse();
        assert_eq!(before, told(&inputs), "{}", case.id);
    }
}

#[test]
fn a_report_does_not_depend_on_the_order_of_arguments() {
    let paths = ["a", "b"].map(|node| format!("corpus/flagship-a-sglang-context-oom.d/node-{node}.log"));
    let told = |paths: &mut dyn Iterator<Item = &String>| {
        let paths = paths.map(String::as_str);
        output(&["--format", "json"].into_iter().chain(paths).collect::<Vec<_>>(), &[])
    };
    assert!(told(&mut paths.iter()) == told(&mut paths.iter().rev()));
}
