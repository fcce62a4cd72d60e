//! The report on inputs that hold nothing.
//!
//! Owns the wording. An empty log looks like one that was cut off; what helps is to say that it is empty, and how a
//! launch is captured.

use crate::report::model::{Finding, LogState, NextEvidence, Report};
use crate::report::text::plural;

/// Says in a report that nothing but blank lines was read.
pub fn tell(report: &mut Report) {
    let what = match report.examined.files {
        0 | 1 => "The log".to_owned(),
        files => format!("Each of the {}", plural(files, "log")),
    };
    let how = match report.examined.lines {
        0 => "is empty",
        _ => "holds nothing but blank lines",
    };
    report.headline = format!("{what} {how}");
    report.story =
        "There is nothing to examine. The launch printed nothing, or it printed elsewhere: servers write most \
                    of their log to standard error, which a plain pipe or > leaves out."
            .to_owned();
    report.log = LogState::default();
    report.findings.insert(
        0,
        Finding {
            id: "input.empty".to_owned(),
            title: "Nothing was read that could tell of a launch".to_owned(),
            severity: "warning".to_owned(),
            evidence: Vec::new(),
        },
    );
    report.next_evidence = vec![NextEvidence {
        what: "What the launch prints to both of its streams".to_owned(),
        why: "2>&1 takes standard error along.".to_owned(),
        command: "COMMAND 2>&1 | tee -i launch.log | coroner".to_owned(),
    }];
}
