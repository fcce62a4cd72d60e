//! Records that a transport spread over several lines: CSV rows, indented JSON objects, journald's export format.
//!
//! Owns the gathering of such a block and its reading into an entry. A block that outgrows its limits or cannot be
//! read is given back line by line, so that a wrong guess loses nothing.

use std::borrow::Cow;

use serde_json::Value;

use super::csv::Table;
use super::fields::{self, Fields};
use super::json::{self, Entry};
use super::paste::Wrap;
use super::{Place, ansi};

/// Lines and bytes of one block.
const MOST_LINES: usize = 2000;
const MOST_BYTES: usize = 256 * 1024;

/// How the lines of a source make up its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Frame {
    /// A line is a record.
    #[default]
    Lines,
    /// A full line goes on in the next.
    Wrapped(Wrap),
    /// Rows of a table.
    Csv(Table),
    /// JSON objects over several lines, with this indentation of their braces.
    Objects(usize),
    /// `KEY=value` lines, an empty line after each record.
    Export,
}

impl Frame {
    /// Recognises the frame from the first lines of a source.
    pub fn of(lines: &[Cow<'_, str>]) -> Self {
        let Some(first) = lines.first() else { return Self::Lines };
        if first.starts_with("__CURSOR=") || lines.iter().filter(|l| l.starts_with("__REALTIME_TIMESTAMP=")).count() > 1
        {
            return Self::Export;
        }
        if let Some(table) = Table::of(lines) {
            return Self::Csv(table);
        }
        if matches!(first.trim(), "[" | "{")
            && let Some(open) = lines.iter().find(|line| line.trim() == "{")
            && lines.iter().any(|line| fields::is_text_key(line))
        {
            return Self::Objects(indentation(open));
        }
        Self::Lines
    }
}

/// What a line did to the block it belongs to.
#[derive(Debug)]
pub(super) enum Step {
    /// The block goes on.
    More,
    /// The block is a record; its text's lines stand at these places.
    Entry(Box<Entry>, Vec<Place>),
    /// The lines are no block.
    Lines(Vec<(Place, Vec<u8>)>),
}

/// The block that is being gathered.
#[derive(Debug, Clone, Default)]
pub(super) struct Blocks {
    lines: Vec<(Place, Vec<u8>)>,
    bytes: usize,
    /// Inside a quoted field of a table.
    quoted: bool,
}

impl Blocks {
    /// Adds a line. In a source that is read in reverse the lines of a block come last first.
    pub fn add(&mut self, frame: &Frame, reversed: bool, place: Place, line: &[u8]) -> Step {
        self.lines.push((place, line.to_vec()));
        self.bytes += line.len();
        let complete = match frame {
            Frame::Csv(_) => {
                self.quoted ^= memchr::memchr_iter(b'"', line).count() % 2 == 1;
                !self.quoted
            }
            Frame::Objects(indent) => {
                let text = String::from_utf8_lossy(line);
                let (opens, closes) = (text.trim() == "{", matches!(text.trim(), "}" | "},"));
                let ends = if reversed { opens } else { closes };
                // The brackets of the list around the objects stand alone.
                let outside = self.lines.len() == 1 && !(if reversed { closes } else { opens });
                (ends && indentation(&text) == *indent) || outside
            }
            Frame::Export => line.is_empty() && (reversed || self.is_record()),
            Frame::Lines | Frame::Wrapped(_) => true,
        };
        if !complete && self.lines.len() < MOST_LINES && self.bytes < MOST_BYTES {
            return Step::More;
        }
        self.end(frame, reversed)
    }

    /// Reads what was gathered.
    pub fn end(&mut self, frame: &Frame, reversed: bool) -> Step {
        let mut lines = std::mem::take(&mut self.lines);
        *self = Self::default();
        if reversed {
            lines.reverse();
        }
        let entry = match frame {
            Frame::Csv(table) => row(table, &lines),
            Frame::Objects(_) => object(&lines),
            Frame::Export => exported(&lines),
            Frame::Lines | Frame::Wrapped(_) => None,
        };
        match entry {
            Some((entry, places)) => Step::Entry(Box::new(entry), places),
            // The frame's own lines are no text of any program.
            None if lines.iter().all(|(_, line)| is_frame(frame, line)) => Step::More,
            None => {
                if reversed {
                    lines.reverse();
                }
                Step::Lines(lines)
            }
        }
    }

