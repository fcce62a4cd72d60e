//! The report for programs.
//!
//! Owns the serialisation of the contract: all fields, in their order. Cleans strings like every other view,
//! because `jq -r` prints them to terminals.

use serde_json::Value;

use super::model::Report;
use super::text;

/// One object, indented by one space, ending in a line break.
pub fn object(report: &Report) -> String {
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    write(report, formatter)
}

/// One object on one line, ending in a line break: an element of NDJSON.
pub fn line(report: &Report) -> String {
    write(report, serde_json::ser::CompactFormatter)
}

fn write(report: &Report, formatter: impl serde_json::ser::Formatter) -> String {
    // The model holds nothing that cannot be serialised: its maps have string keys.
    let mut value = serde_json::to_value(report).unwrap_or(Value::Null);
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
        Value::String(s) => *s = text::safe_lines(s).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Object(fields) => {
            let taken = std::mem::take(fields);
            fields.extend(taken.into_iter().map(|(name, mut value)| {
                clean(&mut value);
                (text::safe(&name).into_owned(), value)
            }));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
