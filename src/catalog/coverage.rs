//! Which signature covers each message that notes on log formats quote.
//!
//! Owns the trial texts made from a quoted fragment, the look-up of each as the dialects would do it, and the list of
//! what is left out on purpose. Never changes a rule.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;

use super::notes::{Fragment, Note, fragments, is_under};
use super::schema::Role;
use super::trials::trials;
use super::{Catalog, CatalogError};
use crate::catalog::matcher::Text;
use crate::dialect::exception_line;
use crate::event::SignatureId;

/// The plan compiled into the program.
const PLAN: &str = include_str!("left_out.toml");

/// Which sections of which notes hold messages, and which of those have no signature on purpose.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Programs and libraries whose own texts a signature may rest on, in small letters; those that have signatures
    /// of their own need no mention.
    #[serde(default)]
    programs: Vec<String>,
    /// Sections by note; of a note that is not named all sections are read.
    #[serde(default)]
    note: Vec<NotePlan>,
    /// What is left out.
    #[serde(default)]
    left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct NotePlan {
    file: String,
    /// Numbers of headings; those below them count too.
    sections: Vec<String>,
    /// Heading → how the fragments under it stand in a message, with `{}` for the fragment.
    #[serde(default)]
    within: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LeftOut {
    /// Fragments, exactly.
    text: Vec<String>,
    /// Why no signature has them.
    why: String,
}

/// What answers a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cover {
    /// A signature.
    Signature(SignatureId),
    /// Nothing, on purpose.
    LeftOut(String),
    /// Nothing, and it is a single word: a class, file, flag or field rather than a message.
    Name,
    /// Nothing.
    Gap,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name of the note.
    pub note: String,
    /// The fragment.
    pub fragment: Fragment,
    /// What covers it.
    pub cover: Cover,
}

/// The whole table.
pub struct Coverage<'c> {
    catalog: &'c Catalog,
    /// Rows by note and line.
    pub rows: Vec<Row>,
}

impl Plan {
    /// The plan compiled into the program.
    ///
    /// # Errors
    /// When the file is broken, which a test rules out.
    pub fn load() -> Result<Self, CatalogError> {
        Self::from_text(PLAN)
    }

    /// A plan from a text.
    ///
    /// # Errors
    /// When it is not valid TOML or has an unknown key.
    pub fn from_text(text: &str) -> Result<Self, CatalogError> {
        toml::from_str(text).map_err(|e| CatalogError::Syntax {
            file: "left_out.toml".to_owned(),
            text: e.to_string(),
        })
    }

    /// Programs whose own texts a signature may rest on.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(String::as_str)
    }

    fn reason(&self, text: &str) -> Option<&str> {
        let of = |l: &&LeftOut| l.text.iter().any(|t| t == text);
        self.left_out.iter().find(of).map(|l| l.why.as_str())
    }
}

/// The table over some notes.
pub fn coverage<'c>(catalog: &'c Catalog, plan: &Plan, notes: &[Note]) -> Coverage<'c> {
    let mut rows = Vec::new();
    for note in notes {
        let own = plan.note.iter().find(|n| n.file == note.name);
        for fragment in fragments(note) {
            if own.is_some_and(|p| !is_under(&fragment, &p.sections)) {
                continue;
            }
            let within = own.and_then(|p| {
                let of = |(title, _): &(&String, &String)| fragment.under.iter().any(|u| u.starts_with(title.as_str()));
                p.within.iter().find(of).map(|(_, form)| form.as_str())
            });
            let whole = within.map_or_else(|| fragment.text.clone(), |form| form.replace("{}", &fragment.text));
            let cover = match lookup(catalog, &whole) {
                Some(id) => Cover::Signature(id),
                None => match plan.reason(&fragment.text) {
                    Some(why) => Cover::LeftOut(why.to_owned()),
                    None if !fragment.text.trim().contains(char::is_whitespace) => Cover::Name,
                    None => Cover::Gap,
                },
            };
            rows.push(Row {
                note: note.name.clone(),
                fragment,
                cover,
            });
        }
    }
    Coverage { catalog, rows }
}

/// The signature that answers a fragment: one whose sample holds it, else one that takes a trial text made from it.
fn lookup(catalog: &Catalog, fragment: &str) -> Option<SignatureId> {
    let texts = trials(fragment);
    let direct = |text: &String| {
        let typed = exception_line(text).and_then(|(kind, text)| catalog.find(Text::Exception { kind, text }));
        let message = |headed| {
            catalog.find(Text::Message {
                text,
                headed,
                file: None,
            })
        };
        let hit = typed
            .or_else(|| message(false))
            .or_else(|| message(true))
            .or_else(|| catalog.find(Text::Exception { kind: "", text }));
        hit.map(|hit| hit.id)
    };
    texts.iter().find_map(direct).or_else(|| sampled(catalog, fragment))
}

