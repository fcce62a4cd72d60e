//! Counting the lines outside territory changes no verdict: each log of the corpus, put between hours of serving.

mod common;

use std::fs;

use common::{cases, examine_with};
use coroner::Options;
use coroner::report::model::Report;

/// Bytes that are more than both ends of a source in which every line is read.
const HOURS: usize = 300 << 10;

#[test]
fn the_same_verdict_whether_every_line_is_read_or_not() {
    let serving: String = (0..HOURS / 90)
        .map(|n| {
            format!(
                "(APIServer pid=7) INFO:     10.0.{}.{}:51234 - \"POST /v1/completions HTTP/1.1\" 200 OK\n",
                n / 250 % 250,
                n % 250
            )
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let mut faults = Vec::new();
    for case in cases() {
        let Some(log) = case.log() else { continue };
        let log = fs::read(log).unwrap();
        let log = [log.as_slice(), b"\n"].concat();
        let path = folder.path().join(format!("{}.log", case.id));
        let text = [&log, serving.as_bytes(), &log, serving.as_bytes()].concat();
        fs::write(&path, text).unwrap();
        let said = [false, true].map(|plain| {
            let options = Options {
                plain,
                ..Options::default()
            };
            said(&examine_with(std::slice::from_ref(&path), &options))
        });
        if said[0] != said[1] {
            faults.push(format!("{}: {} – read in full: {}", case.id, said[0], said[1]));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}

/// What must not depend on it.
fn said(report: &Report) -> String {
    let root = report.root.as_ref().map(|r| r.place.line);
    let cause = report.cause.as_ref().map(|c| c.id.as_str());
    format!(
        "{} {:?} {cause:?} at {root:?}, {} lines",
        report.outcome.id(),
        report.phase,
        report.examined.lines
    )
}
