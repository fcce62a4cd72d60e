//! Regular expressions of the catalog, compiled when a text first needs them.
//!
//! Owns the limit on the size of a compiled expression and its two forms: one for texts of ASCII, which nearly all are,
//! and one for the others. On a text of ASCII both match the same, and the first is compiled and searched in a fraction
//! of the other's time. Never decides which expression is tried.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder, bytes};

/// Size limit of one compiled expression, bytes.
const SIZE_LIMIT: usize = 4 << 20;

/// An expression, compiled on first use.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    ascii: OnceLock<Option<bytes::Regex>>,
    unicode: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// An expression that matches anywhere.
    pub fn new(text: String) -> Self {
        Self {
            text,
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
        unicode(&self.text).map(|_| ()).map_err(|e| e.to_string())
    }

    /// Whether the compiled expression takes more than so many bytes.
    pub fn is_larger_than(&self, bytes: usize) -> bool {
        RegexBuilder::new(&self.text).size_limit(bytes).build().is_err()
    }

    /// Whether the expression matches. One that cannot be compiled matches nothing.
    pub fn is_match(&self, text: &str) -> bool {
        match self.ascii_form(text) {
            Some(regex) => regex.is_match(text.as_bytes()),
            None => self.unicode_form().is_some_and(|regex| regex.is_match(text)),
        }
    }

    /// The named groups that took part in the first match, if there is one.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<(String, &'t str)>> {
        if let Some(regex) = self.ascii_form(text) {
            // To know that it matches takes one look, to know where takes three.
            if regex.capture_names().flatten().next().is_none() {
                return regex.is_match(text.as_bytes()).then(Vec::new);
            }
            let captures = regex.captures(text.as_bytes())?;
            let groups = captures.iter().map(|group| group.and_then(|m| text.get(m.range())));
            return Some(named(regex.capture_names(), groups));
        }
        let regex = self.unicode_form()?;
        let captures = regex.captures(text)?;
        let groups = captures.iter().map(|group| group.map(|m| m.as_str()));
        Some(named(regex.capture_names(), groups))
    }

    fn ascii_form(&self, text: &str) -> Option<&bytes::Regex> {
        // The expression may name other characters, which its form for ASCII could not.
        let ascii = self.text.is_ascii() && text.is_ascii();
        let form = || {
            bytes::RegexBuilder::new(&self.text)
                .unicode(false)
                .size_limit(SIZE_LIMIT)
                .build()
                .ok()
        };
        ascii.then(|| self.ascii.get_or_init(form).as_ref()).flatten()
    }

    fn unicode_form(&self) -> Option<&Regex> {
        self.unicode.get_or_init(|| unicode(&self.text).ok()).as_ref()
    }
}

fn unicode(text: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(text).size_limit(SIZE_LIMIT).build()
}

/// The groups that have a name and took part, each with its name.
fn named<'n, 't>(
    names: impl Iterator<Item = Option<&'n str>>,
    groups: impl Iterator<Item = Option<&'t str>>,
) -> Vec<(String, &'t str)> {
    names
        .zip(groups)
        .filter_map(|(name, text)| Some((name?.to_owned(), text?)))
        .collect()
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
