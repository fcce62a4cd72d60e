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

#[test]
fn flagships() {
    for id in FLAGSHIPS {
        let case = case(id);
        let mut report = examine(&[case.log().or(case.folder()).unwrap()]);
        // What changes with every release is no part of a snapshot.
        report.program.version = "[version]";
        report.program.catalog = "[catalog]".into();
        for (name, format) in [
            ("terminal", Format::Terminal),
            ("markdown", Format::Markdown),
            ("json", Format::Json),
        ] {
            insta::assert_snapshot!(format!("{id}-{name}"), render(&report, format, &Style::default()));
        }
    }
}
