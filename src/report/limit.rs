//! A report that fits a number of characters.
//!
//! Owns the order in which parts are given up: what proves at length goes first, what answers stays. Works on the
//! model, so that no format is cut in the middle of its markup, and the page says what it lacks.

use super::model::Report;
use super::{Format, Style, render, slack, text};

/// Parts that are named when they are cut.
const NAMED: usize = 6;

/// One part that a report can do without.
struct Cut {
    name: &'static str,
    take: fn(&mut Report),
}

/// In the order in which they go.
const CUTS: &[Cut] = &[
    Cut {
        name: "measurements",
        take: |r| r.measurements.clear(),
    },
    Cut {
        name: "most of the evidence",
        take: |r| r.evidence.truncate(8),
    },
    Cut {
        name: "settings",
        take: |r| r.launch.settings.clear(),
    },
    Cut {
        name: "phases of other processes",
        take: phases,
    },
    Cut {
        name: "most of the processes",
        take: |r| r.processes.truncate(4),
    },
    Cut {
        name: "the memory account and figures",
        take: |r| {
            r.memory = None;
            r.figures.clear();
        },
    },
    Cut {
        name: "rival causes",
        take: |r| r.alternatives.clear(),
    },
    Cut {
        name: "findings",
        take: |r| r.findings.clear(),
    },
    Cut {
        name: "attempts",
        take: |r| r.attempts.clear(),
    },
    Cut {
        name: "the exception's frames",
        take: |r| {
            if let Some(exception) = &mut r.exception {
                exception.frames.clear();
                exception.chain.clear();
            }
        },
    },
    Cut {
        name: "what does not help",
        take: |r| {
            r.will_not_help.clear();
            r.overruled_advice.clear();
        },
    },
    Cut {
        name: "all evidence but the root",
        take: |r| {
            r.evidence.truncate(1);
            r.processes.clear();
        },
    },
    Cut {
        name: "lines around the root",
        take: |r| r.snippet.retain(|line| line.role == "root"),
    },
    Cut {
        name: "remedies after the third",
        take: |r| r.remedies.truncate(3),
    },
    Cut {
        name: "further evidence to look for",
        take: |r| r.next_evidence.clear(),
    },
    Cut {
        name: "reasons behind the remedies",
        take: reasons,
    },
    Cut {
        name: "all evidence",
        take: |r| {
            r.evidence.clear();
            r.snippet.clear();
            r.exception = None;
        },
    },
    Cut {
        name: "remedies after the first",
        take: |r| r.remedies.truncate(1),
    },
    Cut {
        name: "the story",
        take: |r| r.story.clear(),
    },
];

fn phases(report: &mut Report) {
    let root = report.root.as_ref().and_then(|root| root.place.process.clone());
    report.timeline.retain(|entry| Some(&entry.process) == root.as_ref());
}

fn reasons(report: &mut Report) {
    for remedy in &mut report.remedies {
        remedy.why.clear();
        remedy.cost.clear();
        remedy.verify.clear();
        remedy.arithmetic = None;
    }
}

/// What was cut; the more it is, the less room there is to say it.
fn said(max: usize, names: &[&str]) -> String {
    let (named, rest) = names.split_at(names.len().min(NAMED));
    let more = match rest.len() {
        0 => String::new(),
        n => format!(" and {}", text::plural(n as u64, "other part")),
    };
    format!("shortened to {max} characters without {}{more}", named.join(", "))
}

/// The report in at most `max` characters, if it can be said in so few; else as short as it can be said.
pub fn fit(report: &Report, format: Format, style: &Style, max: Option<usize>) -> String {
    let Some(max) = max else {
        return render(report, format, style);
    };
    if format == Format::Slack {
        // A message cuts itself.
        return slack::render(report, max);
    }
    let mut page = render(report, format, style);
    if page.chars().count() <= max {
        return page;
    }
    let mut length = page.len();
    let mut short = report.clone();
    let mut names: Vec<&str> = Vec::new();
    for cut in CUTS {
        (cut.take)(&mut short);
        names.push(cut.name);
        // Only what shows is said to be cut: a part that was empty changes nothing.
        let shorter = render(&short, format, style);
        if shorter.len() == length {
            names.pop();
            continue;
        }
        length = shorter.len();
        let mut told = short.clone();
        told.examined.capped.push(said(max, &names));
        page = render(&told, format, style);
        if page.chars().count() <= max {
            break;
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_matters_stays_and_what_is_cut_is_said() {
        let report = sample::graph_capture();
        for format in [Format::Terminal, Format::Markdown, Format::Jira, Format::Slack] {
            let whole = render(&report, format, &Style::default());
            assert_eq!(fit(&report, format, &Style::default(), Some(65_536)), whole);
            for max in [1500, 2000, 3000, 4000] {
                let text = fit(&report, format, &Style::default(), Some(max));
                assert!(text.chars().count() <= max, "{format:?} {max}\n{text}");
                assert!(text.contains("gpu-oom.graph-capture"), "{format:?} {max}\n{text}");
                assert!(text.contains("gpu-memory-utilization"), "{format:?} {max}\n{text}");
                let said = text.contains("without") || text.contains("Left out");
                assert!(
                    said || text.chars().count() == whole.chars().count(),
                    "{format:?} {max}\n{text}"
                );
            }
        }
        let json = fit(&report, Format::Json, &Style::default(), Some(4000));
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
    }
}
