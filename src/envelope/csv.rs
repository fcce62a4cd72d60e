//! Tables of log lines, as cloud consoles export them.
//!
//! Owns the header and the splitting of a row. The meaning of a column is that of the JSON field of its name.

use std::borrow::Cow;

use serde_json::Value;

use super::fields::{self, Fields};
use super::json;

/// The columns of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Table {
    separator: char,
    header: String,
    columns: Vec<String>,
}

impl Table {
    /// The table that starts with a header naming a text and a stamp, a level or a stream, if the first row fits it.
    pub fn of(lines: &[Cow<'_, str>]) -> Option<Self> {
        let header = lines.first()?;
        let separator = [',', ';', '\t'].into_iter().find(|c| header.contains(*c))?;
        let columns: Vec<String> = split(header, separator)?.iter().map(|name| field_name(name)).collect();
        columns.iter().find(|name| fields::is_text(name))?;
        let table = Self {
            separator,
            header: header.clone().into_owned(),
            columns,
        };
        // A row's text may go on in further lines, so its end is not known yet.
        let sample = lines.get(1..lines.len().min(100))?.join("\n");
        let ends = sample.match_indices('\n').map(|(at, _)| at).chain([sample.len()]);
        let row = ends
            .filter_map(|end| sample.get(..end))
            .find_map(|text| table.row(text));
        json::of(&row?.0)?;
        Some(table)
    }

    /// Whether `line` is the header; exports that were joined repeat it.
    pub fn is_header(&self, line: &str) -> bool {
        line.trim_end() == self.header.trim_end()
    }

    /// The fields of a row, and the number of lines before its text.
    pub fn row(&self, text: &str) -> Option<(Fields, usize)> {
        let values = split(text, self.separator)?;
        if values.len() != self.columns.len() || self.is_header(text) {
            return None;
        }
        let at = self.columns.iter().position(|name| fields::is_text(name))?;
        let offset = values.iter().take(at).map(|value| value.matches('\n').count()).sum();
        let fields = self
            .columns
            .iter()
            .cloned()
            .zip(values.into_iter().map(Value::String))
            .collect();
        Some((Fields(fields), offset))
    }
}

/// `resource.labels.pod_name`, `_source.message` and `Message` are the fields `pod_name` and `message`.
fn field_name(column: &str) -> String {
    let name = column.trim();
    if fields::is_text(name) {
        return name.to_owned();
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    match last.to_ascii_lowercase().as_str() {
        "content" => "message".to_owned(),
        "textpayload" => "textPayload".to_owned(),
        lower => lower.to_owned(),
    }
}

/// The values of a row; `None` if a quote stays open or stands inside a bare value.
fn split(row: &str, separator: char) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut rest = row;
    loop {
        let value = match rest.strip_prefix('"') {
            Some(quoted) => {
                let (value, after) = unquote(quoted)?;
                rest = after;
                value
            }
            None => {
                let end = rest.find(separator).unwrap_or(rest.len());
                let (value, behind) = rest.split_at(end);
                rest = behind;
                value.to_owned()
            }
        };
        values.push(value);
        match rest.strip_prefix(separator) {
            Some(next) => rest = next,
            None if rest.trim().is_empty() => return Some(values),
            None => return None,
        }
    }
}

/// The value up to the closing quote, and what follows it. A doubled quote stands for itself.
fn unquote(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        value.push_str(part);
        rest = behind;
        match rest.strip_prefix('"') {
            Some(next) => {
                value.push('"');
                rest = next;
            }
            None => return Some((value, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(lines: &[&str]) -> Option<Table> {
        Table::of(&lines.iter().map(|l| Cow::Borrowed(*l)).collect::<Vec<_>>())
    }

    #[test]
    fn headers_of_exports() {
        for lines in [
            ["timestamp,message", "1795962823312,\"a, b\""],
            [
                "\"@timestamp\",\"kubernetes.pod_name\",\"message\"",
                "\"2026-11-25T12:00:00Z\",\"vllm-0\",\"a\"",
            ],
            ["Date,Host,Service,Message", "2026-11-25T12:00:00Z,node-a,vllm,a"],
            [
                "insertId,resource.labels.pod_name,severity,textPayload,timestamp",
                "x,vllm-0,ERROR,a,2026-11-25T12:00:00Z",
            ],
        ] {
            assert!(table(&lines).is_some(), "{lines:?}");
        }
    }

    #[test]
    fn other_texts_are_no_tables() {
        for lines in [
            ["rank, message", "0, x"],
            ["time, then a message, in prose", "more prose, with a message, here"],
            ["timestamp,message", "INFO 11-25 13:00:07 [a.py:1] x"],
            ["message", "x"],
        ] {
            assert!(table(&lines).is_none(), "{lines:?}");
        }
    }

    #[test]
    fn rows() {
        assert_eq!(
            split("a,\"b \"\"c\"\", d\",", ','),
            Some(vec!["a".into(), "b \"c\", d".into(), String::new()])
        );
        assert_eq!(split("a,\"b", ','), None);
        assert_eq!(split("a,\"b\"c", ','), None);
    }
}
