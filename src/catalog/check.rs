//! Runs the samples inside the data files.
//!
//! Owns what "a rule keeps its word" means: every `match` line is answered by its own signature, no `no_match`
//! line is. Used by the tests and, for what users add, by `pack::check`. Never changes a rule.

use super::Catalog;
use super::matcher::{Hit, Signature, Text};
use super::schema::{SignatureDef, Site};
use crate::dialect::{exception_line, header};
use crate::event::SignatureId;

/// A sample that is answered wrongly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Signature.
    pub id: String,
    /// Sample.
    pub sample: String,
    /// What happens instead.
    pub text: String,
    /// The signature that answers instead, where one does.
    pub instead: Option<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}\n    sample: {}", self.id, self.text, self.sample)
    }
}

/// Checks every signature against its own samples, and every reference against what exists.
pub fn check(catalog: &Catalog) -> Vec<Fault> {
    check_some(catalog, &|_| true)
}

/// The same for some of the signatures.
pub fn check_some(catalog: &Catalog, chosen: &dyn Fn(&Signature) -> bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for (i, signature) in catalog.signatures().enumerate().filter(|(_, s)| chosen(s)) {
        let own = SignatureId(i as u32);
        let def = &signature.def;
        let mut fault_by = |sample: &str, text: String, instead: Option<&str>| {
            faults.push(Fault {
                id: def.id.clone(),
                sample: sample.to_owned(),
                text,
                instead: instead.map(ToOwned::to_owned),
            });
        };
        let mut fault = |sample: &str, text: String| fault_by(sample, text, None);
        if !seen.insert(def.id.clone()) {
            fault("", "this id stands twice".to_owned());
        }
        if let Err((key, text)) = signature.compile_pattern() {
            fault("", format!("its `{key}` is no regular expression: {text}"));
        }
        if let Some(cause) = &def.cause
            && !cause.ends_with(".*")
            && catalog.causes().next().is_some()
            && catalog.cause(cause).is_none()
        {
            fault("", format!("its cause {cause} is not in the catalog"));
        }
        for sample in &def.matches {
            match answer(catalog, def, sample) {
                Some(hit) if hit.id == own => {}
                Some(hit) => {
                    let other = catalog.signature(hit.id).map_or("?", |s| s.def.id.as_str());
                    fault_by(sample, format!("{other} answers it instead"), Some(other));
                }
                None => fault_by(sample, "nothing answers it".to_owned(), None),
            }
        }
        for sample in &def.no_match {
            if answer(catalog, def, sample).is_some_and(|hit| hit.id == own) {
                fault_by(sample, "it matches what it must not".to_owned(), None);
            }
        }
    }
    faults
}

/// Looks a sample up as the dialects would: as an exception line if it is one and the site allows, else as a message.
/// An entry that asks for the header's file has samples with their header.
fn answer<'t>(catalog: &Catalog, def: &SignatureDef, sample: &'t str) -> Option<Hit<'t>> {
    if def.file.is_some() {
        let head = header::parse(sample);
        return catalog.find(Text::Message {
            text: head.message,
            headed: head.logged,
            file: head.file,
        });
    }
    let site = def.at;
    let as_exception = exception_line(sample)
        .filter(|_| site != Site::Message)
        .and_then(|(kind, text)| catalog.find(Text::Exception { kind, text }));
    as_exception.or_else(|| {
        if site == Site::Exception {
            if exception_line(sample).is_some() {
                return None;
            }
            return catalog.find(Text::Exception { kind: "", text: sample });
        }
        catalog.find(Text::Message {
            text: sample,
            headed: site == Site::Header,
            file: None,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_is_answered_by_its_own_signature() {
        let catalog = Catalog::built_in();
        let faults = check(&catalog);
        let text: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), text.join("\n"));
    }

    #[test]
    fn every_form_of_a_text_that_changed_with_versions_has_a_sample() {
        let catalog = Catalog::built_in();
        let versioned = catalog.signatures().filter(|s| !s.def.versions.is_empty());
        let without: Vec<String> = versioned
            .flat_map(|s| {
                let shown = |form: &str| s.def.matches.iter().any(|sample| sample.contains(form));
                let forms = s.def.literal.iter().filter(move |form| !shown(form));
                forms.map(|form| format!("{}: {form}", s.def.id))
            })
            .collect();
        assert!(without.is_empty(), "{} forms:\n{}", without.len(), without.join("\n"));
    }
}
