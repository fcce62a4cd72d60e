//! What a log says does not depend on how it came here: wrapped, shuffled, cut, doubled, renamed or padded, its verdict
//! stays or weakens honestly and never becomes another cause. And what must change a verdict does.
//!
//! The corpus is examined; where `CORONER_METAMORPHIC` names a folder of labelled logs, that folder too, and every log is
//! cut at every twentieth instead of at every sixth of them.

mod changes;
#[path = "../common/mod.rs"]
mod common;
mod stays;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Case, Text, cases, examine_texts};
use coroner::catalog::{Catalog, Strength};
use coroner::intake::{Limits, discover};
use coroner::report::model::{Outcome, Report};

/// Names a folder with further labelled logs, in the format of `corpus/README.md`.
const FOLDER: &str = "CORONER_METAMORPHIC";

/// Logs beyond this are left to the tests of limits.
const LARGEST: usize = 512 << 10;

/// One log of a launch, in one or more files, and what is said of it as it is.
struct Subject {
    id: String,
    inputs: Vec<Text>,
    accepted: Vec<String>,
    before: Report,
}

fn subjects() -> Vec<Subject> {
    let mut found = Vec::new();
    for case in cases() {
        let paths = [case.log(), case.folder()];
        paths
            .into_iter()
            .flatten()
            .for_each(|path| found.extend(subject(&case, &path)));
    }
    if let Some(folder) = std::env::var_os(FOLDER) {
        let mut labels = Vec::new();
        labels_below(Path::new(&folder), &mut labels);
        for label in labels {
            let text = fs::read_to_string(&label).unwrap();
            let case: Case = serde_json::from_str(&text).unwrap();
            let log = label.with_extension("log");
            found.extend(log.is_file().then(|| subject(&case, &log)).flatten());
        }
    }
    found
}

fn labels_below(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() && path.extension().is_none_or(|e| e != "d") {
            labels_below(&path, found);
        } else if path.extension().is_some_and(|e| e == "json") {
            found.push(path);
        }
    }
}

fn subject(case: &Case, path: &Path) -> Option<Subject> {
    let files = match path.is_dir() {
        true => discover(&[path.to_owned()], &Limits::default())
            .inputs
            .iter()
            .map(|i| i.name.clone())
            .collect(),
        false => vec![path.to_string_lossy().into_owned()],
    };
    let inputs: Vec<Text> = files.into_iter().map(Text::read).collect();
    let size: usize = inputs.iter().map(|t| t.bytes.len()).sum();
    let text = inputs.iter().all(|t| std::str::from_utf8(&t.bytes).is_ok());
    (text && size <= LARGEST).then(|| Subject {
        id: path.display().to_string(),
        accepted: case.acceptable_causes.iter().chain(&case.cause).cloned().collect(),
        before: examine_texts(&inputs),
        inputs,
    })
}

/// What became of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Unchanged,
    Weakened,
    Changed,
}

impl Subject {
    fn fate(&self, after: &Report) -> Fate {
        let id = |report: &Report| report.cause.as_ref().map(|c| c.id.clone());
        let (old, new) = (id(&self.before), id(after));
        if (self.before.outcome, &old) == (after.outcome, &new) {
            return Fate::Unchanged;
        }
        match new {
            None => Fate::Weakened,
            Some(new) if self.accepted.contains(&new) && self.before.outcome == Outcome::Failed => Fate::Unchanged,
            Some(new) if Catalog::shared().strength(&new) < Strength::Strong => Fate::Weakened,
            Some(_) => Fate::Changed,
        }
    }

    fn map(&self, line: impl Fn(usize, &str) -> String) -> Vec<Text> {
        let one = |text: &Text| {
            let lines = text.text().lines().enumerate().map(|(n, l)| line(n, l) + "\n");
            Text::new(text.name.clone(), lines.collect::<String>())
        };
        self.inputs.iter().map(one).collect()
    }

    /// The bytes of each file between two twentieths of it, at whole lines.
    fn part(&self, from: usize, to: usize) -> Vec<Text> {
        let one = |text: &Text| {
            let lines: Vec<&str> = text.text().split_inclusive('\n').collect();
            let at = |twentieth: usize| lines.len() * twentieth / 20;
            Text::new(text.name.clone(), lines[at(from)..at(to)].concat())
        };
        self.inputs.iter().map(one).collect()
    }
}

#[derive(Default)]
struct Table(BTreeMap<&'static str, [usize; 3]>);

impl Table {
    fn add(&mut self, name: &'static str, fate: Fate) {
        self.0.entry(name).or_default()[fate as usize] += 1;
    }

    /// Prints the shares, and gives the last one.
    fn print(&self, title: &str, [one, two, three]: [&str; 3]) -> f64 {
        println!("{title:33} {:>6} {one:>10} {two:>9} {three:>8}", "logs");
        let mut sum = [0; 3];
        for (name, counts) in &self.0 {
            row(name, counts);
            sum.iter_mut().zip(counts).for_each(|(s, c)| *s += c);
        }
        row("all", &sum);
        sum[2] as f64 / sum.iter().sum::<usize>().max(1) as f64
    }
}

fn row(name: &str, counts: &[usize; 3]) {
    let all: usize = counts.iter().sum();
    let share = |n: usize| format!("{:.1} %", 100.0 * n as f64 / all.max(1) as f64);
    let [one, two, three] = counts.map(share);
    println!("{name:33} {all:>6} {one:>10} {two:>9} {three:>8}");
}

fn told(report: &Report) -> String {
    let cause = report.cause.as_ref().map_or("-", |c| c.id.as_str());
    let root = report.root.as_ref().map_or(0, |r| r.place.line);
    format!("{} {cause} (line {root})", report.outcome.id())
}
