//! Whether a rule pack keeps its word: `coroner catalog check`.
//!
//! Owns the order of the questions and what is a warning: samples, ids, words, places left to fill in, and patterns
//! that match too much or cost too much. Never changes a rule.

use super::words;
use crate::catalog::matcher::{Signature, Text};
use crate::catalog::pack::{Part, RuleFault, RuleFile, blamed, entries};
use crate::catalog::schema::{Role, Site};
use crate::catalog::{Catalog, check};
use crate::dialect::header;

/// Marks a place that a draft leaves to fill in.
pub const TODO: &str = "TODO";

/// Lines of launches that served, beside the samples of built-in signatures that tell of no failure.
const HEALTHY: &str = include_str!("healthy.log");
/// Of so many healthy lines one may hold a literal; where more do, the literal filters nothing.
const RARE: usize = 10;

/// All faults of the files, by file and place; warnings are among them. `catalog` holds the built-in rules and these.
pub fn check(catalog: &Catalog, files: &[RuleFile]) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    let healthy = Healthy::of(catalog);
    for (n, file) in files.iter().enumerate() {
        faults.extend(file.marked(TODO).map(|mut fault| {
            fault.text = "this is still to be filled in".to_owned();
            fault
        }));
        faults.extend(twice(files, n));
        faults.extend(words::faults(catalog, file));
        for def in &file.rules.signature {
            let signature = catalog.signatures().find(|s| s.def.id == def.id);
            faults.extend(signature.map(|s| breadth(file, s, &healthy)).into_iter().flatten());
        }
        faults.extend(idle(catalog, file));
    }
    faults.extend(samples(catalog, files));
    faults
}

/// Entries whose id stands in an earlier place too.
fn twice(files: &[RuleFile], n: usize) -> Vec<RuleFault> {
    let Some(file) = files.get(n) else { return Vec::new() };
    let own: Vec<(&str, &str)> = entries(&file.rules).collect();
    let before = |i: usize, entry: &(&str, &str)| {
        let earlier = files.iter().take(n).any(|f| entries(&f.rules).any(|e| e == *entry));
        earlier || own.iter().take(i).any(|e| e == entry)
    };
    let twice = own.iter().enumerate().filter(|(i, entry)| before(*i, entry));
    twice
        .map(|(_, (table, id))| file.fault(Part::entry(table, id), format!("`{id}` stands twice"), ""))
        .collect()
}

/// Causes that no line leads to, or that have no remedy.
fn idle(catalog: &Catalog, file: &RuleFile) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    for cause in &file.rules.cause {
        let family = format!("{}.*", cause.id.split('.').next().unwrap_or_default());
        let means = |id: &str| id == cause.id || id == family;
        let mut warn = |text: &str, help: &str| {
            let fault = file.fault(Part::entry("cause", &cause.id), text, help);
            faults.push(fault.as_warning());
        };
        if !catalog.signatures().any(|s| s.def.cause.as_deref().is_some_and(means)) {
            warn("no signature leads to this cause", "");
        }
        if !catalog.remedies().any(|r| r.applies.keys().any(|id| means(id))) {
            warn(
                "no remedy is for this cause",
                "[[remedy]] with for = { \"ID\" = 10 } adds one",
            );
        }
    }
    faults
}

/// Samples that are answered wrongly: the pack's own, and built-in ones that it takes away.
fn samples(catalog: &Catalog, files: &[RuleFile]) -> Vec<RuleFault> {
    let mut faults = Vec::new();
    let added = catalog.signatures().filter(|s| s.added);
    let literals: Vec<&str> = added.flat_map(|s| s.def.literal.iter().map(String::as_str)).collect();
    // Only these can have lost a sample to the pack.
    let touched = |s: &Signature| {
        let mut samples = s.def.matches.iter();
        s.added || samples.any(|sample| literals.iter().any(|l| sample.contains(l)))
    };
    for found in check::check_some(catalog, &touched) {
        if let Some((file, entry)) = blamed(files, "signature", &found.id) {
            let part = part_of_sample(file, entry, &found.sample);
            let help = match &found.instead {
                Some(other) if !files.iter().any(|f| entries(&f.rules).any(|(_, id)| id == other)) => format!(
                    "make the literal longer or the pattern narrower, or take the built-in rule out: silence = [\"{other}\"]"
                ),
                _ => String::new(),
            };
            faults.push(file.fault(part, found.text, help));
        } else if let Some((file, entry)) = found.instead.as_deref().and_then(|id| blamed(files, "signature", id)) {
            let text = format!(
                "it also takes a line that the built-in `{}` knows: {}",
                found.id, found.sample
            );
            let help = "make the pattern narrower, or silence the built-in rule if this is meant";
            let fault = file.fault(entry, text, help);
            faults.push(fault.as_warning());
        }
    }
    faults
}

