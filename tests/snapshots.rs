//! Snapshots of the flagship incidents in every format, to be read by eye when they change.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use assert_cmd::cargo::CommandCargoExt;
use common::{case, cases, examine};
use coroner::report::{Format, Style, render};

const FLAGSHIPS: [&str; 5] = [
    "flagship-a-sglang-context-oom",
    "flagship-a-vllm-context-oom",
    "flagship-b-ray255-monitor",
    "flagship-b-ray260-monitor",
    "flagship-c-graph-capture-oom",
];

/// A page without the content of an element.
fn without(page: &str, element: &str) -> String {
    let (open, close) = (format!("<{element}>"), format!("</{element}>"));
    let (before, rest) = page.split_once(&open).unwrap();
    let (_, after) = rest.split_once(&close).unwrap();
    format!("{before}{open}{close}{after}")
}

#[test]
fn flagships() {
    for id in FLAGSHIPS {
        let case = case(id);
        let mut report = examine(&[case.log().or(case.folder()).unwrap()]);
        // What changes with every release is no part of a snapshot.
        report.program.version = "[version]";
        report.program.catalog = "[catalog]".into();
        for format in Format::ALL {
            let page = render(&report, *format, &Style::default());
            // Style and script are files of their own, to be read there.
            let page = match format {
                Format::Html => without(&without(&page, "style"), "script"),
                _ => page,
            };
            insta::assert_snapshot!(format!("{id}-{}", format.id()), page);
        }
    }
}

/// A copy whose files were all written at one time: it stands for the year that most logs do not print.
fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let path = entry.unwrap().path();
            copy(&path, &to.join(path.file_name().unwrap()));
        }
        return;
    }
    fs::copy(from, to).unwrap();
    let written = SystemTime::UNIX_EPOCH + Duration::from_secs(1_796_000_000);
    let file = fs::File::options().write(true).open(to).unwrap();
    file.set_modified(written).unwrap();
}

#[test]
fn summary_of_the_corpus() {
    let dir = tempfile::tempdir().unwrap();
    for case in cases() {
        for path in [case.log(), case.folder()].into_iter().flatten() {
            fs::create_dir_all(dir.path().join("corpus")).unwrap();
            copy(&path, &dir.path().join(&path));
        }
    }
    for (form, name) in [("summary", "terminal"), ("markdown", "markdown"), ("html", "html")] {
        let output = Command::cargo_bin("coroner")
            .unwrap()
            .args(["scan", "--quiet", "--new-since", "2026-11-27", "--label"])
            .args(["^corpus/([a-z0-9]+)", "--format", form, "corpus"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(output.status.success());
        let page = String::from_utf8(output.stdout).unwrap();
        let page = if form == "html" { without(&page, "style") } else { page };
        insta::assert_snapshot!(format!("summary-{name}"), page);
    }
}