    fn is_record(&self) -> bool {
        self.lines.len() == 1 || fields(&self.lines).is_some()
    }
}

fn is_frame(frame: &Frame, line: &[u8]) -> bool {
    match frame {
        Frame::Csv(table) => line.is_empty() || table.is_header(&ansi::clean(line)),
        Frame::Objects(_) => matches!(line.trim_ascii(), b"[" | b"]" | b"" | b"[]"),
        _ => line.is_empty(),
    }
}

fn row(table: &Table, lines: &[(Place, Vec<u8>)]) -> Option<(Entry, Vec<Place>)> {
    let text = lossy(lines);
    let (fields, offset) = table.row(&text)?;
    let entry = json::of(&fields)?;
    Some((entry, lines.iter().map(|(place, _)| *place).skip(offset).collect()))
}

fn object(lines: &[(Place, Vec<u8>)]) -> Option<(Entry, Vec<Place>)> {
    let entry = json::read(lossy(lines).trim_start())?;
    let key = format!("\"{}\":", entry.shape.text());
    let line = lines
        .iter()
        .find(|(_, line)| line.trim_ascii_start().starts_with(key.as_bytes()))
        .or(lines.first())?;
    Some((entry, vec![line.0]))
}

fn exported(lines: &[(Place, Vec<u8>)]) -> Option<(Entry, Vec<Place>)> {
    let entry = json::of(&fields(lines)?)?;
    let at = lines
        .iter()
        .position(|(_, line)| *line == b"MESSAGE" || line.starts_with(b"MESSAGE="))
        .unwrap_or(0);
    let mut from = lines.iter().skip(at);
    let (place, line) = from.next()?;
    if line != b"MESSAGE" {
        return Some((entry, vec![*place]));
    }
    // The text of a binary field begins below its key, behind eight bytes of length; a length of ten holds a line end.
    let mut bytes = 0;
    let text = from.skip_while(|(_, line)| {
        bytes += line.len() + 1;
        bytes <= LENGTH
    });
    Some((entry, text.map(|(place, _)| *place).collect()))
}

/// Bytes of the length in front of a binary value.
const LENGTH: usize = 8;

/// The fields of an exported record: `KEY=value`, or a bare key, eight bytes of length and the value. `None` while a
/// value is not complete.
fn fields(lines: &[(Place, Vec<u8>)]) -> Option<Fields> {
    let mut fields = Vec::new();
    let mut lines = lines.iter().map(|(_, line)| line);
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let (key, value) = match memchr::memchr(b'=', line) {
            Some(at) => {
                let (key, value) = line.split_at(at);
                (key, value.get(1..).unwrap_or_default().to_vec())
            }
            None => (line.as_slice(), binary(&mut lines)?),
        };
        fields.push((
            String::from_utf8_lossy(key).into_owned(),
            Value::String(String::from_utf8_lossy(&value).into_owned()),
        ));
    }
    Some(Fields(fields))
}

fn binary<'a>(lines: &mut impl Iterator<Item = &'a Vec<u8>>) -> Option<Vec<u8>> {
    let mut data: Vec<u8> = Vec::new();
    for line in lines {
        data.extend_from_slice(line);
        data.push(b'\n');
        if let Some((length, value)) = data.split_first_chunk::<LENGTH>() {
            let length = usize::try_from(u64::from_le_bytes(*length))
                .ok()
                .filter(|length| *length <= MOST_BYTES)?;
            // The line end behind the value is no part of it.
            if value.len() > length {
                return value.get(..length).map(<[u8]>::to_vec);
            }
        }
    }
    None
}

