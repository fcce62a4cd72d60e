//! The report for programs.
//!
//! Owns the serialisation of the contract: all fields, in their order. Cleans strings like every other view,
//! because `jq -r` prints them to terminals.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

use super::model::Report;
use super::text;

/// One object, indented by one space, ending in a line break.
pub fn object(report: &Report) -> String {
    write(report, PrettyFormatter::with_indent(b" ")) + "\n"
}

/// The JSON Schema of the report.
pub fn schema() -> String {
    let schema = schemars::schema_for!(Report);
    serde_json::to_string_pretty(&schema).unwrap_or_default() + "\n"
}

/// One object on one line, ending in a line break: an element of NDJSON.
pub fn line(report: &Report) -> String {
    object_line(report)
}

/// The line of a report with one more field at its end.
pub fn line_with(report: &Report, name: &str, field: &Value) -> String {
    let mut line = write(report, CompactFormatter);
    // The object is opened again.
    line.pop();
    line + "," + &write(name, CompactFormatter) + ":" + &write(field, CompactFormatter) + "}\n"
}

/// Any object on one line, cleaned like a report, ending in a line break.
pub fn object_line(value: &impl Serialize) -> String {
    write(value, CompactFormatter) + "\n"
}

fn write(value: &(impl Serialize + ?Sized), formatter: impl Formatter + Clone) -> String {
    let text = serialised(value, formatter.clone());
    if is_clean(&text) {
        return text;
    }
    // What is written holds nothing that cannot be serialised: its maps have string keys.
    let mut value = serde_json::to_value(value).unwrap_or(Value::Null);
    clean(&mut value);
    serialised(&value, formatter)
}

fn serialised(value: &(impl Serialize + ?Sized), formatter: impl Formatter) -> String {
    let mut bytes = Vec::new();
    let _ = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, formatter));
    String::from_utf8(bytes).unwrap_or_default()
}

/// Whether cleaning changes no string of this JSON, as far as a look at the whole tells: nearly every report.
fn is_clean(json: &str) -> bool {
    // A control character stands in it as an escape. Of these, line breaks stay as they are; no name has any.
    let mut escapes = json.split('\\').skip(1);
    while let Some(escape) = escapes.next() {
        match escape.as_bytes().first() {
            Some(b'"' | b'n') => {}
            // An escaped backslash: what follows the second one is text.
            None => drop(escapes.next()),
            Some(_) => return false,
        }
    }
    text::stays_with_breaks(json)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_written_straight_is_what_cleaning_leaves() {
        let straight = ["plain", "", "a\nb \"c\"", "C:\\temp\\new \\u001b \\\\r", "é – 模 😀"];
        let changed = [
            "a\tb",
            "a\r\nb",
            "\u{1b}[31mx",
            "\u{8}\\",
            "\\\t",
            "\u{202e}x",
            "\u{7f}",
            "\u{9b}1m",
            "a\u{2028}b",
            "e\u{301}\u{301}\u{301}",
        ];
        for (text, clean_text) in straight
            .map(|t| (t, true))
            .into_iter()
            .chain(changed.map(|t| (t, false)))
        {
            let name = text.replace('\n', "");
            let value = json!({"a": text, (name): [text, 1.5, null]});
            assert_eq!(is_clean(&serialised(&value, CompactFormatter)), clean_text, "{text:?}");
            let mut cleaned = value.clone();
            clean(&mut cleaned);
            assert_eq!(
                object_line(&value),
                serialised(&cleaned, CompactFormatter) + "\n",
                "{text:?}"
            );
        }
    }
}
