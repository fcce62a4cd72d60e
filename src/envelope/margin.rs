//! What stands in front of the lines of an excerpt: quote marks and indentation.
//!
//! Owns the finding of such a margin and its removal from a line. A margin that all lines have is one. One that only
//! some have, as where an excerpt stands amid prose, is one if lines of a program begin behind it and none beside it.

use std::borrow::Cow;

use super::grammar;

/// Lines of a source in which an excerpt is looked for amid prose.
const FEW: usize = 200;

/// Quotes of quotes.
const LEVELS: usize = 4;

/// Markdown's indentation of code.
const CODE: usize = 4;

/// The margin of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Margin {
    quotes: usize,
    indent: Indent,
}

/// White space in front of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Indent {
    #[default]
    None,
    Blanks(usize),
    Tabs(usize),
}

impl Margin {
    /// The margin of these lines, none of which is blank.
    pub fn of(lines: &[Cow<'_, str>]) -> Self {
        let mut texts: Vec<&str> = lines.iter().map(|line| &**line).collect();
        let mut quotes = 0;
        while quotes < LEVELS && is_quoted(&texts) {
            quotes += 1;
            texts = texts.into_iter().map(|text| unquoted(text).unwrap_or(text)).collect();
        }
        texts.retain(|text| !text.trim().is_empty());
        Self {
            quotes,
            indent: Indent::of(&texts),
        }
    }

    /// Whether the lines are quoted.
    pub fn is_quote(&self) -> bool {
        self.quotes > 0
    }

    /// Takes the margin off a line.
    pub fn off<'a>(&self, line: &'a str) -> &'a str {
        let text = (0..self.quotes).fold(line, |text, _| unquoted(text).unwrap_or(text));
        self.indent.off(text).unwrap_or(text)
    }
}

impl Indent {
    fn of(texts: &[&str]) -> Self {
        let kinds = |n: &dyn Fn(&str, char) -> usize| {
            let least = |c| texts.iter().map(|text| n(text, c)).min().unwrap_or(0);
            [Self::Blanks(least(' ')), Self::Tabs(least('\t'))]
        };
        let all = kinds(&|text, c| text.len() - text.trim_start_matches(c).len());
        let some = [Self::Blanks(CODE), Self::Tabs(1)];
        let found = |indent: &Self| {
            let behind = |text: &&str| indent.off(text).is_some_and(is_start);
            !matches!(indent, Self::Blanks(0) | Self::Tabs(0)) && texts.iter().any(behind)
        };
        all.into_iter()
            .find(found)
            .or_else(|| some.into_iter().find(|indent| is_amid_prose(texts) && found(indent)))
            .unwrap_or_default()
    }

    fn off(self, text: &str) -> Option<&str> {
        let (c, n) = match self {
            Self::None => return None,
            Self::Blanks(n) => (' ', n),
            Self::Tabs(n) => ('\t', n),
        };
        text.get(..n)?.chars().all(|found| found == c).then(|| text.get(n..))?
    }
}

/// Whether the lines are quoted: nearly all of several, or those of a program among few.
fn is_quoted(texts: &[&str]) -> bool {
    let quoted = texts.iter().filter(|text| text.starts_with('>')).count();
    let behind = |text: &&str| is_start(text.trim_start_matches(['>', ' ']));
    texts.len() > 2 && quoted * 10 > texts.len() * 8
        || quoted > 0 && is_amid_prose(texts) && texts.iter().filter(|text| text.starts_with('>')).any(behind)
}

fn unquoted(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('>')?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// Whether the lines are few, and those without a margin are not a program's.
fn is_amid_prose(texts: &[&str]) -> bool {
    texts.len() <= FEW && !texts.iter().any(|text| is_start(text) || grammar::program(text))
}

/// Whether a line of a program begins here: one with a header, or one that names an exception.
fn is_start(text: &str) -> bool {
    !text.starts_with(' ') && (grammar::program(text) || grammar::exception(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB";

    fn bare(text: &str) -> Vec<String> {
        let lines: Vec<Cow<'_, str>> = text
            .lines()
            .filter(|l| !l.trim().is_empty())
            .map(Cow::Borrowed)
            .collect();
        let margin = Margin::of(&lines);
        lines.iter().map(|line| margin.off(line).to_owned()).collect()
    }

    #[test]
    fn an_excerpt_of_one_line_loses_its_margin() {
        for margin in ["", "> ", ">", "> > ", ">> ", "    ", "  ", "\t", "\t\t", ">     "] {
            assert_eq!(bare(&format!("{margin}{ERROR}")), [ERROR], "{margin:?}");
        }
    }

    #[test]
    fn an_excerpt_amid_prose_loses_its_margin() {
        for margin in ["> ", "    ", "\t"] {
            let text = format!("It died of this:\n\n{margin}{ERROR}\n{margin}  more\n\nWhat now?");
            assert_eq!(bare(&text)[1..3], [ERROR, "  more"], "{margin:?}");
        }
    }

    #[test]
    fn what_stands_beside_lines_of_a_program_is_theirs() {
        for text in [
            format!("INFO 11-25 13:00:07 [a.py:1] the other log says\n    {ERROR}"),
            format!("INFO 11-25 13:00:07 [a.py:1] the other log says\n> {ERROR}"),
            format!("RuntimeError: it says\n    {ERROR}"),
            "  File \"a.py\", line 3, in f\n    raise ValueError(x)".to_owned(),
            "    raise ValueError: x".to_owned(),
            "> a\nb\nc".to_owned(),
            "> quoted".to_owned(),
        ] {
            assert_eq!(bare(&text), text.lines().collect::<Vec<_>>(), "{text}");
        }
    }
}
