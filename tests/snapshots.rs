//! Snapshots of the flagship incidents in every format, to be read by eye when they change.

mod common;

use common::{case, examine};
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
