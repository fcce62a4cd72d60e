//! What a transport puts round a log, and the order in which an export lists it, change nothing of the verdict.

mod common;

use std::collections::BTreeSet;

use common::{Text, examine_texts};
use coroner::report::model::Report;

fn verdict(report: &Report) -> (String, Option<String>, Option<String>, Option<u32>, usize) {
    (
        report.outcome.id().to_owned(),
        report.cause.as_ref().map(|c| c.id.clone()),
        report.phase.clone(),
        report.root.as_ref().and_then(|root| root.place.rank),
        report.attempts.len(),
    )
}

/// The lines of a log of the corpus behind a collector's stamps, a fifth of a second apart.
fn stamped(id: &str) -> Vec<String> {
    let log = Text::read(format!("corpus/{id}.log"));
    let line = |(n, line): (usize, &str)| {
        let (minute, second) = (n / 300, n / 5 % 60);
        let part = n % 5 * 2;
        format!(
            "2026-11-30T03:{minute:02}:{second:02}.{part}00000000Z {}\n",
            line.trim_end_matches('\r')
        )
    };
    log.text().lines().enumerate().map(line).collect()
}

#[test]
fn an_export_that_begins_with_the_newest_line_has_the_verdict_of_one_that_ends_with_it() {
    for id in [
        "flagship-c-graph-capture-oom",
        "gpu-oom-graph-capture-v2",
        "gpu-mem-occupied-half",
        "healthy-8b-graphs",
        "safetensors-truncated",
        "torch-never-joins",
        "nccl-64-ranks-one-absent",
    ] {
        let lines = stamped(id);
        let text = |lines: &[String]| examine_texts(&[Text::new("export.log", lines.concat())]);
        let forward = text(&lines);
        let reversed: Vec<String> = lines.into_iter().rev().collect();
        assert_eq!(verdict(&text(&reversed)), verdict(&forward), "{id}");
    }
}

#[test]
fn the_pid_of_a_service_is_that_of_none_of_its_ranks() {
    let log = Text::read("corpus/flagship-a-sglang-context-oom.d/node-b.log");
    let bare = examine_texts(&[Text::new("node-b.log", log.text())]);
    let line = |line: &str| format!("May 19 21:14:07 node-b sglang[3311]: {line}\n");
    let unit: String = log.text().lines().map(line).collect();
    let report = examine_texts(&[Text::new("journal.log", unit)]);
    assert_eq!(verdict(&report), verdict(&bare));
    let ranks = |report: &Report| -> BTreeSet<Option<u32>> { report.processes.iter().map(|p| p.rank).collect() };
    assert_eq!(ranks(&report), ranks(&bare));
    let with_pid = report.processes.iter().filter(|p| p.pid == Some(3311));
    assert!(with_pid.into_iter().all(|p| p.rank.is_none()), "{:?}", report.processes);
}
