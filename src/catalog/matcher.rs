//! Compiled signatures and the look-up of the one that fits a text.
//!
//! Owns the literal filter and the choice among the signatures that match one text. Never sees more than
//! that text: order, time and processes are the verdict's.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, BuildError, MatchKind};
use regex::{Regex, RegexBuilder};

use super::Strength;
use super::schema::{Role, SignatureDef, Site};
use crate::event::SignatureId;

/// Bytes of a text in which signatures are looked for; what stands behind is never a cause.
/// Ray's longest kill report in the recorded runs is 9 KiB.
const MATCH_LIMIT: usize = 16 * 1024;

/// Size limit of one compiled pattern, bytes.
const PATTERN_LIMIT: usize = 4 << 20;

/// Size of a compiled pattern from which it is slow, bytes.
const SLOW_PATTERN: usize = 1 << 20;

/// A compiled signature.
pub struct Signature {
    /// The data entry.
    pub def: SignatureDef,
    /// Strength of its cause.
    pub strength: Strength,
    /// Whether a rule file of the user's adds it; then it comes before the built-in ones.
    pub added: bool,
    exception: Option<Regex>,
    file: Option<Regex>,
    pattern: Option<String>,
    anchored: OnceLock<Option<Regex>>,
    floating: OnceLock<Option<Regex>>,
}

/// The text a signature is looked up in.
#[derive(Debug, Clone, Copy)]
pub enum Text<'a> {
    /// A message with all prefixes peeled.
    Message {
        /// The message.
        text: &'a str,
        /// Whether its line had a log header of a known program.
        headed: bool,
        /// Source file that the header names.
        file: Option<&'a str>,
    },
    /// The message of an exception line.
    Exception {
        /// Full type.
        kind: &'a str,
        /// Message, lines joined by `\n`.
        text: &'a str,
    },
}

/// A signature that matched, with its captures.
#[derive(Debug, Clone)]
pub struct Hit<'a> {
    /// Which.
    pub id: SignatureId,
    /// Byte offset of its literal in the text.
    pub at: usize,
    /// Named groups that took part.
    pub captures: Vec<(String, &'a str)>,
}

impl Signature {
    /// Compiles an entry.
    ///
    /// # Errors
    /// The key that is wrong, and a sentence on what is wrong with it.
    pub fn new(def: SignatureDef, strength: Strength) -> Result<Self, (&'static str, String)> {
        let fault = |key, text: &str| Err((key, text.to_owned()));
        if def.literal.is_empty() || def.literal.iter().any(|l| l.len() < 4) {
            return fault(
                "literal",
                "`literal` needs at least one text, each of four bytes or more",
            );
        }
        if def.role == Role::Root && def.cause.is_none() {
            return fault("role", "a root signature needs a `cause`");
        }
        if def.role == Role::Phase && def.phase.is_none() {
            return fault("role", "a phase marker needs a `phase`");
        }
        if def.matches.is_empty() {
            return fault("match", "`match` needs at least one sample");
        }
        let regex = |key, text: Option<&str>| text.map(compile).transpose().map_err(|e| (key, e));
        let exception = regex("exception", def.exception.as_deref())?;
        let file = regex("file", def.file.as_deref())?;
        let pattern = def.pattern.clone();
        Ok(Self {
            def,
            strength,
            added: false,
            exception,
            file,
            pattern,
            anchored: OnceLock::new(),
            floating: OnceLock::new(),
        })
    }

    /// Compiles the pattern and says what is wrong with it; matching itself compiles on first use.
    ///
    /// # Errors
    /// The regex engine's words.
    pub fn compile_pattern(&self) -> Result<(), String> {
        match &self.pattern {
            Some(pattern) => compile(&format!("^(?:{pattern})")).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Whether it fits a text, whatever others do.
    pub fn matches(&self, text: Text<'_>) -> bool {
        let (Text::Message { text: body, .. } | Text::Exception { text: body, .. }) = text;
        let found = self.def.literal.iter().find_map(|l| Some((l, body.find(l.as_str())?)));
        found.is_some_and(|(literal, at)| self.accepts(text, literal, at).is_some())
    }

    /// Whether its pattern may begin anywhere in a message.
    pub fn begins_anywhere(&self) -> bool {
        let pattern = self.pattern.as_deref().unwrap_or_default();
        let open = pattern.trim_start_matches(['(', '?', ':', 's', 'i', ')']);
        open.starts_with(".*") || open.starts_with(".+") || self.def.at == Site::Header && !open.starts_with('^')
    }

    /// Whether its pattern is so large that searching with it is slow.
    pub fn is_slow(&self) -> bool {
        let small = |p: &str| RegexBuilder::new(p).size_limit(SLOW_PATTERN).build().is_ok();
        self.pattern.as_deref().is_some_and(|p| !small(p))
    }

    fn regex(&self, anchored: bool) -> Option<&Regex> {
        let pattern = self.pattern.as_deref()?;
        let cell = if anchored { &self.anchored } else { &self.floating };
        cell.get_or_init(|| {
            let text = if anchored {
                format!("^(?:{pattern})")
            } else {
                pattern.to_owned()
            };
            compile(&text).ok()
        })
        .as_ref()
    }

    /// Whether this signature matches, given that `literal` stands in the text at `at`.
    fn accepts<'t>(&self, text: Text<'t>, literal: &str, at: usize) -> Option<Vec<(String, &'t str)>> {
        let from = match text {
            Text::Message { file, .. } => file,
            Text::Exception { .. } => None,
        };
        if self.file.as_ref().is_some_and(|r| !from.is_some_and(|f| r.is_match(f))) {
            return None;
        }
        let (body, anchored) = match text {
            Text::Message { text, headed, .. } => match self.def.at {
                Site::Any | Site::Message => (text, true),
                Site::Header if headed => (text, false),
                Site::Header | Site::Exception => return None,
            },
            Text::Exception { kind, text } => {
                // A quoted text may have lost its type; then the words alone decide.
                let wrong_type = !kind.is_empty() && self.exception.as_ref().is_some_and(|r| !r.is_match(kind));
                if self.def.at == Site::Message || wrong_type {
                    return None;
                }
                (text, false)
            }
        };
        // A pattern-less entry with an exception filter says nothing about messages without a type.
        if self.pattern.is_none() {
            return (!anchored || at == 0 || body.get(..at).is_some_and(|s| s.trim().is_empty())).then(Vec::new);
        }
        let regex = self.regex(anchored)?;
        let captures = regex.captures(body)?;
        debug_assert!(!literal.is_empty());
        let named = regex.capture_names().flatten();
        Some(
            named
                .filter_map(|n| captures.name(n).map(|m| (n.to_owned(), m.as_str())))
                .collect(),
        )
    }

    /// Which of two matches says more: quoting wrappers first, then anything that is not weak, then the longer literal.
    fn class(&self, exception: bool) -> u8 {
        match self.def.role {
            Role::Wrapper if self.def.quotes => 4,
            Role::Root | Role::Exit if self.strength == Strength::Weak => u8::from(!exception) * 2,
            Role::Root if self.strength == Strength::Generic => 1 + u8::from(!exception),
            Role::Note => u8::from(!exception),
            Role::Root if self.def.vague => u8::from(!exception),
            // A long report may hold a harmless sentence, or how a tool says that it gave up; the reason beside it counts.
            Role::Benign if exception => 1,
            Role::Consequence if exception && self.exception.is_none() => 1,
            _ => 2,
        }
    }
}

fn compile(pattern: &str) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_LIMIT)
        .build()
        .map_err(|e| e.to_string())
}

