//! Finds secrets: tokens by their shape, values by the name they are given to, credentials in URLs.
//!
//! Owns what counts as a secret. In doubt it does: a value too much taken out costs a reader little. The figures of
//! an inference log that are only called so (`max_tokens`, `eos_token`, `token usage`) are told apart by name.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

use super::walk::Field;
use super::{Kind, Span};

/// Values that nobody's secret is.
const NOTHING: [&str; 12] = [
    "none",
    "null",
    "nil",
    "true",
    "false",
    "undefined",
    "unset",
    "redacted",
    "masked",
    "hidden",
    "empty",
    "n/a",
];

/// Words of a name ending in `token` that mark a unit of text instead of a credential.
const TEXT_UNITS: [&str; 62] = [
    "bos",
    "eos",
    "pad",
    "unk",
    "mask",
    "cls",
    "sep",
    "image",
    "video",
    "audio",
    "vision",
    "start",
    "end",
    "new",
    "special",
    "per",
    "next",
    "first",
    "last",
    "max",
    "min",
    "num",
    "stop",
    "think",
    "thinking",
    "reasoning",
    "tool",
    "call",
    "input",
    "output",
    "prompt",
    "draft",
    "bonus",
    "sampled",
    "cached",
    "each",
    "one",
    "single",
    "batch",
    "time",
    "chunk",
    "total",
    "spec",
    "placeholder",
    "box",
    "begin",
    "turn",
    "chat",
    "multimodal",
    "mm",
    "expert",
    "drop",
    "dropped",
    "by",
    "to",
    "swa",
    "full",
    "any",
    "every",
    "this",
    "unexpected",
    "no",
];

/// Ends of a name that tell something about a secret without being one.
const ABOUT: [&str; 16] = [
    "file", "path", "dir", "name", "id", "url", "limit", "count", "size", "len", "length", "budget", "timeout", "ttl",
    "type", "ref",
];

/// Shapes of tokens: how they begin, and what follows. Where a word of prose could have the same shape, [`opaque`]
/// decides.
const SHAPES: &[(&[&str], &str)] = &[
    (&["hf_"], "[A-Za-z0-9]{6,}"),
    (&["api_org_"], "[A-Za-z0-9]{8,}"),
    (&["sk-", "sk_", "pk-", "pk_", "rk-", "rk_"], "[A-Za-z0-9_-]{8,}"),
    (&["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], "[A-Za-z0-9]{8,}"),
    (&["github_pat_"], "[A-Za-z0-9_]{8,}"),
    (
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-"],
        "[A-Za-z0-9_.-]{8,}",
    ),
    (
        &["AKIA", "ASIA", "AGPA", "AIDA", "AROA", "ANPA", "ABIA", "ACCA"],
        "[A-Z0-9]{12,}",
    ),
    (&["AIza"], "[0-9A-Za-z_-]{20,}"),
    (&["ya29."], "[0-9A-Za-z_-]{8,}"),
    (
        &["xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-"],
        "[A-Za-z0-9-]{8,}",
    ),
    (&["xapp-"], "[A-Za-z0-9-]{8,}"),
    (&["nvapi-"], "[A-Za-z0-9_-]{8,}"),
    (
        &[
            "gsk", "xai", "r8", "tgp", "fw", "pplx", "npm", "dckr_pat", "dop_v1", "wandb_v1", "lsv2_pt", "lsv2_sk",
            "hvs", "hvb",
        ],
        "[_.-][A-Za-z0-9_.-]{16,}",
    ),
    (&["pypi-"], "[A-Za-z0-9_-]{16,}"),
    (&["eyJ"], r"[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    (&["SG."], r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    // An object of JSON in base 64: what keeps credentials in one variable is written so.
    (&["eyJ", "ewog", "ewoJ"], "[A-Za-z0-9+/_-]{20,}={0,2}"),
];

/// How tokens begin.
fn beginnings() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().flat_map(|(beginnings, _)| beginnings.iter().copied())
}

static SHAPE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shape = |(beginnings, rest): &(&[&str], &str)| {
        let beginnings: Vec<String> = beginnings.iter().map(|text| regex::escape(text)).collect();
        format!("(?:{}){rest}", beginnings.join("|"))
    };
    let shapes: Vec<String> = SHAPES.iter().map(shape).collect();
    Regex::new(&format!(r"(?-u:\b)(?:{})", shapes.join("|"))).ok()
});

