//! A larger collection of labelled logs, where one stands beside the package: no panic, and verdicts that are as
//! right as they say they are. Without the collection the test says so and passes.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Case, examine};
use coroner::report::model::{Outcome, Report};

/// Names the folder with the labelled logs, in the format of `corpus/README.md`.
const FOLDER: &str = "CORONER_CASES";

/// Confidence bands of the reliability table; each ends where the next begins.
const BANDS: [f64; 4] = [0.0, 0.5, 0.7, 0.9];

/// Shares of right answers below which something is broken, not merely worse.
const LEAST_RIGHT: f64 = 0.88;
const MOST_ALARMS: f64 = 0.05;

/// What the highest band promises: its share of right answers, and its share of all causes named on failed logs.
const SURE_RIGHT: f64 = 0.97;
const SURE_SHARE: f64 = 0.55;
/// Answers from which on a band is compared with the one below it.
const ENOUGH: usize = 15;

#[derive(Default)]
struct Share {
    good: usize,
    all: usize,
}

impl Share {
    fn add(&mut self, good: bool) {
        self.all += 1;
        self.good += usize::from(good);
    }

    fn of(&self) -> f64 {
        self.good as f64 / self.all.max(1) as f64
    }
}

fn folder() -> Option<PathBuf> {
    let path = std::env::var_os(FOLDER).map_or_else(|| PathBuf::from("../shared/cases"), PathBuf::from);
    path.is_dir().then_some(path)
}

/// All labels below a folder, but none inside the folders that are cases themselves.
fn labels(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .filter_map(|e| e.ok().map(|e| e.path()))
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.extension().is_none_or(|e| e != "d") {
            labels(&path, found);
        } else if path.extension().is_some_and(|e| e == "json") {
            found.push(path);
        }
    }
}

/// A case with the inputs that are examined for it, each on its own.
fn inputs(label: &Path) -> (Case, Vec<PathBuf>) {
    let text = fs::read_to_string(label).unwrap();
    let case: Case = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", label.display()));
    let mut inputs = vec![label.with_extension("log")];
    if case.session_supports != Some(false) {
        inputs.push(label.with_extension("d"));
    }
    inputs.retain(|path| path.exists());
    (case, inputs)
}

#[test]
fn labelled_logs_are_judged_as_well_as_the_reports_say() {
    let Some(folder) = folder() else {
        println!("skipped: {FOLDER} names no folder with labelled logs");
        return;
    };
    let mut found = Vec::new();
    labels(&folder, &mut found);
    let (mut right, mut alarms) = (Share::default(), Share::default());
    let mut bands: [Share; BANDS.len()] = Default::default();
    for (case, paths) in found.iter().map(|label| inputs(label)) {
        for path in paths {
            judge(&case, &examine(&[path]), &mut right, &mut alarms, &mut bands);
        }
    }
    println!("confidence    right   all");
    for (from, band) in BANDS.iter().zip(&bands) {
        println!(
            "from {from:.1}     {:4} of {:4}   {:3.0} %",
            band.good,
            band.all,
            100.0 * band.of()
        );
    }
    println!(
        "cause named right: {}/{} · alarms: {}/{}",
        right.good, right.all, alarms.good, alarms.all
    );
    assert!(right.all > 0, "no case in {}", folder.display());
    let named: usize = bands.iter().map(|band| band.all).sum();
    let [.., sure] = &bands;
    assert!(
        sure.of() >= SURE_RIGHT,
        "{:.3} of the sure answers are right",
        sure.of()
    );
    assert!(
        sure.all as f64 >= SURE_SHARE * named as f64,
        "only {} of {named} answers are sure",
        sure.all
    );
    let full: Vec<f64> = bands.iter().filter(|band| band.all >= ENOUGH).map(Share::of).collect();
    assert!(full.is_sorted(), "a band is worse than the one below it: {full:?}");
    assert!(
        right.of() >= LEAST_RIGHT,
        "only {:.3} of the causes are right",
        right.of()
    );
    assert!(
        alarms.of() <= MOST_ALARMS,
        "{:.3} of the logs without a failure are called failed",
        alarms.of()
    );
}

fn judge(case: &Case, report: &Report, right: &mut Share, alarms: &mut Share, bands: &mut [Share; BANDS.len()]) {
    let cause = report.cause.as_ref();
    let accepted =
        cause.is_some_and(|cause| case.cause.as_ref() == Some(&cause.id) || case.acceptable_causes.contains(&cause.id));
    let good = case.outcome == "failed" && accepted;
    if case.outcome != "failed" {
        let allowed = case.acceptable_outcomes.iter().any(|o| o == "failed");
        alarms.add(report.outcome == Outcome::Failed && !allowed);
    } else if case.cause.is_some() {
        right.add(good);
    }
    if let Some(cause) = cause.filter(|cause| !cause.id.starts_with("unknown.")) {
        let band = BANDS.iter().rposition(|from| cause.confidence >= *from).unwrap_or(0);
        bands[band].add(good);
    }
}
