//! The three incidents that the program exists for: each must be told in one screen, from the log alone.

mod common;

use common::{case, examine};
use coroner::report::model::Report;
use coroner::report::{Format, Style, json, render};

const A: [&str; 2] = ["flagship-a-sglang-context-oom", "flagship-a-vllm-context-oom"];
const B: [&str; 2] = ["flagship-b-ray255-monitor", "flagship-b-ray260-monitor"];
const C: &str = "flagship-c-graph-capture-oom";

fn report(id: &str) -> Report {
    let case = case(id);
    examine(&[case.log().or(case.folder()).unwrap()])
}

fn first_screen(report: &Report) -> String {
    render(report, Format::Terminal, &Style::default())
        .lines()
        .take(24)
        .map(|line| format!("{line}\n"))
        .collect()
}

/// The remedies as one text, best first.
fn remedies(report: &Report) -> Vec<String> {
    report
        .remedies
        .iter()
        .map(|remedy| format!("{remedy:?}").to_lowercase())
        .collect()
}

fn place(remedies: &[String], word: &str) -> usize {
    let found = remedies.iter().position(|remedy| remedy.contains(&word.to_lowercase()));
    found.unwrap_or_else(|| panic!("no remedy speaks of {word}: {remedies:#?}"))
}

#[test]
fn each_is_told_in_one_screen() {
    for (id, words) in [
        (A[0], ["gpu-oom.context", "device-init", "node-b", "1. "]),
        (A[1], ["gpu-oom.context", "device-init", "node-b", "1. "]),
        (B[0], ["host-mem.ray-monitor", "graph-capture", "Change first", "0.87"]),
        (B[1], ["host-mem.ray-monitor", "graph-capture", "Change first", "0.87"]),
        (
            C,
            [
                "gpu-oom.graph-capture",
                "graph-capture",
                "ank 1",
                "--gpu-memory-utilization",
            ],
        ),
    ] {
        let screen = first_screen(&report(id));
        for word in words {
            assert!(screen.contains(word), "{id}: {word} is not in\n{screen}");
        }
    }
}

#[test]
fn a_names_the_second_node_and_invents_nothing() {
    for id in A {
        let report = report(id);
        let root = report.root.as_ref().unwrap();
        assert!(root.place.input.ends_with("node-b.log"), "{id}: {}", root.place.input);
        assert!(report.cause.as_ref().unwrap().tags.iter().all(|tag| tag != "leftover"));
        let all = json::object(&report) + &render(&report, Format::Terminal, &Style::default());
        for value in [
            "11.7",
            "7.8 G",
            "3.3 G",
            "99 GB",
            "18 GB",
            "18.0 G",
            "embeddings service",
        ] {
            assert!(!all.contains(value), "{id}: {value} is not in the log");
        }
        let help = remedies(&report);
        assert!(place(&help, "stop") < place(&help, "cache"), "{help:#?}");
        let vain = format!("{:?}", report.will_not_help);
        let knob = if id.contains("sglang") {
            "--mem-fraction-static"
        } else {
            "--gpu-memory-utilization"
        };
        assert!(vain.contains(knob), "{id}: {vain}");
    }
}

#[test]
fn b_computes_the_step_and_names_the_price() {
    for id in B {
        let report = report(id);
        let help = remedies(&report);
        let first = report.remedies.first().unwrap();
        assert!(
            help[0].contains("gpu-memory-utilization") && help[0].contains("0.87"),
            "{id}: {}",
            help[0]
        );
        let sum = first.arithmetic.as_deref().unwrap();
        assert!(sum.contains("113.78") && sum.contains("119.7"), "{id}: {sum}");
        assert!(
            place(&help, "ray_memory_usage_threshold") < place(&help, "enforce-eager"),
            "{id}: {help:#?}"
        );
        assert_ne!(report.cause.as_ref().unwrap().id.split('.').next(), Some("gpu-oom"));
    }
}

#[test]
fn c_puts_eager_mode_last_and_knows_the_other_process() {
    let report = report(C);
    let help = remedies(&report);
    assert!(help[0].contains("gpu-memory-utilization"), "{help:#?}");
    assert!(
        place(&help, "enforce-eager") > place(&help, "max-num-seqs"),
        "{help:#?}"
    );
    assert_eq!(report.root.as_ref().unwrap().place.rank, Some(1));
    let figures = &report.figures;
    assert!(
        figures
            .get("other_process_gib")
            .is_some_and(|gib| (gib - 1.17).abs() < 0.01),
        "{figures:?}"
    );
}
