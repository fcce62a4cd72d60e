//! Compiled signatures and the look-up of the one that fits a text.
//!
//! Owns the literal filter and the choice among the signatures that match one text. Never sees more than
//! that text: order, time and processes are the verdict's.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::causes::{Causes, Strength};
use super::entries::Entries;
use super::literals::Literals;
use super::pattern::Pattern;
use super::schema::{Role, SignatureDef, Site};
use super::{built_in, index};
use crate::event::SignatureId;

/// Bytes of a text in which signatures are looked for; what stands behind is never a cause.
/// Ray's longest kill report in the recorded runs is 9 KiB.
const MATCH_LIMIT: usize = 16 * 1024;

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
    exception: Option<Pattern>,
    file: Option<Pattern>,
    anchored: Option<Pattern>,
    floating: Option<Pattern>,
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
    pub fn new(def: SignatureDef, causes: &Causes) -> Result<Self, (&'static str, String)> {
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
        let pattern = |text: &Option<String>| text.clone().map(Pattern::new);
        Ok(Self {
            strength: match def.weak {
                true => Strength::Weak,
                false => causes.strength(def.cause.as_deref()),
            },
            added: false,
            exception: pattern(&def.exception),
            file: pattern(&def.file),
            anchored: def.pattern.as_deref().map(Pattern::anchored),
            floating: pattern(&def.pattern),
            def,
        })
    }

    /// Compiles its expressions, to say which key is wrong and what is wrong with it; matching itself compiles on first
    /// use.
    ///
    /// # Errors
    /// The key, and the regex engine's words.
    pub fn compile_pattern(&self) -> Result<(), (&'static str, String)> {
        let each = [
            ("pattern", &self.anchored),
            ("exception", &self.exception),
            ("file", &self.file),
        ];
        each.into_iter()
            .filter_map(|(key, pattern)| Some((key, pattern.as_ref()?)))
            .try_for_each(|(key, pattern)| pattern.check().map_err(|text| (key, text)))
    }

    /// Whether it fits a text, whatever others do.
    pub fn matches(&self, text: Text<'_>) -> bool {
        let (Text::Message { text: body, .. } | Text::Exception { text: body, .. }) = text;
        let found = self.def.literal.iter().find_map(|l| body.find(l.as_str()));
        found.is_some_and(|at| self.accepts(text, at).is_some())
    }

    /// Whether its pattern may begin anywhere in a message.
    pub fn begins_anywhere(&self) -> bool {
        let pattern = self.def.pattern.as_deref().unwrap_or_default();
        let open = pattern.trim_start_matches(['(', '?', ':', 's', 'i', ')']);
        open.starts_with(".*") || open.starts_with(".+") || self.def.at == Site::Header && !open.starts_with('^')
    }

    /// Whether its pattern is so large that searching with it is slow.
    pub fn is_slow(&self) -> bool {
        self.anchored.as_ref().is_some_and(|p| p.is_larger_than(SLOW_PATTERN))
    }

    /// Whether this signature matches, given that its literal stands in the text at `at`.
    fn accepts<'t>(&self, text: Text<'t>, at: usize) -> Option<Vec<(String, &'t str)>> {
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
        let pattern = if anchored { &self.anchored } else { &self.floating };
        match pattern {
            Some(pattern) => pattern.captures(body),
            // A pattern-less entry with an exception filter says nothing about messages without a type.
            None => (!anchored || body.get(..at).is_some_and(|s| s.trim().is_empty())).then(Vec::new),
        }
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

/// What decides between signatures that match one text: whether a user added it, its class, the length of its literal,
/// and the preference of its role.
type Rank = (bool, u8, usize, u8);

/// The literals of all signatures.
pub struct Filter {
    literals: Literals,
    /// The literals with all digits alike, in the same order.
    digitless: Literals,
    /// Number of a literal → numbers of signatures that have it; in order.
    owners: Cow<'static, [(u32, u32)]>,
}

impl Filter {
    /// That of the built-in signatures, which is part of the program.
    pub fn built_in() -> Self {
        Self {
            literals: built_in::LITERALS,
            digitless: built_in::DIGITLESS,
            owners: Cow::Borrowed(built_in::OWNERS),
        }
    }

    /// Indexes the literals.
    pub fn new(signatures: &[Signature]) -> Self {
        let numbered = (0..).zip(signatures);
        let index =
            index::index(numbered.flat_map(|(i, s)| s.def.literal.iter().map(move |literal| (literal.as_str(), i))));
        Self {
            literals: index.literals.into(),
            digitless: index.digitless.into(),
            owners: index.owners.into(),
        }
    }

    /// Whether, whatever the digits of a line are, none of the signatures comes before this one, which matches in it; for
    /// none, whether none can match.
    pub fn holds_only(&self, signatures: &Entries<Signature>, line: &[u8], only: Option<SignatureId>) -> bool {
        let Ok(line) = str::from_utf8(line) else { return false };
        let found = self.digitless.find(&index::digits_alike(line));
        let candidates = found
            .iter()
            .flat_map(|(slot, _)| self.candidates(signatures, *slot, false));
        let (own, others): (Vec<_>, Vec<_>) = candidates.partition(|(_, owner)| Some(SignatureId(*owner)) == only);
        let least = own.iter().map(|(rank, _)| rank).min();
        others.iter().all(|(rank, _)| Some(rank) < least)
    }

    /// The signatures that have this literal, each with its rank among those that match one text.
    fn candidates(
        &self,
        signatures: &Entries<Signature>,
        slot: u32,
        exception: bool,
    ) -> impl Iterator<Item = (Rank, u32)> {
        let length = self.literals.text(slot).len();
        let first = self.owners.partition_point(|(of, _)| *of < slot);
        let owners = self.owners.get(first..).unwrap_or_default();
        owners
            .iter()
            .take_while(move |(of, _)| *of == slot)
            .filter_map(move |&(_, owner)| {
                let signature = signatures.get(owner)?;
                let class = signature.class(exception);
                Some(((signature.added, class, length, preference(signature.def.role)), owner))
            })
    }

    /// The best signature for a text: the highest class, then the longest literal, the role that is preferred, and what
    /// stands first.
    pub fn find<'t>(&self, signatures: &Entries<Signature>, text: Text<'t>) -> Option<Hit<'t>> {
        let text = capped(text);
        let (body, exception) = match text {
            Text::Message { text, .. } => (text, false),
            Text::Exception { text, .. } => (text, true),
        };
        let mut candidates = Vec::new();
        for (slot, at) in self.literals.find(body) {
            let ranked = self.candidates(signatures, slot, exception);
            candidates.extend(ranked.map(|(rank, owner)| (Reverse(rank), at, owner)));
        }
        // Few are tried before the best is found: each may compile an expression.
        candidates.sort_unstable();
        candidates.into_iter().find_map(|(_, at, owner)| {
            let signature = signatures.get(owner)?;
            let captures = signature.accepts(text, at)?;
            // A harmless sentence further down, such as the last warning that NCCL keeps, says nothing of the exception.
            if exception && signature.def.role == Role::Benign && body.get(..at).is_some_and(|s| s.contains('\n')) {
                return None;
            }
            let quoted = !exception && signature.def.role.is_bad() && body.get(..at).is_some_and(opens_quote);
            (!quoted).then_some(Hit {
                id: SignatureId(owner),
                at,
                captures,
            })
        })
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
