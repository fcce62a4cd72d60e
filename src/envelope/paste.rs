//! What happens to a log on its way through an issue, a chat or a terminal: Markdown, HTML, hard-wrapped lines.
//!
//! Owns the recognition of these over a source and their undoing on a line.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unicode_width::UnicodeWidthStr;

use super::layers;
use super::margin::Margin;
use super::profile::Profile;
use super::said::Said;
use super::{Place, grammar};

/// Widths at which terminals and editors wrap.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=500;

/// How many times as many lines a wrapped log has as stand round it and are longer.
const ROUND_IT: usize = 8;

/// Columns of a line that a mail program may have wrapped between words.
const SHORTEST_FLOWED: usize = 60;

/// Bytes kept of a re-joined line.
const LONGEST: usize = 256 * 1024;

/// Bytes of a tag with its attributes.
const LONGEST_TAG: usize = 512;

/// The tags that highlighters and consoles put into logs.
const TAGS: [&str; 14] = [
    "pre", "code", "span", "br", "div", "p", "b", "font", "a", "mark", "td", "tr", "samp", "li",
];

const ENTITIES: [(&str, &str); 9] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&#34;", "\""),
    ("&apos;", "'"),
    ("&nbsp;", " "),
    // Last: what it gives must not be read as an entity again.
    ("&amp;", "&"),
];

/// The marks of a paste.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Paste {
    fenced: bool,
    margin: Margin,
    html: bool,
    tags: bool,
    /// rsyslog's spelling of control characters.
    octal: bool,
}

impl Paste {
    /// Recognises the marks in the first lines of a source.
    pub fn of(lines: &[Cow<'_, str>]) -> Self {
        let count = |test: &dyn Fn(&str) -> bool| lines.iter().filter(|line| test(line)).count();
        let entities = count(&|line| line.contains('&') && ENTITIES.iter().any(|(entity, _)| line.contains(entity)));
        let tags = count(&|line| {
            line.contains('<')
                && ["</span>", "<pre", "</pre>", "<br>", "<br/>", "</code>", "</div>"]
                    .iter()
                    .any(|tag| line.contains(tag))
        });
        // A source with bare angle brackets did not escape them.
        let bracket = |line: &str| memchr::memchr2(b'<', b'>', line.as_bytes()).is_some();
        let bare = count(&|line| bracket(line) && (!line.contains('<') || bracket(&without_tags(line))));
        Self {
            fenced: count(&is_fence) > 0,
            margin: Margin::of(lines),
            html: bare == 0 && (entities > 1 || tags > 0 && entities > 0),
            tags: bare == 0 && tags > 1,
            octal: count(&|line| line.contains("#033[") || line.contains("#011")) > 0,
        }
    }

    /// Undoes the paste on one line; `None` if the line is the paste's own.
    pub fn undo<'a>(&self, line: Cow<'a, str>) -> Option<Cow<'a, str>> {
        if *self == Self::default() {
            return Some(line);
        }
        let mut line = line;
        line = match line {
            Cow::Borrowed(text) => Cow::Borrowed(self.margin.off(text)),
            Cow::Owned(text) => match self.margin.off(&text) {
                bare if bare.len() < text.len() => Cow::Owned(bare.to_owned()),
                _ => Cow::Owned(text),
            },
        };
        if self.fenced && is_fence(&line) {
            return None;
        }
        if self.tags && line.contains('<') {
            line = Cow::Owned(without_tags(&line));
        }
        if self.html && line.contains('&') {
            line = Cow::Owned(
                ENTITIES
                    .iter()
                    .fold(line.into_owned(), |text, (entity, c)| text.replace(entity, c)),
            );
        }
        if self.octal && line.contains("#01") {
            line = Cow::Owned(line.replace("#011", "\t").replace("#015", ""));
        }
        Some(line)
    }

    /// Whether the source is, or holds, a quote.
    pub fn is_quote(&self) -> bool {
        self.margin.is_quote()
    }

    /// Sentences for the report.
    pub fn notes(&self, notes: &mut Vec<String>) {
        if self.html || self.tags {
            notes.push("the log was copied from HTML; its tags and escapes were undone".to_owned());
        }
    }
}