/// The signature with a sample in which all fixed parts of the fragment stand in order. Its samples are known to be
/// answered by it, so this covers what no trial text can guess: figures of several kinds in one message.
fn sampled(catalog: &Catalog, fragment: &str) -> Option<SignatureId> {
    let pieces = super::trials::fixed(fragment);
    let one_word = !fragment.trim().contains(char::is_whitespace);
    if one_word || pieces.iter().map(|p| p.len()).sum::<usize>() < 10 {
        return None;
    }
    let holds = |sample: &String| {
        let mut rest = sample.as_str();
        pieces.iter().all(|piece| match rest.split_once(piece.as_str()) {
            Some((_, tail)) => {
                rest = tail;
                true
            }
            None => false,
        })
    };
    let signatures = catalog.signatures().enumerate();
    let holding = signatures.filter(|(_, s)| s.def.matches.iter().any(holds));
    // A failure's signature says more than a marker that happens to quote the same words.
    let rank = |role: Role| match role {
        Role::Root => 0,
        Role::Wrapper | Role::Consequence | Role::Benign | Role::Degraded | Role::Exit => 1,
        _ => 2,
    };
    holding
        .min_by_key(|(_, s)| rank(s.def.role))
        .map(|(i, _)| SignatureId(i as u32))
}

impl Coverage<'_> {
    /// Rows that nothing covers and nobody argued away.
    pub fn gaps(&self) -> usize {
        self.count(|c| *c == Cover::Gap)
    }

    fn count(&self, of: impl Fn(&Cover) -> bool) -> usize {
        self.rows.iter().filter(|r| of(&r.cover)).count()
    }

    fn row(&self, f: &mut fmt::Formatter<'_>, row: &Row) -> fmt::Result {
        let place = format!("{}:{}", row.note, row.fragment.line);
        let text = &row.fragment.text;
        match &row.cover {
            Cover::Signature(id) => {
                let Some(def) = self.catalog.signature(*id).map(|s| &s.def) else {
                    return Ok(());
                };
                let role = format!("{:?}", def.role).to_lowercase();
                let cause = def.cause.as_deref().unwrap_or("-");
                write!(f, "{place:<22} {role:<11} {} [{cause}]  {text}", def.id)?;
                let named = |id: &String| self.catalog.cause(id).is_some();
                let ids: Vec<&str> = row
                    .fragment
                    .ids
                    .iter()
                    .filter(|i| named(i))
                    .map(String::as_str)
                    .collect();
                let said = ids.is_empty() || def.cause.as_deref().is_none_or(|c| ids.contains(&c));
                if !said {
                    write!(f, "  (the note says {})", ids.join(", "))?;
                }
                writeln!(f)
            }
            Cover::LeftOut(why) => writeln!(f, "{place:<22} left out    {text}  ({why})"),
            Cover::Name => writeln!(f, "{place:<22} name        {text}"),
            Cover::Gap => writeln!(f, "{place:<22} GAP         {text}"),
        }
    }
}

impl fmt::Display for Coverage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            self.row(f, row)?;
        }
        writeln!(
            f,
            "\n{} fragments: {} covered, {} left out on purpose, {} single words that are no message, {} gaps",
            self.rows.len(),
            self.count(|c| matches!(c, Cover::Signature(_))),
            self.count(|c| matches!(c, Cover::LeftOut(_))),
            self.count(|c| *c == Cover::Name),
            self.gaps()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
[[signature]]
id = "eng.too-long"
role = "root"
cause = "config.max-model-len"
program = "eng"
literal = ["is longer than the engine allows"]
pattern = '''Length (?P<max_seq_len_tokens>\d+) is longer than the engine allows \((?P<limit_x>[\d.]+)\)'''
source = "eng 1.0 engine.py"
match = ["ValueError: Length 7 is longer than the engine allows (1.5)."]
"#;

    const NOTE: &str = "# Eng\n## 1. Grammar\n`never read this one`\n## 2. Failures\n\
        | fragment | cause |\n| --- | --- |\n\
        | `Length {n} is longer than the engine allows ({limit})` | config.max-model-len |\n\
        | `Nobody knows this message` / `SomeClass` | x |\n\
        | `Left out for a reason` | x |\n";

    #[test]
    fn fragments_are_covered_left_out_or_gaps() {
        let catalog = Catalog::from_texts(&[("t", RULES)]).unwrap();
        let plan = Plan::from_text(
            "[[note]]\nfile = \"eng.md\"\nsections = [\"2\"]\n[[left_out]]\ntext = [\"Left out for a reason\"]\nwhy = \"a test\"\n",
        )
        .unwrap();
        let note = Note {
            name: "eng.md".to_owned(),
            text: NOTE.to_owned(),
        };
        let table = coverage(&catalog, &plan, &[note]);
        let got: Vec<(usize, &Cover)> = table.rows.iter().map(|r| (r.fragment.line, &r.cover)).collect();
        let left_out = Cover::LeftOut("a test".to_owned());
        assert_eq!(
            got,
            [
                (7, &Cover::Signature(SignatureId(0))),
                (8, &Cover::Gap),
                (8, &Cover::Name),
                (9, &left_out)
            ]
        );
        assert_eq!(table.gaps(), 1);
        assert!(
            table
                .to_string()
                .contains("eng.md:8               GAP         Nobody knows this message")
        );
    }

    #[test]
    fn the_plan_can_be_read() {
        Plan::load().unwrap_or_else(|e| panic!("{e}"));
    }
}