/// A scheme and what it authorises with; credentials in a URL; a private key; the path of a chat hook.
static CONTEXT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\bbearer[ \t]+(?P<bearer>[A-Za-z0-9._~+/=-]{8,})",
        r#"|[a-z][a-z0-9+.-]*://(?P<url>[^\s/?#"'<>\\]+)@"#,
        r"|-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----(?P<pem>(?s:.*?))(?:-----END|\z)",
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/(?P<hook>[A-Za-z0-9_/-]+)",
        r"|discord(?:app)?\.com/api/webhooks/(?P<chat>[A-Za-z0-9_/-]+)",
    ))
    .ok()
});

/// All that [`CONTEXT`] finds holds one of these, in any case. Most reports hold none, and need not compile it; nor
/// [`SHAPE`] where no word begins as a token does.
const CONTEXT_WORDS: [&str; 5] = ["@", "bearer", "-----begin", "slack.com/", "webhooks/"];

/// Parts of names that can belong to a secret; [`rank`] looks at the whole name.
const NAME_PARTS: [&str; 12] = [
    "key", "token", "secret", "pass", "pwd", "cred", "auth", "sig", "cookie", "webhook", "_pat", "pat=",
];

/// [`CONTEXT_WORDS`], then [`NAME_PARTS`], then [`beginnings`]; an automaton that takes little to build, for texts of a
/// report are few.
static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::ContiguousNFA));
    let words = CONTEXT_WORDS.into_iter().chain(NAME_PARTS);
    builder.build(words.chain(beginnings())).ok()
});

/// How sure a name is that of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rank {
    /// Whatever the value is.
    Always,
    /// Unless the value is a small number.
    Compound,
    /// Only if the value looks like one: the name alone is also used in prose.
    IfOpaque,
    /// In the query of a URL only.
    Query,
}

/// Finds the secrets of a text.
pub fn find(field: &Field<'_>, text: &str) -> Vec<Span> {
    let mut spans = Vec::new();
    stated(field, text, &mut spans);
    let ends: Vec<usize> = spans.iter().map(|span| span.end).collect();
    for end in ends {
        spans.extend(wrapped(text, end).into_iter().map(|(start, end)| Span {
            start,
            end,
            kind: Kind::Secret,
        }));
    }
    spans
}

/// What a text holds that a secret can be known by.
#[derive(Default)]
struct Signs {
    context: bool,
    token: bool,
    /// Where parts of names stand, bytes.
    names: Vec<Range<usize>>,
}

impl Signs {
    fn of(text: &str) -> Self {
        let mut signs = Self::default();
        let within = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        for found in WORDS.iter().flat_map(|words| words.find_overlapping_iter(text)) {
            let (word, range) = (found.pattern().as_usize(), found.range());
            if word < CONTEXT_WORDS.len() {
                signs.context = true;
            } else if word < CONTEXT_WORDS.len() + NAME_PARTS.len() {
                signs.names.push(range);
            } else if !signs.token {
                let before = range.start.checked_sub(1).and_then(|at| text.as_bytes().get(at));
                let beginning = beginnings().nth(word - CONTEXT_WORDS.len() - NAME_PARTS.len());
                // Unlike the other words, these are told by their case.
                signs.token = !before.is_some_and(within) && text.get(range) == beginning;
            }
        }
        signs
    }
}

/// What a secret that ends with its line goes on with, where the text was wrapped in the middle of it.
fn wrapped(text: &str, mut end: usize) -> Vec<(usize, usize)> {
    const LINES: usize = 8;
    let mut parts = Vec::new();
    while let Some(rest) = text.get(end..).and_then(|rest| rest.strip_prefix('\n'))
        && parts.len() < LINES
    {
        let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b'_' | b'-');
        let length = rest.bytes().take_while(|b| part(b)).count();
        let word = rest.get(..length).unwrap_or_default();
        let alone = !rest.get(length..).is_some_and(|rest| rest.starts_with(['.', ':', '(']));
        let random = word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().any(|b| b.is_ascii_alphabetic());
        if length < 6 || !alone || !random {
            break;
        }
        parts.push((end + 1, end + 1 + length));
        end += 1 + length;
    }
    parts
}