fn lossy(lines: &[(Place, Vec<u8>)]) -> String {
    let lines: Vec<Cow<'_, str>> = lines.iter().map(|(_, line)| ansi::clean(line)).collect();
    lines.join("\n")
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(frame: &Frame, reversed: bool, log: &[u8]) -> Vec<(String, Vec<u64>)> {
        let mut blocks = Blocks::default();
        let mut lines: Vec<_> = log.split(|&b| b == b'\n').zip(1u64..).collect();
        if reversed {
            lines.reverse();
        }
        let mut got = Vec::new();
        let mut keep = |step| match step {
            Step::Entry(entry, places) => got.push((entry.text, places.iter().map(|p: &Place| p.line).collect())),
            Step::Lines(lines) => got.push((format!("{} lines", lines.len()), vec![])),
            Step::More => {}
        };
        for (line, no) in lines {
            keep(blocks.add(frame, reversed, Place { line: no, byte: 0 }, line));
        }
        keep(blocks.end(frame, reversed));
        got
    }

    #[test]
    fn export_format() {
        let mut log = b"__CURSOR=s=b\n__REALTIME_TIMESTAMP=1795962823312510\n_HOSTNAME=node-a\nMESSAGE=one\n\n__CURSOR=s=c\n__REALTIME_TIMESTAMP=1795962823312511\nMESSAGE\n".to_vec();
        let text = b"\x1b[36mtwo\n\nthree\x1b[0m";
        log.extend((text.len() as u64).to_le_bytes());
        log.extend(text);
        log.extend(b"\n_PID=3\n");
        let got = read(&Frame::Export, false, &log);
        assert_eq!(
            got,
            [
                ("one".to_owned(), vec![4]),
                ("\u{1b}[36mtwo\n\nthree\u{1b}[0m".to_owned(), vec![9, 10, 11, 12, 13])
            ]
        );
    }

    #[test]
    fn indented_objects_in_either_direction() {
        let log = b"[\n  {\n    \"severity\": \"ERROR\",\n    \"textPayload\": \"b\",\n    \"timestamp\": \"2026-11-25T12:00:01Z\"\n  },\n  {\n    \"textPayload\": \"a\",\n    \"timestamp\": \"2026-11-25T12:00:00Z\"\n  }\n]";
        let lines: Vec<Cow<'_, str>> = std::str::from_utf8(log).unwrap().lines().map(Cow::Borrowed).collect();
        let frame = Frame::of(&lines);
        assert_eq!(frame, Frame::Objects(2));
        assert_eq!(
            read(&frame, false, log),
            [("b".to_owned(), vec![4]), ("a".to_owned(), vec![8])]
        );
        assert_eq!(
            read(&frame, true, log),
            [("a".to_owned(), vec![8]), ("b".to_owned(), vec![4])]
        );
    }

    #[test]
    fn rows_over_several_lines() {
        let log = b"timestamp,message\n2026-11-25T12:00:01Z,\"Traceback:\n  \"\"File\"\"\nValueError, x\"\n2026-11-25T12:00:02Z,plain";
        let lines: Vec<Cow<'_, str>> = std::str::from_utf8(log).unwrap().lines().map(Cow::Borrowed).collect();
        let frame = Frame::of(&lines);
        let expected = [
            ("Traceback:\n  \"File\"\nValueError, x".to_owned(), vec![2, 3, 4]),
            ("plain".to_owned(), vec![5]),
        ];
        assert_eq!(read(&frame, false, log), expected);
        assert_eq!(read(&frame, true, log)[1], expected[0]);
    }

    #[test]
    fn what_cannot_be_read_comes_back() {
        let lines = [
            Cow::Borrowed("timestamp,message"),
            Cow::Borrowed("2026-11-25T12:00:01Z,x"),
        ];
        let frame = Frame::of(&lines);
        assert_eq!(
            read(&frame, false, b"no, row, at all"),
            [("1 lines".to_owned(), vec![])]
        );
        let open = [b"\"".to_vec(), b"x\n".repeat(MOST_LINES - 2)].concat();
        assert_eq!(
            read(&frame, false, &open),
            [(format!("{} lines", MOST_LINES - 1), vec![])]
        );
    }
}
