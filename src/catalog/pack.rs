//! Rule files that users add: parsed one by one, joined with the built-in rules.
//!
//! Owns the text of each file, what silencing and extending mean, and the place in the text that a fault points at.
//! Never opens a file and never judges a rule (see `pack`).

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, Severity, SourceCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::de::{DeTable, DeValue};

use super::CatalogError;
use super::schema::DataFile;

/// A rule file with its text.
#[derive(Debug, Clone)]
pub struct RuleFile {
    /// Path as given.
    pub name: String,
    /// What stands in it.
    pub text: String,
    /// What it means.
    pub rules: DataFile,
}

/// A part of a rule file: an entry, a key of it, an element of that key's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// `signature`, `cause`, `remedy`, `extend.signature`, …, or `silence`.
    pub table: &'a str,
    /// Id of the entry; of `silence`, the id named there.
    pub id: &'a str,
    /// Key of the entry; empty for its `id`.
    pub key: &'a str,
    /// Element of the key's list.
    pub index: Option<usize>,
}

impl<'a> Part<'a> {
    /// The id of an entry.
    pub fn entry(table: &'a str, id: &'a str) -> Self {
        Self {
            table,
            id,
            key: "",
            index: None,
        }
    }

    /// A key of the entry.
    pub fn key(self, key: &'a str) -> Self {
        Self { key, ..self }
    }

    /// An element of the key's list.
    pub fn at(self, index: usize) -> Self {
        Self {
            index: Some(index),
            ..self
        }
    }
}

/// What is wrong at one place of a rule file; shown with the line.
#[derive(Debug, Clone)]
pub struct RuleFault {
    /// The fault, a sentence without a full stop.
    pub text: String,
    /// What to do; empty for nothing more.
    pub help: String,
    /// What the marked place is.
    pub label: String,
    /// Whether the rule still works.
    pub warning: bool,
    code: NamedSource<Arc<str>>,
    span: Range<usize>,
}

impl RuleFault {
    /// The same as a warning: the rule still works.
    pub fn as_warning(self) -> Self {
        Self { warning: true, ..self }
    }
}

impl fmt::Display for RuleFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for RuleFault {}

impl Diagnostic for RuleFault {
    fn severity(&self) -> Option<Severity> {
        Some(if self.warning {
            Severity::Warning
        } else {
            Severity::Error
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = (!self.label.is_empty()).then(|| self.label.clone());
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(
            label,
            self.span.clone(),
        ))))
    }
}

impl RuleFile {
    /// Parses a rule file.
    ///
    /// # Errors
    /// When the text is no TOML, a key is unknown or one is missing.
    pub fn parse(name: &str, text: &str) -> Result<Self, CatalogError> {
        match toml::from_str(text) {
            Ok(rules) => Ok(Self {
                name: name.to_owned(),
                text: text.to_owned(),
                rules,
            }),
            Err(e) => Err(RuleFault {
                text: e.message().trim_end().replace('\n', ", "),
                help: "`coroner catalog schema` prints the JSON Schema of rule files".to_owned(),
                label: "here".to_owned(),
                warning: false,
                code: NamedSource::new(name, Arc::from(text)),
                span: e.span().unwrap_or(0..0),
            }
            .into()),
        }
    }

    /// A fault at a part of this file.
    pub fn fault(&self, part: Part<'_>, text: impl Into<String>, help: impl Into<String>) -> RuleFault {
        RuleFault {
            text: text.into(),
            help: help.into(),
            label: String::new(),
            warning: false,
            code: NamedSource::new(&self.name, Arc::from(self.text.as_str())),
            span: self.span(part).unwrap_or(0..0),
        }
    }

    /// A fault for each string that holds a mark, but for comments.
    pub fn marked(&self, mark: &str) -> impl Iterator<Item = RuleFault> {
        let mut spans = Vec::new();
        if let Ok(root) = DeTable::parse(&self.text) {
            root.get_ref()
                .values()
                .for_each(|value| holding(value, mark, &mut spans));
        }
        spans.sort_by_key(|span| span.start);
        spans.into_iter().map(|span| RuleFault {
            span,
            ..self.fault(Part::entry("", ""), "", "")
        })
    }

    /// Where a part stands in the text, bytes; the entry's id where there is no such key.
    fn span(&self, part: Part<'_>) -> Option<Range<usize>> {
        let root = DeTable::parse(&self.text).ok()?;
        let root = root.get_ref();
        if part.table == "silence" {
            let ids = root.get("silence")?.get_ref().as_array()?;
            return ids
                .iter()
                .find(|id| id.get_ref().as_str() == Some(part.id))
                .map(toml::Spanned::span);
        }
        let entries = match part.table.split_once('.') {
            Some((outer, inner)) => root.get(outer)?.get_ref().as_table()?.get(inner)?,
            None => root.get(part.table)?,
        };
        let id = |entry: &DeValue<'_>| Some(entry.as_table()?.get("id")?.get_ref().as_str()? == part.id);
        let entry = entries
            .get_ref()
            .as_array()?
            .iter()
            .find(|entry| id(entry.get_ref()) == Some(true))?
            .get_ref()
            .as_table()?;
        let name = entry.get("id").map(toml::Spanned::span);
        let Some(value) = entry.get(part.key) else { return name };
        let element = part.index.and_then(|n| value.get_ref().as_array()?.get(n));
        Some(element.map_or_else(|| value.span(), toml::Spanned::span))
    }
}