/// One automaton over the literals of all signatures.
pub struct Filter {
    automaton: AhoCorasick,
    /// Literal → signatures that have it.
    owners: Vec<Vec<u32>>,
    literals: Vec<String>,
}

impl Filter {
    /// Builds the automaton.
    ///
    /// # Errors
    /// When the automaton would be too large.
    pub fn new(signatures: &[Signature]) -> Result<Self, BuildError> {
        let mut owners: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for (i, signature) in signatures.iter().enumerate() {
            for literal in &signature.def.literal {
                owners.entry(literal.clone()).or_default().push(i as u32);
            }
        }
        let (literals, owners): (Vec<String>, Vec<Vec<u32>>) = owners.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .build(&literals)?;
        Ok(Self {
            automaton,
            owners,
            literals,
        })
    }

    /// The best signature for a text.
    pub fn find<'t>(&self, signatures: &[Signature], text: Text<'t>) -> Option<Hit<'t>> {
        let text = capped(text);
        let (body, exception) = match text {
            Text::Message { text, .. } => (text, false),
            Text::Exception { text, .. } => (text, true),
        };
        let mut best: Option<((bool, u8, usize, u8), Hit<'t>)> = None;
        for found in self.automaton.find_overlapping_iter(body) {
            let slot = found.pattern().as_usize();
            let (Some(owners), Some(literal)) = (self.owners.get(slot), self.literals.get(slot)) else {
                continue;
            };
            for &owner in owners {
                let Some(signature) = signatures.get(owner as usize) else {
                    continue;
                };
                let key = (
                    signature.added,
                    signature.class(exception),
                    literal.len(),
                    preference(signature.def.role),
                );
                if best.as_ref().is_some_and(|(b, _)| *b >= key) {
                    continue;
                }
                let quoted = || !exception && body.get(..found.start()).is_some_and(opens_quote);
                if let Some(captures) = signature.accepts(text, literal, found.start())
                    && !(signature.def.role.is_bad() && quoted())
                {
                    best = Some((
                        key,
                        Hit {
                            id: SignatureId(owner),
                            at: found.start(),
                            captures,
                        },
                    ));
                }
            }
        }
        best.map(|(_, hit)| hit)
    }
}

/// Whether what follows in a message is a client's text: the path of a request, a prompt, a value of a JSON object.
/// Patterns that begin anywhere in a message would read a failure in it.
fn opens_quote(before: &str) -> bool {
    const MARKS: [&str; 12] = [
        "GET /",
        "POST /",
        "PUT /",
        "PATCH /",
        "HEAD /",
        "DELETE /",
        "OPTIONS /",
        "{\"",
        "prompt: '",
        "prompt: \"",
        "text='",
        "text=\"",
    ];
    MARKS.iter().any(|mark| before.contains(mark))
}

fn preference(role: Role) -> u8 {
    match role {
        Role::Benign => 4,
        Role::Wrapper | Role::Consequence => 3,
        Role::Root => 2,
        _ => 1,
    }
}

fn capped(text: Text<'_>) -> Text<'_> {
    match text {
        Text::Message { text, headed, file } => Text::Message {
            text: head(text),
            headed,
            file,
        },
        Text::Exception { kind, text } => Text::Exception { kind, text: head(text) },
    }
}

fn head(text: &str) -> &str {
    if text.len() <= MATCH_LIMIT {
        return text;
    }
    text.get(..text.floor_char_boundary(MATCH_LIMIT)).unwrap_or(text)
}

impl super::Catalog {
    /// The signature that fits `text` best, if any.
    pub fn find<'t>(&self, text: Text<'t>) -> Option<Hit<'t>> {
        self.filter.find(&self.signatures, text)
    }
}
