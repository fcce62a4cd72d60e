//! Message texts made from a fragment with placeholders.
//!
//! Owns what notes write for a variable part – `…`, `{x}`, `%s`, a lone capital, `a|b`, `[optional]` – and the values
//! put in its place. Never looks a text up.

use std::sync::LazyLock;

use regex::Regex;

/// What stands for a variable part. `<n>` and the like count, `<stdin>` does not occur in the notes.
static PLACEHOLDER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"…|\.\.\.|\{[^{}]*\}|<[A-Za-z_ ]+>|%(?:\.\d+)?[srdif]|--x\b|\b(?:[A-Z]|NNN|PID)\b").ok()
});

/// A part that may be missing.
static OPTIONAL: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\[([^\[\]]+)\]").ok());

/// Shorthand for one of several printed forms, and what is taken for it: `GB/GiB`, `'a'/'b'`, `IPv4/IPv6`, `{n}ms/{s}s`,
/// and small letters in brackets for figures.
static SHORTHAND: LazyLock<Option<[(Regex, &str); 4]>> = LazyLock::new(|| {
    Some([
        (Regex::new(r"\bGB/GiB\b").ok()?, "GiB"),
        (Regex::new(r"\bIPv4/IPv6\b").ok()?, "IPv6"),
        (
            Regex::new(r"('[^']*'|\{[^{}]*\}ms)(?:/'[^']*'|/\{[^{}]*\}s)+").ok()?,
            "$1",
        ),
        (Regex::new(r"\([a-z]([,)])").ok()?, "(…$1"),
    ])
});

/// Values for the variable parts, the likeliest first: counts, sizes, names, paths, addresses, statuses, lists.
const VALUES: &[&str] = &[
    "7",
    "7.25",
    "name",
    "/srv/a.b",
    "",
    "7.25 GiB",
    "10.0.0.1",
    "-9",
    "['name']",
    "name.Name",
    "cuda:7",
    "{'name': 7}",
];

/// Texts that a program might print for the fragment, without doubles. The fragment itself is the first.
pub fn trials(fragment: &str) -> Vec<String> {
    let mut out = vec![fragment.to_owned()];
    for one in alternatives(&plain(fragment)) {
        for part in optional(&one) {
            for value in VALUES {
                let text = fill(&part, value);
                let text = text.trim();
                if text.len() >= 4 && !out.iter().any(|t| t == text) {
                    out.push(text.to_owned());
                }
            }
        }
    }
    out
}

/// The parts of the fragment that every printing of it has.
pub fn fixed(fragment: &str) -> Vec<String> {
    let Some(placeholder) = PLACEHOLDER.as_ref() else {
        return vec![fragment.to_owned()];
    };
    let first = alternatives(&plain(fragment)).into_iter().next().unwrap_or_default();
    let bare = OPTIONAL
        .as_ref()
        .map_or_else(|| first.clone(), |r| r.replace_all(&first, "…").into_owned());
    placeholder
        .split(&bare)
        .map(|p| {
            p.trim_matches([' ', '(', ')', ':', ',', '.', '\'', '"', '='])
                .to_owned()
        })
        .filter(|p| p.len() >= 3)
        .collect()
}

/// The fragment without shorthand.
fn plain(fragment: &str) -> String {
    let Some(shorthand) = SHORTHAND.as_ref() else {
        return fragment.to_owned();
    };
    shorthand.iter().fold(fragment.to_owned(), |text, (regex, with)| {
        regex.replace_all(&text, *with).into_owned()
    })
}

/// `bind|listen failed` is `bind failed` or `listen failed`.
fn alternatives(fragment: &str) -> Vec<String> {
    let pick = |last: bool| {
        let word = |w: &str| match (w.contains('|'), last) {
            (false, _) => w.to_owned(),
            (true, false) => w.split('|').next().unwrap_or_default().to_owned(),
            (true, true) => w.rsplit('|').next().unwrap_or_default().to_owned(),
        };
        fragment.split(' ').map(word).collect::<Vec<_>>().join(" ")
    };
    match fragment.contains('|') {
        true => vec![pick(false), pick(true)],
        false => vec![fragment.to_owned()],
    }
}

/// With brackets as they are, without them, and without what they hold.
fn optional(fragment: &str) -> Vec<String> {
    match OPTIONAL.as_ref() {
        Some(regex) if regex.is_match(fragment) => vec![
            fragment.to_owned(),
            regex.replace_all(fragment, "$1").into_owned(),
            regex.replace_all(fragment, "").into_owned(),
        ],
        _ => vec![fragment.to_owned()],
    }
}

fn fill(fragment: &str, value: &str) -> String {
    match PLACEHOLDER.as_ref() {
        Some(regex) => regex.replace_all(fragment, regex::NoExpand(value)).into_owned(),
        None => fragment.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_parts_take_values_and_optional_parts_come_and_go() {
        let texts = trials("Free memory on device [cuda:N] (F/T GiB)");
        for text in [
            "Free memory on device cuda:7 (7/7 GiB)",
            "Free memory on device  (7.25/7.25 GiB)",
        ] {
            assert!(texts.iter().any(|t| t == text), "{text}");
        }
        let texts = trials("Call to bind|listen failed with %s");
        assert!(texts.iter().any(|t| t == "Call to bind failed with name"));
        assert!(texts.iter().any(|t| t == "Call to listen failed with name"));
    }

    #[test]
    fn shorthand_becomes_one_printed_form() {
        let texts = trials("Failed with result 'signal'/'timeout' after {n}ms/{s}s (a), N GB/GiB");
        assert!(
            texts
                .iter()
                .any(|t| t == "Failed with result 'signal' after 7ms (7), 7 GiB")
        );
    }

    #[test]
    fn fixed_parts_leave_out_what_varies() {
        assert_eq!(
            fixed("Worker {i} failed to initialize: …"),
            ["Worker", "failed to initialize"]
        );
    }
}