/// The places of strings that hold a mark.
fn holding(value: &toml::Spanned<DeValue<'_>>, mark: &str, spans: &mut Vec<Range<usize>>) {
    match value.get_ref() {
        DeValue::String(text) if text.contains(mark) => spans.push(value.span()),
        DeValue::Array(list) => list.iter().for_each(|value| holding(value, mark, spans)),
        DeValue::Table(table) => table.values().for_each(|value| holding(value, mark, spans)),
        _ => {}
    }
}

/// Adds rule files to the built-in definitions: first what they silence, then what they extend, then their own.
/// Returns how many signatures are added, which stand at the end.
pub(super) fn join(all: &mut DataFile, files: &[RuleFile]) -> Result<usize, CatalogError> {
    let built_in: Vec<String> = ids(all).map(ToOwned::to_owned).collect();
    for file in files {
        for id in &file.rules.silence {
            let before = all.signature.len() + all.remedy.len();
            all.signature.retain(|s| s.id != *id);
            all.remedy.retain(|r| r.id != *id);
            if all.signature.len() + all.remedy.len() == before {
                let text = format!("there is no built-in signature or remedy `{id}` to silence");
                let part = Part::entry("silence", id);
                return Err(file.fault(part, text, near(&built_in, id)).into());
            }
        }
        let more = &file.rules.extend;
        extend(&mut all.signature, &more.signature, |s| &s.id)
            .map_err(|(id, text)| ("extend.signature", id, text))
            .and_then(|()| extend(&mut all.cause, &more.cause, |c| &c.id).map_err(|(i, t)| ("extend.cause", i, t)))
            .and_then(|()| extend(&mut all.remedy, &more.remedy, |r| &r.id).map_err(|(i, t)| ("extend.remedy", i, t)))
            .map_err(|(table, id, text)| file.fault(Part::entry(table, &id), text, near(&built_in, &id)))?;
    }
    let before = all.signature.len();
    for file in files {
        for (table, id) in entries(&file.rules) {
            if built_in.iter().any(|known| known == id) && ids(all).any(|known| known == id) {
                let text = format!("`{id}` is built in");
                let help = "give the entry another id; [[extend.signature]], [[extend.cause]] and [[extend.remedy]] \
                            change a built-in one, and `silence = [ID]` takes one out of force";
                return Err(file.fault(Part::entry(table, id), text, help).into());
            }
        }
        all.take_entries(file.rules.clone());
    }
    Ok(all.signature.len() - before)
}

/// The file that holds, or extends, the entry of an id, and where.
pub fn blamed<'f, 'a>(files: &'f [RuleFile], table: &'a str, id: &'a str) -> Option<(&'f RuleFile, Part<'a>)> {
    let extended = match table {
        "signature" => "extend.signature",
        "cause" => "extend.cause",
        _ => "extend.remedy",
    };
    let part = |table| Part::entry(table, id);
    let find = |table| {
        files
            .iter()
            .find(|f| f.span(part(table)).is_some())
            .map(|f| (f, part(table)))
    };
    find(table).or_else(|| find(extended))
}

/// Table and id of the entries that have one.
pub fn entries(rules: &DataFile) -> impl Iterator<Item = (&'static str, &str)> {
    let signatures = rules.signature.iter().map(|s| ("signature", s.id.as_str()));
    let causes = rules.cause.iter().map(|c| ("cause", c.id.as_str()));
    let remedies = rules.remedy.iter().map(|r| ("remedy", r.id.as_str()));
    signatures.chain(causes).chain(remedies)
}

fn ids(rules: &DataFile) -> impl Iterator<Item = &str> {
    entries(rules).map(|(_, id)| id)
}

fn near(known: &[String], id: &str) -> String {
    let best = known
        .iter()
        .map(|k| (strsim::normalized_damerau_levenshtein(k, id), k))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((score, id)) if score > 0.6 => format!("do you mean `{id}`?"),
        _ => "`coroner explain --all` shows what there is".to_owned(),
    }
}

/// Joins parts with the entries of their ids; what is wrong, with the id, where that fails.
fn extend<T: Serialize + DeserializeOwned>(
    entries: &mut [T],
    parts: &[toml::Table],
    id_of: fn(&T) -> &str,
) -> Result<(), (String, String)> {
    for part in parts {
        let id = part.get("id").and_then(toml::Value::as_str).unwrap_or_default();
        let fault = |text: String| (id.to_owned(), text);
        let Some(entry) = entries.iter_mut().find(|entry| id_of(entry) == id) else {
            return Err(fault(format!("there is nothing called `{id}` to extend")));
        };
        let mut whole = toml::Table::try_from(&*entry).map_err(|e| fault(e.to_string()))?;
        add(&mut whole, part);
        *entry = whole
            .try_into()
            .map_err(|e: toml::de::Error| fault(e.message().replace('\n', ", ")))?;
    }
    Ok(())
}

/// A list is added to its list, a table joined with its table; anything else replaces what is there.
fn add(whole: &mut toml::Table, part: &toml::Table) {
    for (key, value) in part {
        match (whole.get_mut(key), value) {
            (Some(toml::Value::Array(list)), toml::Value::Array(more)) => list.extend(more.iter().cloned()),
            (Some(toml::Value::Table(table)), toml::Value::Table(more)) => add(table, more),
            _ => {
                whole.insert(key.clone(), value.clone());
            }
        }
    }
}
