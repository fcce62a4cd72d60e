//! The JSON contract, held against every report of the corpus.

mod common;

use std::collections::{BTreeMap, HashMap};
use std::fs;

use common::{Text, cases, examine};
use coroner::catalog::{Catalog, Strength};
use coroner::report::model::Report;
use serde_json::Value;

/// Every report of the corpus, with the name of its input.
fn reports() -> Vec<(String, Report)> {
    let inputs = cases()
        .into_iter()
        .flat_map(|case| [case.log(), case.folder()])
        .flatten();
    inputs
        .map(|path| (path.display().to_string(), examine(&[path])))
        .collect()
}

/// The fields that are never left out, as `object: fields`. An object in a list is named with `[]`.
const FIELDS: &[(&str, &str)] = &[
    (
        "",
        "schema program source outcome headline story engine phase cause alternatives root exception evidence findings \
         figures measurements memory remedies will_not_help overruled_advice retry next_evidence owner launch processes \
         timeline attempt attempts fingerprint log examined",
    ),
    ("program", "version catalog"),
    ("engine", "name version"),
    ("cause", "id title confidence tags"),
    ("alternatives[]", "id title confidence why why_not"),
    (
        "root",
        "input line byte time time_local time_after process attribution rank coords node also_in text",
    ),
    ("root.coords", "dp pp tp ep local"),
    ("exception", "type message frames chain origin"),
    ("exception.frames[]", "file line function"),
    (
        "evidence[]",
        "n role signature input line byte time time_local time_after process attribution rank coords node text explained_by why",
    ),
    ("findings[]", "id title severity evidence"),
    ("measurements[]", "name value printed process device evidence"),
    (
        "remedies[]",
        "rank id title why change cost risk verify arithmetic evidence pair_with",
    ),
    ("remedies[].change[]", "kind name from to"),
    ("will_not_help[]", "title why"),
    ("overruled_advice[]", "input line text why"),
    ("retry", "verdict why same_node after"),
    ("next_evidence[]", "what why command"),
    (
        "launch",
        "command model settings platform started died seconds_to_death world_size nodes gpus ids",
    ),
    ("launch.platform", "gpu unified_memory"),
    ("launch.ids", "slurm_job pod container ray_session"),
    ("processes[]", "id role rank coords node pid last_phase exit"),
    ("timeline[]", "process phase input line time seconds"),
    (
        "attempts[]",
        "n input first_line last_line outcome phase cause fingerprint",
    ),
    ("log", "head tail missing"),
    ("examined", "files bytes lines skipped capped"),
    ("examined.skipped[]", "input why"),
];

/// All objects at a place such as `remedies[].change[]`; none where something on the way is null or an empty list.
fn at<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    let mut found = vec![value];
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (name, list) = step.strip_suffix("[]").map_or((step, false), |name| (name, true));
        let values = found.into_iter().filter_map(|v| v.get(name)).filter(|v| !v.is_null());
        found = match list {
            true => values.flat_map(|v| v.as_array().expect("a list")).collect(),
            false => values.collect(),
        };
    }
    found
}

#[test]
fn no_field_is_ever_left_out() {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, report) in reports() {
        let value = serde_json::to_value(&report).unwrap();
        for (path, fields) in FIELDS {
            for object in at(&value, path) {
                *seen.entry(path).or_default() += 1;
                for field in fields.split_whitespace() {
                    assert!(object.get(field).is_some(), "{name}: {path} lacks {field}");
                }
            }
        }
    }
    // A table that never met such an object proves nothing about it.
    for path in [
        "cause",
        "alternatives[]",
        "exception.frames[]",
        "remedies[].change[]",
        "evidence[]",
        "measurements[]",
    ] {
        assert!(seen.get(path).is_some_and(|n| *n > 10), "{path}: {seen:?}");
    }
}

