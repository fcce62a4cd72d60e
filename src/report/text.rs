//! Text as a person may safely see it: cleaning, measuring, wrapping, cutting, and figures in words.
//!
//! Owns the one function, [`safe`], that every character of a log passes on its way into any output.
//! Never knows a report or an output format.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// What stands in place of a character that could act on a terminal or hide text.
const REPLACEMENT: char = '\u{fffd}';

/// Combining marks kept in a row; more of them only serve to smear over the neighbouring lines.
const MAX_MARKS: usize = 2;

/// One line of text without anything that acts on its reader.
///
/// Terminal sequences (CSI, OSC and the other string sequences) are dropped whole; line breaks and tabs become
/// spaces; every other control, bidirectional or invisible character becomes `�`, so that tampering shows.
pub fn safe(text: &str) -> Cow<'_, str> {
    clean(text, false)
}

/// Like [`safe`], but keeps line breaks.
pub fn safe_lines(text: &str) -> Cow<'_, str> {
    clean(text, true)
}

fn clean(text: &str, keep_breaks: bool) -> Cow<'_, str> {
    // The usual line: no copy.
    if stays(text, false) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut marks = 0;
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\n' if keep_breaks => out.push('\n'),
            '\r' if keep_breaks && rest.as_str().starts_with('\n') => {}
            '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}' => out.push(' '),
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_csi(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            c if acts_or_hides(c) => out.push(REPLACEMENT),
            c if c.width() == Some(0) => {
                marks += 1;
                if marks <= MAX_MARKS {
                    out.push(c);
                }
                continue;
            }
            c => out.push(c),
        }
        marks = 0;
    }
    Cow::Owned(out)
}

/// Whether [`safe_lines`] leaves the text as it is, with all its line breaks, as far as single characters tell.
pub fn stays_with_breaks(text: &str) -> bool {
    stays(text, true)
}

fn stays(text: &str, breaks: bool) -> bool {
    let stays = |c: char| !acts_or_hides(c) && !matches!(c, '\u{2028}' | '\u{2029}') && c.width() != Some(0);
    let mut rest = text;
    while let Some(at) = unplain(rest, breaks) {
        let mut others = rest.split_at(at).1.chars();
        if !others.next().is_some_and(stays) {
            return false;
        }
        rest = others.as_str();
    }
    true
}

/// Where the first character stands that is not of printable ASCII, and no line break where these count as such.
fn unplain(text: &str, breaks: bool) -> Option<usize> {
    // So many bytes that the processor looks at them together, which it can do where no look depends on the one before.
    const TOGETHER: usize = 32;
    let plain = |b: &u8| (0x20..0x7f).contains(b) || breaks && *b == b'\n';
    let all = |part: &&[u8]| part.iter().fold(true, |all, b| all & plain(b));
    let bytes = text.as_bytes();
    let passed = TOGETHER * bytes.chunks_exact(TOGETHER).take_while(all).count();
    let at = bytes.get(passed..)?.iter().position(|b| !plain(b))?;
    Some(passed + at)
}

/// The text with other characters, of as many bytes, for those that act on a terminal or hide; line breaks and tabs stay.
pub fn of_same_length(text: &str) -> String {
    if unplain(text, true).is_none() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.len_utf8() {
            _ if matches!(c, '\n' | '\t') || !acts_or_hides(c) => out.push(c),
            3 => out.push(REPLACEMENT),
            bytes => out.extend(std::iter::repeat_n('?', bytes)),
        }
    }
    out
}

