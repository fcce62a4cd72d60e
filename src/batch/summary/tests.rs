use super::*;

fn record(n: usize) -> Digest {
    let (outcome, cause, phase) = match n % 4 {
        0 => (
            "failed",
            r#"{"id":"gpu-oom.graph-capture","title":"Out of memory"}"#,
            r#""graph-capture""#,
        ),
        1 => ("failed", r#"{"id":"unknown.exception","title":"Unknown"}"#, "null"),
        2 => (
            "failed",
            r#"{"id":"nccl.ib","title":"InfiniBand"}"#,
            r#""distributed-init""#,
        ),
        _ => ("healthy", "null", r#""serving""#),
    };
    Digest::of(&format!(
        r#"{{"source":"run/{n}|<b>.log","headline":"Rank {n} died","outcome":"{outcome}","cause":{cause},"phase":{phase},
            "engine":{{"name":"vllm","version":"0.25.1"}},"fingerprint":"f1:{}","root":{{"node":"node-{}","text":"x"}},
            "exception":{{"type":"ValueError","message":"part {n} of <script> is lost"}},
            "launch":{{"died":"2026-0{}-02T10:00:00Z","seconds_to_death":{},"gpus":8,"model":"m"}}}}"#,
        n % 4,
        n % 2,
        n % 3 + 1,
        n * 10
    ))
    .unwrap()
}

fn summary() -> Summary {
    let mut summary = Summary::new("2026-02-01T00:00:00".parse().ok());
    for n in 0..40 {
        summary.add(&record(n), Some(["east", "west"][n % 2]));
    }
    let unread = Digest::of(r#"{"source":"bad","error":{"id":"x","text":"it is a folder"}}"#).unwrap();
    (0..12).for_each(|_| summary.add(&unread, None));
    summary.leave_out(3);
    summary
}

#[test]
fn the_text_says_what_was_counted() {
    let text = summary().render(Form::Text(120));
    assert!(
        text.starts_with("40 launches examined, from 2026-01-02 to 2026-03-02: 30 failed, which cost"),
        "{text}"
    );
    let lead = text.lines().take(2).collect::<Vec<_>>().join(" ");
    assert!(
        lead.ends_with("12 inputs could not be read. 3 incidents left out as too old."),
        "{lead}"
    );
    let line = |start: &str| {
        let found = text.lines().find(|l| l.trim_start().starts_with(start));
        found
            .unwrap_or_else(|| panic!("{start}: {text}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("failed"), "failed 30 75 %");
    assert!(line("nccl.ib").starts_with("nccl.ib 10 33 %"));
    assert!(line("nccl.ib").contains("2026-01-02 2026-03-02 run/10|<b>.log"));
    assert!(line("ValueError: part # of").contains(" 10 "));
    assert_eq!(line("east"), "east 20 20 100 % 8.4");
    assert!(line("graph-capture").ends_with("5 min"));
    assert_eq!(text.matches("it is a folder").count(), NAMED);
    assert!(text.contains("and 2 more"));
}

#[test]
fn what_is_no_launch_counts_as_an_input_alone() {
    let mut summary = Summary::default();
    summary.add(&record(0), Some("east"));
    for n in 0..3 {
        let readme = format!(
            r#"{{"source":"{n}/README.md","outcome":"no-launch","scan":{{"modified":"2031-01-01T00:00:00Z"}}}}"#
        );
        summary.add(&Digest::of(&readme).unwrap(), Some("east"));
    }
    let text = summary.render(Form::Text(100));
    assert!(
        text.starts_with("1 launch found in 4 inputs, of 2026-01-02: 1 failed"),
        "{text}"
    );
    assert!(text.contains("no-launch       3   75 %"), "{text}");
    let east = text.lines().find(|l| l.trim_start().starts_with("east")).unwrap();
    assert!(east.contains(" 1  100 %") || east.contains(" 1  "), "{text}");
}

#[test]
fn nothing_of_a_log_is_markup() {
    let summary = summary();
    let html = summary.render(Form::Html);
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script") && !html.contains("<b>"));
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(html.ends_with("</html>\n"));
    let markdown = summary.render(Form::Markdown);
    assert!(markdown.contains("run/10\\|&lt;b&gt;.log"));
    let columns = |line: &str| line.replace("\\|", "").matches('|').count();
    let table: Vec<&str> = markdown.lines().filter(|l| l.starts_with("| nccl.ib")).collect();
    assert!(!table.is_empty() && table.iter().all(|l| columns(l) == 8), "{table:?}");
}

#[test]
fn causes_that_are_new_have_a_section() {
    let mut summary = Summary::new("2026-02-15T00:00:00".parse().ok());
    summary.add(&record(0), None);
    summary.add(&record(2), None);
    let text = summary.render(Form::Text(100));
    let new = text.split("Causes first seen since 2026-02-15").nth(1).unwrap();
    let new = new.split("\n\n").next().unwrap();
    assert!(new.contains("nccl.ib") && !new.contains("gpu-oom"), "{text}");
}

#[test]
fn an_empty_scan_has_a_summary_and_wrong_stamps_fill_no_memory() {
    assert_eq!(
        Summary::default().render(Form::Text(80)),
        "0 launches examined: 0 failed.\n"
    );
    let mut summary = Summary::default();
    for n in 0..WEEKS as u64 + 50 {
        summary.week(NaiveDate::MIN + Days::new(n * 7), "x.y");
    }
    assert_eq!(summary.weeks.len(), WEEKS);
    summary.week(NaiveDate::MAX - Days::new(10), "x.y");
    assert!(summary.render(Form::Html).len() < 400_000);
}