/// The secrets that a text shows by themselves.
fn stated(field: &Field<'_>, text: &str, spans: &mut Vec<Span>) {
    let mut add = |start: usize, end: usize| {
        if start < end {
            spans.push(Span {
                start,
                end,
                kind: Kind::Secret,
            });
        }
    };
    if let Field::Value(name) = field
        && let Some(rank) = rank(name).filter(|rank| *rank != Rank::Query)
        && counts(rank, text, true)
    {
        add(0, text.len());
        return;
    }
    let signs = Signs::of(text);
    let shape = signs.token.then(|| SHAPE.as_ref());
    for found in shape.flatten().into_iter().flat_map(|shape| shape.find_iter(text)) {
        if opaque(found.as_str()) {
            add(found.start(), found.end());
        }
    }
    let context = signs.context.then(|| CONTEXT.as_ref());
    for found in context
        .flatten()
        .into_iter()
        .flat_map(|context| context.captures_iter(text))
    {
        for group in found.iter().skip(1).flatten() {
            let bare = found.name("bearer").is_some() && !opaque(group.as_str()) && group.len() < 20;
            // `git@host` names an account that everybody has.
            let public = found.name("url").is_some() && matches!(group.as_str(), "git" | "hg" | "svn");
            if !bare && !public && !is_nothing(group.as_str()) {
                add(group.start(), group.end());
            }
        }
    }
    if key_material(text) {
        add(0, text.len());
    }
    named(text, signs.names, &mut add);
}

/// Those of the secrets of a text that are worth being looked for elsewhere: long, and no word of prose.
pub fn worth_knowing<'t>(text: &'t str, secrets: &[Span]) -> impl Iterator<Item = &'t str> {
    secrets
        .iter()
        .filter_map(|span| text.get(span.start..span.end))
        .filter(|value| value.len() >= 8 && value.len() <= 512 && opaque(value))
}

/// A line of the body of a private key: nothing else prints 60 characters of base 64 and a line break.
fn key_material(text: &str) -> bool {
    let line = text.trim().trim_end_matches('=');
    (60..=76).contains(&line.len())
        && line
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'+' || b == b'/')
        && line.bytes().any(|b| b.is_ascii_uppercase())
        && line.bytes().any(|b| b.is_ascii_lowercase())
        && line.bytes().any(|b| b.is_ascii_digit())
}

/// `NAME=value`, `NAME: value`, `--name value`, `"name", "value"` and their mixtures.
fn named(text: &str, parts: Vec<Range<usize>>, add: &mut impl FnMut(usize, usize)) {
    let mut seen = 0;
    for part in parts {
        if part.start < seen {
            continue;
        }
        let (start, end) = name_around(text, part.start, part.end);
        seen = end;
        let name = text.get(start..end).unwrap_or_default();
        let Some(rank) = rank(name) else { continue };
        let before = text.get(..start).unwrap_or_default().chars().next_back();
        let query = matches!(before, Some('?' | '&'));
        // `#cached-token: 512` counts.
        if (rank == Rank::Query && !query) || before == Some('#') {
            continue;
        }
        let Some((at, tied)) = behind(text, name, end) else {
            continue;
        };
        let (from, to) = value(text, at, query);
        let told = text.get(from..to).unwrap_or_default();
        if counts(rank, told, tied) {
            add(from, to);
            seen = to.max(seen);
        }
    }
}

/// The name that a word is part of. Names end somewhere: what is longer is no name.
fn name_around(text: &str, start: usize, end: usize) -> (usize, usize) {
    const LONGEST: usize = 64;
    let part = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let bytes = text.as_bytes();
    let back = bytes.get(..start).unwrap_or_default();
    let on = bytes.get(end..).unwrap_or_default();
    let before = back.iter().rev().take(LONGEST).take_while(|b| part(b)).count();
    let after = on.iter().take(LONGEST).take_while(|b| part(b)).count();
    (start - before, end + after)
}

