//! The report for programs.
//!
//! Owns the serialisation of the contract: all fields, in their order. Cleans strings like every other view,
//! because `jq -r` prints them to terminals.

use std::borrow::Cow;

use serde_json::Value;

use super::model::Report;
use super::text;

/// One object, indented by one space, ending in a line break.
pub fn object(report: &Report) -> String {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    write(value(report), formatter)
}

/// The JSON Schema of the report.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// One object on one line, ending in a line break: an element of NDJSON.
pub fn line(report: &Report) -> String {
    object_line(value(report))
}

/// The line of a report with one more field at its end.
pub fn line_with(report: &Report, name: &str, field: Value) -> String {
    let mut value = value(report);
    if let Value::Object(fields) = &mut value {
        fields.insert(name.to_owned(), field);
    }
    object_line(value)
}

/// Any object on one line, cleaned like a report.
pub fn object_line(value: Value) -> String {
    write(value, serde_json::ser::CompactFormatter)
}

fn value(report: &Report) -> Value {
    // The model holds nothing that cannot be serialised: its maps have string keys.
    serde_json::to_value(report).unwrap_or(Value::Null)
}

fn write(mut value: Value, formatter: impl serde_json::ser::Formatter) -> String {
    clean(&mut value);
    let mut bytes = Vec::new();
    let _ = serde::Serialize::serialize(
        &value,
        &mut serde_json::Serializer::with_formatter(&mut bytes, formatter),
    );
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default()
}

fn clean(value: &mut Value) {
    match value {
        Value::String(s) => {
            if let Cow::Owned(safe) = text::safe_lines(s) {
                *s = safe;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            fields.values_mut().for_each(clean);
            // Most names are the contract's own.
            if fields.keys().any(|name| matches!(text::safe(name), Cow::Owned(_))) {
                let taken = std::mem::take(fields).into_iter();
                fields.extend(taken.map(|(name, value)| (text::safe(&name).into_owned(), value)));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
