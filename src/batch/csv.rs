//! Records as rows of a table.
//!
//! Owns the columns and the quoting. What a log says must not become a formula in a spreadsheet.

use std::borrow::Cow;

use super::digest::Digest;
use crate::report::text::safe;

const COLUMNS: [&str; 24] = [
    "source",
    "outcome",
    "cause",
    "confidence",
    "phase",
    "engine",
    "engine_version",
    "model",
    "time",
    "seconds_to_death",
    "gpu_hours",
    "process",
    "rank",
    "node",
    "fingerprint",
    "label",
    "files",
    "bytes",
    "lines",
    "headline",
    "root_input",
    "root_line",
    "root_text",
    "error",
];

/// The names of the columns.
pub fn head() -> String {
    line(COLUMNS.map(Cow::Borrowed))
}

/// One record. `label` is what the caller draws from its source.
pub fn row(digest: &Digest, label: Option<&str>) -> String {
    fn text(value: Option<&str>) -> Cow<'_, str> {
        Cow::Borrowed(value.unwrap_or_default())
    }
    fn shown<T: ToString>(value: Option<T>) -> Cow<'static, str> {
        Cow::Owned(value.map(|v| v.to_string()).unwrap_or_default())
    }
    let root = digest.root.as_ref();
    let report = digest.outcome.is_some();
    let read = |n: u64| shown(report.then_some(n));
    line([
        Cow::Borrowed(digest.source.as_str()),
        text(digest.outcome.as_deref()),
        text(digest.cause_id()),
        shown(digest.cause.as_ref().and_then(|c| c.confidence)),
        text(digest.phase.as_deref()),
        text(digest.engine.name.as_deref()),
        text(digest.engine.version.as_deref()),
        text(digest.launch.model.as_deref()),
        shown(digest.time().map(|t| t.format("%Y-%m-%dT%H:%M:%S"))),
        shown(digest.launch.seconds_to_death),
        shown(digest.gpu_hours().map(|h| format!("{h:.3}"))),
        text(root.and_then(|r| r.process.as_deref())),
        shown(root.and_then(|r| r.rank)),
        text(root.and_then(|r| r.node.as_deref())),
        text(digest.fingerprint.as_deref()),
        text(label),
        read(digest.examined.files),
        read(digest.examined.bytes),
        read(digest.examined.lines),
        Cow::Borrowed(digest.headline.as_str()),
        text(root.map(|r| r.input.as_str())),
        shown(root.map(|r| r.line)),
        text(root.map(|r| r.text.as_str())),
        text(digest.error.as_ref().map(|e| e.text.as_str())),
    ])
}

fn line(cells: [Cow<'_, str>; COLUMNS.len()]) -> String {
    let mut out = cells.map(|text| cell(&text)).join(",");
    out.push_str("\r\n");
    out
}

/// One cell. Spreadsheets take text that begins with one of these characters for a formula; an apostrophe stops them.
fn cell(text: &str) -> String {
    let text = safe(text);
    let guard = if text.trim_start().starts_with(['=', '+', '-', '@']) {
        "'"
    } else {
        ""
    };
    match text.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{guard}{}\"", text.replace('"', "\"\"")),
        false => format!("{guard}{text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_never_a_formula() {
        assert_eq!(cell("plain"), "plain");
        assert_eq!(cell("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(cell("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(cell(" +1"), "' +1");
        assert_eq!(cell("\t=1"), "' =1");
        assert_eq!(cell("two\nlines"), "two lines");
    }

    #[test]
    fn every_row_has_every_column() {
        let digest = Digest::of(r#"{"source":"a","error":{"id":"x","text":"no"}}"#).unwrap();
        let row = row(&digest, Some("west"));
        assert_eq!(row.matches(',').count(), COLUMNS.len() - 1);
        assert!(row.starts_with("a,,") && row.contains(",west,") && row.ends_with(",no\r\n"));
        assert_eq!(head().matches(',').count(), COLUMNS.len() - 1);
    }
}
