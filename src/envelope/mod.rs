//! Takes off a line what its transport put round it, and keeps what the transport said.
//!
//! Owns everything between the bytes of a line and the program's own text: control sequences, progress bars, stamps
//! and names of collectors, Ray's driver prefix, JSON lines. Layers nest and are peeled one by one. It never looks at
//! what the program says: vLLM's process prefix, logger headers and tracebacks are the dialects' work.

mod ansi;
mod carriage;
mod cluster;
mod container;
mod grammar;
mod joins;
mod journal;
mod json;
mod layers;
mod order;
mod prefix;
mod profile;
mod ray;
mod said;
mod stamps;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;

use crate::record::Record;

use joins::{Joins, Part};
use json::Entry;
pub use profile::Profile;
use ray::Token;
use said::{RaySaid, Said, Tags};

/// Layers that are peeled off one line.
const MAX_LAYERS: usize = 6;

/// Bytes of a line that a person is shown.
const SHOWN: usize = 4096;

/// Bytes kept of the name of an actor.
const LONGEST_NAME: usize = 200;

/// Where records go.
type Out<'a> = &'a mut dyn FnMut(Record<'_>);

/// Where a line stands.
#[derive(Debug, Clone, Copy)]
struct Place {
    line: u64,
    byte: u64,
}

/// Peels the lines of one source, in the order in which they were written.
#[derive(Debug, Clone)]
pub struct Peeler {
    profile: Profile,
    tags: Tags,
    joins: Joins,
    /// The actor or task that Ray's tokens name as the writer of the source.
    writer: Option<Arc<str>>,
    /// The last line that a record was given of.
    given: u64,
}

impl Peeler {
    /// A peeler for the source that `profile` was made of.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            tags: Tags::default(),
            joins: Joins::default(),
            writer: None,
            given: 0,
        }
    }

    /// Feeds one line without its `\n`; calls `out` for every record in it.
    pub fn line(&mut self, no: u64, byte: u64, bytes: &[u8], out: &mut dyn FnMut(Record<'_>)) {
        let end = bytes.iter().rposition(|&b| b != b'\r').map_or(0, |last| last + 1);
        let clean = ansi::clean(&bytes[..end]);
        let line = clean.trim_end_matches('\r');
        self.unwrap(Place { line: no, byte }, line, line, Said::default(), 0, out);
    }

    /// Gives what still waits for its end.
    pub fn finish(&mut self, out: &mut dyn FnMut(Record<'_>)) {
        for part in self.joins.drain() {
            self.torn(&part, out);
        }
    }

    /// Peels `text`, which is a line or what an outer layer of it held.
    fn unwrap<'t>(&mut self, at: Place, shown: &str, text: &'t str, mut said: Said<'t>, depth: usize, out: Out<'_>) {
        let rest = layers::peel(&self.profile, text, &mut said);
        if said.partial {
            return self.wait(at, rest, &said, out);
        }
        if rest.starts_with('{') && depth < MAX_LAYERS && !self.profile.json.is_empty() {
            let entry = json::read(rest).filter(|entry| self.profile.json.contains(&entry.shape));
            if let Some(entry) = entry {
                return self.entry(at, shown, &entry, said, depth, out);
            }
        }
        if let Some((at, whole)) = self.joined(at, rest, &said) {
            return self.unwrap(at, &whole, &whole, said, depth + 1, out);
        }
        if memchr::memchr(b'\r', rest.as_bytes()).is_some() || carriage::is_glued(rest) {
            let head = &text[..text.len() - rest.len()];
            return self.pieces(at, head, rest, &said, out);
        }
        self.give(at, shown, rest, &said, out);
    }

    /// The lines of a structured record.
    fn entry<'t>(&mut self, at: Place, shown: &str, entry: &Entry, said: Said<'t>, depth: usize, out: Out<'_>) {
        let mut said: Said<'_> = said;
        entry.say(&mut said);
        let text = entry.text.as_str();
        if entry.partial {
            return self.wait(at, text, &said, out);
        }
        let joined = self.joined(at, text, &said);
        let (at, text) = joined.as_ref().map_or((at, text), |(at, text)| (*at, text));
        let text = text.strip_suffix('\n').unwrap_or(text);
        for line in text.split('\n') {
            let line = match entry.prefix.as_str() {
                "" => Cow::Borrowed(line),
                prefix => Cow::Owned(format!("{prefix}{line}")),
            };
            // A JSON string can hold any character, whatever the bytes of the line were.
            let line = ansi::clean(line.as_bytes());
            let line = line.trim_end_matches('\r');
            // Of an object that holds many lines, the one that matters is shown, not the start of the object.
            let shown = if text.contains('\n') { line } else { shown };
            self.unwrap(at, shown, line, said.clone(), depth + 1, out);
        }
    }

    /// The records of a line with progress bars, or with several records in it.
    fn pieces(&mut self, at: Place, head: &str, rest: &str, said: &Said<'_>, out: Out<'_>) {
        // vLLM puts its process prefix before the first state of a bar only.
        let mut process = "";
        for (i, piece) in carriage::pieces(rest).into_iter().enumerate() {
            if i == 0 && carriage::is_process(piece) {
                process = piece;
            } else {
                let bar = carriage::is_bar(piece);
                let text = if bar && !process.is_empty() {
                    format!("{process}{piece}").into()
                } else {
                    Cow::Borrowed(piece)
                };
                let shown = if bar {
                    format!("{head}{text}").into()
                } else {
                    Cow::Borrowed(&*text)
                };
                let mut said = said.clone();
                let text = layers::peel(&self.profile, &text, &mut said);
                self.give(at, &shown, text, &said, out);
            }
        }
    }

    /// Keeps the beginning of a line that goes on in a later one.
    fn wait(&mut self, at: Place, text: &str, said: &Said<'_>, out: Out<'_>) {
        let tag = self.tags.of(said);
        if let Some(part) = self.joins.add(at, text, tag, said.stamp.clone()) {
            self.torn(&part, out);
        }
    }

    /// The whole of the line that `text` ends, if its beginning waits.
    fn joined(&mut self, at: Place, text: &str, said: &Said<'_>) -> Option<(Place, String)> {
        if self.joins.is_empty() {
            return None;
        }
        let tag = self.tags.of(said);
        let part = self.joins.end(text, &tag)?;
        // Records come in the order of the lines: a line that others have overtaken counts where it ends.
        Some((if part.place.line < self.given { at } else { part.place }, part.text))
    }

    /// Gives the beginning of a line whose end is lost.
    fn torn(&mut self, part: &Part, out: Out<'_>) {
        let mut said = Said::of(&part.tag, part.stamp.clone());
        let text = layers::peel(&self.profile, &part.text, &mut said);
        let at = Place {
            line: part.place.line.max(self.given),
            ..part.place
        };
        self.give(at, &part.text, text, &said, out);
    }

    fn give(&mut self, at: Place, shown: &str, text: &str, said: &Said<'_>, out: Out<'_>) {
        match ray::token(text) {
            Some(Token::Name(name)) => {
                self.writer = Some(cut(name, LONGEST_NAME).into());
                return;
            }
            Some(Token::Other) => return,
            None => {}
        }
        let (text, repeated) = ray::repeated(text);
        let tag = match &self.writer {
            Some(name) if said.ray.is_none() => self.tags.of(&Said {
                ray: Some(RaySaid {
                    name,
                    pid: None,
                    ip: None,
                }),
                ..said.clone()
            }),
            _ => self.tags.of(said),
        };
        self.given = at.line;
        out(Record {
            line: at.line,
            byte: at.byte,
            text: Cow::Borrowed(text),
            shown: Cow::Borrowed(cut(shown, SHOWN)),
            tag,
            stamp: said.stamp.clone(),
            repeated,
        });
    }
}

/// The longest start of `text` of at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
