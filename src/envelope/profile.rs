//! What the head of a source tells about its transports.
//!
//! Owns the decision on every prefix that a program could have written as well: it is a transport's if the source has
//! it throughout, or if known program lines follow it. The peeling of a line then depends on the profile and the line
//! alone, never on the lines that were fed before.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::blocks::{Blocks, Frame, Step};
use super::json::{self, Entry, Shape};
use super::paste::{Paste, Unwrapper, Wrap};
use super::prefix::Prefix;
use super::said::Said;
use super::{MAX_LAYERS, Place, ansi, cluster, container, grammar, journal, layers, order, stamps};

/// Lines of the sample that are looked at.
const MOST_LINES: usize = 4000;
/// Names that are remembered of one kind of prefix.
const MOST_NAMES: usize = 256;
/// Objects of one shape in a row that make it an envelope.
const NEIGHBOURS: usize = 3;
/// Lines of an excerpt whose margin one line of a program proves.
const EXCERPT: usize = 200;
/// Lines of a quote that a mail program may have wrapped between words; the reader of tracebacks joins those of more.
const QUOTE: usize = 12;
/// Known program lines behind a doubtful prefix that prove it.
const PROOFS: usize = 2;

/// Of a leading stamp with a month's name: who wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum MonthStamp {
    /// Unknown: only a line with an identifier and a pid is taken for syslog.
    #[default]
    Unknown,
    /// syslog or journald throughout, so an identifier without a pid is one.
    Syslog,
    /// `ts`: the stamp alone.
    Bare,
}

/// Names before a `|`.
#[derive(Debug, Clone, Default)]
pub(super) struct Piped {
    pub names: BTreeSet<String>,
    /// Where the `|` stands: compose pads the names, also those that the sample does not show.
    pub columns: BTreeSet<usize>,
}

/// What the head of a source tells.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    newest_first: bool,
    pub(super) paste: Paste,
    pub(super) frame: Frame,
    pub(super) json: Vec<Shape>,
    pub(super) piped: Piped,
    pub(super) labelled: bool,
    pub(super) bracketed: bool,
    pub(super) hosts: Vec<String>,
    pub(super) bare_iso: bool,
    pub(super) bracket_stamp: bool,
    pub(super) steps: bool,
    pub(super) month: MonthStamp,
    pub(super) unknown: Vec<Prefix>,
    unknown_sample: Option<String>,
}

impl Profile {
    /// Learns from up to the first 256 KiB of a source.
    pub fn of(sample: &[u8]) -> Self {
        let raw = || sample.split(|&b| b == b'\n').take(MOST_LINES);
        let clean = raw().map(|line| ansi::visible(super::without_returns(line)));
        let pasted: Vec<Cow<'_, str>> = clean.filter(|line| !line.trim().is_empty()).collect();
        let paste = Paste::of(&pasted);
        let lines: Vec<Cow<'_, str>> = pasted.into_iter().filter_map(|line| paste.undo(line)).collect();
        let mut profile = Self {
            paste,
            frame: Frame::of(&lines),
            ..Self::default()
        };
        let mut texts = profile.framed(&lines, raw());
        for _ in 0..MAX_LAYERS {
            let mut bare = Vec::with_capacity(texts.len());
            texts.into_iter().for_each(|text| profile.bare(text, &mut bare));
            texts = bare;
            if !profile.learn(&texts) {
                break;
            }
        }
        if !profile.json.is_empty() {
            let entries: Vec<Entry> = lines.iter().filter_map(|line| json::read(line)).collect();
            profile.newest_first |= order::are_newest_first(entries.iter().filter_map(Entry::stamp));
        }
        profile
    }

