//! What must not turn a verdict into another one: wrapping, cutting, shuffling, doubling, renaming, padding.

use rayon::prelude::*;
use regex::{Captures, Regex};

use super::*;

/// Share of the transformed logs that may name another cause.
const MOST_CHANGED: f64 = 0.01;

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

/// Every transformation that must not turn the verdict into another one. Of the places to cut at, those of one of six
/// turns, and of the places to pad at one of three; together the logs have them all.
fn transformed(subject: &Subject, turn: usize) -> Vec<(&'static str, Vec<Text>)> {
    let each = |f: &dyn Fn(&Text) -> Vec<u8>| -> Vec<Text> {
        subject.inputs.iter().map(|t| Text::new(t.name.clone(), f(t))).collect()
    };
    let mut all: Vec<(&'static str, Vec<Text>)> = Vec::new();
    all.extend(WRAPPINGS.iter().map(|(name, wrap)| (*name, subject.map(wrap))));
    let cuts = (1..20).filter(|n| std::env::var_os(FOLDER).is_some() || n % 6 == turn % 6);
    all.extend(cuts.clone().map(|n| ("head cut", subject.part(n, 20))));
    all.extend(cuts.map(|n| ("tail cut", subject.part(0, n))));
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
    let twentieth = 10 * (turn % 3);
    let padded = subject.inputs.iter().map(|t| inserted(t, twentieth, &padding));
    all.push(("10,000 benign lines", padded.collect()));
    all
}

#[test]
fn a_verdict_stays_or_weakens_and_never_becomes_another() {
    let mut table = Table::default();
    let mut faults = Vec::new();
    let fates = |(turn, subject): (usize, &Subject)| -> Vec<_> {
        let transformed = transformed(subject, turn).into_iter().enumerate();
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
    let all: Vec<_> = subjects().par_iter().enumerate().map(fates).collect();
    for (name, fate, fault) in all.into_iter().flatten() {
        table.add(name, fate);
        faults.extend(fault);
    }
    let changed = table.print("transformation", ["unchanged", "weakened", "changed"]);
    println!("{}", faults.join("\n"));
    assert!(
        changed < MOST_CHANGED,
        "{:.2} % name another cause:\n{}",
        100.0 * changed,
        faults.join("\n")
    );
}
