//! Bytes of a line to clean text: control sequences, control characters, bad UTF-8 and spelled-out escapes removed.
//!
//! Owns the cleaning of one line. Keeps tabs and carriage returns; the latter are `carriage`'s business.

use std::borrow::Cow;

/// The spellings of the escape character in pasted or collected text.
const SPELLED: [&str; 9] = [
    "#033", "^[", "\\x1b", "\\x1B", "\\u001b", "\\033", "\\e", "\u{2190}", "\u{241b}",
];

/// A string control sequence without a terminator within this many bytes is not one.
const LONGEST_STRING_SEQUENCE: usize = 4096;

/// The clean text of a line; borrowed when there is nothing to clean.
pub(super) fn clean(bytes: &[u8]) -> Cow<'_, str> {
    unspelled(visible(bytes))
}

/// What a terminal shows of a line, and its carriage returns.
pub(super) fn visible(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !has_control(bytes) => Cow::Borrowed(text),
        Ok(text) => Cow::Owned(without_control(text)),
        Err(_) => Cow::Owned(without_control(&String::from_utf8_lossy(bytes))),
    }
}

/// The text without spelled-out escapes.
pub(super) fn unspelled(text: Cow<'_, str>) -> Cow<'_, str> {
    match spelled(&text) {
        Some(text) => Cow::Owned(text),
        None => text,
    }
}

fn has_control(bytes: &[u8]) -> bool {
    // One pass without an early exit inside the block lets the compiler use vector instructions.
    bytes.chunks(64).any(|block| {
        block
            .iter()
            .fold(false, |hit, &b| hit | (b < 0x20 && b != b'\t') | (b == 0x7f))
    }) || (!bytes.is_ascii() && (bytes.windows(2).any(|w| w[0] == 0xc2 && w[1] < 0xa0) || has_mark(bytes)))
}

/// A byte-order mark can stand at the start of any line of files that were joined.
fn has_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xef\xbb\xbf")
}

fn without_control(text: &str) -> String {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\t' && c != '\r') {
        out.push_str(&rest[..at]);
        let sequence = &rest[at..];
        let (length, returns) = match sequence.as_bytes()[0] {
            0x1b => escape(sequence),
            _ => (sequence.chars().next().map_or(1, char::len_utf8), false),
        };
        if returns {
            out.push('\r');
        }
        rest = &sequence[length..];
    }
    out.push_str(rest);
    out
}

/// Length of the sequence that `s` starts with, and whether it moves the cursor to the first column.
fn escape(s: &str) -> (usize, bool) {
    let b = s.as_bytes();
    match b.get(1) {
        Some(b'[') => {
            let parameters = run(&b[2..], 0x20..=0x3f);
            let end = 2 + parameters;
            match b.get(end) {
                Some(b'G') if matches!(&b[2..end], b"" | b"0" | b"1") => (end + 1, true),
                Some(0x40..=0x7e) => (end + 1, false),
                _ => (end, false),
            }
        }
        // Operating system command and its relatives: up to BEL or ESC \.
        Some(b']' | b'P' | b'_' | b'^' | b'X') => {
            let body = &b[2..b.len().min(LONGEST_STRING_SEQUENCE)];
            match body.iter().position(|&c| c == 0x07 || c == 0x1b) {
                Some(at) if body[at] == 0x07 => (at + 3, false),
                Some(at) if body.get(at + 1) == Some(&b'\\') => (at + 4, false),
                _ => (2, false),
            }
        }
        Some(0x20..=0x2f) => {
            let end = 1 + run(&b[1..], 0x20..=0x2f);
            (end + usize::from(matches!(b.get(end), Some(0x30..=0x7e))), false)
        }
        Some(0x30..=0x7e) => (2, false),
        _ => (1, false),
    }
}

fn run(bytes: &[u8], range: std::ops::RangeInclusive<u8>) -> usize {
    bytes.iter().take_while(|b| range.contains(b)).count()
}

/// Removes spelled-out colour sequences (`#033[36m`, `^[[0m`), and bare ones (`[36m…[0m`) where a reset stands after
/// them: a `[5m` of a range or a unit has none.
fn spelled(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut resets = false;
    for at in memchr::memchr_iter(b'[', bytes) {
        let Some(length) = colour(&bytes[at..]) else { continue };
        let before = SPELLED.iter().find(|s| text[..at].ends_with(**s)).map(|s| s.len());
        // A bare `[m` is the start of `[model.py]`.
        if before.is_none() && length == 2 {
            continue;
        }
        let reset = matches!(
            &bytes[at + 1..at + length - 1],
            b"0" | b"" | b"0;0" | b"39" | b"22" | b"00"
        );
        resets |= reset && !found.is_empty();
        found.push((at - before.unwrap_or(0), at + length, before.is_some()));
    }
    found.retain(|(_, _, spelled)| *spelled || resets);
    if found.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end, _) in found {
        out.push_str(&text[from..start]);
        from = end;
    }
    out.push_str(&text[from..]);
    Some(out)
}

/// Length of `[36m`, `[1;36m`, `[m` and their like.
fn colour(b: &[u8]) -> Option<usize> {
    let parameters = b[1..]
        .iter()
        .take(12)
        .take_while(|c| c.is_ascii_digit() || **c == b';')
        .count();
    (b.get(1 + parameters) == Some(&b'm')).then_some(2 + parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        for text in [
            "INFO 11-25 13:00:07 [core.py:1] x\ty",
            "",
            "100%|██████████| 8/8",
            "rate(x[5m])",
            "a[0m",
            "[1m[2m",
            "[12 [model.py] [0m",
        ] {
            assert!(
                matches!(clean(text.as_bytes()), Cow::Borrowed(t) if t == text),
                "{text}"
            );
        }
    }

    #[test]
    fn control_sequences_go() {
        let cases: [(&[u8], &str); 9] = [
            (
                b"\x1b[1;36m(EngineCore_DP0 pid=1)\x1b[0;0m INFO",
                "(EngineCore_DP0 pid=1) INFO",
            ),
            (b"\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b", "ab"),
            (b"\x1b(Ba\x1b[2Kb\x1b[?25lc", "abc"),
            (b"bar\x1b[1Gbaz", "bar\rbaz"),
            (b"a\x00b\x07c\x7fd", "abcd"),
            (b"\xef\xbb\xbfa", "a"),
            (b"a\xff\x1b[0mb", "a\u{fffd}b"),
            (b"a\x1b", "a"),
            (b"a\x1b[31", "a"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(clean(bytes), expected);
        }
        assert_eq!(clean("a\u{9b}b\u{85}".as_bytes()), "ab");
        assert_eq!(clean(b"\x1b]0;never ends"), "0;never ends");
    }

    #[test]
    fn spelled_out_colours_go() {
        for text in [
            "#033[36m(RayWorkerWrapper pid=12)#033[0m x",
            "^[[36m(RayWorkerWrapper pid=12)^[[0m x",
            "\u{2190}[36m(RayWorkerWrapper pid=12)\u{2190}[0m x",
            "[36m(RayWorkerWrapper pid=12)[0m x",
            "[36m(RayWorkerWrapper pid=12)[39m x",
            "#033[36m(RayWorkerWrapper pid=12)#033[m x",
        ] {
            assert_eq!(clean(text.as_bytes()), "(RayWorkerWrapper pid=12) x");
        }
    }
}
