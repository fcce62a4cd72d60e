//! Records as rows of text.
//!
//! Owns the quoting. What a log says must not become a formula in a spreadsheet.

use super::columns::{COLUMNS, Cell, cells};
use super::digest::Digest;

/// The names of the columns.
pub fn head() -> String {
    line(COLUMNS.map(|(name, _)| name.to_owned()))
}

/// One record. `label` is what the caller draws from its source.
pub fn row(digest: &Digest, label: Option<&str>) -> String {
    fn shown<T: ToString>(value: Option<T>) -> String {
        value.map(|v| v.to_string()).unwrap_or_default()
    }
    line(cells(digest, label).map(|cell| match cell {
        Cell::Text(text) => text.map(|text| quoted(&text)).unwrap_or_default(),
        Cell::Whole(number) => shown(number),
        Cell::Real(number) => shown(number),
        Cell::Time(time) => shown(time.map(|t| t.format("%Y-%m-%dT%H:%M:%S"))),
    }))
}

fn line(cells: [String; COLUMNS.len()]) -> String {
    let mut out = cells.join(",");
    out.push_str("\r\n");
    out
}

/// One cell. Spreadsheets take text that begins with one of these characters for a formula; an apostrophe stops them.
fn quoted(text: &str) -> String {
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
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
        assert_eq!(quoted("@SUM(A1)"), "'@SUM(A1)");
        assert_eq!(quoted(" +1"), "' +1");
    }

    #[test]
    fn every_row_has_every_column_on_one_line() {
        let digest = Digest::of(r#"{"source":"a\nb","error":{"id":"x","text":"\t=1"}}"#).unwrap();
        let row = row(&digest, Some("west"));
        assert_eq!(row.matches(',').count(), COLUMNS.len() - 1);
        assert!(
            row.starts_with("a b,,") && row.contains(",west,") && row.ends_with(",' =1\r\n"),
            "{row:?}"
        );
        assert_eq!(row.matches('\n').count(), 1);
        assert_eq!(head().matches(',').count(), COLUMNS.len() - 1);
    }
}
