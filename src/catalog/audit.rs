//! Whether the rules know programs, or only the logs they were written beside.
//!
//! Owns the questions asked of each signature: do its words stand in a note, does it name the program that prints
//! them, does it decide more than one case, does it mention something that only one machine has. Never reads a log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;

use super::Catalog;
use super::coverage::Plan;
use super::notes::Note;
use super::schema::SignatureDef;

/// A source file of a program, or a version of one.
static PROGRAM_PLACE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\.(?:py|cc|cpp|cu|cuh|h|c|go|rs|sh|out|log)\b|\d+\.\d+").ok());

/// What only one machine or run has: addresses, home folders, line numbers of source files, threads.
static PARTICULAR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\d.])(?:10|172|192)\.\d+\.\d+\.\d+|/home/|/root/|/Users/|\.(?:py|cc|cpp|cu):\d+|0x[0-9a-f]{6,}")
        .ok()
});

/// The answers.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Number of signatures.
    signatures: usize,
    /// None of its literals stands in a note; it rests on the program its `source` names.
    argued: Vec<(String, String)>,
    /// None of its literals stands in a note, and its `source` names no program.
    unfounded: Vec<(String, String)>,
    /// It decides exactly one case, and its `source` names no program: signature and case.
    single: Vec<(String, String)>,
    /// It mentions what only one machine has: signature and text.
    particular: Vec<(String, String)>,
    /// Number of signatures that decide a case.
    deciding: usize,
}

/// Audits the catalog against notes and the cases that each signature decides.
pub fn audit(catalog: &Catalog, plan: &Plan, notes: &[Note], decided: &BTreeMap<String, Vec<String>>) -> Audit {
    let text: String = notes
        .iter()
        .map(|n| n.text.replace("\\|", "|").replace("\\`", "`"))
        .collect();
    let of_rules = catalog.signatures().map(|s| s.def.program.as_str());
    let programs: Vec<&str> = of_rules.chain(plan.programs()).collect();
    let mut audit = Audit {
        signatures: catalog.signatures().count(),
        deciding: decided.len(),
        ..Audit::default()
    };
    for signature in catalog.signatures() {
        let def = &signature.def;
        let founded = names_program(&def.source, &programs);
        if !def.literal.iter().any(|l| text.contains(l.as_str())) {
            let list = if founded {
                &mut audit.argued
            } else {
                &mut audit.unfounded
            };
            list.push((def.id.clone(), def.source.clone()));
        }
        if !founded && let Some([case]) = decided.get(&def.id).map(Vec::as_slice) {
            audit.single.push((def.id.clone(), case.clone()));
        }
        audit
            .particular
            .extend(particular(def).map(|text| (def.id.clone(), text)));
    }
    audit
}

/// Whether a source says which program prints the text: a file or version of it, or its name. A form without one rests
/// on unrelated logs, and says so.
fn names_program(source: &str, programs: &[&str]) -> bool {
    let source = source.to_ascii_lowercase();
    if source.starts_with("unrelated logs") {
        return true;
    }
    let mut words = source.split(|c: char| !c.is_ascii_alphanumeric());
    PROGRAM_PLACE.as_ref().is_some_and(|r| r.is_match(&source)) || words.any(|w| programs.contains(&w))
}

fn particular(def: &SignatureDef) -> impl Iterator<Item = String> {
    let texts = def.literal.iter().chain(&def.pattern);
    texts
        .filter(|t| PARTICULAR.as_ref().is_some_and(|r| r.is_match(t)))
        .cloned()
}

impl Audit {
    /// Number of entries that are not argued.
    pub fn faults(&self) -> usize {
        self.unfounded.len() + self.single.len() + self.particular.len()
    }
}

impl fmt::Display for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = |title: &str, entries: &[(String, String)]| {
            writeln!(f, "{title}: {}", entries.len())?;
            entries.iter().try_for_each(|(id, text)| writeln!(f, "  {id}: {text}"))
        };
        list("In no note, argued by the program that prints it", &self.argued)?;
        list("In no note, and the source names no program", &self.unfounded)?;
        list("Decides one case only, and the source names no program", &self.single)?;
        list("Mentions what only one machine has", &self.particular)?;
        writeln!(
            f,
            "\n{} signatures, {} of them decide a case: {} not argued",
            self.signatures,
            self.deciding,
            self.faults()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(id: &str, literal: &str, source: &str) -> String {
        format!(
            "[[signature]]\nid = \"{id}\"\nrole = \"benign\"\nprogram = \"eng\"\nliteral = [\"{literal}\"]\n\
             source = \"{source}\"\nmatch = [\"{literal}\"]\n"
        )
    }

    #[test]
    fn a_rule_rests_on_a_note_or_on_the_program_that_prints_it() {
        let rules = [
            rule("a.noted", "stands in the note", "two logs"),
            rule("a.argued", "stands nowhere", "eng, the loader"),
            rule("a.unfounded", "somebody saw this", "one log"),
            rule("a.particular", "reached 10.0.0.7 at last", "eng.py"),
        ]
        .concat();
        let catalog = Catalog::from_texts(&[("t", &rules)]).unwrap();
        let note = Note {
            name: "n.md".to_owned(),
            text: "`it stands in the note`".to_owned(),
        };
        let case = |id: &str| (id.to_owned(), vec!["case-1".to_owned()]);
        let decided = BTreeMap::from([case("a.noted"), case("a.argued")]);
        let audit = audit(&catalog, &Plan::default(), &[note], &decided);
        let ids = |list: &[(String, String)]| list.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&audit.argued), ["a.argued", "a.particular"]);
        assert_eq!(ids(&audit.unfounded), ["a.unfounded"]);
        assert_eq!(ids(&audit.single), ["a.noted"]);
        assert_eq!(ids(&audit.particular), ["a.particular"]);
        assert_eq!(audit.faults(), 3);
    }

    #[test]
    fn no_rule_of_the_program_mentions_one_machine_or_lacks_a_source() {
        let catalog = Catalog::built_in();
        let audit = audit(&catalog, &Plan::load().unwrap(), &[], &BTreeMap::new());
        assert_eq!((audit.particular, audit.unfounded), (Vec::new(), Vec::new()));
    }
}
