//! Regular expressions of the catalog, compiled when a text first needs them.
//!
//! Owns the limit on the size of a compiled expression and its forms. Most are tried on a few texts of a log, and to
//! compile one costs as much as to search kilobytes with it. So the first short texts meet a form that is compiled in
//! a fifth of the time and searches a hundred times more slowly, the first long ones a form between the two. Another
//! tells texts of ASCII, which nearly all are, from the others. All match the same. Never decides which expression is
//! tried.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use regex::{Regex, RegexBuilder};
use regex_automata::meta;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax;

/// Size limit of one compiled expression, bytes.
const SIZE_LIMIT: usize = 4 << 20;

/// Bytes of the longest text that the lightest form is tried on, and how many bytes of text it is tried on for each byte
/// of the expression. In `benches/stages.rs` it takes some 75 ns a byte, and the next form takes longer to compile by as
/// much as these bytes take.
const SHORT: usize = 256;
const WORTH: usize = 8;

/// Texts that the form between is tried on. In `benches/stages.rs` the full one takes as long to compile as this one
/// takes to search some hundred messages.
const FEW: u32 = 64;

/// An expression, compiled on first use.
#[derive(Debug)]
pub struct Pattern {
    text: String,
    /// One of these begins every text that matches; empty where that is not known.
    starts: Vec<String>,
    /// The form for a few short texts, and how many bytes it was tried on.
    lightest: OnceLock<Option<regex_lite::Regex>>,
    bytes: AtomicUsize,
    /// The form for a few texts of ASCII, and how many it was tried on.
    light: OnceLock<Option<meta::Regex>>,
    tried: AtomicU32,
    ascii: OnceLock<Option<meta::Regex>>,
    unicode: OnceLock<Option<meta::Regex>>,
}

/// A form of an expression.
enum Form<'p> {
    Lightest(&'p regex_lite::Regex),
    Other(&'p meta::Regex),
}

impl Pattern {
    /// An expression that matches anywhere.
    pub fn new(text: String) -> Self {
        Self {
            text,
            starts: Vec::new(),
            lightest: OnceLock::new(),
            bytes: AtomicUsize::new(0),
            light: OnceLock::new(),
            tried: AtomicU32::new(0),
            ascii: OnceLock::new(),
            unicode: OnceLock::new(),
        }
    }

    /// An expression that matches at the start of a text only.
    pub fn anchored(text: &str) -> Self {
        Self {
            starts: starts(text),
            ..Self::new(format!("^(?:{text})"))
        }
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
        self.form(text).is_some_and(|form| form.is_match(text))
    }

    /// The named groups that took part in the first match, if there is one.
    pub fn captures<'t>(&self, text: &'t str) -> Option<Vec<(String, &'t str)>> {
        self.form(text)?.captures(text)
    }

    /// The form that a text is searched with; none if it cannot match.
    fn form(&self, text: &str) -> Option<Form<'_>> {
        // An expression that stands in the wrong place of a long line need not be compiled to be ruled out.
        if !self.starts.is_empty() && !self.starts.iter().any(|start| text.starts_with(start.as_str())) {
            return None;
        }
        // The expression may name other characters, which its form for ASCII could not.
        let ascii = self.text.is_ascii() && text.is_ascii();
        if text.len() <= SHORT
            && self.bytes.load(Ordering::Relaxed) < WORTH * self.text.len()
            && (ascii || !names_classes(&self.text))
        {
            self.bytes.fetch_add(text.len(), Ordering::Relaxed);
            let lightest = || {
                let builder = &mut regex_lite::RegexBuilder::new(&self.text);
                builder.size_limit(SIZE_LIMIT).build().ok()
            };
            // It knows no properties of characters.
            if let Some(regex) = self.lightest.get_or_init(lightest) {
                return Some(Form::Lightest(regex));
            }
        }
        let other = if !ascii {
            self.unicode.get_or_init(|| self.compiled(true, meta::Config::new()))
        } else if self.tried.load(Ordering::Relaxed) < FEW {
            self.tried.fetch_add(1, Ordering::Relaxed);
            self.light.get_or_init(|| {
                // What is left reads the text byte by byte, but needs no second expression that runs backwards.
                let plain = meta::Config::new()
                    .hybrid(false)
                    .dfa(false)
                    .onepass(false)
                    .auto_prefilter(false);
                self.compiled(false, plain)
            })
        } else {
            self.ascii.get_or_init(|| self.compiled(false, meta::Config::new()))
        };
        other.as_ref().map(Form::Other)
    }

    fn compiled(&self, unicode: bool, config: meta::Config) -> Option<meta::Regex> {
        meta::Regex::builder()
            .configure(config.nfa_size_limit(Some(SIZE_LIMIT)).utf8_empty(unicode))
            .syntax(syntax::Config::new().unicode(unicode).utf8(unicode))
            .build(&self.text)
            .ok()
    }
}

