//! What the lines of a traceback look like: its header, frames, rules and exception lines.
//!
//! Owns the grammar of single lines. Never knows what came before one.

use nom::bytes::complete::{tag, take_till1};
use nom::character::complete::digit1;
use nom::{IResult, Parser};

use super::RawFrame;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// The line is the traceback header and nothing else.
    Plain,
    /// A message ends in the header: `Scheduler hit an exception: Traceback (most recent call last):`.
    Intro,
}

pub(super) fn traceback_head(text: &str) -> Option<Head> {
    let text = text.trim_end();
    let before = text.strip_suffix("Traceback (most recent call last):")?;
    let before = before.trim();
    if before.is_empty() || before == "+ Exception Group" || before == "Exception Group" {
        return Some(Head::Plain);
    }
    Some(Head::Intro)
}

/// The header of a notebook's traceback, which names the type: `ValueError          Traceback (most recent call last)`.
pub(super) fn notebook_head(text: &str) -> Option<&str> {
    let kind = text.trim_end().strip_suffix("Traceback (most recent call last)")?;
    Some(kind.strip_suffix(' ')?.trim_end()).filter(|kind| is_exception_type(kind))
}

/// A frame as a notebook prints it: `File /x.py:3, in f(args)`, `/x.py in f(args)`, `Cell In[2], line 1`.
pub(super) fn notebook_frame(text: &str) -> Option<RawFrame> {
    let cell = || {
        let rest = text
            .strip_prefix("Cell In")
            .or_else(|| text.strip_prefix("Input In "))?;
        rest.starts_with('[').then_some(("<cell>", "<module>"))
    };
    let of_file = || {
        let (place, call) = text.split_once(", in ").or_else(|| text.split_once(" in "))?;
        let place = place.strip_prefix("File ").unwrap_or(place);
        let is_path = place.starts_with(['/', '~', '<']) || place.get(1..3) == Some(":\\");
        let name = call.split('(').next()?;
        let function = match name.starts_with("<cell line") {
            true => "<module>",
            false => name.rsplit('.').next()?,
        };
        is_path.then_some((place, function))
    };
    let (place, function) = cell().or_else(of_file)?;
    let (file, line) = match place.rsplit_once(':') {
        Some((file, line)) if line.bytes().all(|b| b.is_ascii_digit()) => (file, line),
        _ => (place, ""),
    };
    Some(RawFrame {
        file: file.to_owned(),
        line: line.parse().unwrap_or(0),
        function: function.to_owned(),
        code: String::new(),
    })
}

/// The line of code at which a notebook points: `----> 2 llm = LLM()`.
pub(super) fn notebook_code(text: &str) -> Option<&str> {
    let rest = text.trim_start_matches('-').strip_prefix("> ")?;
    Some(rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim())
}

/// Takes the margin of an exception group off: `  | `, `    +-`.
pub(super) fn strip_margin(text: &str) -> &str {
    let trimmed = text.trim_start();
    if let Some(rest) = trimmed.strip_prefix("| ") {
        return rest;
    }
    if trimmed == "|" {
        return "";
    }
    text
}

pub(super) fn is_group_rule(trimmed: &str) -> bool {
    trimmed.starts_with("+-") && trimmed.contains("----------------")
}

pub(super) fn is_marker(text: &str) -> bool {
    let trimmed = text.trim();
    !trimmed.is_empty() && trimmed.chars().all(|c| matches!(c, '^' | '~' | ' ' | '|'))
}

/// The head of a faulthandler dump: of one thread of several, or of the only one that it shows.
pub(super) fn is_thread_head(text: &str) -> bool {
    (text.starts_with("Current thread 0x") || text.starts_with("Thread 0x") || text.starts_with("Stack "))
        && text.trim_end().ends_with("(most recent call first):")
}

/// `  File "x.py", line 3, in f`. A paste may have lost the indentation; then only a frame with a function is one.
pub(super) fn frame_line(text: &str) -> Option<RawFrame> {
    let trimmed = text.trim_start();
    let indented = trimmed.len() < text.len();
    frame(trimmed, ", in ").filter(|f| indented || !f.function.is_empty())
}

/// `  File "x.py", line 3 in f` of faulthandler.
pub(super) fn native_frame(text: &str) -> Option<RawFrame> {
    frame(text.trim_start(), " in ")
}