fn part_of_sample<'a>(file: &RuleFile, entry: Part<'a>, sample: &str) -> Part<'a> {
    let Some(def) = file.rules.signature.iter().find(|s| s.id == entry.id) else {
        return entry;
    };
    let at = |list: &[String]| list.iter().position(|s| s == sample);
    match (at(&def.matches), at(&def.no_match)) {
        (Some(n), _) => entry.key("match").at(n),
        (_, Some(n)) => entry.key("no_match").at(n),
        _ => entry,
    }
}

/// What a launch that serves prints.
struct Healthy<'c>(Vec<header::Header<'c>>);

impl<'c> Healthy<'c> {
    fn of(catalog: &'c Catalog) -> Self {
        let harmless = |role| {
            matches!(
                role,
                Role::Phase | Role::Ready | Role::Launch | Role::Note | Role::Benign | Role::Stop
            )
        };
        let known = catalog.signatures().filter(|s| !s.added && harmless(s.def.role));
        let samples = known.flat_map(|s| s.def.matches.iter().map(String::as_str));
        Self(HEALTHY.lines().chain(samples).map(header::parse).collect())
    }

    fn matched(&self, signature: &Signature) -> Vec<&str> {
        let matched = self.0.iter().filter(|line| {
            let message = Text::Message {
                text: line.message,
                headed: line.logged,
                file: line.file,
            };
            let exception = Text::Exception {
                kind: "",
                text: line.message,
            };
            let typed = signature.def.exception.is_some();
            signature.matches(message) || (!typed && signature.def.at != Site::Header && signature.matches(exception))
        });
        matched.map(|line| line.message).collect()
    }

    fn holding(&self, literal: &str) -> usize {
        self.0.iter().filter(|line| line.message.contains(literal)).count()
    }
}

/// Patterns that match too much, begin anywhere, or cost too much.
fn breadth(file: &RuleFile, signature: &Signature, healthy: &Healthy<'_>) -> Vec<RuleFault> {
    let def = &signature.def;
    let entry = Part::entry("signature", &def.id);
    let pattern = match def.pattern {
        Some(_) => entry.key("pattern"),
        None => entry.key("literal"),
    };
    let mut faults = Vec::new();
    let mut warn = |part: Part<'_>, text: String, help: &str| {
        let fault = file.fault(part, text, help);
        faults.push(fault.as_warning());
    };
    if def.role.is_bad()
        && let matched = healthy.matched(signature)
        && let Some(first) = matched.first()
    {
        let text = format!(
            "it matches {} of healthy launches, such as: {first}",
            lines(matched.len())
        );
        warn(
            pattern,
            text,
            "a rule that speaks of a failure matches nothing that a launch prints that serves",
        );
    }
    if signature.begins_anywhere() && (def.role.is_bad() || def.pattern.as_deref().is_some_and(|p| p.starts_with('.')))
    {
        warn(
            pattern,
            "it is not anchored: it matches anywhere in a line, also where the text is only quoted".to_owned(),
            "a message is matched from its start: begin with its first words, or with ^ where `at` is \"header\"",
        );
    }
    if signature.is_slow() {
        warn(
            pattern,
            "it is slow: it compiles to more than a megabyte".to_owned(),
            "repeat less ({1,1000} costs a thousand copies), and write [0-9] and [a-z] for \\d and \\w in repetitions",
        );
    }
    for (n, literal) in def.literal.iter().enumerate() {
        let holding = healthy.holding(literal);
        if holding * RARE > healthy.0.len() {
            warn(
                entry.key("literal").at(n),
                format!(
                    "it is slow: this stands in {} of healthy launches, and the pattern is tried on each",
                    lines(holding)
                ),
                "take the longest text that stands in every line of this kind and in no other",
            );
        }
    }
    faults
}

fn lines(n: usize) -> String {
    match n {
        1 => "1 line".to_owned(),
        _ => format!("{n} lines"),
    }
}
