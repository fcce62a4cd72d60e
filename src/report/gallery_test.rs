//! What hostile text must not become in each target: a mention, a link, an issue reference, a tag, a command.

use super::*;
use serde_json::Value;

fn of(format: Format, text: &str) -> String {
    render(&sample::hostile(text), format, &Style::default())
}

#[test]
fn jira_mentions_embeds_and_closes_nothing() {
    let hostile = "{noformat} [~admin] !http://x/y.png! {html}<b>{html} [a|http://evil] {code} ||h|| :) -s- \\\\";
    let page = of(Format::Jira, hostile);
    // Of every pair of marks, one is ours at the start of a block and one at its end.
    assert_eq!(page.matches("{noformat}").count() % 2, 0);
    let outside: String = page.split("{noformat}").step_by(2).collect();
    for mark in ["[~", "[a", "!http", "{html", "{code", "://", ":)", "\\\\", "<b>"] {
        assert!(!outside.contains(mark), "{mark} in\n{outside}");
    }
    assert_eq!(jira::escape("h1. big"), "&#104;1. big");
    assert_eq!(jira::escape("--gpu-memory_x"), "&#45;&#45;gpu-memory_x");
}

#[test]
fn slack_mentions_and_links_nobody_and_fits_its_block() {
    for text in [
        "<!channel> @here <@U1> ``` `x` <http://evil|click> https://evil *b*",
        &"y".repeat(9000),
    ] {
        let page = of(Format::Slack, text);
        for mark in ["<!", "<@", "@here", "<http", "https://"] {
            let outside: String = page.split("```").step_by(2).collect();
            assert!(!outside.contains(mark), "{mark} in\n{page}");
            assert!(!page.contains('<'), "{page}");
        }
        assert!(page.matches("```").count() <= 2, "{page}");
        assert!(page.chars().count() <= slack::BLOCK_CHARS);
    }
}

#[test]
fn annotations_hold_no_command_but_ours() {
    let page = of(
        Format::Github,
        "x\n::set-output name=a::b\r\n::add-mask::,title=z::100%0A::error::",
    );
    for line in page.lines() {
        assert!(
            line.starts_with("::error ") || line.starts_with("::warning::") || line.starts_with("::notice::"),
            "{line}"
        );
    }
    let first = page.lines().next().unwrap();
    let properties = first.strip_prefix("::error ").unwrap().split("::").next().unwrap();
    assert_eq!(properties.matches(',').count(), 2, "{properties}");
    assert!(page.contains("100%250A"));
}

#[test]
fn short_forms_are_one_line_and_termination_fits_its_file() {
    for text in ["a\nb\r\nc\u{2028}d", &"模".repeat(9000), ""] {
        for format in [Format::Oneline, Format::Termination] {
            let line = of(format, text);
            assert_eq!(line.lines().count(), 1, "{format:?}");
            assert!(line.ends_with('\n'));
        }
        assert!(of(Format::Termination, text).len() <= line::TERMINATION_BYTES);
    }
    let line = line::termination(&sample::graph_capture());
    for word in [
        "gpu-oom.graph-capture",
        "ank 1",
        "retry: pointless",
        "--gpu-memory-utilization",
        "node-b.log:412",
    ] {
        assert!(line.contains(word), "{word} in {line}");
    }
}

#[test]
fn no_target_closes_an_issue() {
    let text = "fixes #12, closes org/repo#3, resolves GH-4, https://github.com/o/r/issues/5, www.evil.example";
    for format in [Format::Markdown, Format::Jira, Format::Slack] {
        let page = of(format, text);
        let outside: String = match format {
            Format::Jira => page.split("{noformat}").step_by(2).collect(),
            Format::Markdown => page.lines().filter(|line| line.starts_with("## ")).collect(),
            _ => page.split("```").step_by(2).collect(),
        };
        assert!(!outside.contains("://"), "{format:?}\n{outside}");
        if format == Format::Markdown {
            for mark in ["#12", "repo#3", "GH-4", "www.evil"] {
                assert!(!outside.contains(mark), "{mark} in\n{outside}");
            }
        }
    }
}

/// Every report has all the fields that the schema names, and no other.
#[test]
fn the_schema_describes_the_report() {
    let schema: Value = serde_json::from_str(&json::schema()).unwrap();
    for report in [sample::graph_capture(), sample::hostile("x")] {
        let report: Value = serde_json::from_str(&json::object(&report)).unwrap();
        conforms(&schema, &schema, &report, "report");
    }
}

/// The part of JSON Schema that the schema uses.
fn conforms(root: &Value, schema: &Value, value: &Value, at: &str) {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return conforms(root, &root["$defs"][name], value, at);
    }
    if let Some(options) = schema["anyOf"].as_array() {
        let other = options.iter().find(|option| option["type"] != "null").unwrap();
        if !value.is_null() {
            conforms(root, other, value, at);
        }
        return;
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(n) if n.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allowed = |kind: &str| match &schema["type"] {
        Value::Null => true,
        Value::String(one) => one == kind,
        Value::Array(many) => many.iter().any(|one| one == kind),
        _ => false,
    };
    assert!(
        allowed(kind) || (kind == "integer" && allowed("number")),
        "{at}: {kind}, {schema}"
    );
    if let (Some(values), Some(value)) = (schema["enum"].as_array(), value.as_str()) {
        assert!(values.iter().any(|v| v == value), "{at}: {value}");
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(root, &schema["items"], item, at);
    }
    let (Some(fields), Some(known)) = (value.as_object(), schema["properties"].as_object()) else {
        return;
    };
    for (name, value) in fields {
        let field = known
            .get(name)
            .unwrap_or_else(|| panic!("{at}.{name} is not in the schema"));
        conforms(root, field, value, &format!("{at}.{name}"));
    }
    for name in known.keys() {
        assert!(fields.contains_key(name), "{at}.{name} is missing");
    }
}