/// Controls, bidirectional overrides, zero-width and other invisible characters.
fn acts_or_hides(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// The part of an escape sequence behind `ESC`.
fn skip_escape(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => {
            *rest = ahead;
            skip_csi(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *rest = ahead;
            skip_string(rest);
        }
        // `ESC ( B` and its like: intermediates, then one final character.
        Some(' '..='/') => {
            while let Some(' '..='/') = ahead.clone().next() {
                ahead.next();
            }
            ahead.next();
            *rest = ahead;
        }
        Some('0'..='~') => *rest = ahead,
        _ => {}
    }
}

/// Parameters, intermediates and the final byte of a control sequence. What does not fit ends it unread.
fn skip_csi(rest: &mut std::str::Chars<'_>) {
    loop {
        let mut ahead = rest.clone();
        match ahead.next() {
            Some(' '..='?') => *rest = ahead,
            Some('@'..='~') => {
                *rest = ahead;
                return;
            }
            _ => return,
        }
    }
}

/// A string sequence up to BEL or ST. One without an end gives up only its introducer: text is not swallowed.
/// The search has a limit, so that a line full of introducers costs no square of its length.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    const MAX_STRING: usize = 1024;
    let mut ahead = rest.clone();
    for _ in 0..MAX_STRING {
        let Some(c) = ahead.next() else { return };
        match c {
            '\u{7}' | '\u{9c}' => {
                *rest = ahead;
                return;
            }
            '\u{1b}' if ahead.as_str().starts_with('\\') => {
                ahead.next();
                *rest = ahead;
                return;
            }
            '\n' => return,
            _ => {}
        }
    }
}

/// Columns that the text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text in lines of at most `width` columns, the first behind `first`, the others behind `rest`.
/// Words are broken only where one alone is wider than a line.
pub fn wrap(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let options = textwrap::Options::new(width.max(20))
        .initial_indent(first)
        .subsequent_indent(rest)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    textwrap::wrap(text, options).into_iter().map(Cow::into_owned).collect()
}

/// At most `max` columns of the text; what is cut off at the end shows as `…`.
pub fn clip(text: &str, max: usize) -> Cow<'_, str> {
    if width(text) <= max {
        return Cow::Borrowed(text);
    }
    let mut kept = head(text, max.saturating_sub(1)).to_owned();
    kept.push('…');
    Cow::Owned(kept)
}

/// The longest start of the text that takes at most `max` columns.
fn head(text: &str, max: usize) -> &str {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > max {
            return text.get(..at).unwrap_or_default();
        }
    }
    text
}

/// At most `max` columns (two or more) of the text with the byte range `focus` in view, and where that range is then.
/// Cuts show as `…` at either end.
pub fn window(text: &str, focus: std::ops::Range<usize>, max: usize) -> (String, std::ops::Range<usize>) {
    let start = floor_boundary(text, focus.start);
    let end = floor_boundary(text, focus.end).max(start);
    if width(text) <= max {
        return (text.to_owned(), start..end);
    }
    let (before, from_focus) = text.split_at(start);
    // The focus and what follows it matter more than a long prefix; a short one is kept to show whose line it is.
    let kept_before = if width(before) <= max / 2 { before } else { "…" };
    let tail = clip(from_focus, max.saturating_sub(width(kept_before))).into_owned();
    let new_start = kept_before.len();
    // An ellipsis at the end belongs to no part of the focus.
    let visible = tail.strip_suffix('…').map_or(tail.len(), str::len);
    let new_end = new_start + (end - start).min(visible);
    (format!("{kept_before}{tail}"), new_start..new_end)
}

fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// `3914` → `3,914`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// `1 line`, `3,914 lines`, `2 processes`, `2 summaries`.
pub fn plural(n: u64, one: &str) -> String {
    format!("{} {}", count(n), noun(n, one))
}

/// The word alone, as the number asks for it.
pub fn noun(n: u64, one: &str) -> Cow<'_, str> {
    let vowel_before_y = || {
        one.strip_suffix('y')
            .is_some_and(|stem| stem.ends_with(['a', 'e', 'i', 'o', 'u']))
    };
    if n == 1 {
        return Cow::Borrowed(one);
    }
    Cow::Owned(match one.strip_suffix('y').filter(|_| !vowel_before_y()) {
        Some(stem) => format!("{stem}ies"),
        None if one.ends_with(['s', 'x']) || one.ends_with("ch") || one.ends_with("sh") => format!("{one}es"),
        None => format!("{one}s"),
    })
}

/// A share between 0 and 1 in percent, `87 %`.
pub fn percent(share: f64) -> String {
    format!("{:.0} %", share.clamp(0.0, 1.0) * 100.0)
}

/// A confidence in words.
pub fn likelihood(confidence: f64) -> &'static str {
    match confidence {
        c if c >= 0.95 => "almost certain",
        c if c >= 0.85 => "very likely",
        c if c >= 0.70 => "likely",
        c if c >= 0.50 => "more likely than not",
        c if c >= 0.30 => "possible",
        _ => "a weak hint",
    }
}

