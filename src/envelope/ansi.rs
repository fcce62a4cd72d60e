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

/// Whether anything is to be removed; tabs and carriage returns stay.
fn has_control(bytes: &[u8]) -> bool {
    let control = |b: &u8| b.is_ascii_control() && !matches!(b, b'\t' | b'\r');
    // A pass without an early exit inside the block lets the compiler use vector instructions; one comparison tells
    // all but printable ASCII.
    bytes.chunks(64).any(|block| {
        let printable = |all: bool, b: &u8| all & (b.wrapping_add(1).cast_signed() > b' '.cast_signed());
        !block.iter().fold(true, printable) && block.iter().any(control)
    }) || (!bytes.is_ascii() && (has_high_control(bytes) || has_mark(bytes)))
}

/// Whether one of the control characters U+0080 to U+009F stands in UTF-8 text.
fn has_high_control(utf8: &[u8]) -> bool {
    utf8.windows(2).any(|pair| matches!(pair, [0xc2, 0x80..=0x9f]))
}

/// A byte-order mark can stand at the start of any line of files that were joined.
fn has_mark(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\xef\xbb\xbf")
}

fn without_control(text: &str) -> String {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find(|c: char| c.is_control() && c != '\t' && c != '\r') {
        let (plain, sequence) = rest.split_at(at);
        out.push_str(plain);
        let (length, returns) = match sequence.chars().next() {
            Some('\x1b') => escape(sequence.as_bytes()),
            control => (control.map_or(1, char::len_utf8), false),
        };
        if returns {
            out.push('\r');
        }
        rest = sequence.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Length of the sequence that `b` starts with, and whether it moves the cursor to the first column.
fn escape(b: &[u8]) -> (usize, bool) {
    match b {
        [_, b'[', rest @ ..] => {
            let (parameters, rest) = run(rest, 0x20..=0x3f);
            let end = 2 + parameters.len();
            match rest.first() {
                Some(b'G') if matches!(parameters, b"" | b"0" | b"1") => (end + 1, true),
                Some(0x40..=0x7e) => (end + 1, false),
                _ => (end, false),
            }
        }
        // Operating system command and its relatives: up to BEL or ESC \.
        [_, b']' | b'P' | b'_' | b'^' | b'X', body @ ..] => {
            let near = body.iter().take(LONGEST_STRING_SEQUENCE);
            let end = near.take_while(|&&c| c != 0x07 && c != 0x1b).count();
            match body.get(end..) {
                Some([0x07, ..]) => (end + 3, false),
                Some([0x1b, b'\\', ..]) => (end + 4, false),
                _ => (2, false),
            }
        }
        [_, rest @ ..] => {
            let (intermediate, rest) = run(rest, 0x20..=0x2f);
            let end = 1 + intermediate.len();
            (end + usize::from(matches!(rest.first(), Some(0x30..=0x7e))), false)
        }
        [] => (0, false),
    }
}

/// The bytes at the start that are in `range`, and what follows them.
fn run(bytes: &[u8], range: std::ops::RangeInclusive<u8>) -> (&[u8], &[u8]) {
    let length = bytes.iter().take_while(|b| range.contains(b)).count();
    bytes.split_at_checked(length).unwrap_or((bytes, &[]))
}

/// Removes spelled-out colour sequences (`#033[36m`, `^[[0m`), and bare ones (`[36m…[0m`) where a reset stands after
/// them: a `[5m` of a range or a unit has none.
fn spelled(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut resets = false;
    for at in memchr::memchr_iter(b'[', bytes) {
        let (head, sequence) = bytes.split_at(at);
        let Some(parameters) = colour(sequence) else { continue };
        let before = SPELLED
            .iter()
            .map(|s| s.as_bytes())
            .find(|s| head.ends_with(s))
            .map(<[u8]>::len);
        // A bare `[m` is the start of `[model.py]`.
        if before.is_none() && parameters.is_empty() {
            continue;
        }
        let reset = matches!(parameters, b"0" | b"" | b"0;0" | b"39" | b"22" | b"00");
        resets |= reset && !found.is_empty();
        let end = at + "[".len() + parameters.len() + "m".len();
        found.push((at - before.unwrap_or(0), end, before.is_some()));
    }
    found.retain(|(_, _, spelled)| *spelled || resets);
    if found.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (start, end, _) in found {
        out.push_str(text.get(from..start).unwrap_or_default());
        from = end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Some(out)
}

/// The parameters of `[36m`, `[1;36m`, `[m` and their like.
fn colour(b: &[u8]) -> Option<&[u8]> {
    let rest = b.strip_prefix(b"[")?;
    let length = rest
        .iter()
        .take(12)
        .take_while(|c| c.is_ascii_digit() || **c == b';')
        .count();
    let (parameters, rest) = rest.split_at_checked(length)?;
    rest.starts_with(b"m").then_some(parameters)
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
