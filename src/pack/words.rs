//! The words that entries of a pack may use where only some mean anything.
//!
//! Owns the comparison with the vocabularies of phases, conditions, formulas, versions and choices. Never looks at a
//! sample.

use std::collections::HashSet;

use crate::catalog::Catalog;
use crate::catalog::pack::{Part, RuleFault, RuleFile};
use crate::catalog::schema::{CHANGES, CauseDef, OWNERS, RETRIES, RISKS, RemedyDef, STRENGTHS, SignatureDef};
use crate::explain::PHASES;
use crate::remedy::versions::Range;
use crate::remedy::{conditions, formulas, template};

/// Words without a meaning in the entries of a file.
pub fn faults(catalog: &Catalog, file: &RuleFile) -> Vec<RuleFault> {
    let mut words = Words {
        file,
        causes: catalog.causes().map(|c| c.id.as_str()).collect(),
        faults: Vec::new(),
    };
    file.rules.signature.iter().for_each(|s| words.signature(s));
    file.rules.cause.iter().for_each(|c| words.cause(c));
    for remedy in &file.rules.remedy {
        words.remedy(catalog, remedy);
    }
    words.faults
}

struct Words<'f> {
    file: &'f RuleFile,
    causes: HashSet<&'f str>,
    faults: Vec<RuleFault>,
}

impl<'f> Words<'f> {
    fn fault(&mut self, part: Part<'_>, text: String, help: &str) {
        self.faults.push(self.file.fault(part, text, help));
    }

    /// A word that has to be one of a list.
    fn one_of(&mut self, part: Part<'_>, word: &str, known: &[&str]) {
        if !known.contains(&word) {
            self.fault(
                part,
                format!("`{word}` means nothing here"),
                &format!("it is one of {}", known.join(", ")),
            );
        }
    }

    fn phase(&mut self, part: Part<'_>, word: &str) {
        self.one_of(part, word, &PHASES.map(|(id, _)| id));
    }

    fn known_cause(&mut self, part: Part<'_>, id: &str) {
        let known = match id.strip_suffix(".*") {
            Some(family) => self.causes.iter().any(|c| c.split('.').next() == Some(family)),
            None => self.causes.contains(id),
        };
        if !known {
            self.fault(
                part,
                format!("there is no cause `{id}`"),
                "define it with [[cause]], or take one that `coroner catalog` lists",
            );
        }
    }

    fn versions(&mut self, part: Part<'_>, range: &str) {
        if Range::parse(range).is_none() {
            self.fault(
                part,
                format!("`{range}` is no range of versions"),
                "it is written 0.9.1..0.13.0, 0.20.. or ..2.1",
            );
        }
    }

    fn signature(&mut self, def: &SignatureDef) {
        let entry = Part::entry("signature", &def.id);
        if !def.id.contains('.') {
            self.fault(
                entry,
                format!("the id `{}` has no dot", def.id),
                "an id is written program.words-with-dashes",
            );
        }
        if let Some(cause) = &def.cause {
            self.known_cause(entry.key("cause"), cause);
        }
        if let Some(phase) = &def.phase {
            self.phase(entry.key("phase"), phase);
        }
        for (n, phase) in def.phases.iter().enumerate() {
            self.phase(entry.key("phases").at(n), phase);
        }
        for (n, phase) in def.only_in.iter().enumerate() {
            self.phase(entry.key("only_in").at(n), phase);
        }
        self.versions(entry.key("versions"), &def.versions);
    }

    fn cause(&mut self, def: &CauseDef) {
        let entry = Part::entry("cause", &def.id);
        if !def.id.contains('.') {
            self.fault(
                entry,
                format!("the id `{}` has no dot", def.id),
                "an id is written family.cause",
            );
        }
        self.one_of(entry.key("strength"), &def.strength, &STRENGTHS);
        self.one_of(entry.key("owner"), &def.owner, &OWNERS);
        self.one_of(entry.key("retry"), &def.retry.verdict, &RETRIES);
        if let Some(phase) = &def.phase {
            self.phase(entry.key("phase"), phase);
        }
        if def.strength == "weak" && def.next_evidence.is_empty() {
            self.fault(
                entry.key("strength"),
                "a weak cause says nothing about what to look at next".to_owned(),
                "add next_evidence = [{ what = …, why = …, command = … }]",
            );
        }
        for phase in def.silent_in.keys() {
            self.phase(entry.key("silent_in"), phase);
        }
        for (n, id) in def.often.iter().enumerate() {
            self.known_cause(entry.key("often").at(n), id);
        }
        for condition in def.next_evidence.iter().flat_map(|e| &e.when) {
            self.condition(entry.key("next_evidence"), condition);
        }
    }

    fn condition(&mut self, part: Part<'_>, word: &str) {
        if !conditions::is_known(word) {
            self.fault(
                part,
                format!("`{word}` is no condition"),
                "the conditions are listed in the section on rules of the README",
            );
        }
    }

    fn remedy(&mut self, catalog: &Catalog, def: &RemedyDef) {
        let entry = Part::entry("remedy", &def.id);
        for cause in def.applies.keys() {
            self.known_cause(entry.key("for"), cause);
        }
        self.one_of(entry.key("risk"), &def.risk, &RISKS);
        for change in &def.change {
            self.one_of(entry.key("change"), &change.kind, &CHANGES);
            for condition in &change.when {
                self.condition(entry.key("change"), condition);
            }
        }
        for (n, condition) in def.when.iter().enumerate() {
            self.condition(entry.key("when").at(n), condition);
        }
        for (n, condition) in def.unless.iter().enumerate() {
            self.condition(entry.key("unless").at(n), condition);
        }
        self.versions(entry.key("versions"), &def.versions);
        if !def.versions.is_empty() && def.engines.len() != 1 {
            let help = "give `engines` the one that has these versions";
            self.fault(entry.key("versions"), "versions of which engine?".to_owned(), help);
        }
        if let Some(name) = def.formula.as_deref().filter(|name| formulas::named(name).is_none()) {
            self.fault(
                entry.key("formula"),
                format!("there is no formula `{name}`"),
                "leave it out",
            );
        }
        if template::needs_formula(&def.title) && (def.formula.is_none() || def.plain_title.is_none()) {
            let help = "give `formula`, and `plain_title` for when its figures are missing";
            self.fault(entry.key("title"), "its value has no source".to_owned(), help);
        }
        let paired = |id: &str| catalog.remedies().any(|r| r.id == id);
        if let Some(id) = def.pair_with.as_deref().filter(|id| !paired(id)) {
            self.fault(entry.key("pair_with"), format!("there is no remedy `{id}`"), "");
        }
    }
}