#[test]
fn words_and_numbers_keep_their_ranges() {
    let catalog = Catalog::shared();
    for (name, report) in reports() {
        assert!(report.headline.chars().count() <= 120, "{name}: {}", report.headline);
        assert!(!report.headline.is_empty() && !report.story.is_empty(), "{name}");
        assert!(
            ["outcome", "headline"].iter().all(|_| !report.owner.is_empty()),
            "{name}"
        );
        let Some(cause) = &report.cause else {
            assert!(report.root.is_none() && report.remedies.is_empty(), "{name}");
            continue;
        };
        assert!((0.0..=1.0).contains(&cause.confidence), "{name}: {cause:?}");
        if catalog.strength(&cause.id) == Strength::Weak {
            assert!(cause.confidence < 0.7, "{name}: {cause:?}");
            assert!(
                !report.next_evidence.is_empty(),
                "{name}: {} asks for nothing",
                cause.id
            );
        }
        let rivals: Vec<f64> = report.alternatives.iter().map(|a| a.confidence).collect();
        assert!(
            rivals.iter().all(|c| (0.0..=cause.confidence).contains(c)),
            "{name}: {rivals:?}"
        );
        assert!(rivals.is_sorted_by(|a, b| a >= b), "{name}: {rivals:?}");
        let mut ids: Vec<&str> = report.alternatives.iter().map(|a| a.id.as_str()).collect();
        assert!(
            !ids.contains(&cause.id.as_str()),
            "{name}: the cause stands among its rivals"
        );
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rivals.len(), "{name}: a rival stands twice");
        let ranks: Vec<usize> = report.remedies.iter().map(|r| r.rank).collect();
        assert!(ranks.iter().copied().eq(1..=ranks.len()), "{name}: {ranks:?}");
        let print = report.fingerprint.as_deref().unwrap_or("");
        assert!(print.starts_with("f1:"), "{name}: fingerprint {print}");
    }
}

#[test]
fn numbers_of_evidence_and_processes_point_to_something() {
    for (name, report) in reports() {
        let evidence = |n: &usize| *n < report.evidence.len();
        assert!(report.evidence.iter().enumerate().all(|(i, e)| e.n == i), "{name}");
        assert!(
            report
                .evidence
                .iter()
                .filter_map(|e| e.explained_by.as_ref())
                .all(evidence),
            "{name}"
        );
        assert!(report.findings.iter().flat_map(|f| &f.evidence).all(evidence), "{name}");
        assert!(report.remedies.iter().flat_map(|r| &r.evidence).all(evidence), "{name}");
        assert!(
            report
                .measurements
                .iter()
                .filter_map(|m| m.evidence.as_ref())
                .all(evidence),
            "{name}"
        );
        let remedies: Vec<&str> = report.remedies.iter().map(|r| r.id.as_str()).collect();
        let pairs = report.remedies.iter().filter_map(|r| r.pair_with.as_deref());
        pairs.for_each(|id| assert!(remedies.contains(&id), "{name}: {id} is not advised"));

        let mut ids: Vec<&str> = report.processes.iter().map(|p| p.id.as_str()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count, "{name}: two processes of one id");
        let root = report
            .root
            .iter()
            .flat_map(|r| r.place.process.iter().chain(&r.also_in));
        let shown = report.evidence.iter().filter_map(|e| e.place.process.as_ref());
        let named = root.chain(shown).chain(report.timeline.iter().map(|t| &t.process));
        for id in named {
            assert!(ids.binary_search(&id.as_str()).is_ok(), "{name}: no process {id}");
        }
        assert!(!report.attempts.is_empty(), "{name}: no attempt");
    }
}

