//! Redaction: a report without what must not be shared.
//!
//! Owns which texts of a [`Report`] are replaced and by what. Works on the model, before any view renders it, so
//! that every format is equally safe. Figures, versions and the paths of installed packages stay readable. Never
//! judges, and never touches ids and phases: those are words of the catalog, not of the log.

mod identity;
mod names;
mod secrets;
mod walk;

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use crate::report::model::{Redaction, Replaced, Report};
use crate::report::text;
use identity::Known;
pub use names::{Kind, MapError, Names};
use walk::Field;

/// Columns that a headline has at most.
const HEADLINE_WIDTH: usize = 120;

/// How much is taken out. Each level includes the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// Tokens, passwords, keys and credentials. The least that there is.
    #[default]
    Secrets,
    /// Also who and where: hosts, addresses, users, home folders, e-mail addresses, buckets.
    Identity,
    /// Also names of models, and what custom patterns match.
    All,
}

impl Level {
    /// The name of the level in reports and on the command line.
    pub fn id(self) -> &'static str {
        match self {
            Self::Secrets => "secrets",
            Self::Identity => "identity",
            Self::All => "all",
        }
    }
}

/// A stretch of a text that has to go.
struct Span {
    start: usize,
    end: usize,
    kind: Kind,
}

/// Redacts reports. One redactor uses the same pseudonyms in all of them.
#[derive(Debug)]
pub struct Redactor {
    level: Level,
    custom: Vec<Regex>,
    names: Names,
}

impl Redactor {
    /// A redactor of the given level. Custom patterns count at [`Level::All`] only.
    pub fn new(level: Level, custom: Vec<Regex>, names: Names) -> Self {
        let custom = if level == Level::All { custom } else { Vec::new() };
        Self { level, custom, names }
    }

    /// The pseudonyms given so far.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Texts that belong together, without what the level forbids.
    pub fn texts<const N: usize>(&mut self, texts: [&str; N]) -> [String; N] {
        let mut known = Known::default();
        let secrets = texts.map(|text| secrets::find(&Field::Text, text));
        for (text, secrets) in texts.iter().zip(&secrets) {
            known.learn(self.level, &Field::Text, text, secrets);
        }
        let (known, mut secrets) = (known.compile(), secrets.into_iter());
        texts.map(|text| {
            let secrets = secrets.next().unwrap_or_default();
            self.clean(&known, text, secrets, &mut Tally::default())
                .unwrap_or_else(|| text.to_owned())
        })
    }

    /// Replaces what the level forbids in every text of the report, and notes in it what was done.
    pub fn apply(&mut self, report: &mut Report) {
        // What a name is, one place tells (a host in a field of its own); it is then known in all others.
        let (mut known, mut found) = (Known::default(), Vec::new());
        walk::texts(report, &mut |field, text| {
            let secrets = secrets::find(&field, text);
            known.learn(self.level, &field, text, &secrets);
            found.push(secrets);
        });
        // The second walk meets the same texts in the same order.
        let (known, mut found) = (known.compile(), found.into_iter());
        let mut tally = Tally::default();
        walk::texts(report, &mut |_, text| {
            let secrets = found.next().unwrap_or_default();
            if let Some(clean) = self.clean(&known, text, secrets, &mut tally) {
                *text = clean;
            }
        });
        report.headline = text::clip(&report.headline, HEADLINE_WIDTH).into_owned();
        report.redaction = Some(Redaction {
            level: self.level.id().to_owned(),
            replaced: tally.told(),
        });
    }

    /// The text, which has secrets there, without what the level forbids, or nothing where nothing was found.
    fn clean(
        &mut self,
        known: &identity::Compiled,
        text: &str,
        secrets: Vec<Span>,
        tally: &mut Tally,
    ) -> Option<String> {
        let mut spans = secrets;
        known.find(text, &mut spans);
        if self.level >= Level::Identity {
            identity::find(text, &mut spans);
        }
        for pattern in &self.custom {
            spans.extend(pattern.find_iter(text).filter(|m| !m.is_empty()).map(|m| Span {
                start: m.start(),
                end: m.end(),
                kind: Kind::Custom,
            }));
        }
        if spans.is_empty() {
            return None;
        }
        // The wider of two spans that begin together wins, and a secret wins over everything it overlaps.
        spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end), s.kind));
        let secret: Vec<(usize, usize)> = merged(&spans);
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for span in &spans {
            let hidden = span.kind != Kind::Secret && secret.iter().any(|(s, e)| span.start < *e && span.end > *s);
            let end = match span.kind {
                Kind::Secret => secret.iter().find(|(s, _)| *s == span.start).map(|(_, e)| *e),
                _ => Some(span.end),
            };
            let Some(end) = end.filter(|_| !hidden && span.start >= done) else {
                continue;
            };
            let (Some(before), Some(original)) = (text.get(done..span.start), text.get(span.start..end)) else {
                continue;
            };
            out.push_str(before);
            let name = self.names.pseudonym(span.kind, original);
            tally.count(span.kind, &name);
            out.push_str(&name);
            done = end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Some(out)
    }
}

/// The secrets among sorted spans, those that overlap made one.
fn merged(spans: &[Span]) -> Vec<(usize, usize)> {
    let mut out: Vec<(usize, usize)> = Vec::new();
    for span in spans.iter().filter(|s| s.kind == Kind::Secret) {
        match out.last_mut() {
            Some((_, end)) if span.start < *end => *end = (*end).max(span.end),
            _ => out.push((span.start, span.end)),
        }
    }
    out
}

/// What was replaced in one report.
#[derive(Default)]
struct Tally {
    of: BTreeMap<Kind, (BTreeSet<String>, u64)>,
}

impl Tally {
    fn count(&mut self, kind: Kind, name: &str) {
        let (values, places) = self.of.entry(kind).or_default();
        values.insert(name.to_owned());
        *places += 1;
    }

    fn told(self) -> Vec<Replaced> {
        self.of
            .into_iter()
            .map(|(kind, (values, places))| Replaced {
                kind: kind.id().to_owned(),
                values: values.len() as u64,
                places,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
