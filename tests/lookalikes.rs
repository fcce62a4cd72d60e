//! A root and a line that looks like one, or only carries it, in both orders: the root wins.

mod common;

use std::collections::BTreeMap;

use common::{Text, examine_texts};
use coroner::report::model::{Outcome, Report};
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    heads: BTreeMap<String, String>,
    tails: BTreeMap<String, String>,
    pair: Vec<Pair>,
}

#[derive(Deserialize)]
struct Pair {
    head: String,
    /// The cause, or several of which each is right, parted by `|`.
    cause: String,
    root: String,
    other: String,
}

fn table() -> Table {
    toml::from_str(include_str!("data/lookalikes.toml")).unwrap()
}

fn report(table: &Table, pair: &Pair, parts: [&str; 2]) -> Report {
    let [first, second] = parts;
    let (head, tail) = (&table.heads[&pair.head], &table.tails[&pair.head]);
    examine_texts(&[Text::new("launch.log", format!("{head}{first}{second}{tail}"))])
}

#[test]
fn the_root_wins_in_either_order() {
    let table = table();
    assert!(table.pair.len() >= 30, "{} pairs", table.pair.len());
    for pair in &table.pair {
        for parts in [[&*pair.root, &*pair.other], [&*pair.other, &*pair.root]] {
            let report = report(&table, pair, parts);
            let got = report.cause.as_ref().map(|c| c.id.as_str());
            assert!(
                got.is_some_and(|id| pair.cause.split('|').any(|c| c == id)),
                "{}: {got:?}, {}\n{}{}",
                pair.cause,
                report.headline,
                parts[0],
                parts[1]
            );
        }
    }
}

#[test]
fn what_only_looks_like_a_root_is_none_where_no_root_is() {
    let table = table();
    for pair in &table.pair {
        let log = format!("{}{}", table.heads[&pair.head], pair.other);
        let report = examine_texts(&[Text::new("launch.log", log)]);
        let named = report.cause.as_ref().filter(|_| report.outcome == Outcome::Failed);
        assert!(
            named.is_none_or(|c| c.confidence < 0.9 || pair.cause.split('|').any(|p| p == c.id)),
            "{:?}\n{}",
            report.cause,
            pair.other
        );
    }
}

#[test]
fn an_end_that_was_asked_for_is_no_failure_of_anybody() {
    let report = common::examine(&["corpus/healthy-8b-graphs.log".into()]);
    assert_eq!(report.outcome, coroner::report::model::Outcome::Stopped);
    assert!(
        report.findings.iter().all(|f| f.id != "look-alike"),
        "{:?}",
        report.findings
    );
    for row in &report.rows {
        let text = format!("{row:?}");
        assert!(!text.contains("fail"), "{text}");
    }
}
