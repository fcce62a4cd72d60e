//! Every labelled case of the corpus, examined through the library: outcome, phase, cause and root line.

mod common;

use std::collections::BTreeSet;

use common::{Case, cases, examine};
use coroner::report::model::{Outcome, Report};

/// Faults that are known and why they stand: `case: what`. One that no longer occurs must leave this list.
const KNOWN: &[(&str, &str)] = &[];

#[test]
fn every_case_is_judged_as_its_label_says() {
    let mut faults = BTreeSet::new();
    for case in cases() {
        if let Some(log) = case.log() {
            let report = examine(&[log]);
            faults.extend(judge(&case, &case.id, &report));
            faults.extend(root_line(&case, &report));
        }
        if let Some(folder) = case.folder() {
            let report = examine(&[folder]);
            faults.extend(judge(&case, &format!("{}.d", case.id), &report));
            faults.extend(root_place(&case, &report));
        }
    }
    let known: BTreeSet<String> = KNOWN.iter().map(|(fault, _)| (*fault).to_owned()).collect();
    let new: Vec<_> = faults.difference(&known).collect();
    let mended: Vec<_> = known.difference(&faults).collect();
    assert!(
        new.is_empty() && mended.is_empty(),
        "new faults: {new:#?}\nmended, take them off the list: {mended:#?}"
    );
}

/// Outcome, phase and cause.
fn judge(case: &Case, name: &str, report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    let outcome = report.outcome.id();
    if !accepts(&case.outcome, &case.acceptable_outcomes, outcome) {
        faults.push(format!("{name}: outcome {outcome}, not {}", case.outcome));
        return faults;
    }
    let judged = matches!(report.outcome, Outcome::Failed | Outcome::Running);
    let phase = report.phase.as_deref().unwrap_or("none");
    if let Some(want) = case.phase.as_deref().filter(|_| judged)
        && !accepts(want, &case.acceptable_phases, phase)
    {
        faults.push(format!("{name}: phase {phase}, not {want}"));
    }
    let cause = report.cause.as_ref().map_or("none", |cause| &cause.id);
    match case.cause.as_deref() {
        Some(want) if report.outcome == Outcome::Failed && !accepts(want, &case.acceptable_causes, cause) => {
            faults.push(format!("{name}: cause {cause}, not {want}"));
        }
        _ => {}
    }
    faults
}

fn root_line(case: &Case, report: &Report) -> Option<String> {
    if report.outcome != Outcome::Failed || case.root_lines.is_empty() {
        return None;
    }
    let line = report.root.as_ref().map(|root| root.place.line);
    let right = line.is_some_and(|line| case.root_lines.contains(&line));
    (!right).then(|| format!("{}: root line {line:?}, not {:?}", case.id, case.root_lines))
}

/// The root of a folder: its file and its line.
fn root_place(case: &Case, report: &Report) -> Option<String> {
    if report.outcome != Outcome::Failed || case.roots.is_empty() {
        return None;
    }
    let place = report.root.as_ref().map(|root| &root.place);
    let right = place.is_some_and(|place| {
        case.roots
            .iter()
            .any(|root| place.input.ends_with(&root.input) && root.lines.contains(&place.line))
    });
    let told = place.map(|place| format!("{}:{}", place.input, place.line));
    (!right).then(|| format!("{}.d: root {told:?}, not {:?}", case.id, case.roots))
}

fn accepts(want: &str, also: &[String], got: &str) -> bool {
    want == got || also.iter().any(|also| also == got)
}

#[test]
fn every_label_points_at_lines_that_exist() {
    for case in cases() {
        if let Some(log) = case.log() {
            let lines = common::lines_of(&log);
            for line in case.root_lines.iter().chain(&case.consequence_lines) {
                assert!(*line >= 1 && *line <= lines, "{}: line {line} of {lines}", case.id);
            }
        }
        for root in case.roots.iter().chain(&case.consequences) {
            let lines = common::lines_of(&case.path(".d").join(&root.input));
            assert!(
                root.lines.iter().all(|line| *line >= 1 && *line <= lines),
                "{}: {root:?}",
                case.id
            );
        }
        for input in &case.inputs {
            assert!(case.path(".d").join(input).is_file(), "{}: {input} is missing", case.id);
        }
        assert!(case.log().is_some() || case.folder().is_some(), "{}: no input", case.id);
    }
}