/// The text of a place is the line that it points to, as far as it is kept, without its transport.
#[test]
fn lines_and_bytes_point_to_the_text() {
    let mut texts: HashMap<String, Vec<u8>> = HashMap::new();
    for (name, report) in reports() {
        let places = report
            .root
            .iter()
            .map(|r| &r.place)
            .chain(report.evidence.iter().map(|e| &e.place));
        for place in places {
            let bytes = texts
                .entry(place.input.clone())
                .or_insert_with(|| fs::read(&place.input).unwrap());
            let line = bytes.split(|b| *b == b'\n').nth(place.line as usize - 1);
            let line = line.unwrap_or_else(|| panic!("{name}: {} has no line {}", place.input, place.line));
            let rest = &bytes[place.byte as usize..];
            assert!(
                rest.starts_with(line),
                "{name}: byte {} is not line {}",
                place.byte,
                place.line
            );
            let plain = plain(&String::from_utf8_lossy(line));
            let told = plain_text(&place.text);
            // Of a progress bar only the last state is kept, behind the prefix.
            let bar = line.contains(&b'\r');
            let told = if bar {
                told.get(told.len().saturating_sub(8)..).unwrap_or(&told)
            } else {
                &told
            };
            assert!(
                plain.contains(told),
                "{name}:{}: {told}\nis not in\n{plain}",
                place.line
            );
        }
    }
}

/// Letters and digits, without control sequences: what cleaning and escaping leave alone.
fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                let _ = chars.by_ref().find(char::is_ascii_alphabetic);
            }
            c if c.is_alphanumeric() => out.push(c),
            _ => {}
        }
    }
    out
}

fn plain_text(text: &str) -> String {
    plain(text.trim_end_matches('…'))
}

#[test]
fn the_schema_describes_every_report() {
    let schema = serde_json::to_value(schemars::schema_for!(Report)).unwrap();
    let schema = &schema;
    for (name, report) in reports() {
        let value = serde_json::to_value(&report).unwrap();
        let mut faults = Vec::new();
        check(schema, schema, &value, "", &mut faults);
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
    // The check can fail.
    let log = Text::read("corpus/healthy-8b-graphs.log");
    let mut value = serde_json::to_value(common::examine_texts(&[log])).unwrap();
    value["attempts"] = Value::from("none");
    value.as_object_mut().unwrap().remove("owner");
    let mut faults = Vec::new();
    check(schema, schema, &value, "", &mut faults);
    assert_eq!(faults.len(), 2, "{faults:?}");
}

/// The part of JSON Schema that the model uses: references, alternatives, types, constants, fields, items.
fn check(root: &Value, schema: &Value, value: &Value, path: &str, faults: &mut Vec<String>) {
    if let Some(name) = schema.get("$ref").and_then(Value::as_str) {
        let target = root
            .pointer(name.trim_start_matches('#'))
            .expect("the reference resolves");
        return check(root, target, value, path, faults);
    }
    let choices = schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))
        .and_then(Value::as_array);
    if let Some(choices) = choices {
        let fits = |choice: &Value| {
            let mut own = Vec::new();
            check(root, choice, value, path, &mut own);
            own.is_empty()
        };
        if !choices.iter().any(fits) {
            faults.push(format!("{path}: {value} fits no alternative"));
        }
        return;
    }
    if schema.get("const").is_some_and(|only| only != value) {
        faults.push(format!("{path}: {value} is not the constant"));
    }
    let listed = schema.get("enum").and_then(Value::as_array);
    if listed.is_some_and(|values| !values.contains(value)) {
        faults.push(format!("{path}: {value} is not listed"));
    }
    let is = |kind: &str| match kind {
        "null" => value.is_null(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let right = match schema.get("type") {
        Some(Value::String(kind)) => is(kind),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(is),
        _ => true,
    };
    if !right {
        faults.push(format!("{path}: {value} is no {}", schema["type"]));
        return;
    }
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().unwrap_or("");
        if value.is_object() && value.get(name).is_none() {
            faults.push(format!("{path}: {name} is missing"));
        }
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let below = schema["properties"]
            .get(name)
            .or_else(|| schema.get("additionalProperties"));
        match below {
            Some(below) if below.is_object() => check(root, below, field, &format!("{path}.{name}"), faults),
            Some(_) => {}
            None => faults.push(format!("{path}: {name} is not in the schema")),
        }
    }
    if let Some(items) = schema.get("items") {
        for (i, item) in value.as_array().into_iter().flatten().enumerate() {
            check(root, items, item, &format!("{path}[{i}]"), faults);
        }
    }
}
