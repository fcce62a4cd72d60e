//! From a message to the pattern of its kind.
//!
//! Owns what varies from one run to the next: figures, paths, addresses, quoted names. Never decides what a message
//! means.

use std::sync::LazyLock;

use regex::Regex;

/// What varies, and the pattern that stands for it; the first that fits counts.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = [
        r"(?P<address>[a-z][a-z0-9+.-]*://[^\s'\x22)\]]+)",
        r"(?P<path>(?:[A-Za-z]:)?(?:~|\.{1,2})?(?:/[\w.@%+~=-]+)+/?)",
        r"(?P<quoted>'[^']*'|\x22[^\x22]*\x22)",
        r"(?P<host>\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b)",
        r"(?P<hex>\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)",
        r"(?P<mixed>\b(?:[a-z]*\d[a-z0-9]*[a-z][a-z0-9]*|[a-z]+\d+)\b)",
        r"(?P<below>-\d[\d,_]*(?:\.\d+)*\b)",
        r"(?P<number>\b\d[\d,_]*(?:\.\d+)*\b)",
    ];
    Regex::new(&parts.join("|")).ok()
});

/// What stands for each part.
fn pattern_of(part: &str) -> &'static str {
    match part {
        "address" | "path" => r"\S+",
        "quoted" => r#"(?:'[^']*'|"[^"]*")"#,
        "host" => r"[\d.:]+",
        "hex" => r"[0-9a-fx-]+",
        "mixed" => r"\w+",
        "below" => r"-?[\d.,_]+",
        _ => r"[\d.,_]+",
    }
}

/// A message with its varying parts told from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask {
    /// Regular expression that the message matches.
    pub pattern: String,
    /// The texts between the varying parts, in order, trimmed.
    pub fixed: Vec<String>,
}

/// Masks a message.
pub fn mask(message: &str) -> Mask {
    let mut out = Mask {
        pattern: String::new(),
        fixed: Vec::new(),
    };
    let mut rest = 0;
    let captures = VARYING.as_ref().map(|r| r.captures_iter(message));
    for found in captures.into_iter().flatten() {
        let Some(whole) = found.get(0) else { continue };
        out.keep(message.get(rest..whole.start()).unwrap_or_default());
        let kinds = ["address", "path", "quoted", "host", "hex", "mixed", "below"];
        let kind = kinds.into_iter().find(|kind| found.name(kind).is_some());
        out.pattern.push_str(pattern_of(kind.unwrap_or("number")));
        rest = whole.end();
    }
    out.keep(message.get(rest..).unwrap_or_default());
    out
}

impl Mask {
    fn keep(&mut self, text: &str) {
        // A blank and a hyphen need no escape outside of a class.
        self.pattern.push_str(&regex::escape(text).replace(r"\-", "-"));
        if !text.trim().is_empty() {
            self.fixed.push(text.trim().to_owned());
        }
    }

    /// The longest fixed text, the first of equals.
    pub fn longest(&self) -> &str {
        let longest = self.fixed.iter().rev().max_by_key(|text| text.len());
        longest.map_or("", String::as_str)
    }

    /// Words of the fixed texts, in small letters.
    pub fn words(&self) -> impl Iterator<Item = String> {
        let words = self
            .fixed
            .iter()
            .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        words.filter(|w| w.len() > 2).map(str::to_ascii_lowercase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_is_masked_and_the_message_still_fits() {
        for (message, longest) in [
            (
                "lease 7f3a91c2 for /vault/models/m has expired after 3600 s",
                "has expired after",
            ),
            (
                "cannot reach https://vault.acme/x?y=1 from 10.0.0.7:8200 (attempt 3 of 5)",
                "cannot reach",
            ),
            ("shard 'model-1.st' holds 1,024 of 2.5e3 rows at 0x7ffe12", "rows at"),
            ("[E] (a|b)* $5.00 \\d", "[E] (a|b)* $"),
            ("模型 不见了 12", "模型 不见了"),
        ] {
            let mask = mask(message);
            assert_eq!(mask.longest(), longest, "{mask:?}");
            let regex = Regex::new(&format!("^(?:{})$", mask.pattern)).unwrap();
            assert!(regex.is_match(message), "{mask:?}");
            assert!(
                !mask.pattern.contains("3600") && !mask.pattern.contains("acme"),
                "{mask:?}"
            );
        }
    }
}
