//! Tests of all views over the same reports.

use super::model::{Outcome, Report};
use super::*;

const FORMATS: &[Format] = Format::ALL;

/// Lines that try to act on a terminal, on Markdown or on a reader's eye.
const GALLERY: &[&str] = &[
    "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[1;1Hall is well",
    "\u{1b}]52;c;ZWNobyBoaQ==\u{1b}\\clipboard",
    "\u{1b}]8;;https://evil.example\u{1b}\\click\u{1b}]8;;\u{1b}\\",
    "\u{9b}31mred \u{9d}0;t\u{9c} \u{85}next",
    "bell\u{7} back\u{8}\u{8}\u{8} nul\0 del\u{7f} vt\u{b} ff\u{c}",
    "overwritten\rhealthy\r\nnew line\nmore",
    "exe\u{202e}gpj.sh \u{2066}isolated\u{2069} zero\u{200b}width\u{200d}\u{feff} tag\u{e0041}",
    "sep\u{2028}arator \u{2029} soft\u{ad}hyphen",
    "``` \n```\n# heading\n<script>alert(1)</script> </details>",
    "````````````text",
    "@octocat fixes #1, org/repo#2, https://github.com/o/r/issues/3 ![x](y) | cell | <!-- -->",
    "模型\u{301}\u{301}\u{301}\u{301}\u{301}",
    "",
    " ",
    "\t\t",
];

fn all(report: &Report) -> String {
    let narrow = Style {
        width: 40,
        explain_confidence: true,
        ..Style::default()
    };
    let mut out = String::new();
    for format in FORMATS {
        out.push_str(&render(report, *format, &Style::default()));
        out.push_str(&render(report, *format, &narrow));
    }
    out + &json::line(report)
}

#[test]
fn nothing_of_a_hostile_line_acts_in_any_format() {
    for line in GALLERY
        .iter()
        .map(|line| (*line).to_owned())
        .chain([GALLERY.concat(), "x".repeat(5000)])
    {
        let rendered = all(&sample::hostile(&line));
        let clean = text::safe_lines(&rendered);
        assert_eq!(rendered, clean, "{line:?}");
        assert!(!rendered.contains('\r'));
    }
}

