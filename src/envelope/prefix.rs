//! A prefix of constant shape that no known transport explains.
//!
//! Owns the finding of such a prefix in front of known program lines, and its matching.

use super::{grammar, stamps};

/// Marks in front of a line of an excerpt. A `|` is none: Python puts it before the parts of an exception group.
const MARKS: &str = " \t>│-*•:.)#`\"'";

/// Longest unknown prefix.
const LONGEST: usize = 96;

/// The shape of a prefix: its text, with digits standing for any number of digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prefix {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Digits,
    /// A run of blanks inside the prefix: columns are padded.
    Blanks,
    Text(String),
}

impl Prefix {
    /// The prefix before the first known program line that begins inside `line`.
    pub fn before_program(line: &str) -> Option<(Self, usize)> {
        if grammar::program(line) {
            return None;
        }
        let b = line.as_bytes();
        let end = (1..line.len().min(LONGEST)).find(|&at| {
            let before = b.get(at - 1);
            matches!(before, Some(b' ' | b'\t' | b'|' | b']' | b'>' | b':' | b')' | b'-'))
                && line.get(at..).is_some_and(grammar::program)
        })?;
        Some((Self::of(line.get(..end)?), end))
    }

    /// What stands in front of the line of a program in an excerpt, and is no word of anybody: marks and numbers, or
    /// where the line was found, `serve.log:812:`.
    pub fn margin(line: &str) -> Option<(Self, &str)> {
        let starts = |text: &str| grammar::program(text) || grammar::exception(text);
        let marks = |c: char| c.is_ascii_digit() || MARKS.contains(c);
        let bare = line.trim_start_matches(marks);
        let (margin, text) = line.split_at(line.len() - bare.len());
        let (margin, text) = match starts(text) || text.starts_with('(') {
            true => (margin, text),
            false => line.split_at(located(line)?),
        };
        (!margin.is_empty() && !starts(line) && starts(text)).then(|| (Self::of(margin), margin))
    }

    fn of(text: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let body = text.trim_end_matches(' ');
        for c in body.chars() {
            match (c, parts.last_mut()) {
                ('0'..='9', Some(Part::Digits)) | (' ', Some(Part::Blanks)) => {}
                ('0'..='9', _) => parts.push(Part::Digits),
                (' ', _) => parts.push(Part::Blanks),
                (c, Some(Part::Text(text))) => text.push(c),
                (c, _) => parts.push(Part::Text(c.to_string())),
            }
        }
        // The blanks at its end are counted: more of them belong to the program's text.
        if let Some(blanks) = text.strip_prefix(body).filter(|blanks| !blanks.is_empty()) {
            parts.push(Part::Text(blanks.to_owned()));
        }
        Self { parts }
    }

    /// What follows the prefix in `line`, if it starts with one of this shape.
    pub fn strip<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut rest = line;
        for (i, part) in self.parts.iter().enumerate() {
            let next = match part {
                Part::Digits => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
                Part::Blanks => rest.trim_start_matches(' '),
                Part::Text(text) => match rest.strip_prefix(text.as_str()) {
                    Some(next) => next,
                    // Trailing blanks of an empty text may have been trimmed.
                    None if i + 1 == self.parts.len() && rest.is_empty() && text.trim().is_empty() => rest,
                    None => return None,
                },
            };
            if next.len() == rest.len() && !rest.is_empty() {
                return None;
            }
            rest = next;
        }
        (rest.len() < line.len()).then_some(rest)
    }

    /// The stamp in the prefix of `line`, wherever it stands in it.
    pub fn stamp(&self, prefix: &str) -> Option<crate::time::Stamp> {
        prefix
            .char_indices()
            .map(|(at, _)| prefix.split_at(at))
            .filter(|(before, _)| !before.ends_with(|c: char| c.is_ascii_alphanumeric()))
            .find_map(|(_, rest)| stamps::iso(rest).or_else(|| stamps::month_day(rest)))
            .map(|(at, _)| at)
    }
}

/// The length of the name of a file, with or without the number of a line, in front of what `grep` found in it.
fn located(line: &str) -> Option<usize> {
    let (name, text) = line.split_at(line.floor_char_boundary(LONGEST)).0.split_once(':')?;
    if name.contains(char::is_whitespace) || !name.contains(['.', '/']) {
        return None;
    }
    let numbered = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = text.len() - numbered.len();
    Some(match numbered.strip_prefix([':', '-']) {
        Some(_) if number > 0 => name.len() + number + 2,
        _ => name.len() + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_of_an_excerpt() {
        for (line, margin) in [
            ("     1\tValueError: x", "     1\t"),
            ("812:ValueError: x", "812:"),
            ("- ValueError: x", "- "),
            ("│ INFO 11-25 13:00:07 [a.py:1] x", "│ "),
            ("`(EngineCore pid=7) x`", "`"),
            ("serve.log:812:(EngineCore pid=7) x", "serve.log:812:"),
            ("logs/serve:torch.OutOfMemoryError: x", "logs/serve:"),
        ] {
            assert_eq!(Prefix::margin(line).map(|(_, margin)| margin), Some(margin), "{line}");
        }
        for line in [
            "ValueError: x",
            "I saw ValueError: x",
            "raise ValueError: x",
            "node:ValueError: x",
            "a b.log:1:ValueError: x",
            "",
            "- ",
            "12",
        ] {
            assert!(Prefix::margin(line).is_none(), "{line}");
        }
    }

    #[test]
    fn prefix_of_a_notebook() {
        let (prefix, end) = Prefix::before_program("644.1s 813 INFO 11-25 13:00:07 [a.py:1] x").unwrap();
        assert_eq!(end, 11);
        assert_eq!(prefix.strip("5.9s 3   File"), Some("  File"));
        assert_eq!(prefix.strip("5.9s 3"), Some(""));
        assert_eq!(prefix.strip("x 5.9s 3 y"), None);
    }

    #[test]
    fn a_margin_without_a_name() {
        let (prefix, _) = Prefix::before_program("  | INFO 11-25 13:00:07 [a.py:1] x").unwrap();
        assert_eq!(prefix.strip("  |   File \"a.py\""), Some("  File \"a.py\""));
        assert_eq!(prefix.strip("    x"), None);
    }

    #[test]
    fn the_stamp_of_a_prefix() {
        let (prefix, end) =
            Prefix::before_program("web 2026-11-25T13:00:07Z out INFO 11-25 13:00:07 [a.py:1] x").unwrap();
        assert_eq!(prefix.stamp("web 2026-11-25T13:00:07Z out ").unwrap().offset, Some(0));
        assert_eq!(end, 29);
    }

    #[test]
    fn a_program_line_has_no_prefix() {
        assert!(Prefix::before_program("(EngineCore pid=1) INFO 11-25 13:00:07 [a.py:1] x").is_none());
        assert!(Prefix::before_program("no program here").is_none());
    }
}
