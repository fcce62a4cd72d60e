//! What a log says does not depend on how it came here: wrapped, shuffled, cut, doubled, renamed or padded, its verdict
//! stays or weakens honestly and never becomes another cause. And what must change a verdict does.
//!
//! The corpus is examined; where `CORONER_METAMORPHIC` names a folder of labelled logs, that folder too.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use common::{Case, Text, cases, examine_texts, root_process};
use coroner::catalog::{Catalog, Strength};
use coroner::intake::{Limits, discover};
use coroner::report::model::{Outcome, Report};
use rayon::prelude::*;
use regex::{Captures, Regex};

/// Names a folder with further labelled logs, in the format of `corpus/README.md`.
const FOLDER: &str = "CORONER_METAMORPHIC";

/// Share of the transformed logs that may name another cause.
const MOST_CHANGED: f64 = 0.01;

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
            Some(new) if Catalog::shared().unwrap().strength(&new) < Strength::Strong => Fate::Weakened,
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

fn second(n: usize) -> String {
    format!("{:02}:{:02}:{:02}", 12 + n / 3600 % 10, n / 60 % 60, n % 60)
}

type Wrapping = (&'static str, fn(usize, &str) -> String);

const WRAPPINGS: [Wrapping; 5] = [
    ("layer: kubectl --prefix", |_, l| format!("[pod/vllm-0/server] {l}")),
    ("layer: CRI", |n, l| format!("2026-11-25T{}.5Z stderr F {l}", second(n))),
    ("layer: compose", |_, l| format!("vllm-1  | {l}")),
    ("layer: journald", |n, l| {
        format!("Nov 25 {} node-x vllm[24]: {l}", second(n))
    }),
    ("layer: docker json-file", |n, l| {
        let log = serde_json::Value::from(format!("{l}\n"));
        format!(
            "{{\"log\":{log},\"stream\":\"stdout\",\"time\":\"2026-11-25T{}Z\"}}",
            second(n)
        )
    }),
];

/// Lines of another program, which tell of nothing.
fn benign(lines: usize) -> String {
    (0..lines)
        .map(|n| format!("probe {n}: 10.0.0.7 answered in {} us\n", 100 + n % 37))
        .collect()
}

/// Puts text before the line from which on a share of the lines stands, but not into a record of several lines.
fn inserted(text: &Text, twentieth: usize, new: &str) -> Text {
    let starts = |line: &&str| line.starts_with(['(', '[']) || line.starts_with("INFO") || line.starts_with("20");
    let lines: Vec<&str> = text.text().split_inclusive('\n').collect();
    let from = lines.len() * twentieth / 20;
    let at = (from..lines.len()).find(|&n| starts(&lines[n])).unwrap_or(from);
    let end = if lines[..at].last().is_some_and(|l| !l.ends_with('\n')) {
        "\n"
    } else {
        ""
    };
    Text::new(
        text.name.clone(),
        [&lines[..at].concat(), end, new, &lines[at..].concat()].concat(),
    )
}

/// Exchanges neighbours of different processes that have the same second, again and again, in a fixed random order.
fn shuffled(text: &Text) -> Text {
    let prefix = Regex::new(r"^\((\S+ pid=\d+)[^)]*\)").unwrap();
    let clock = Regex::new(r"\d\d-\d\d \d\d:\d\d:\d\d").unwrap();
    let mut lines: Vec<(Option<String>, Option<String>, &str)> = Vec::new();
    for line in text.text().split_inclusive('\n') {
        let who = prefix.captures(line).map(|c| c[1].to_owned());
        let when = clock.find(line).map(|m| m.as_str().to_owned());
        lines.push((who, when, line));
    }
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..4 {
        for at in 1..lines.len() {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let (a, b) = (&lines[at - 1], &lines[at]);
            if a.0.is_some() && b.0.is_some() && a.0 != b.0 && a.1 == b.1 && state.is_multiple_of(2) {
                lines.swap(at - 1, at);
            }
        }
    }
    Text::new(text.name.clone(), lines.into_iter().map(|l| l.2).collect::<String>())
}

fn renamed(inputs: &[Text]) -> Vec<Text> {
    let pid = Regex::new(r"pid[=: ]{1,2}(\d{2,7})\b").unwrap();
    let pids: std::collections::BTreeSet<String> = inputs
        .iter()
        .flat_map(|t| pid.captures_iter(t.text()).map(|c| c[1].to_owned()).collect::<Vec<_>>())
        .collect();
    let number = Regex::new(r"\b\d{2,7}\b").unwrap();
    let host = Regex::new(r"\bnode-([a-z])\b").unwrap();
    let one = |text: &str| {
        let text = host.replace_all(text, "gx7-$1");
        let text = number.replace_all(&text, |c: &Captures<'_>| match pids.get(&c[0]) {
            Some(pid) => (pid.parse::<u64>().unwrap() + 10_007).to_string(),
            None => c[0].to_owned(),
        });
        text.replace("/dist-packages/", "/site-packages/")
            .replace("/usr/local/lib/python3", "/opt/venv/lib/python3")
    };
    inputs
        .iter()
        .map(|t| Text::new(host.replace_all(&t.name, "gx7-$1"), one(t.text())))
        .collect()
}