/// Columns that a line takes in a terminal.
fn columns(line: &str) -> usize {
    // Nearly every line; the table of widths is slow.
    if line.is_ascii() { line.len() } else { line.width() }
}

fn is_fence(line: &str) -> bool {
    let rest = line.trim_start_matches(['>', ' ']);
    let info = rest.strip_prefix("```").or_else(|| rest.strip_prefix("~~~"));
    info.is_some_and(|info| {
        info.trim().len() <= 20 && info.trim().chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

fn without_tags(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('<') {
        let (plain, tag) = rest.split_at(at);
        out.push_str(plain);
        rest = match behind_tag(tag) {
            Some(behind) => behind,
            None => {
                out.push('<');
                tag.strip_prefix('<').unwrap_or_default()
            }
        };
    }
    out.push_str(rest);
    out
}

/// What follows the tag that `s` starts with.
fn behind_tag(s: &str) -> Option<&str> {
    let name = s.strip_prefix('<')?.trim_start_matches('/');
    let word = name.split(|c: char| !c.is_ascii_alphabetic()).next()?;
    if !TAGS.contains(&word) {
        return None;
    }
    let near = s.split_at(s.floor_char_boundary(LONGEST_TAG)).0;
    s.get(near.find('>')? + 1..)
}

/// Where the lines of a hard-wrapped source break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wrap {
    /// The width that lines are cut to.
    pub width: usize,
    /// A line from this width on goes on in the next one, unless it ends in padding.
    full: usize,
    /// Lines break between words, and the blank there may be gone.
    words: bool,
}

impl Wrap {
    /// Recognises a width that many lines have to the column, most of them going on in a line that starts no record, some
    /// of them within a word. It is the greatest of all, but for a few lines that somebody wrote round the log.
    pub fn of(lines: &[Cow<'_, str>]) -> Option<Self> {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        lines
            .iter()
            .for_each(|line| *counts.entry(columns(line)).or_default() += 1);
        let greatest = *counts.last_key_value()?.0;
        let within = |width: usize| {
            let longer: usize = counts.range(width + 1..).map(|(_, n)| n).sum();
            longer * ROUND_IT <= lines.len()
        };
        let usual = counts
            .iter()
            .filter(|(width, n)| **n >= 3 && **width < greatest && within(**width));
        let usual = usual.max_by_key(|(_, n)| **n).map(|(width, _)| *width);
        let of_a_record = |wrap: &Self| lines.iter().any(|line| wrap.goes_on(line) && grammar::program(line));
        Self::at(lines, greatest).or_else(|| Self::at(lines, usual?).filter(of_a_record))
    }

    /// The wrapping at this width, if lines are wrapped there.
    fn at(lines: &[Cow<'_, str>], width: usize) -> Option<Self> {
        if !WIDTHS.contains(&width) {
            return None;
        }
        // A terminal pads every line to its width; there a line is full if it has no padding, and what was edited in
        // it since does not matter.
        let padded = lines.iter().filter(|line| columns(line) == width).count() * 10 > lines.len() * 6;
        let wrap = Self {
            width,
            full: if padded { width - width / 16 } else { width },
            words: false,
        };
        let unknown = Profile::default();
        let (mut full, mut continued, mut torn) = (0, 0, 0);
        for (line, next) in lines.iter().zip(lines.iter().skip(1)) {
            if wrap.goes_on(line) {
                full += 1;
                continued += usize::from(!starts_record(&unknown, next));
                let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                torn += usize::from(word(line.chars().next_back()) && word(next.chars().next()));
            }
        }
        let enough = if padded {
            full >= 2 && torn >= 1
        } else {
            full >= 3 && torn >= 2 && full * 20 >= lines.len()
        };
        (enough && continued * 5 >= full * 4 && torn * 4 >= full).then_some(wrap)
    }

    /// Recognises lines that a mail program wrapped between words: the first word of what follows a long line would not
    /// have fitted behind it, and a record is among what is torn.
    pub fn between_words(lines: &[Cow<'_, str>]) -> Option<Self> {
        let width = lines.iter().map(|line| columns(line.trim_end())).max()?;
        let wrap = Self {
            width,
            full: SHORTEST_FLOWED,
            words: true,
        };
        let unknown = Profile::default();
        let mut torn = false;
        for (line, next) in lines.iter().zip(lines.iter().skip(1)) {
            if !wrap.goes_on(line) || starts_record(&unknown, next) {
                continue;
            }
            let word = next.split(' ').next().unwrap_or_default();
            if next.starts_with(' ') || columns(line.trim_end()) + 1 + columns(word) <= width {
                return None;
            }
            torn |= grammar::program(line) || grammar::exception(line);
        }
        (torn && WIDTHS.contains(&width)).then_some(wrap)
    }

    /// Whether `line` goes on in the next. Blanks at its end are a terminal's padding: the line ended before them.
    fn goes_on(self, line: &str) -> bool {
        if line.ends_with("  ") || line.len() < self.full {
            return false;
        }
        let columns = columns(line);
        columns >= self.full && (self.words || columns <= self.width)
    }
}

fn starts_record(profile: &Profile, line: &str) -> bool {
    grammar::program(line) || layers::peel(profile, line, &mut Said::default()).len() < line.len()
}

/// The line that may go on.
#[derive(Debug, Clone, Default)]
pub(super) struct Unwrapper {
    open: Option<(Place, String)>,
}

impl Unwrapper {
    /// Adds a line; gives the lines that are whole now, in order.
    pub fn add(&mut self, profile: &Profile, wrap: Wrap, place: Place, line: &str) -> [Option<(Place, String)>; 2] {
        let goes_on = wrap.goes_on(line);
        let text = if goes_on { line } else { line.trim_end() };
        let (whole, next) = match self.open.take() {
            Some((first, mut open)) if open.len() < LONGEST && !starts_record(profile, line) => {
                if wrap.words && !open.ends_with(' ') {
                    open.push(' ');
                }
                open.push_str(text);
                (None, (first, open))
            }
            open => (open, (place, text.to_owned())),
        };
        if goes_on {
            self.open = Some(next);
            return [whole, None];
        }
        [whole, Some(next)]
    }

    /// The line that waits for a continuation that never came.
    pub fn end(&mut self) -> Option<(Place, String)> {
        self.open.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines<'a>(text: &[&'a str]) -> Vec<Cow<'a, str>> {
        text.iter().map(|line| Cow::Borrowed(*line)).collect()
    }

    fn undone(text: &[&str]) -> Vec<String> {
        let lines = lines(text);
        let paste = Paste::of(&lines);
        lines
            .into_iter()
            .filter_map(|line| paste.undo(line))
            .map(Cow::into_owned)
            .collect()
    }

    #[test]
    fn markdown() {
        assert_eq!(
            undone(&["Here:", "```text", "ValueError: x", "```"]),
            ["Here:", "ValueError: x"]
        );
        assert_eq!(undone(&["> ```", "> a", ">   File", ">", "> ```"]), ["a", "  File", ""]);
        assert_eq!(undone(&["> a", "b", "c"]), ["> a", "b", "c"]);
        assert_eq!(undone(&["```not a fence``` x"]), ["```not a fence``` x"]);
    }

    #[test]
    fn html() {
        assert_eq!(
            undone(&["in &lt;module&gt;", "&amp;lt; &quot;"]),
            ["in <module>", "&lt; \""]
        );
        assert_eq!(
            undone(&["<pre><span class=\"x\">a &lt;b&gt;</span>", "c</pre>"]),
            ["a <b>", "c"]
        );
        for line in ["<module> &lt;x&gt;", "a && b < c"] {
            assert_eq!(undone(&[line, line]), [line, line]);
        }
    }

    #[test]
    fn octal_tabs() {
        assert_eq!(undone(&["#033[36ma#033[0m", "x,123#011INFO#015"])[1], "x,123\tINFO");
        assert_eq!(undone(&["see #015"]), ["see #015"]);
    }

    /// Lines that were joined, each with the number of its first.
    fn rejoined(text: &[&str]) -> Vec<(u64, String)> {
        let lines = lines(text);
        let wrap = Wrap::of(&lines).unwrap();
        let mut unwrapper = Unwrapper::default();
        let mut got = Vec::new();
        for (line, no) in lines.iter().zip(1..) {
            got.extend(
                unwrapper
                    .add(&Profile::default(), wrap, Place { line: no, byte: 0 }, line)
                    .into_iter()
                    .flatten(),
            );
        }
        got.extend(unwrapper.end());
        got.into_iter().map(|(place, text)| (place.line, text)).collect()
    }

    #[test]
    fn hard_wrapped_text_is_joined_again() {
        let got = rejoined(&[
            "INFO 11-25 13:00:07 [core.py:1] Initializing a V1 LLM engine wit",
            "h config: model='x', speculative_config=None, tokenizer='x', sk",
            "ip_tokenizer_init=False",
            "INFO 11-25 13:00:07 [core.py:2] Available KV cache memory: 0.9 G",
            "iB, which is",
            "INFO 11-25 13:00:07 [core.py:3] short",
            "ERROR 11-25 13:00:07 [core.py:3] torch.OutOfMemoryError: CUDA ou",
            "t of memory.",
        ]);
        assert_eq!(got.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 3, 4, 6, 7]);
        assert!(
            got[4].1.ends_with("torch.OutOfMemoryError: CUDA out of memory."),
            "{got:?}"
        );
    }

    #[test]
    fn somebody_writes_longer_lines_round_a_wrapped_log() {
        let got = rejoined(&[
            "Hello, this is what the server prints when it is started, copied out of a terminal that is far too narrow",
            "ERROR 11-25 13:00:07 [core.py:1] ValueError: To serve at least o",
            "ne request with the model's max seq len (131072), 16.00 GiB KV c",
            "ache is needed, which is larger than the available KV cache memo",
            "ry (9.71 GiB).",
            "INFO 11-25 13:00:07 [core.py:3] short",
            "Thanks",
            "a",
        ]);
        assert_eq!(got.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 6, 7, 8]);
        assert!(
            got[1].1.ends_with(
                "16.00 GiB KV cache is needed, which is larger than the available KV cache memory (9.71 GiB)."
            )
        );
    }

    #[test]
    fn a_terminal_pads_its_lines() {
        let text = [
            "(raylet) 2 Workers killed due to memory pressure, use `ray log",
            "s raylet.out`",
            "(raylet) Consider more memory on this node, it was far too sm ",
            "little.",
        ];
        let padded: Vec<String> = text.iter().map(|line| format!("{line:<62}")).collect();
        let got = rejoined(&padded.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(
            got[0],
            (
                1,
                "(raylet) 2 Workers killed due to memory pressure, use `ray logs raylet.out`".to_owned()
            )
        );
        assert_eq!(got[1].0, 3);
    }

    #[test]
    fn a_mail_program_wraps_between_words() {
        let text = [
            "ValueError: Free memory on device cuda:0 (58.08/139.8 GiB) on startup is less",
            "than desired GPU memory utilization (0.92, 128.62 GiB).",
        ];
        let wrap = Wrap::between_words(&lines(&text)).unwrap();
        let mut unwrapper = Unwrapper::default();
        for line in text {
            let whole = unwrapper.add(&Profile::default(), wrap, Place { line: 1, byte: 0 }, line);
            assert!(whole[0].is_none(), "{whole:?}");
            if let [None, Some((_, whole))] = whole {
                assert_eq!(whole, text.join(" "));
            }
        }
        // The next word would have fitted, or it is another line.
        for text in [
            [
                "ValueError: Free memory on device cuda:0 (58.08/139.8 GiB) on startup",
                "a line that is far longer than the one that stands in front of it, and no rest of it",
            ],
            [
                "ValueError: Free memory on device cuda:0 (58.08/139.8 GiB) on startup is less",
                "  indented",
            ],
            [
                "what somebody says of it, in words that go on in a line of their own, and",
                "goes on",
            ],
        ] {
            assert_eq!(Wrap::between_words(&lines(&text)), None, "{text:?}");
        }
    }

    #[test]
    fn tables_and_rules_are_not_wrapped() {
        let rule = "=".repeat(60);
        let cell = format!("| {} |", "a".repeat(56));
        assert_eq!(Wrap::of(&lines(&[&rule, &cell, &cell, &rule, &cell, &rule])), None);
        let same = "INFO 11-25 13:00:07 [core.py:1] Initializing a V1 LLM engine wit";
        assert_eq!(Wrap::of(&lines(&[same, same, same, same])), None);
    }
}
