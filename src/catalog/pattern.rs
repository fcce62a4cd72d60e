//! Regular expressions of the catalog, compiled when a text first needs them.
//!
//! Owns the limit on the size of a compiled expression and its forms. Most are tried on a few texts of a log, and to
//! compile one costs as much as to try it on hundreds; so the first texts meet a form that is compiled in half the time
//! and searches slowly. Another tells texts of ASCII, which nearly all are, from the others. All match the same. Never
//! decides which expression is tried.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use regex::{Regex, RegexBuilder};
use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;

/// Size limit of one compiled expression, bytes.
const SIZE_LIMIT: usize = 4 << 20;

/// Texts that the form for a few texts is tried on. In `benches/stages.rs` the other one takes as long to compile as
/// this one takes to search some hundred messages.
const FEW: u32 = 64;

/// An expression, compiled on first use.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    /// The form for a few texts of ASCII, and how many it was tried on.
    light: OnceLock<Option<meta::Regex>>,
    tried: AtomicU32,
    ascii: OnceLock<Option<meta::Regex>>,
    unicode: OnceLock<Option<meta::Regex>>,
}

impl Pattern {
    /// An expression that matches anywhere.
    pub fn new(text: String) -> Self {
        Self {
            text,
            light: OnceLock::new(),
            tried: AtomicU32::new(0),
            ascii: OnceLock::new(),
            unicode: OnceLock::new(),
        }
    }

    /// An expression that matches at the start of a text only.
    pub fn anchored(text: &str) -> Self {
        Self::new(format!("^(?:{text})"))
    }

    /// Compiles the expression, to say what is wrong with it.
    ///
    /// # Errors
    /// The regex engine's words.
    pub fn check(&self) -> Result<(), String> {
        let built: Result<Regex, _> = RegexBuilder::new(&self.text).size_limit(SIZE_LIMIT).build();
        built.map(|_| ()).map_err(|e| e.to_string())
    }

    /// Whether the compiled expression takes more than so many bytes.
    pub fn is_larger_than(&self, bytes: usize) -> bool {
        RegexBuilder::new(&self.text).size_limit(bytes).build().is_err()
    }

    /// Whether the expression matches. One that cannot be compiled matches nothing.
    pub fn is_match(&self, text: &str) -> bool {
        self.form(text).is_some_and(|regex| regex.is_match(text))
    }

    /// The named groups that took part in the first match, if there is one.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<(String, &'t str)>> {
        let regex = self.form(text)?;
        let names = || {
            regex
                .group_info()
                .all_names()
                .filter_map(|(_, i, name)| Some((i, name?)))
        };
        // To know that it matches takes one look, to know where takes three.
        if names().next().is_none() {
            return regex.is_match(text).then(Vec::new);
        }
        let mut groups: Captures = regex.create_captures();
        regex.captures(text, &mut groups);
        let group = |(i, name): (usize, &str)| Some((name.to_owned(), text.get(groups.get_group(i)?.range())?));
        groups.is_match().then(|| names().filter_map(group).collect())
    }

    /// The form that a text is searched with.
    fn form(&self, text: &str) -> Option<&meta::Regex> {
        // The expression may name other characters, which its form for ASCII could not.
        if !self.text.is_ascii() || !text.is_ascii() {
            return self
                .unicode
                .get_or_init(|| self.compiled(true, meta::Config::new()))
                .as_ref();
        }
        if self.tried.load(Ordering::Relaxed) < FEW {
            self.tried.fetch_add(1, Ordering::Relaxed);
            let light = || {
                // What is left reads the text byte by byte, but needs no second expression that runs backwards.
                let plain = meta::Config::new()
                    .hybrid(false)
                    .dfa(false)
                    .onepass(false)
                    .auto_prefilter(false);
                self.compiled(false, plain)
            };
            return self.light.get_or_init(light).as_ref();
        }
        self.ascii
            .get_or_init(|| self.compiled(false, meta::Config::new()))
            .as_ref()
    }

    fn compiled(&self, unicode: bool, config: meta::Config) -> Option<meta::Regex> {
        meta::Regex::builder()
            .configure(config.nfa_size_limit(Some(SIZE_LIMIT)).utf8_empty(unicode))
            .syntax(syntax::Config::new().unicode(unicode).utf8(unicode))
            .build(&self.text)
            .ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Group `g`, if the expression matches.
    fn group<'t>(pattern: &Pattern, text: &'t str) -> Option<&'t str> {
        pattern.captures(text)?.first().map(|(_, text)| *text)
    }

    #[test]
    fn both_forms_give_the_same_groups() {
        let pattern = Pattern::new(r"(?i)tries (?P<g>\w+(?:\s\S+){0,2})".to_owned());
        assert_eq!(group(&pattern, "He tries once more."), Some("once more."));
        assert_eq!(group(&pattern, "Er TRIES öfter als\u{a0}du"), Some("öfter als\u{a0}du"));
        assert!(pattern.is_match("tries it") && !pattern.is_match("tries ") && pattern.is_match("tries ß"));
    }

    #[test]
    fn the_form_for_a_few_texts_gives_the_same_as_the_one_that_follows() {
        let pattern = Pattern::anchored(r"(?:rank|worker) (?P<g>\d{1,3})(?:, (?P<h>[a-z.*?]+))?(?: took .*? s)?$");
        let texts = [
            "rank 17, a.b",
            "worker 1 took 2.5 s",
            "worker 1234",
            "at rank 1",
            "rank 9",
        ];
        let answers = || texts.map(|text| (pattern.is_match(text), pattern.captures(text)));
        let few = answers();
        (0..FEW).for_each(|_| assert!(pattern.is_match("rank 1")));
        assert_eq!(few, answers());
        assert_eq!(few.map(|(matches, _)| matches), [true, true, false, false, true]);
    }

    #[test]
    fn an_expression_with_other_characters_has_one_form() {
        let pattern = Pattern::anchored("[▄█]+ (?P<g>[0-9]+)|a (?P<h>.)");
        assert_eq!(group(&pattern, "▄█ 25"), Some("25"));
        assert_eq!(group(&pattern, "a b"), Some("b"));
        assert_eq!(group(&pattern, "- a b"), None);
    }

    #[test]
    fn one_that_cannot_be_compiled_says_why_and_matches_nothing() {
        let pattern = Pattern::new("(".to_owned());
        assert!(pattern.check().is_err() && !pattern.is_match("("));
        assert!(Pattern::new(r"(?:\w{1000}){1000}".to_owned()).check().is_err());
        assert!(Pattern::new(r"\p{Greek}".to_owned()).is_match("π"));
        assert!(!Pattern::new(r"\p{Greek}".to_owned()).is_match("pi"));
    }
}