/// Whether a name is that of a secret, and how sure.
fn rank(name: &str) -> Option<Rank> {
    let flag = name.starts_with('-');
    let plain = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let shouted = plain.len() > 3 && !plain.bytes().any(|b| b.is_ascii_lowercase());
    let mut words = words(plain);
    while words.last().is_some_and(|w| {
        matches!(w.as_str(), "b64" | "base64" | "value" | "read" | "write" | "rw" | "ro")
            || w.bytes().all(|b| b.is_ascii_digit())
    }) {
        words.pop();
    }
    let last = words.last()?.as_str();
    let before = words
        .len()
        .checked_sub(2)
        .and_then(|at| words.get(at))
        .map(String::as_str);
    let lone = before.is_none();
    match last {
        "password" | "passwd" | "passphrase" | "passcode" | "apikey" | "secretkey" | "accesskey" | "authkey"
        | "authtoken" => Some(Rank::Always),
        "pwd" if !lone && before != Some("old") => Some(Rank::Always),
        "pass" | "pat" if shouted && !lone => Some(Rank::Always),
        "secret" | "secrets" | "cred" | "creds" | "credential" | "credentials" | "cookie" | "auth"
        | "authorization" | "webhook" => Some(if lone && !flag && !shouted {
            Rank::IfOpaque
        } else {
            Rank::Always
        }),
        "token" | "tokens" if words.iter().any(|w| TEXT_UNITS.contains(&w.as_str())) => None,
        "token" if lone && !flag && !shouted => Some(Rank::IfOpaque),
        "token" => Some(Rank::Compound),
        "key" | "keys" => match before? {
            "api" | "access" | "secret" | "private" | "auth" | "account" | "encryption" | "signing" | "storage"
            | "subscription" | "shared" | "master" | "license" | "service" | "admin" | "hf" | "openai" | "wandb" => {
                Some(Rank::Always)
            }
            _ => None,
        },
        "id" if words.ends_with(&["access".into(), "key".into(), "id".into()]) => Some(Rank::Always),
        "sig" | "signature" => Some(Rank::Query),
        last if shouted && !ABOUT.contains(&last) => words
            .iter()
            .any(|w| matches!(w.as_str(), "token" | "secret" | "password" | "passwd" | "apikey"))
            .then_some(Rank::Compound)
            .filter(|_| !words.iter().any(|w| TEXT_UNITS.contains(&w.as_str()))),
        _ => None,
    }
}

/// The words of `HF_TOKEN`, `hfToken`, `--hf-token`, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut small = false;
    let mut open = false;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            open = false;
            continue;
        }
        if !open || (small && c.is_ascii_uppercase()) {
            out.push(String::new());
        }
        open = true;
        small = c.is_ascii_lowercase();
        if let Some(word) = out.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    out
}

/// Where the value of the name that ends at `end` begins, and whether it is tied to it more closely than prose would.
fn behind(text: &str, name: &str, end: usize) -> Option<(usize, bool)> {
    let rest = text.get(end..)?;
    let unquoted = rest.trim_start_matches('\\');
    let closed = unquoted.strip_prefix(['"', '\'']);
    let quoted = closed.is_some();
    let rest = closed.unwrap_or(rest);
    let next = rest.trim_start_matches([' ', '\t']);
    let at = |rest: &str| text.len() - rest.len();
    if let Some(value) = next.strip_prefix('=') {
        let value = value.strip_prefix(['=', '>']).unwrap_or(value);
        return Some((at(value.trim_start_matches(' ')), true));
    }
    if let Some(value) = next.strip_prefix(':') {
        if value.starts_with(':') {
            return None;
        }
        let value = value.strip_prefix('=').unwrap_or(value);
        return Some((at(value.trim_start_matches([' ', '\t'])), quoted));
    }
    if let (true, Some(value)) = (quoted, next.strip_prefix(',')) {
        // `("api_key", "x")`, `["--api-key", "x"]`, `{"name": "HF_TOKEN", "value": "x"}`.
        let value = value.trim_start_matches([' ', '\\']);
        let value = match value.strip_prefix("\"value").or_else(|| value.strip_prefix("'value")) {
            Some(inner) => inner.trim_start_matches(['\\', '"', '\'', ':', '=', ' ']),
            None => value.strip_prefix(['"', '\''])?,
        };
        return Some((at(value), true));
    }
    let spaced = next.len() < rest.len() && name.starts_with('-') && !next.starts_with(['-', '|', '&']);
    spaced.then(|| (at(next), true))
}