/// Every transformation that must not turn the verdict into another one.
fn transformed(subject: &Subject) -> Vec<(&'static str, Vec<Text>)> {
    let each = |f: &dyn Fn(&Text) -> Vec<u8>| -> Vec<Text> {
        subject.inputs.iter().map(|t| Text::new(t.name.clone(), f(t))).collect()
    };
    let mut all: Vec<(&'static str, Vec<Text>)> = Vec::new();
    all.extend(WRAPPINGS.iter().map(|(name, wrap)| (*name, subject.map(wrap))));
    all.extend((1..20).map(|n| ("head cut", subject.part(n, 20))));
    all.extend((1..20).map(|n| ("tail cut", subject.part(0, n))));
    all.push(("processes shuffled", subject.inputs.iter().map(shuffled).collect()));
    all.push((
        "log doubled",
        each(&|t| {
            let end: &[u8] = if t.bytes.ends_with(b"\n") { b"" } else { b"\n" };
            [&t.bytes, end, &t.bytes].concat()
        }),
    ));
    all.push(("hosts, pids and paths renamed", renamed(&subject.inputs)));
    all.push((
        "line ends CR LF",
        each(&|t| t.text().replace("\r\n", "\n").replace('\n', "\r\n").into_bytes()),
    ));
    all.push((
        "UTF-16",
        each(&|t| {
            format!("\u{feff}{}", t.text())
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect()
        }),
    ));
    let padding = benign(10_000);
    for twentieth in [0, 10, 20] {
        let padded = subject
            .inputs
            .iter()
            .map(|t| inserted(t, twentieth, &padding))
            .collect();
        all.push(("10,000 benign lines", padded));
    }
    all
}

#[derive(Default)]
struct Table(BTreeMap<&'static str, [usize; 3]>);

impl Table {
    fn add(&mut self, name: &'static str, fate: Fate) {
        self.0.entry(name).or_default()[fate as usize] += 1;
    }

    /// Prints the shares, and gives that of the changed ones.
    fn print(&self, title: &str) -> f64 {
        println!(
            "{title:32} {:>6} {:>10} {:>9} {:>8}",
            "logs", "unchanged", "weakened", "changed"
        );
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
    println!(
        "{name:32} {all:>6} {:>10} {:>9} {:>8}",
        share(counts[0]),
        share(counts[1]),
        share(counts[2])
    );
}

fn told(report: &Report) -> String {
    let cause = report.cause.as_ref().map_or("-", |c| c.id.as_str());
    let root = report.root.as_ref().map_or(0, |r| r.place.line);
    format!("{} {cause} (line {root})", report.outcome.id())
}

#[test]
fn a_verdict_stays_or_weakens_and_never_becomes_another() {
    let mut table = Table::default();
    let mut faults = Vec::new();
    let fates = |subject: &Subject| -> Vec<_> {
        let transformed = transformed(subject).into_iter().enumerate();
        transformed
            .map(|(n, (name, inputs))| {
                let after = examine_texts(&inputs);
                let fate = subject.fate(&after);
                let (before, after) = (told(&subject.before), told(&after));
                let fault = format!("{} · {name} ({n}): {before} → {after}", subject.id);
                (name, fate, (fate == Fate::Changed).then_some(fault))
            })
            .collect()
    };
    let all: Vec<_> = subjects().par_iter().map(fates).collect();
    for (name, fate, fault) in all.into_iter().flatten() {
        table.add(name, fate);
        faults.extend(fault);
    }
    let changed = table.print("transformation");
    println!("{}", faults.join("\n"));
    assert!(
        changed < MOST_CHANGED,
        "{:.2} % name another cause:\n{}",
        100.0 * changed,
        faults.join("\n")
    );
}

/// What the line states, without its header: what every printing of it has in common.
fn statement(line: &str) -> &str {
    let end = line.trim_end();
    let from = end.char_indices().rev().nth(79).map_or(0, |(at, _)| at);
    &end[from..]
}

/// Takes out line after line, as long as the report quotes one that states the same cause.
fn without_the_cause(subject: &Subject) -> Option<Report> {
    let cause = &subject.before.cause.as_ref()?.id;
    let mut inputs = subject.inputs.clone();
    for _ in 0..60 {
        let report = examine_texts(&inputs);
        let root = report.root.as_ref();
        let (Some(root), true) = (root, report.cause.as_ref().is_some_and(|c| c.id == *cause)) else {
            return Some(report);
        };
        let words = statement(&root.place.text).to_owned();
        inputs = inputs
            .iter()
            .map(|t| {
                let here = t.name == root.place.input;
                let lines = t.text().split_inclusive('\n').zip(1_u64..);
                let kept = lines.filter(|(l, no)| !(l.trim_end().ends_with(&words) || here && *no == root.place.line));
                Text::new(t.name.clone(), kept.map(|(l, _)| l).collect::<String>())
            })
            .collect();
    }
    None
}

/// The other process of the same kind that a root's process can change places with.
fn double(report: &Report) -> Option<((String, i64), (String, i64))> {
    let root = report.root.as_ref()?.place.process.clone()?;
    let own = report.processes.iter().find(|p| p.id == root)?;
    let label = |id: &str| id.split(" pid=").next().unwrap_or_default().to_owned();
    let shape = |id: &str| label(id).trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let other = report.processes.iter().find(|p| {
        p.id != own.id
            && p.pid.is_some()
            && p.node == own.node
            && shape(&p.id) == shape(&own.id)
            && label(&p.id) != label(&own.id)
    })?;
    Some(((label(&own.id), own.pid?), (label(&other.id), other.pid?)))
}

#[test]
fn what_must_change_a_verdict_changes_it() {
    let mut table = Table::default();
    let mut faults = Vec::new();
    let strong = |report: &Report| {
        let cause = report.cause.as_ref();
        cause.is_some_and(|c| Catalog::shared().unwrap().strength(&c.id) == Strength::Strong)
    };
    for subject in subjects().iter().filter(|s| strong(&s.before)) {
        let mut note = |name: &'static str, good: bool, weaker: bool, after: &Report| {
            table.add(
                name,
                if !good {
                    Fate::Changed
                } else if weaker {
                    Fate::Weakened
                } else {
                    Fate::Unchanged
                },
            );
            if !good {
                faults.push(format!(
                    "{} · {name}: {} → {}",
                    subject.id,
                    told(&subject.before),
                    told(after)
                ));
            }
        };
        match without_the_cause(subject) {
            Some(after) => note("all that states the cause removed", !strong(&after), true, &after),
            None => note("all that states the cause removed", false, true, &subject.before),
        }
        let Some(((label, pid), (other, new))) = double(&subject.before) else {
            continue;
        };
        let mine = format!("({label} pid={pid})");
        let whole = subject.inputs.iter().any(|t| t.text().contains(&mine));
        if whole {
            let rest: Vec<Text> = subject.inputs.iter().map(|t| t.keep(|l| !l.contains(&mine))).collect();
            let after = examine_texts(&rest);
            let confidence = |r: &Report| r.cause.as_ref().map_or(0.0, |c| c.confidence);
            let same = subject.fate(&after) == Fate::Unchanged;
            let lower = !same || confidence(&after) < confidence(&subject.before);
            let good = subject.fate(&after) != Fate::Changed && lower;
            note("the victim's own lines removed", good, !same, &after);
            let swap = |text: &str| {
                let marks = [(mine.clone(), "\u{1}"), (format!("({other} pid={new})"), "\u{2}")];
                let text = text.replace(&marks[0].0, marks[0].1).replace(&marks[1].0, marks[1].1);
                text.replace('\u{1}', &marks[1].0).replace('\u{2}', &marks[0].0)
            };
            let swapped: Vec<Text> = subject
                .inputs
                .iter()
                .map(|t| Text::new(t.name.clone(), swap(t.text())))
                .collect();
            let after = examine_texts(&swapped);
            let follows = strong(&after) && root_process(&after).pid == Some(new);
            note("another process made the victim", follows, false, &after);
        }
    }
    let wrong = table.print("change");
    println!("{}", faults.join("\n"));
    assert!(
        wrong < 0.1,
        "{:.1} % do not change as they must:\n{}",
        100.0 * wrong,
        faults.join("\n")
    );
}
