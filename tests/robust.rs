//! Damaged input: random bytes, cut, shuffled and interleaved logs never make the examination panic, and a log that
//! is cut before the failure never names another cause.

mod common;

use std::sync::OnceLock;

use common::{Text, cases, examine_texts};
use coroner::catalog::{Catalog, Strength};
use coroner::report::model::{Outcome, Report};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// The logs of the corpus, read once.
fn logs() -> &'static [Text] {
    static LOGS: OnceLock<Vec<Text>> = OnceLock::new();
    LOGS.get_or_init(|| {
        let paths = cases().into_iter().filter_map(|case| case.log());
        paths.map(Text::read).collect()
    })
}

fn log() -> impl Strategy<Value = &'static Text> {
    select((0..logs().len()).collect::<Vec<_>>()).prop_map(|i| &logs()[i])
}

/// A report came out, and it is whole.
fn whole(report: &Report) -> Result<(), TestCaseError> {
    let value = serde_json::to_value(report).expect("a report is JSON");
    prop_assert_eq!(&value["schema"], "coroner.report/1");
    prop_assert_eq!(
        report.outcome == Outcome::Failed,
        report.cause.is_some(),
        "{}",
        report.headline
    );
    prop_assert!(report.headline.chars().count() <= 120, "{}", report.headline);
    Ok(())
}

fn examined(bytes: impl Into<Vec<u8>>) -> Report {
    examine_texts(&[Text::new("serve.log", bytes)])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_are_examined(bytes in vec(any::<u8>(), 0..4096)) {
        whole(&examined(bytes))?;
    }

    #[test]
    fn random_bytes_within_a_log_are_examined(log in log(), at in any::<Index>(), bytes in vec(any::<u8>(), 0..512)) {
        let mut text = log.bytes.clone();
        let at = at.index(text.len());
        text.splice(at..at, bytes);
        whole(&examined(text))?;
    }

    #[test]
    fn cut_logs_are_examined(log in log(), a in any::<Index>(), b in any::<Index>()) {
        let (a, b) = (a.index(log.bytes.len()), b.index(log.bytes.len()));
        whole(&examined(&log.bytes[a.min(b)..a.max(b)]))?;
    }

    #[test]
    fn shuffled_lines_are_examined(lines in log().prop_flat_map(|log| {
        Just(log.bytes.split_inclusive(|b| *b == b'\n').collect::<Vec<_>>()).prop_shuffle()
    })) {
        whole(&examined(lines.concat()))?;
    }

    #[test]
    fn interleaved_logs_are_examined(one in log(), two in log(), turns in vec(1_usize..9, 1..40)) {
        let lines = |text: &'static Text| text.bytes.split_inclusive(|b| *b == b'\n');
        let (mut one, mut two, mut text) = (lines(one), lines(two), Vec::new());
        for turn in turns.iter().cycle().take(400) {
            one.by_ref().take(*turn).for_each(|line| text.extend_from_slice(line));
            std::mem::swap(&mut one, &mut two);
        }
        whole(&examined(text))?;
    }

    #[test]
    fn two_logs_together_are_examined(one in log(), two in log()) {
        whole(&examine_texts(&[one.clone(), two.clone()]))?;
    }
}

/// A failed log that ends before the first line that states its cause: whatever is said then, it is no other
/// mechanism. Weak and generic answers are what such a log supports.
#[test]
fn a_log_cut_before_its_root_names_no_other_mechanism() {
    const CUTS: u64 = 6;
    let catalog = Catalog::shared();
    let mut faults = Vec::new();
    for case in cases().iter().filter(|case| case.outcome == "failed") {
        let (Some(path), Some(&root)) = (case.log(), case.root_lines.iter().min()) else {
            continue;
        };
        let text = Text::read(path);
        let lines: Vec<&[u8]> = text.bytes.split_inclusive(|b| *b == b'\n').collect();
        for cut in (1..=CUTS).map(|n| (root - 1) * n / CUTS).filter(|cut| *cut > 0) {
            let report = examined(lines[..cut as usize].concat());
            let Some(cause) = &report.cause else { continue };
            let same = case.cause.as_ref() == Some(&cause.id) || case.acceptable_causes.contains(&cause.id);
            if !same && catalog.strength(&cause.id) == Strength::Strong {
                let at = report.root.as_ref().map(|root| root.place.line);
                faults.push(format!("{} cut at line {cut}: {} at line {at:?}", case.id, cause.id));
            }
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
}
