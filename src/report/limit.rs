//! A report that fits a number of characters.
//!
//! Owns the order in which parts are given up: what proves at length goes first, what answers stays. Works on the
//! model, so that no format is cut in the middle of its markup, and the page says what it lacks. A character is a
//! Unicode scalar value, as a `char`; line breaks count.

use std::collections::BTreeSet;

use super::model::{PlaceReport, Report};
use super::{Format, Style, jira, json, line, markdown, render, slack, text};

/// Fewer characters hold no verdict with its headline: no format is made for them.
pub const LEAST: usize = 80;
/// Parts that are named when they are cut.
const NAMED: usize = 6;
/// Characters kept of a long text in the first step, and in the last.
const LONG: [usize; 2] = [400, 100];
/// The least number of characters for a page is told in whole steps of this.
const STEP: usize = 100;

/// The report cannot be told in so few characters in this format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew {
    /// Characters that are enough.
    pub least: usize,
}

/// One part that a report can do without.
struct Cut {
    name: &'static str,
    take: fn(&mut Report),
}

/// In the order in which they go.
const CUTS: &[Cut] = &[
    Cut {
        name: "most of the inputs that were left out",
        take: |r| r.examined.skipped.truncate(3),
    },
    Cut {
        name: "measurements",
        take: |r| r.measurements.clear(),
    },
    Cut {
        name: "the ends of long lines",
        take: |r| clip_texts(r, LONG[0]),
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
        take: |r| keep_processes(r, 4),
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
            keep_processes(r, 0);
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
            keep_processes(r, 0);
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
    Cut {
        name: "all but the verdict, the place and the first change",
        take: bare,
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

/// What every report of the kind would say goes too.
fn bare(report: &mut Report) {
    report.examined.skipped.clear();
    report.examined.capped.clear();
    report.confidence_terms.clear();
    report.timeline.clear();
    report.log.missing.clear();
    report.retry.why.clear();
    report.retry.after = None;
    report.launch.command = None;
    if let Some(redaction) = &mut report.redaction {
        redaction.replaced.clear();
    }
    if let Some(root) = &mut report.root {
        root.also_in.clear();
    }
    clip_texts(report, LONG[1]);
}

/// Shortens every text that can be as long as a line of the log.
fn clip_texts(report: &mut Report, max: usize) {
    let clip = |text: &mut String| {
        if text.chars().nth(max).is_some() {
            *text = head(text, max);
        }
    };
    clip(&mut report.source);
    let place = |place: &mut PlaceReport| {
        clip(&mut place.text);
        clip(&mut place.input);
    };
    if let Some(root) = &mut report.root {
        place(&mut root.place);
    }
    for evidence in &mut report.evidence {
        place(&mut evidence.place);
        evidence.why.iter_mut().for_each(&clip);
    }
    report.exception.iter_mut().for_each(|e| clip(&mut e.message));
    report.launch.command.iter_mut().for_each(&clip);
    report.launch.model.iter_mut().for_each(&clip);
    report.findings.iter_mut().for_each(|f| clip(&mut f.title));
    report.overruled_advice.iter_mut().for_each(|o| clip(&mut o.text));
    for skipped in &mut report.examined.skipped {
        clip(&mut skipped.input);
        clip(&mut skipped.why);
    }
    for line in &mut report.snippet {
        clip(&mut line.text);
        clip(&mut line.input);
    }
    for remedy in &mut report.remedies {
        clip(&mut remedy.title);
        for change in &mut remedy.change {
            clip(&mut change.name);
            change.from.iter_mut().for_each(&clip);
            change.to.iter_mut().for_each(&clip);
        }
    }
}

/// Keeps the processes that the root and the evidence stand in, and others up to the number.
fn keep_processes(report: &mut Report, most: usize) {
    let mut named: BTreeSet<String> = report.evidence.iter().filter_map(|e| e.place.process.clone()).collect();
    named.extend(report.root.iter().filter_map(|root| root.place.process.clone()));
    let mut room = most.saturating_sub(named.len());
    report.processes.retain(|process| {
        let more = room > 0 && !named.contains(&process.id);
        room -= usize::from(more);
        more || named.contains(&process.id)
    });
    let kept: BTreeSet<&str> = report.processes.iter().map(|process| process.id.as_str()).collect();
    report.timeline.retain(|entry| kept.contains(entry.process.as_str()));
    if let Some(root) = &mut report.root {
        root.also_in.retain(|id| kept.contains(id.as_str()));
    }
}

/// Takes out what points to a part that was cut.
fn tie_up(report: &mut Report) {
    let shown: BTreeSet<usize> = report.evidence.iter().map(|e| e.n).collect();
    let ids: Vec<String> = report.remedies.iter().map(|remedy| remedy.id.clone()).collect();
    for evidence in &mut report.evidence {
        evidence.explained_by = evidence.explained_by.filter(|n| shown.contains(n));
    }
    for finding in &mut report.findings {
        finding.evidence.retain(|n| shown.contains(n));
    }
    for measurement in &mut report.measurements {
        measurement.evidence = measurement.evidence.filter(|n| shown.contains(n));
    }
    for remedy in &mut report.remedies {
        remedy.evidence.retain(|n| shown.contains(n));
        remedy.pair_with = remedy.pair_with.take().filter(|id| ids.contains(id));
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

/// The report in at most `max` characters.
///
/// Every format but JSON and HTML can be told in [`LEAST`] characters. Those two hold what belongs to their form
/// however little there is to say.
///
/// # Errors
/// When it cannot be told in so few.
pub fn fit(report: &Report, format: Format, style: &Style, max: Option<usize>) -> Result<String, TooFew> {
    let Some(max) = max else {
        return Ok(render(report, format, style));
    };
    if max < LEAST {
        return Err(TooFew {
            least: shrunk(report, format, style, LEAST).map_or_else(|long| long.max(LEAST), |_| LEAST),
        });
    }
    shrunk(report, format, style, max).map_err(|least| TooFew { least })
}

/// The JSON object of the report on one line of at most `max` characters, line end included.
///
/// # Errors
/// When it cannot be told in so few.
pub fn fit_line(report: &Report, max: usize) -> Result<String, TooFew> {
    cut(report, &json::line, max).map_err(|least| TooFew { least })
}

/// The report in so many characters, or else how many would be enough.
fn shrunk(report: &Report, format: Format, style: &Style, max: usize) -> Result<String, usize> {
    let page = |report: &Report| render(report, format, style);
    match format {
        Format::Oneline | Format::Termination => {
            let page = render(report, format, style);
            Ok(squeezed(page.trim_end(), max, |told| format!("{told}\n")))
        }
        Format::Github => Ok(line::annotations(report, max)),
        Format::Slack => {
            let page = slack::render(report, max);
            // Without its headline, the first that it holds, a message says nothing.
            let told = page.starts_with('*') && count(&page) <= max;
            Ok(if told { page } else { brief(report, max, slack::escape) })
        }
        Format::Json => {
            // The same object without line breaks and indents lacks nothing.
            let page = render(report, format, style);
            if count(&page) <= max {
                Ok(page)
            } else {
                cut(report, &json::line, max)
            }
        }
        Format::Html => cut(report, &page, max),
        Format::Markdown => Ok(cut(report, &page, max).unwrap_or_else(|_| brief(report, max, markdown::escape))),
        Format::Jira => Ok(cut(report, &page, max).unwrap_or_else(|_| brief(report, max, jira::escape))),
        Format::Terminal => Ok(cut(report, &page, max).unwrap_or_else(|_| brief(report, max, str::to_owned))),
    }
}

/// Gives up one part after the other until the page fits.
fn cut(report: &Report, render: &dyn Fn(&Report) -> String, max: usize) -> Result<String, usize> {
    let mut page = render(report);
    if count(&page) <= max {
        return Ok(page);
    }
    let mut length = page.len();
    let mut short = report.clone();
    let mut names: Vec<&str> = Vec::new();
    for cut in CUTS {
        (cut.take)(&mut short);
        tie_up(&mut short);
        // Only what shows is said to be cut: a part that was empty changes nothing.
        let shorter = render(&short);
        if shorter.len() == length {
            continue;
        }
        names.push(cut.name);
        length = shorter.len();
        let mut told = short.clone();
        told.examined.capped.push(said(max, &names));
        page = render(&told);
        if count(&page) <= max {
            return Ok(page);
        }
    }
    // The note on what was cut has the number in it, which may have more digits than this one.
    Err((count(&page) + usize::MAX.to_string().len()).next_multiple_of(STEP))
}

/// Verdict, headline, first change and place, as far as they fit.
fn brief(report: &Report, max: usize, escape: impl Fn(&str) -> String) -> String {
    let told = line::oneline(report);
    squeezed(told.trim_end(), max, |told| format!("{}\n", escape(told)))
}

/// As much of a text as, put in its form, takes at most `max` characters; what is cut off shows as `…`.
pub(super) fn squeezed(told: &str, max: usize, form: impl Fn(&str) -> String) -> String {
    let mut room = max.min(count(told));
    loop {
        let page = form(&head(told, room));
        let long = count(&page);
        if long <= max || room == 0 {
            return page;
        }
        // A character of the text is at least one of the form.
        room = room.saturating_sub((long - max).div_ceil(LONGEST_ESCAPE));
    }
}

/// Characters that one character becomes at most in any format: `@&#8203;`.
const LONGEST_ESCAPE: usize = 8;

fn count(text: &str) -> usize {
    text.chars().count()
}

/// At most `max` characters; what is cut off shows as `…`.
fn head(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.to_owned();
    }
    let kept: String = text.chars().take(max.saturating_sub(1)).collect();
    if max == 0 { kept } else { kept + "…" }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;
    use crate::report::sample;

    fn reports() -> Vec<Report> {
        let long = "x<>&\"*_@#|{}模\u{1b}[31m".repeat(200);
        let mut crowd = sample::graph_capture();
        for n in 0..50 {
            crowd.examined.skipped.push(crate::report::model::SkippedReport {
                input: format!("/var/log/launch-{n}/worker.log"),
                why: "this user may not read it".to_owned(),
            });
        }
        crowd.source = "/a/long/path/".repeat(100);
        vec![
            sample::graph_capture(),
            sample::quiet(crate::report::model::Outcome::Healthy, "It is well."),
            sample::hostile(&long),
            crowd,
        ]
    }

    fn within(n: usize, report: &Report, format: Format, color: bool) {
        let style = Style {
            color,
            ..Style::default()
        };
        for max in [0, 79, 80, 1500, 3000, 32_767, 65_536] {
            let told = format!("report {n} as {} in {max}", format.id());
            match fit(report, format, &style, Some(max)) {
                Ok(text) => {
                    assert!(
                        count(&text) <= max && max >= LEAST,
                        "{told}: {} characters",
                        count(&text)
                    );
                    assert!(text.ends_with('\n') && text.trim().len() > 15, "{told}: {text}");
                }
                Err(few) => {
                    assert!(max < LEAST || matches!(format, Format::Json | Format::Html), "{told}");
                    assert!(few.least > max, "{told}: {few:?}");
                    let text = fit(report, format, &style, Some(few.least)).unwrap();
                    assert!(count(&text) <= few.least, "{told}: {few:?}");
                }
            }
        }
    }

    #[test]
    fn no_format_takes_more_characters_than_it_was_given() {
        let reports = reports();
        let each = reports.par_iter().enumerate().flat_map(|pair| {
            let formats = Format::ALL.par_iter().map(|f| (*f, false));
            // Only a terminal has colours.
            formats.chain([(Format::Terminal, true)]).map(move |form| (pair, form))
        });
        each.for_each(|((n, report), (format, color))| within(n, report, format, color));
    }

    #[test]
    fn what_matters_stays_and_what_is_cut_is_said() {
        let report = sample::graph_capture();
        for format in [Format::Terminal, Format::Markdown, Format::Jira, Format::Slack] {
            let fitted = |max| fit(&report, format, &Style::default(), Some(max)).unwrap();
            let whole = render(&report, format, &Style::default());
            assert_eq!(fitted(65_536), whole);
            for max in [1500, 2000, 3000, 4000] {
                let text = fitted(max);
                assert!(text.contains("gpu-oom.graph-capture"), "{format:?} {max}\n{text}");
                assert!(text.contains("gpu-memory-utilization"), "{format:?} {max}\n{text}");
                let said = text.contains("without") || text.contains("Left out");
                assert!(said || count(&text) == count(&whole), "{format:?} {max}\n{text}");
            }
        }
    }

    #[test]
    fn the_shortest_forms_still_say_outcome_and_headline() {
        let report = sample::graph_capture();
        for format in [
            Format::Terminal,
            Format::Markdown,
            Format::Jira,
            Format::Slack,
            Format::Github,
            Format::Oneline,
            Format::Termination,
        ] {
            let text = fit(&report, format, &Style::default(), Some(160)).unwrap();
            assert!(text.contains("failed in graph-capture"), "{format:?}: {text}");
            assert!(text.contains("Rank 1"), "{format:?}: {text}");
        }
    }

    #[test]
    fn a_short_object_has_all_fields_and_points_to_nothing_that_is_gone() {
        let report = sample::graph_capture();
        let whole: serde_json::Value = serde_json::from_str(&json::line(&report)).unwrap();
        let fields = |v: &serde_json::Value| v.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let least = fit(&report, Format::Json, &Style::default(), Some(LEAST))
            .unwrap_err()
            .least;
        for max in (least..count(&json::line(&report))).step_by(500) {
            let text = fit(&report, Format::Json, &Style::default(), Some(max)).unwrap();
            let short: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(fields(&short), fields(&whole), "{max}");
            assert_eq!(short["cause"]["id"], whole["cause"]["id"]);
            assert_eq!(short["root"]["line"], whole["root"]["line"]);
            assert_eq!(short["remedies"][0]["id"], whole["remedies"][0]["id"]);
            assert!(
                short["examined"]["capped"].to_string().contains("shortened to"),
                "{text}"
            );
            let list = |at: &serde_json::Value| at.as_array().cloned().unwrap_or_default();
            let shown: Vec<_> = list(&short["evidence"]).iter().map(|e| e["n"].clone()).collect();
            for remedy in list(&short["remedies"]) {
                assert!(
                    list(&remedy["evidence"]).iter().all(|n| shown.contains(n)),
                    "{max}: {text}"
                );
            }
            let processes: Vec<_> = list(&short["processes"]).iter().map(|p| p["id"].clone()).collect();
            let process = &short["root"]["process"];
            assert!(process.is_null() || processes.contains(process), "{max}: {text}");
        }
    }
}