impl Form<'_> {
    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Lightest(regex) => regex.is_match(text),
            Self::Other(regex) => regex.is_match(text),
        }
    }

    fn captures<'t>(&self, text: &'t str) -> Option<Vec<(String, &'t str)>> {
        match self {
            // To know that it matches takes one look, to know where takes three.
            Self::Lightest(regex) if regex.capture_names().all(|name| name.is_none()) => {
                regex.is_match(text).then(Vec::new)
            }
            Self::Other(regex) if regex.group_info().all_names().all(|(_, _, name)| name.is_none()) => {
                regex.is_match(text).then(Vec::new)
            }
            Self::Lightest(regex) => {
                let groups = regex.captures(text)?;
                Some(named(text, regex.capture_names(), |i| Some(groups.get(i)?.range())))
            }
            Self::Other(regex) => {
                let mut groups: Captures = regex.create_captures();
                regex.captures(text, &mut groups);
                let names = regex.group_info().all_names().map(|(_, _, name)| name);
                let range = |i| Some(groups.get_group(i)?.range());
                groups.is_match().then(|| named(text, names, range))
            }
        }
    }
}

/// The groups with a name that took part in a match.
fn named<'t, 'n>(
    text: &'t str,
    names: impl Iterator<Item = Option<&'n str>>,
    range: impl Fn(usize) -> Option<Range<usize>>,
) -> Vec<(String, &'t str)> {
    let group = |(i, name): (usize, Option<&str>)| Some((name?.to_owned(), text.get(range(i)?)?));
    names.enumerate().filter_map(group).collect()
}

/// Whether an expression names a class of characters or sets a flag but `s`: such a one may mean other characters where
/// a text is not ASCII.
fn names_classes(expression: &str) -> bool {
    let letter = |escaped: &str| escaped.starts_with(|c: char| c.is_ascii_alphabetic());
    let plain = |group: &str| {
        [":", "P<", "<", "s)", "s:"]
            .iter()
            .any(|start| group.starts_with(start))
    };
    expression.split('\\').skip(1).any(letter)
        || expression.contains("[:")
        || !expression.split("(?").skip(1).all(plain)
}

/// The plain texts of which one begins all that an expression matches at the start of a text; none where that takes more
/// than a look at its first characters.
fn starts(expression: &str) -> Vec<String> {
    const SPECIAL: &[char] = &['\\', '.', '[', ']', '(', ')', '{', '}', '*', '+', '?', '|', '^', '$'];
    let repeats = |rest: &str| rest.starts_with(['?', '*', '+', '{']);
    let rest = expression
        .strip_prefix("(?s)")
        .unwrap_or(expression)
        .trim_start_matches('^');
    if has_branches(rest) {
        return Vec::new();
    }
    let group = rest.strip_prefix("(?:").and_then(|group| group.split_once(')'));
    if let Some((group, behind)) = group {
        let plain = |branch: &str| !branch.is_empty() && !branch.contains(SPECIAL);
        let known = !repeats(behind) && group.split('|').all(plain);
        return group.split('|').filter(|_| known).map(ToOwned::to_owned).collect();
    }
    let (start, behind) = rest.split_at(rest.find(SPECIAL).unwrap_or(rest.len()));
    let mut start = start.to_owned();
    if repeats(behind) {
        start.pop();
    }
    Some(start).filter(|start| !start.is_empty()).into_iter().collect()
}

