//! Takes off a line what its transport put round it, and keeps what the transport said.
//!
//! Owns everything between the bytes of a line and the program's own text: control sequences, progress bars, stamps
//! and names of collectors, Ray's driver prefix, JSON lines. Layers nest and are peeled one by one. It never looks at
//! what the program says: vLLM's process prefix, logger headers and tracebacks are the dialects' work.

mod ansi;
mod blocks;
mod carriage;
mod cluster;
mod container;
mod csv;
mod fields;
mod grammar;
mod joins;
mod journal;
mod json;
mod layers;
mod margin;
mod order;
mod paste;
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

use blocks::{Blocks, Frame, Step};
use joins::{Joins, Part};
use json::Entry;
use paste::Unwrapper;
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
#[derive(Debug, Clone, Copy, Default)]
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
    blocks: Blocks,
    unwrapper: Unwrapper,
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
            blocks: Blocks::default(),
            unwrapper: Unwrapper::default(),
            writer: None,
            given: 0,
        }
    }

    /// Feeds one line without its `\n`; calls `out` for every record in it. The lines of a source that is newest-first
    /// are fed last line first.
    pub fn line(&mut self, no: u64, byte: u64, bytes: &[u8], out: &mut dyn FnMut(Record<'_>)) {
        let at = Place { line: no, byte };
        let bytes = without_returns(bytes);
        match self.profile.frame {
            Frame::Lines => self.plain(at, bytes, out),
            Frame::Wrapped(wrap) => {
                let clean = self.profile.paste.undo(ansi::visible(bytes));
                let Some(line) = clean else { return };
                for (at, line) in self.unwrapper.add(&self.profile, wrap, at, &line).into_iter().flatten() {
                    self.rejoined(at, line, out);
                }
            }
            Frame::Csv(_) | Frame::Objects(_) | Frame::Export => {
                let step = self
                    .blocks
                    .add(&self.profile.frame, self.profile.newest_first(), at, bytes);
                self.block(step, out);
            }
        }
    }

    /// Whether no line waits for its end.
    pub fn is_idle(&self) -> bool {
        self.profile.frame == Frame::Lines && self.joins.is_empty()
    }

    /// Gives what still waits for its end.
    pub fn finish(&mut self, out: &mut dyn FnMut(Record<'_>)) {
        if let Some((at, line)) = self.unwrapper.end() {
            self.rejoined(at, line, out);
        }
        let step = self.blocks.end(&self.profile.frame, self.profile.newest_first());
        self.block(step, out);
        for part in self.joins.drain() {
            self.torn(&part, out);
        }
    }

    fn plain(&mut self, at: Place, bytes: &[u8], out: Out<'_>) {
        if let Some(line) = self.profile.paste.undo(ansi::clean(&carriage::latest(bytes))) {
            let line = line.trim_end_matches('\r');
            self.unwrap(at, line, line, Said::default(), 0, out);
        }
    }

    fn rejoined(&mut self, at: Place, line: String, out: Out<'_>) {
        // Only now: a terminal that shows escapes spelled out has counted them when it wrapped the line.
        let line = ansi::unspelled(line.into());
        self.unwrap(at, &line, &line, Said::default(), 0, out);
    }

    fn block(&mut self, step: Step, out: Out<'_>) {
        match step {
            Step::More => {}
            Step::Entry(entry, places) => self.entry(&places, None, &entry, Said::default(), 0, out),
            Step::Lines(lines) => {
                for (at, line) in lines {
                    self.plain(at, &line, out);
                }
            }
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
                return self.entry(&[at], Some(shown), &entry, said, depth, out);
            }
        }
        if let Some((at, whole)) = self.joined(at, rest, &said) {
            return self.unwrap(at, &whole, &whole, said, depth + 1, out);
        }
        if memchr::memchr(b'\r', rest.as_bytes()).is_some() || carriage::is_glued(rest) {
            let head = text.strip_suffix(rest).unwrap_or_default();
            return self.pieces(at, head, rest, &said, out);
        }
        self.give(at, shown, rest, &said, out);
    }

    /// The lines of a structured record, which stand at `places`; the last of these is good for all that follow.
    fn entry<'t>(
        &mut self,
        places: &[Place],
        shown: Option<&str>,
        entry: &'t Entry,
        mut said: Said<'t>,
        depth: usize,
        out: Out<'_>,
    ) {
        let Some(&first) = places.first() else { return };
        entry.say(&mut said);
        let text = entry.text.as_str();
        if entry.partial {
            return self.wait(first, text, &said, out);
        }
        let joined = self.joined(first, text, &said);
        let (first, text) = joined.as_ref().map_or((first, text), |(at, text)| (*at, text));
        let text = text.strip_suffix('\n').unwrap_or(text);
        // Of an object that holds many lines, the one that matters is shown, not the start of the object.
        let shown = shown.filter(|_| !text.contains('\n'));
        for (i, line) in text.split('\n').enumerate() {
            let at = if i == 0 {
                first
            } else {
                places.get(i).or(places.last()).copied().unwrap_or(first)
            };
            let line = match entry.prefix.as_str() {
                "" => Cow::Borrowed(line),
                prefix => Cow::Owned(format!("{prefix}{line}")),
            };
            // A JSON string can hold any character, whatever the bytes of the line were.
            let line = carriage::latest(without_returns(line.as_bytes()));
            let line = ansi::clean(&line);
            self.unwrap(at, shown.unwrap_or(&line), &line, said.clone(), depth + 1, out);
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

/// A line without the carriage returns at its end.
fn without_returns(line: &[u8]) -> &[u8] {
    let mut line = line;
    while let Some(rest) = line.strip_suffix(b"\r") {
        line = rest;
    }
    line
}

/// The longest start of `text` of at most `most` bytes.
fn cut(text: &str, most: usize) -> &str {
    text.split_at(text.floor_char_boundary(most)).0
}