    /// The texts of the sample's records, and with them which way its time runs.
    fn framed<'a>(&mut self, lines: &'a [Cow<'_, str>], raw: impl Iterator<Item = &'a [u8]>) -> Vec<Cow<'a, str>> {
        if self.frame == Frame::Lines {
            self.newest_first = order::is_newest_first(lines.iter().map(|line| &**line));
            // A wrapped line that is read in reverse cannot be told from its continuation.
            let quote = self.paste.is_quote() && lines.len() <= QUOTE;
            let wrap = match self.newest_first {
                true => None,
                false => Wrap::of(lines).or_else(|| quote.then(|| Wrap::between_words(lines))?),
            };
            let Some(wrap) = wrap else {
                return lines.iter().map(|line| whole(Cow::Borrowed(line))).collect();
            };
            self.frame = Frame::Wrapped(wrap);
            let mut unwrapper = Unwrapper::default();
            let none = Self::default();
            let add = |line: &Cow<'_, str>| unwrapper.add(&none, wrap, Place::default(), line);
            return lines
                .iter()
                .flat_map(add)
                .flatten()
                .map(|(_, text)| whole(Cow::Owned(text)))
                .collect();
        }
        let mut blocks = Blocks::default();
        let mut entries = Vec::new();
        for line in raw {
            if let Step::Entry(entry, _) = blocks.add(&self.frame, false, Place::default(), line) {
                entries.push(entry);
            }
        }
        self.newest_first = order::are_newest_first(entries.iter().filter_map(|entry| entry.stamp()));
        entries
            .iter()
            .flat_map(|entry| entry.text.lines().map(|line| Cow::Owned(line.to_owned())))
            .collect()
    }

    /// Whether the source runs from the newest line to the oldest.
    pub fn newest_first(&self) -> bool {
        self.newest_first
    }

    /// Whether each line of the source stands for itself, so that it can be read without those before it.
    pub fn line_by_line(&self) -> bool {
        matches!(self.frame, Frame::Lines) && !self.newest_first()
    }

    /// Sentences for the report.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.newest_first {
            notes.push("the log is newest-first; it was read in reverse".to_owned());
        }
        self.paste.notes(&mut notes);
        match self.frame {
            Frame::Wrapped(wrap) => notes.push(format!(
                "the log is hard-wrapped at {} columns; its lines were joined again",
                wrap.width
            )),
            Frame::Csv(_) => notes.push("the log is a table; the column with its messages was read".to_owned()),
            Frame::Lines | Frame::Objects(_) | Frame::Export => {}
        }
        if let Some(sample) = self
            .unknown_sample
            .as_deref()
            .filter(|sample| !sample.trim().is_empty() && !container::stern(sample, &mut Said::default()))
        {
            notes.push(format!(
                "a prefix of unknown origin, such as `{}`, was taken off the lines",
                sample.trim_end()
            ));
        }
        notes
    }

    /// Adds the lines that are left of `text` without the layers known so far, but for blank ones.
    fn bare<'t>(&self, text: Cow<'t, str>, lines: &mut Vec<Cow<'t, str>>) {
        let rest = match text {
            Cow::Borrowed(text) => Cow::Borrowed(layers::peel(self, text, &mut Said::default())),
            Cow::Owned(text) => Cow::Owned(layers::peel(self, &text, &mut Said::default()).to_owned()),
        };
        let entry = if rest.starts_with('{') { json::read(&rest) } else { None };
        if let Some(entry) = entry.filter(|entry| self.json.contains(&entry.shape)) {
            let said = entry.text.lines().filter(|line| !line.trim().is_empty());
            lines.extend(said.map(|line| Cow::Owned(line.to_owned())));
        } else if !rest.trim().is_empty() {
            lines.push(rest);
        }
    }

    /// Looks for one more kind of layer; whether there was one.
    fn learn(&mut self, texts: &[Cow<'_, str>]) -> bool {
        !texts.is_empty()
            && (self.learn_json(texts)
                || self.learn_steps(texts)
                || self.learn_month(texts)
                || self.learn_iso(texts)
                || self.learn_bracket(texts)
                || self.learn_piped(texts)
                || self.learn_ranks(texts)
                || self.learn_hosts(texts)
                || self.learn_unknown(texts)
                || self.learn_margin(texts))
    }

    fn learn_json(&mut self, texts: &[Cow<'_, str>]) -> bool {
        let mut counts: Vec<(Shape, usize)> = Vec::new();
        let mut run: Option<(Shape, usize)> = None;
        let before = self.json.len();
        for text in texts {
            let shape = if text.starts_with('{') {
                json::read(text).map(|entry| entry.shape)
            } else {
                None
            };
            let Some(shape) = shape.filter(|shape| !self.json.contains(shape)) else {
                run = None;
                continue;
            };
            if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == shape) {
                *count += 1;
            } else if counts.len() < MOST_NAMES {
                counts.push((shape, 1));
            }
            let length = run.filter(|(last, _)| *last == shape).map_or(1, |(_, n)| n + 1);
            run = Some((shape, length));
            if length >= NEIGHBOURS {
                self.json.push(shape);
            }
        }
        let most = counts
            .iter()
            .filter(|(shape, n)| most(*n, texts) && !self.json.contains(shape))
            .map(|(shape, _)| *shape);
        let most: Vec<Shape> = most.collect();
        self.json.extend(most);
        self.json.len() > before
    }

    fn learn_steps(&mut self, texts: &[Cow<'_, str>]) -> bool {
        let found = texts
            .iter()
            .filter(|text| container::step(text, &mut Said::default()).is_some())
            .count();
        let new = !self.steps && nearly_all(found, texts);
        self.steps |= new;
        new
    }

    fn learn_month(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if self.month != MonthStamp::Unknown {
            return false;
        }
        let (mut stamped, mut hosted, mut proofs) = (0, 0, 0);
        for text in texts {
            let Some((_, rest)) = stamps::month_day(text) else {
                continue;
            };
            stamped += 1;
            hosted += usize::from(journal::host(text, true, &mut Said::default()).is_some());
            proofs += usize::from(rest.strip_prefix(' ').is_some_and(grammar::program));
        }
        // The lines with a pid were peeled before; what is left here are the doubtful ones.
        if stamped > 0 && hosted == stamped && proofs == 0 {
            self.month = MonthStamp::Syslog;
        } else if proofs > 0 || (hosted < stamped && most(stamped, texts)) {
            self.month = MonthStamp::Bare;
        }
        self.month != MonthStamp::Unknown
    }

    fn learn_iso(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if self.bare_iso {
            return false;
        }
        let (mut zoned, mut plain, mut proofs, mut own) = (0, 0, 0, 0);
        for text in texts.iter().filter(|text| !grammar::program(text)) {
            let Some((at, rest)) = stamps::iso(text) else { continue };
            let Some(rest) = layers::behind_stamp(rest) else {
                continue;
            };
            *if at.offset.is_some() { &mut zoned } else { &mut plain } += 1;
            proofs += usize::from(grammar::program(rest));
            // `2026-… INFO sglang_router_rs::server: …` is a program's own layout.
            own += usize::from(is_level(rest.trim_start()));
        }
        self.bare_iso = match zoned > plain {
            true => proofs > 0 || (most(zoned, texts) && own * 2 < zoned),
            false => proofs >= PROOFS && most(plain, texts),
        };
        self.bare_iso
    }

    /// `[2026-11-25 12:00:00] ` is SGLang's own header, and NCCL's, unless another program's follows it.
    fn learn_bracket(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if self.bracket_stamp {
            return false;
        }
        let stamped = texts.iter().filter_map(|text| stamps::bracketed(text));
        let behind: Vec<&str> = stamped.filter_map(|(_, rest)| layers::behind_stamp(rest)).collect();
        let proofs = behind.iter().filter(|rest| grammar::of_another_stamp(rest)).count();
        self.bracket_stamp =
            (proofs >= PROOFS && most(behind.len(), texts)) || is_proven_by_all(proofs, behind.len(), texts);
        self.bracket_stamp
    }

    fn learn_piped(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if !self.piped.names.is_empty() {
            return false;
        }
        let found: Vec<_> = texts.iter().filter_map(|text| container::piped(text)).collect();
        if found.is_empty() {
            return false;
        }
        let proofs = found.iter().filter(|(_, _, text)| grammar::program(text)).count();
        let numbered = found
            .iter()
            .all(|(name, column, _)| container::is_instance(name) && *column > name.len() + 1);
        // What compose itself prints of a container has no bar.
        let told = texts.iter().filter(|text| {
            let name = text.split_once(" exited with code ").map(|(name, _)| name);
            name.is_some_and(|name| found.iter().any(|(known, ..)| *known == name))
        });
        let lines = found.len() + told.count();
        let throughout = nearly_all(lines, texts) && (found.len() >= NEIGHBOURS || numbered);
        if proofs < PROOFS && !throughout && !is_proven_by_all(proofs, found.len(), texts) {
            return false;
        }
        for (name, column, text) in found {
            if throughout || grammar::program(text) {
                self.piped.names.insert(name.to_owned());
                self.piped.columns.insert(column);
            }
        }
        true
    }

    fn learn_ranks(&mut self, texts: &[Cow<'_, str>]) -> bool {
        let consistent = |parse: fn(&str) -> Option<(u32, &str)>| {
            let found: Vec<_> = texts.iter().filter_map(|text| parse(text)).collect();
            let proofs = found.iter().filter(|(_, text)| grammar::program(text)).count();
            // Numbers that only grow are the lines of a listing.
            let listing = found.len() > 1 && found.is_sorted_by(|(one, _), (next, _)| one < next);
            let proven = proofs >= PROOFS && (most(found.len(), texts) || proofs * 3 >= found.len());
            let ranks: BTreeSet<u32> = found.iter().map(|(rank, _)| *rank).collect();
            let throughout =
                nearly_all(found.len(), texts) && found.len() >= NEIGHBOURS && ranks.len() * 2 <= found.len();
            !listing && (proven || throughout || is_proven_by_all(proofs, found.len(), texts))
        };
        if !self.labelled && consistent(cluster::labelled) {
            self.labelled = true;
        } else if !self.bracketed && consistent(cluster::bracketed) {
            self.bracketed = true;
        } else {
            return false;
        }
        true
    }

    fn learn_hosts(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if !self.hosts.is_empty() {
            return false;
        }
        let mut hosts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (host, text) in texts.iter().filter_map(|text| cluster::host(text)) {
            let counts = hosts.entry(host).or_default();
            counts.0 += 1;
            counts.1 += usize::from(grammar::program(text));
        }
        let all: usize = hosts.values().map(|(n, _)| n).sum();
        let throughout = nearly_all(all, texts) && texts.len() >= 10 && hosts.len() * 4 <= all;
        let proofs = hosts.values().map(|(_, proofs)| proofs).sum();
        let alone = is_proven_by_all(proofs, all, texts);
        let proven = hosts
            .iter()
            .filter(|(_, (n, proofs))| *proofs >= PROOFS || (throughout && *n >= PROOFS) || (alone && *proofs > 0));
        let mut shapes: Vec<String> = proven.map(|(host, _)| host_shape(host)).collect();
        shapes.sort_unstable();
        shapes.dedup();
        shapes.truncate(MOST_NAMES);
        self.hosts = shapes;
        !self.hosts.is_empty()
    }

    fn learn_unknown(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if !self.unknown.is_empty() {
            return false;
        }
        let mut found: Vec<(Prefix, usize, &str)> = Vec::new();
        for text in texts {
            let Some((prefix, end)) = Prefix::before_program(text) else {
                continue;
            };
            if let Some((_, count, _)) = found.iter_mut().find(|(known, ..)| *known == prefix) {
                *count += 1;
            } else if found.len() < MOST_NAMES {
                found.push((prefix, 1, text.split_at(end).0));
            }
        }
        // Indented tracebacks are quoted ones as a rule; an indented paste has no program line at its margin.
        let margin = texts
            .iter()
            .any(|text| grammar::program(text) || text.starts_with(|c: char| c.is_alphanumeric()));
        found.retain(|(_, proofs, sample)| *proofs >= PROOFS && !(margin && sample.trim().is_empty()));
        let covered = texts
            .iter()
            .filter(|text| found.iter().any(|(prefix, ..)| prefix.strip(text).is_some()))
            .count();
        if found.is_empty() || !most(covered, texts) {
            return false;
        }
        self.unknown_sample = found
            .iter()
            .max_by_key(|(_, n, _)| *n)
            .map(|(_, _, sample)| (*sample).to_owned());
        self.unknown = found.into_iter().map(|(prefix, ..)| prefix).collect();
        true
    }

    /// An excerpt may be one line, with a number, a bullet or the name of its file in front.
    fn learn_margin(&mut self, texts: &[Cow<'_, str>]) -> bool {
        if !self.unknown.is_empty() || texts.len() > EXCERPT {
            return false;
        }
        let found = texts.iter().find_map(|text| Prefix::margin(text));
        let throughout = |prefix: &Prefix| texts.iter().all(|text| prefix.strip(text).is_some());
        let Some((prefix, sample)) = found.filter(|(prefix, _)| throughout(prefix)) else {
            return false;
        };
        self.unknown_sample = Some(sample.to_owned());
        self.unknown = vec![prefix];
        true
    }
}

/// A line of the sample with its colours' escapes resolved and no blanks behind.
fn whole(line: Cow<'_, str>) -> Cow<'_, str> {
    match ansi::unspelled(line) {
        Cow::Borrowed(line) => Cow::Borrowed(line.trim_end()),
        Cow::Owned(mut line) => {
            line.truncate(line.trim_end().len());
            Cow::Owned(line)
        }
    }
}

/// Nodes are numbered; a node that the sample does not show has the name of its peers but for the digits.
pub(super) fn host_shape(host: &str) -> String {
    let mut shape = String::with_capacity(host.len());
    for c in host.chars() {
        match c {
            '0'..='9' if shape.ends_with('#') => {}
            '0'..='9' => shape.push('#'),
            c => shape.push(c),
        }
    }
    shape
}

fn most<T>(n: usize, all: &[T]) -> bool {
    n * 2 > all.len()
}

fn nearly_all<T>(n: usize, all: &[T]) -> bool {
    n * 10 > all.len() * 8
}

/// In a source of a few lines that all have a prefix, one program line behind it is proof enough.
fn is_proven_by_all(proofs: usize, found: usize, texts: &[Cow<'_, str>]) -> bool {
    proofs > 0 && found == texts.len()
}

fn is_level(s: &str) -> bool {
    ["INFO", "WARN", "ERROR", "DEBUG", "TRACE"]
        .iter()
        .any(|level| s.starts_with(level))
        && !grammar::program(s)
}