/// Whether an expression has a `|` outside of groups.
fn has_branches(expression: &str) -> bool {
    let (mut depth, mut class, mut escaped) = (0_u32, false, false);
    expression.chars().any(|c| {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => class = false,
            _ if class => {}
            '[' => class = true,
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            '|' => return depth == 0,
            _ => {}
        }
        false
    })
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
    fn the_forms_for_a_few_texts_give_the_same_as_those_that_follow() {
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
        for form in [&pattern.light, &pattern.ascii] {
            while form.get().is_none() {
                assert!(pattern.is_match("rank 1"));
            }
            assert_eq!(few, answers());
        }
        assert_eq!(few.map(|(matches, _)| matches), [true, true, false, false, true]);
    }

    #[test]
    fn a_text_that_is_not_ascii_meets_the_lightest_form_where_it_means_the_same() {
        let long = " a".repeat(SHORT);
        let texts = [
            "«rank 17», ½",
            "rank 17 «a»",
            "rank 1 ",
            "RANK 2",
            "«ränk»",
            "«rank 3\n»",
        ];
        for expression in [
            "[«r].*?(?P<g>[0-9]+)(?P<h>[^ ]?.)",
            r"(?i)r(?P<g>\w+) \d\b",
            r"(?P<g>\S+)\s",
        ] {
            let (short, other) = (Pattern::new(expression.to_owned()), Pattern::new(expression.to_owned()));
            assert!(other.bytes.fetch_add(usize::MAX / 2, Ordering::Relaxed) == 0 && !other.is_match(&long[..1]));
            for text in texts {
                assert_eq!(short.captures(text), other.captures(text), "{expression}: {text}");
                assert_eq!(short.is_match(text), other.is_match(text), "{expression}: {text}");
            }
            assert!(short.lightest.get().is_some() && other.lightest.get().is_none());
        }
    }

    #[test]
    fn an_expression_means_more_in_other_texts_only_by_its_classes_and_flags() {
        for (expression, names) in [
            (
                r"^(?:^[ ▀▄█]*[▀▄█]  version +(?P<version>[0-9][0-9A-Za-z_.+-]*) *$)",
                false,
            ),
            (r"(?s)a\.\(b\)(?:c|(?<d>e))(?s:f)", false),
            (r"a\d", true),
            (r"[[:alpha:]]", true),
            ("(?i)a", true),
            ("(?si:a)", true),
            ("(?-u:a)", true),
        ] {
            assert_eq!(names_classes(expression), names, "{expression}");
        }
    }

    #[test]
    fn the_start_of_an_expression_is_told_only_where_it_is_plain() {
        for (expression, told) in [
            (r"^Loading weights took (?P<s>[\d.]+)", &["Loading weights took "][..]),
            (r"(?:CUDA|HIP) out of memory\.", &["CUDA", "HIP"]),
            (r"(?s)Worker failed with '(?P<inner>.+?)'", &["Worker failed with '"]),
            ("models? of", &["model"]),
            ("x{2}", &[]),
            ("(?:a|b)?c", &[]),
            ("(?:a.|b)c", &[]),
            ("(?:a|)c", &[]),
            ("(?:a(?:b|c)|d)", &[]),
            ("(?i)cuda", &[]),
            ("CUDA error|NCCL error", &[]),
            ("^(?:NCCL (?:WARN|INFO))|x", &[]),
            (r"rank [|)] \| of", &["rank "]),
            (r"\[rank\d+\]", &[]),
            ("", &[]),
        ] {
            assert_eq!(starts(expression), told, "{expression}");
        }
    }

    #[test]
    fn what_a_start_rules_out_does_not_match() {
        let catalog = crate::catalog::Catalog::shared();
        let mut known = 0;
        for def in catalog.signatures().map(|s| &s.def) {
            let Some(text) = &def.pattern else { continue };
            let (with, without) = (Pattern::anchored(text), Pattern::new(format!("^(?:{text})")));
            known += usize::from(!with.starts.is_empty());
            for sample in def.matches.iter().chain(&def.no_match) {
                for from in [0, 1, 7]
                    .into_iter()
                    .chain(def.literal.iter().filter_map(|l| sample.find(l.as_str())))
                {
                    let Some(part) = sample.get(from..) else { continue };
                    assert_eq!(with.captures(part), without.captures(part), "{}: {part}", def.id);
                }
            }
        }
        assert!(known > 300, "{known} have a start that is known");
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