#[test]
fn in_colour_only_our_own_sequences_remain() {
    let style = Style {
        color: true,
        ..Style::default()
    };
    for line in GALLERY {
        let rendered = render(&sample::hostile(line), Format::Terminal, &style);
        // Ours are all colours (`ESC [ … m`); none of the log's other sequences is left.
        for sequence in rendered.split('\u{1b}').skip(1) {
            let end = sequence.find(|c: char| !matches!(c, '[' | ';' | '0'..='9'));
            assert_eq!(end.and_then(|at| sequence[at..].chars().next()), Some('m'), "{line:?}");
        }
    }
    let plain = render(&sample::graph_capture(), Format::Terminal, &Style::default());
    let colour = render(&sample::graph_capture(), Format::Terminal, &style);
    assert!(colour.contains("\u{1b}[31m") || colour.contains("\u{1b}[1m\u{1b}[31m"));
    assert_eq!(text::safe_lines(&colour), plain, "colour changes no word");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [40, 60, 80, 120] {
        let style = Style {
            width,
            ..Style::default()
        };
        let mut reports = vec![sample::graph_capture(), sample::quiet(Outcome::Healthy, "It serves")];
        reports.extend(GALLERY.iter().map(|line| sample::hostile(line)));
        for report in reports {
            for line in render(&report, Format::Terminal, &style)
                .lines()
                .filter(|line| !line.starts_with("    $ ") && !line.starts_with("     run   "))
            {
                assert!(text::width(line) <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn the_first_screen_answers() {
    let page = render(&sample::graph_capture(), Format::Terminal, &Style::default());
    let screen: String = page.lines().take(24).map(|line| format!("{line}\n")).collect();
    for word in [
        "gpu-oom.graph-capture",
        "very likely (93 %)",
        "graph-capture",
        "rank 1",
        "node-b",
        "vLLM 0.25.1",
        "Lower --gpu-memory-utilization",
        "412 │",
        "root cause",
    ] {
        assert!(screen.contains(word), "{word} is not in\n{screen}");
    }
}

#[test]
fn the_path_of_a_failed_launch_ends_at_its_death() {
    let mut report = sample::graph_capture();
    report.launch.seconds_to_death = Some(30.0);
    report.phase = Some("device-init".into());
    report.root.as_mut().unwrap().place.process = Some("Worker pid=288 @node-b".into());
    // Ray's daemons go on to their orderly end.
    let mut end = report.timeline.last().unwrap().clone();
    (end.process, end.phase, end.seconds) = ("Worker pid=288 @node-b".into(), "shutdown".into(), Some(31.0));
    report.timeline.push(end.clone());
    end.seconds = None;
    report.timeline.push(end);
    let path = words::path_line(&report);
    assert_eq!(
        path,
        "process-start 0.0 s → config 3.1 s → distributed-init 21.0 s → weight-load 30.0 s → device-init ✗"
    );
}

#[test]
fn the_snippet_shows_gaps_true_numbers_and_labels() {
    let drawn = snippet::render(&sample::graph_capture(), &Style::default());
    assert!(drawn.contains("[node-b.log:412]"), "{drawn}");
    assert!(drawn.contains("⋮ 16 lines"), "{drawn}");
    assert!(drawn.contains("⋮ 3,899 lines"), "{drawn}");
    assert!(drawn.contains("4330 │ "), "{drawn}");
    assert!(drawn.contains("╰── root cause"), "{drawn}");
    assert!(drawn.contains("╰── the end: the front"), "{drawn}");
}

#[test]
fn the_underline_stands_under_the_message_behind_every_kind_of_prefix() {
    for (line, message) in [
        (
            "(EngineCore pid=1) ERROR 11-25 13:00:07 [core.py:1] EngineCore failed to start.",
            "EngineCore failed",
        ),
        (
            "[2026-05-20 08:16:47,226 I 1121 1121] (raylet) node_manager.cc:3199: Killing 1 worker(s)",
            "Killing 1 worker",
        ),
        (
            "(RayWorkerProc pid=742) [rank0]:[W520 08:16:49.1 TCPStore.cpp:125] [c10d] recvValue failed",
            "recvValue failed",
        ),
        (
            "[2026-05-19 21:14:23 TP1] Scheduler hit an exception: Traceback",
            "Scheduler hit",
        ),
        ("node-b  | (Worker pid=2) INFO 11-25 13:00:07 [x.py:1] text", "node-b"),
        (
            "E1129 14:13:27.755000 19 torch/distributed/elastic/api.py:1002] failed (exitcode: -9)",
            "failed (exitcode",
        ),
        ("Killed", "Killed"),
    ] {
        let mut report = sample::graph_capture();
        report.snippet.retain(|line| line.role == "exit");
        report.snippet[0].text = line.into();
        let style = Style {
            width: 200,
            ..Style::default()
        };
        let drawn = snippet::render(&report, &style);
        let rows: Vec<&str> = drawn.lines().collect();
        let start = rows[2].chars().position(|c| c == '─' || c == '┬').unwrap();
        let text: String = rows[1].chars().skip(start).collect();
        assert!(text.starts_with(message), "{drawn}");
    }
}

#[test]
fn a_snippet_of_two_inputs_names_both_and_never_counts_between_them() {
    let mut report = sample::graph_capture();
    for line in report.snippet.iter_mut().skip(4) {
        line.input = "node-a.log".into();
    }
    let drawn = snippet::render(&report, &Style::default());
    assert!(
        drawn.contains("[node-b.log:412]") && drawn.contains("[node-a.log:430]"),
        "{drawn}"
    );
    assert!(!drawn.contains("⋮ 16 lines"), "{drawn}");
}

#[test]
fn a_snippet_keeps_to_its_limit_and_keeps_what_matters() {
    let mut report = sample::graph_capture();
    let context = report.snippet[0].clone();
    for n in 0..40 {
        let mut line = context.clone();
        line.line = 1000 + n;
        report.snippet.insert(4, line);
    }
    let drawn = snippet::render(&report, &Style::default());
    let shown = drawn.lines().filter(|line| line.contains(" │ ")).count();
    assert!(shown <= snippet::MAX_LINES, "{drawn}");
    for line in ["412 │", "430 │", "4330 │"] {
        assert!(drawn.contains(line), "{drawn}");
    }
}

#[test]
fn a_launch_that_did_not_fail_is_told_in_a_few_calm_lines() {
    for outcome in [
        Outcome::Healthy,
        Outcome::Running,
        Outcome::Stopped,
        Outcome::NoLaunch,
        Outcome::Degraded,
    ] {
        let report = sample::quiet(outcome, "The server answers requests");
        let page = render(&report, Format::Terminal, &Style::default());
        assert!(page.lines().count() <= 10, "{page}");
        assert!(page.contains(outcome.id()));
        assert!(!page.contains("cause") && !page.contains("Change first"), "{page}");
    }
}

#[test]
fn json_has_every_field_and_one_line_says_the_same() {
    let report = sample::quiet(Outcome::Healthy, "It serves");
    let object = json::object(&report);
    let value: serde_json::Value = serde_json::from_str(&object).unwrap();
    assert_eq!(value["schema"], "coroner.report/1");
    assert!(value["cause"].is_null() && value.as_object().unwrap().contains_key("cause"));
    assert!(value["evidence"].as_array().unwrap().is_empty());
    let line = json::line(&report);
    assert_eq!(line.matches('\n').count(), 1);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
    let first: Vec<&String> = value.as_object().unwrap().keys().take(4).collect();
    assert_eq!(
        first,
        ["schema", "program", "redaction", "source"],
        "fields keep the order of the contract"
    );
}

#[test]
fn markdown_keeps_the_log_in_code() {
    let page = render(
        &sample::hostile("</details> @octocat #1 ``` <b>"),
        Format::Markdown,
        &Style::default(),
    );
    let mut fence: Option<String> = None;
    for line in page.lines() {
        match &fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => {
                fence = Some(line.chars().take_while(|c| *c == '`').collect());
            }
            None => {
                let outside = outside_code(line);
                assert!(
                    !outside.contains("@o") && !outside.contains("<b>") && !outside.contains("#1"),
                    "{line}"
                );
            }
        }
    }
    assert!(fence.is_none());
    assert_eq!(page.matches("\n</details>\n").count(), 1);
}

/// A line of Markdown without its code spans.
fn outside_code(line: &str) -> String {
    let run = |text: &str| text.len() - text.trim_start_matches('`').len();
    let (mut out, mut rest) = (String::new(), line);
    while let Some(open) = rest.find('`') {
        out.push_str(&rest[..open]);
        let ticks = run(&rest[open..]);
        rest = &rest[open + ticks..];
        // The span ends at the next run of the same length.
        let mut at = 0;
        while let Some(next) = rest[at..].find('`') {
            let close = at + next;
            let len = run(&rest[close..]);
            at = close + len;
            if len == ticks {
                break;
            }
        }
        rest = &rest[at..];
    }
    out + rest
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_makes_a_view_panic_or_act(text in "(\\PC|[\u{0}-\u{1f}\u{7f}-\u{9f}\u{1b}\\[\\]`|<>\u{202e}\u{200b}]){0,200}", width in 0_usize..200) {
        let report = sample::hostile(&text);
        let style = Style { width, ..Style::default() };
        for format in FORMATS {
            let rendered = render(&report, *format, &style);
            proptest::prop_assert_eq!(&rendered, &text::safe_lines(&rendered));
        }
    }

    #[test]
    fn a_window_fits_and_holds_its_focus(text in "\\PC{0,120}", start in 0_usize..140, len in 0_usize..40, max in 2_usize..100) {
        let (shown, focus) = text::window(&text, start..start + len, max);
        proptest::prop_assert!(text::width(&shown) <= max);
        proptest::prop_assert!(shown.get(focus).is_some());
    }
}
