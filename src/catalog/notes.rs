//! Notes on log formats: Markdown files whose back-quoted fragments are message texts.
//!
//! Owns reading headings, tables and code spans, and which sections hold messages. Never looks a text up.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A note file.
#[derive(Debug, Clone)]
pub struct Note {
    /// File name without its folder.
    pub name: String,
    /// Content.
    pub text: String,
}

/// A back-quoted text of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Line in the note, from 1.
    pub line: usize,
    /// Headings it stands under, outermost first, without their `#`.
    pub under: Vec<String>,
    /// The text.
    pub text: String,
    /// Words of the form `family.cause` on the same line.
    pub ids: BTreeSet<String>,
}

/// The notes of a folder by name: its Markdown files, or those of its folder `knowledge`.
///
/// # Errors
/// When the folder or a file cannot be read.
pub fn read(dir: &Path) -> io::Result<Vec<Note>> {
    let inner = dir.join("knowledge");
    let dir = if inner.is_dir() { inner } else { dir.to_owned() };
    let mut paths: Vec<PathBuf> = fs::read_dir(dir)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "md"));
    paths.sort();
    let note = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Note {
            name,
            text: fs::read_to_string(&path)?,
        })
    };
    paths.into_iter().map(note).collect()
}

/// The fragments of a note in order. In a table only the column of messages counts: the one whose head says fragment,
/// literal, line, text, form or description, else the first.
pub fn fragments(note: &Note) -> Vec<Fragment> {
    let mut under: Vec<(usize, String)> = Vec::new();
    let mut column = None;
    let mut out = Vec::new();
    for (i, line) in note.text.lines().enumerate() {
        if let Some((level, title)) = heading(line) {
            under.retain(|(l, _)| *l < level);
            under.push((level, title.to_owned()));
        }
        let body = if line.starts_with('|') {
            let cells = cells(line);
            let Some(message) = column else {
                column = Some(cells.iter().position(|c| holds_messages(c)).unwrap_or(0));
                continue;
            };
            cells.get(message).copied().unwrap_or_default()
        } else {
            column = None;
            line
        };
        let ids = line.split(|c: char| !(c.is_ascii_lowercase() || c == '.' || c == '-'));
        let ids: BTreeSet<String> = ids.filter(|w| is_id(w)).map(str::to_owned).collect();
        out.extend(spans(body).into_iter().map(|text| Fragment {
            line: i + 1,
            under: under.iter().map(|(_, title)| title.clone()).collect(),
            text: text.replace("\\|", "|"),
            ids: ids.clone(),
        }));
    }
    out
}

/// Whether a fragment stands under one of the numbered headings; `3` has all of `3.1`, `3.2`, ….
pub fn is_under(fragment: &Fragment, sections: &[String]) -> bool {
    let number = |title: &String| {
        title
            .split_whitespace()
            .next()
            .map(|w| w.trim_end_matches('.').to_owned())
    };
    fragment.under.iter().filter_map(number).any(|n| sections.contains(&n))
}

fn is_id(word: &str) -> bool {
    let word = word.trim_end_matches('.');
    matches!(word.split_once('.'), Some((f, c)) if f.len() > 1 && c.len() > 1 && !c.contains('.'))
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let title = line.trim_start_matches('#');
    let level = line.len() - title.len();
    (level > 0 && title.starts_with(' ')).then(|| (level, title.trim()))
}

fn holds_messages(head: &str) -> bool {
    let words = ["fragment", "literal", "line", "text", "form", "description"];
    head.split(|c: char| !c.is_ascii_alphabetic())
        .any(|w| words.contains(&w.to_ascii_lowercase().as_str()))
}

/// Cells of a table row; a `|` inside a code span is written `\|`.
fn cells(row: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 1;
    let bytes = row.as_bytes();
    for at in 1..bytes.len() {
        if bytes.get(at) == Some(&b'|') && bytes.get(at - 1) != Some(&b'\\') {
            out.extend(row.get(start..at));
            start = at + 1;
        }
    }
    out
}

/// Code spans of a line. Inside one, `` \` `` and a span of double quotes stand for a back quote of the message itself.
fn spans(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut rest = line;
    while let Some(at) = rest.find('`') {
        rest = rest.get(at..).unwrap_or_default();
        let fence = rest.len() - rest.trim_start_matches('`').len();
        rest = rest.get(fence..).unwrap_or_default();
        let mut text = String::new();
        loop {
            let Some(at) = rest.find('`') else { return out };
            let (before, after) = rest.split_at(at);
            if let Some(before) = before.strip_suffix('\\') {
                text.push_str(before);
                text.push('`');
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            let run = after.len() - after.trim_start_matches('`').len();
            text.push_str(before);
            rest = after.get(run..).unwrap_or_default();
            if run == fence {
                break;
            } else if fence == 1 && run == 2 {
                // `` … setting `` `--address` `` flag … ``: the inner quotes belong to the message.
                if let Some(inner) = rest.strip_prefix(" `") {
                    rest = inner;
                } else if text.ends_with("` ") {
                    text.truncate(text.len() - 2);
                }
                text.push('`');
                if let Some((quoted, tail)) = rest.split_once("` ``") {
                    text.push_str(quoted);
                    text.push('`');
                    rest = tail;
                }
            } else {
                text.push_str(&"`".repeat(run));
            }
        }
        let text = if fence > 1 { text.trim().to_owned() } else { text };
        if !text.trim().is_empty() {
            out.push(text);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(text: &str) -> Note {
        Note {
            name: "n.md".to_owned(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn tables_give_the_column_of_messages_and_prose_all_spans() {
        let note = note(
            "# t\n## 3. Failures\n### 3.1 Memory\n| who | fragment | cause |\n| --- | --- | --- |\n\
             | `me` | `a \\| b` / `c {n}` | gpu-oom.weights |\n\n`in prose` x\n",
        );
        let got = fragments(&note);
        let texts: Vec<(usize, &str)> = got.iter().map(|f| (f.line, f.text.as_str())).collect();
        assert_eq!(texts, [(6, "a | b"), (6, "c {n}"), (8, "in prose")]);
        assert!(is_under(&got[0], &["3".to_owned()]) && is_under(&got[0], &["3.1".to_owned()]));
        assert!(!is_under(&got[0], &["4".to_owned()]));
        assert!(got[0].ids.contains("gpu-oom.weights"));
    }

    #[test]
    fn back_quotes_of_the_message_itself_stay() {
        assert_eq!(spans(r"`Cannot find \`{path}\`` x"), ["Cannot find `{path}`"]);
        assert_eq!(
            spans("`by setting `` `--address` `` flag.` and `b`"),
            ["by setting `--address` flag.", "b"]
        );
        assert_eq!(spans("`` `ptxas` failed``"), ["`ptxas` failed"]);
        assert_eq!(spans("`torn"), Vec::<String>::new());
    }
}