/// The value that begins at `at`, without its quotes or brackets.
fn value(text: &str, at: usize, query: bool) -> (usize, usize) {
    let rest = text.get(at..).unwrap_or_default();
    let upto = |from: usize, ends: &[char]| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest.find(|c| ends.contains(&c) || c == '\n').unwrap_or(rest.len())
    };
    if rest.starts_with(['[', '(']) {
        return (at + 1, upto(at + 1, &[']', ')']));
    }
    if let Some(escaped) = rest.strip_prefix("\\\"") {
        let from = text.len() - escaped.len();
        return (from, from + escaped.find("\\\"").unwrap_or(escaped.len()));
    }
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '`')) {
        let from = at + quote.len_utf8();
        let mut escaped = false;
        for (n, c) in text.get(from..).unwrap_or_default().char_indices() {
            match c {
                '\n' => return (from, from + n),
                c if c == quote && !escaped => return (from, from + n),
                _ => escaped = c == '\\' && !escaped,
            }
        }
        return (from, text.len());
    }
    // The scheme in front of what authorises stays.
    let scheme = ["bearer ", "basic ", "token ", "digest "]
        .into_iter()
        .find(|s| rest.get(..s.len()).is_some_and(|start| start.eq_ignore_ascii_case(s)));
    let at = at + scheme.map_or(0, str::len);
    let end = upto(at, &[' ', '\t', '"', '\'', '`', '<', '>']);
    let told = text.get(at..end).unwrap_or_default();
    let told = if query {
        told.split(['&', '#']).next().unwrap_or_default()
    } else {
        up_to_next_name(told)
    };
    let told = told.trim_end_matches([',', ';', '.', ')', ']', '}', '\\', '|']);
    (at, at + told.len())
}

/// `a,b` stays whole, `a,other=b` ends before the comma.
fn up_to_next_name(told: &str) -> &str {
    for (at, _) in told.match_indices([',', ';', '&']).take(64) {
        let name = told.get(at + 1..).unwrap_or_default();
        let len = name
            .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'))
            .unwrap_or(name.len());
        if len > 0 && name.get(len..).is_some_and(|rest| rest.starts_with(['=', ':'])) {
            return told.get(..at).unwrap_or(told);
        }
    }
    told
}

/// Whether a value is a secret, given its name.
fn counts(rank: Rank, value: &str, tied: bool) -> bool {
    if is_nothing(value) {
        return false;
    }
    match rank {
        Rank::Always | Rank::Query => true,
        Rank::Compound => value.len() > 6 || !value.bytes().all(|b| b.is_ascii_digit() || b == b'.'),
        Rank::IfOpaque if tied => value.len() >= 6 && (opaque(value) || value.len() >= 16) && !value.starts_with('<'),
        Rank::IfOpaque => value.len() >= 8 && opaque(value) && !value.starts_with(['<', '/']),
    }
}

/// No value at all, a mask, a placeholder or a pseudonym.
fn is_nothing(value: &str) -> bool {
    let plain = value.trim_matches(|c: char| matches!(c, '"' | '\'' | ',' | ' ' | '[' | ']' | '(' | ')'));
    plain.is_empty()
        || plain
            .chars()
            .all(|c| matches!(c, '*' | 'x' | 'X' | '.' | '…' | '•' | '-' | '\u{fffd}'))
        || NOTHING.iter().any(|word| plain.eq_ignore_ascii_case(word))
        || plain.starts_with("${")
        || (plain.starts_with('$') && plain.bytes().skip(1).all(|b| b.is_ascii_uppercase() || b == b'_'))
        || (plain.starts_with('<') && plain.ends_with('>'))
        || plain.starts_with("secret-") && plain.bytes().skip("secret-".len()).all(|b| b.is_ascii_digit())
}

/// Whether a text is no plain word: a digit or a capital behind its first letter.
fn opaque(text: &str) -> bool {
    let body = text.get(1..).unwrap_or_default();
    text.bytes().any(|b| b.is_ascii_digit()) || body.bytes().any(|b| b.is_ascii_uppercase())
}