/// A duration as it is said, `0.4 s`, `12.3 s`, `5 min 12 s`, `2 h 3 min`.
pub fn seconds(s: f64) -> String {
    if !s.is_finite() || s < 0.0 {
        return "? s".to_owned();
    }
    if s < 59.95 {
        return format!("{s:.1} s");
    }
    let whole = s.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, m, s) => format!("{m} min {s} s"),
        (h, m, _) => format!("{h} h {m} min"),
    }
}

/// Whole seconds in the words of a clock: `3 h 15 min`, `42 s`.
pub fn span(seconds: f64) -> String {
    let seconds = seconds.round() as i64;
    let parts = [
        (seconds / 86_400, "d"),
        (seconds / 3600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let first = parts.iter().position(|(n, _)| *n > 0).unwrap_or(parts.len() - 1);
    // Beside hours a second is noise.
    let told: Vec<String> = parts
        .iter()
        .skip(first)
        .take(2)
        .filter(|(n, _)| *n > 0 || first == parts.len() - 1)
        .map(|(n, unit)| format!("{n} {unit}"))
        .collect();
    told.join(" ")
}

/// The text as a sentence begins.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// A figure without needless digits: at most two decimals, four below one.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let text = if value.abs() < 1.0 {
        format!("{value:.4}")
    } else {
        format!("{value:.2}")
    };
    match text.trim_end_matches('0').trim_end_matches('.') {
        "" | "-" | "-0" => "0".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// A figure's name and value as they are read: `gpu_free_gib`, 1.5 → `GPU free`, `1.5 GiB`; below one in MiB. Bytes are told in
/// the unit that fits.
pub fn figure(name: &str, value: f64) -> (String, String) {
    const MIB: f64 = (1_u64 << 20) as f64;
    const GIB: f64 = (1_u64 << 30) as f64;
    const UNITS: [(&str, &str); 11] = [
        ("_gib", " GiB"),
        ("_mib", " MiB"),
        ("_gb", " GB"),
        ("_bytes", " bytes"),
        ("_tokens", " tokens"),
        ("_count", ""),
        ("_fraction", " %"),
        ("_percent", " %"),
        ("_ms", " ms"),
        ("_x", "×"),
        ("_s", " s"),
    ];
    let (stem, unit) = UNITS
        .iter()
        .find_map(|(suffix, unit)| Some((name.strip_suffix(suffix)?, *unit)))
        .unwrap_or((name, ""));
    let (value, unit) = match unit {
        " GiB" if value != 0.0 && value.abs() < 1.0 => (value * 1024.0, " MiB"),
        " bytes" if value >= GIB => (value / GIB, " GiB"),
        " bytes" if value >= MIB => (value / MIB, " MiB"),
        " %" if name.ends_with("_fraction") => (value * 100.0, unit),
        _ => (value, unit),
    };
    let words: Vec<String> = stem
        .split('_')
        .map(|word| match word {
            "gpu" | "kv" | "cpu" | "nccl" | "oom" => word.to_uppercase(),
            "pytorch" | "torch" => "PyTorch".to_owned(),
            _ => word.to_owned(),
        })
        .collect();
    let whole = value.fract() == 0.0 && value.abs() >= 1000.0 && value.abs() < 1e15;
    let printed = match whole {
        true if value >= 0.0 => count(value as u64),
        _ => number(value),
    };
    (safe(&words.join(" ")).into_owned(), printed + unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_go_whole_and_everything_else_that_acts_shows() {
        assert_eq!(safe("\u{1b}[1;31mred\u{1b}[0m"), "red");
        assert_eq!(safe("a\u{1b}]0;title\u{7}b\u{1b}]8;;http://x\u{1b}\\c"), "abc");
        assert_eq!(safe("a\u{9b}2Jb\u{90}q\u{9c}c"), "abc");
        assert_eq!(safe("a\u{1b}(Bb"), "ab");
        assert_eq!(safe("bell\u{7} nul\0 bs\u{8}"), "bell\u{fffd} nul\u{fffd} bs\u{fffd}");
        assert_eq!(
            safe("ab\u{202e}cd\u{2066}e\u{200b}f\u{feff}"),
            "ab\u{fffd}cd\u{fffd}e\u{fffd}f\u{fffd}"
        );
        assert_eq!(safe("hidden\u{e0041}\u{e0042}"), "hidden\u{fffd}\u{fffd}");
        assert_eq!(safe("one\r\ntwo\tthree"), "one  two three");
        assert_eq!(safe_lines("one\r\ntwo"), "one\ntwo");
    }

    #[test]
    fn an_unfinished_sequence_swallows_no_text() {
        assert_eq!(safe("\u{1b}]0;never ends and goes on"), "0;never ends and goes on");
        assert_eq!(safe_lines("\u{1b}]0;x\nnext\u{7}"), "0;x\nnext\u{fffd}");
        assert_eq!(safe("end\u{1b}"), "end");
        assert_eq!(safe("end\u{1b}["), "end");
        assert_eq!(safe("\u{1b}\u{1b}[31mx"), "x");
    }

    #[test]
    fn honest_text_of_any_language_stays() {
        assert_eq!(
            safe("模型 загружается é e\u{301} 😀 ┃ ⋮"),
            "模型 загружается é e\u{301} 😀 ┃ ⋮"
        );
        assert_eq!(safe(&format!("a{}", "\u{301}".repeat(50))), "a\u{301}\u{301}");
    }

    #[test]
    fn a_window_keeps_its_focus_in_view() {
        let line = format!(
            "{}torch.OutOfMemoryError: CUDA out of memory. {}",
            "p".repeat(90),
            "x".repeat(300)
        );
        let (shown, focus) = window(&line, 90..112, 60);
        assert!(width(&shown) <= 60);
        assert_eq!(&shown[focus], "torch.OutOfMemoryError");
        assert!(shown.starts_with('…') && shown.ends_with('…'));
        assert_eq!(window("short", 1..3, 60), ("short".to_owned(), 1..3));
        let (shown, focus) = window(&line, 9999..99999, 20);
        assert!(width(&shown) <= 20 && focus.end <= shown.len());
    }

    #[test]
    fn a_window_never_splits_a_wide_character() {
        let line = "模".repeat(100);
        for max in 2..30 {
            for at in 0..12 {
                let (shown, focus) = window(&line, at..at + 5, max);
                assert!(width(&shown) <= max, "{max} {at} {shown}");
                assert!(shown.get(focus).is_some());
            }
        }
    }

    #[test]
    fn figures_read_as_people_say_them() {
        assert_eq!(count(1_234_567), "1,234,567");
        for (n, one, told) in [
            (1, "line", "1 line"),
            (0, "line", "0 lines"),
            (3914, "line", "3,914 lines"),
            (1, "process", "1 process"),
            (2, "process", "2 processes"),
            (2, "custom match", "2 custom matches"),
            (2, "entry", "2 entries"),
            (2, "key", "2 keys"),
        ] {
            assert_eq!(plural(n, one), told);
        }
        assert_eq!(number(0.0), "0");
        assert_eq!(number(0.02), "0.02");
        assert_eq!(number(139.8), "139.8");
        assert_eq!(seconds(312.4), "5 min 12 s");
        assert_eq!(figure("gpu_free_gib", 0.0401), ("GPU free".into(), "41.06 MiB".into()));
        assert_eq!(
            figure("max_seq_len_tokens", 32768.0),
            ("max seq len".into(), "32,768 tokens".into())
        );
        assert_eq!(
            figure("node_used_fraction", 0.950535),
            ("node used".into(), "95.05 %".into())
        );
        assert_eq!(
            figure("cap_bytes", 122_100_719_616.0),
            ("cap".into(), "113.72 GiB".into())
        );
        assert_eq!(percent(0.874), "87 %");
    }

    #[test]
    fn places_stay_where_they_are() {
        let text = "a\u{1b}[31m\u{9b}\u{202e}\u{e0001}\tü\n";
        assert_eq!(of_same_length(text), "a?[31m??\u{fffd}????\tü\n");
        assert_eq!(of_same_length(text).len(), text.len());
    }
}