pub(super) fn frame(text: &str, before_function: &str) -> Option<RawFrame> {
    fn grammar<'a>(i: &'a str, before: &str) -> IResult<&'a str, (&'a str, &'a str)> {
        let (i, (_, file, _, line, _)) = (
            tag("File \""),
            take_till1(|c| c == '"'),
            tag("\", line "),
            digit1,
            tag(before),
        )
            .parse(i)?;
        Ok((i, (file, line)))
    }
    if let Ok((function, (file, line))) = grammar(text, before_function) {
        let function = function.trim().to_owned();
        return Some(RawFrame {
            file: file.to_owned(),
            line: line.parse().ok()?,
            function,
            code: String::new(),
        });
    }
    // `File "<string>", line 1` of a syntax error has no function.
    let (rest, (_, file, _, line)) = (
        tag::<_, _, nom::error::Error<&str>>("File \""),
        take_till1(|c| c == '"'),
        tag("\", line "),
        digit1,
    )
        .parse(text)
        .ok()?;
    rest.trim().is_empty().then(|| RawFrame {
        file: file.to_owned(),
        line: line.parse().unwrap_or(0),
        function: String::new(),
        code: String::new(),
    })
}

/// Splits an exception line into its type and message: `torch.OutOfMemoryError: CUDA out of memory…`.
/// The type's last part begins with a capital, or is one of the few lower-case ones.
pub fn exception_line(text: &str) -> Option<(&str, &str)> {
    let (kind, message) = match text.split_once(": ") {
        Some((kind, message)) => (kind, message),
        None => (text.trim_end().strip_suffix(':')?, ""),
    };
    is_exception_type(kind).then_some((kind, message))
}

/// An exception line without a message: `AssertionError`, `KeyboardInterrupt`.
pub(super) fn bare_kind(text: &str) -> Option<(&str, &str)> {
    let kind = text.trim_end();
    (is_exception_type(kind) && looks_like_error(kind)).then_some((kind, ""))
}

/// Whether a word names an exception class: dotted identifiers, with a capital in the last part.
pub(super) fn is_exception_type(kind: &str) -> bool {
    let plain = kind
        .split_once('(')
        .map_or(kind, |(head, tail)| if tail.ends_with(')') { head } else { "" });
    if plain.is_empty() || plain.len() > 160 {
        return false;
    }
    let mut last = "";
    for part in plain.split('.') {
        let ok = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !ok && part != "<locals>" {
            return false;
        }
        last = part;
    }
    // numpy's `_ArrayMemoryError` and the like are private names of public errors.
    let last = last.trim_start_matches('_');
    if last.starts_with(|c: char| c.is_ascii_uppercase()) {
        return plain.contains('.') || looks_like_error(last) || last.chars().any(|c| c.is_ascii_lowercase());
    }
    // Without a module it is a tool's own word: `error: the path does not exist`.
    plain.contains('.') && matches!(last, "error" | "gaierror" | "timeout" | "herror")
}

/// Whether the name of a type says that it is an exception.
pub fn looks_like_error(kind: &str) -> bool {
    let kind = kind.split('(').next().unwrap_or(kind);
    let last = kind.rsplit('.').next().unwrap_or(kind);
    const ENDINGS: &[&str] = &[
        "Error",
        "Exception",
        "Interrupt",
        "Exit",
        "Timeout",
        "Failure",
        "Failed",
        "OutOfResources",
        "Died",
        "Abort",
        "Unavailable",
        "Terminated",
        "Expired",
        "NotFound",
        "Refused",
        "Full",
        "ExceptionGroup",
        "error",
        "gaierror",
    ];
    ENDINGS.iter().any(|e| last.ends_with(e)) && last != "Error" || kind.contains('.') && last == "Error"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exception_lines_are_told_from_prose() {
        assert_eq!(
            exception_line("torch.OutOfMemoryError: CUDA"),
            Some(("torch.OutOfMemoryError", "CUDA"))
        );
        assert_eq!(
            exception_line("socket.gaierror: [Errno -2] x"),
            Some(("socket.gaierror", "[Errno -2] x"))
        );
        assert_eq!(
            exception_line("ray.exceptions.RayTaskError(ValueError): x").map(|e| e.0),
            Some("ray.exceptions.RayTaskError(ValueError)")
        );
        assert_eq!(
            exception_line("numpy._core._exceptions._ArrayMemoryError: no room").map(|e| e.1),
            Some("no room")
        );
        assert_eq!(exception_line("INFO: x"), None);
        assert_eq!(exception_line("some words: x"), None);
        assert_eq!(exception_line("error: no such path"), None);
        assert_eq!(bare_kind("AssertionError"), Some(("AssertionError", "")));
        assert_eq!(bare_kind("Hello"), None);
    }
}
