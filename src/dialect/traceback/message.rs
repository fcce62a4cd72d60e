//! How far the message of an exception reaches: which lines below its first one may belong to it, and which surely do.
//!
//! Owns that one question. Python marks no end of a message, so that a shell's prompt or a sentence of the person who
//! pasted the log stands below it like a further line of it. Never knows what a message means.

use super::lines::{exception_line, looks_like_error};

/// Reports inside an exception message that hold blank lines: Ray's memory report.
const LONG_REPORTS: &[&str] = &["running low on memory"];

/// How messages begin that have paragraphs: an HTTP status first, below it what the model hub says of it.
const PARAGRAPHS: &[&str] = &[" Client Error", " Server Error"];

/// What a message holds whose further lines say why: pydantic's, torch's of an NCCL error, one that has details.
const ANNOUNCING: &[&str] = &[" validation error", "NCCL error in: ", " the following "];

/// How the lines begin that torch puts below a CUDA error.
const HINTS: &[&str] = &[
    "Search for `cuda",
    "CUDA kernel errors might be asynchronously reported",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING",
    "Compile with `TORCH_USE_CUDA_DSA`",
];

/// Lines of a message that has paragraphs.
const PARAGRAPH_LINES: usize = 8;

/// Characters from which a line that ends in the middle of a sentence may have been broken by a terminal.
const WRAPPED: usize = 50;

/// Types whose text is the `repr` of one value: a line and no more.
const ONE_LINE: &[&str] = &["KeyError", "KeyboardInterrupt"];

/// What the catalog knows a line as, by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    /// As nothing that ends a message.
    No,
    /// As noise: it ends what announces no lines.
    Noise,
    /// As a message of its own, wherever it stands.
    Own,
}

/// Whether the exception line says all that there is: a type without a message, or one whose message is one value.
pub(super) fn is_whole(kind: &str, message: &str, line: &str) -> bool {
    let message = message.trim_end();
    if message.is_empty() {
        return !line.trim_end().ends_with(':');
    }
    let last = kind.rsplit('.').next().unwrap_or(kind);
    let quote = message.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let closed = quote.is_none_or(|q| message.len() > 1 && message.ends_with(q));
    ONE_LINE.contains(&last) && closed
}

/// Whether a line below the lines of a message is surely none of it. `logged` says that it stands
/// in one record of a logger with them, `blank` that a blank line stands between.
pub(super) fn is_over<P>(lines: &[(String, P)], text: &str, logged: bool, known: Known, blank: bool) -> bool {
    let trimmed = text.trim();
    let long = lines.iter().take(2).any(|(l, _)| holds(l, LONG_REPORTS));
    if long {
        return trimmed.starts_with("Refer to the documentation");
    }
    let paragraphs = lines.len() < PARAGRAPH_LINES && lines.first().is_some_and(|(l, _)| holds(l, PARAGRAPHS));
    let own = known == Known::Own && !(trimmed == "Killed" && in_build(lines));
    let opened = lines.iter().any(|(l, _)| opens(l));
    let another = !logged && !is_hint(trimmed) && (known == Known::Noise || begins_another(text));
    own || blank && !text.starts_with(' ') && !paragraphs || !opened && another
}

/// Whether a line begins something else wherever it stands: another exception, a warning of Python's, the prompt of a
/// shell, or what is left out of a shortened paste.
pub(super) fn begins_another(text: &str) -> bool {
    let left_out = text.trim().trim_matches(['[', ']', '(', ')', '<', '>']);
    let dots = !left_out.is_empty() && left_out.chars().all(|c| matches!(c, '.' | '…' | ' '));
    dots || is_warning(text) || is_prompt(text) || exception_line(text).is_some_and(|(kind, _)| looks_like_error(kind))
}

/// The bytes at the head of a message, its lines joined by `\n`, that surely belong to it: the first line, what is
/// indented below it, what a line announces by its last sign, and what a terminal may have broken off.
pub fn certain(message: &str) -> usize {
    let (mut end, mut before) = (0, None);
    for line in message.split('\n') {
        let belongs = match before {
            None => true,
            Some(before) => {
                let own = line.trim().is_empty() || line.starts_with([' ', '\t']) || is_hint(line);
                own || opens(before) || is_broken_off(before)
            }
        };
        if !belongs {
            return end;
        }
        if opens(line) && before.is_none_or(|b| !b.is_empty()) {
            return message.len();
        }
        end += line.len() + usize::from(before.is_some());
        before = Some(line);
    }
    end
}

/// Whether a line of a message announces the lines below it.
fn opens(line: &str) -> bool {
    let line = line.trim_end();
    line.is_empty() || line.ends_with([':', '`', '=']) || holds(line, ANNOUNCING) || holds(line, PARAGRAPHS)
}

/// Whether a line is long and ends in the middle of a sentence.
fn is_broken_off(line: &str) -> bool {
    line.chars().count() >= WRAPPED && !line.ends_with(['.', '!', '?', ')', '\'', '"', '}', ']'])
}

/// `path.py:12: UserWarning: text`, as `warnings` prints it; `sys:1: …` when the interpreter ends.
fn is_warning(text: &str) -> bool {
    let Some((place, said)) = text.split_once(": ") else {
        return false;
    };
    let category = said.split(": ").next().unwrap_or(said);
    let at_line = place
        .rsplit_once(':')
        .is_some_and(|(file, line)| !file.is_empty() && !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()));
    at_line && category.ends_with("Warning") && category.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// `user@host:~/path$ `, `(env) [user@host path]# `: what bash, with the usual settings, prints before a command.
fn is_prompt(text: &str) -> bool {
    let text = match text.strip_prefix('(').and_then(|rest| rest.split_once(") ")) {
        Some((env, rest)) if !env.contains(' ') => rest,
        _ => text,
    };
    let Some((head, _)) = text.split_once(['$', '#', '%']) else {
        return false;
    };
    let head = head.trim_start_matches('[').trim_end_matches([' ', ']']);
    let Some((user, place)) = head.split_once('@') else {
        return false;
    };
    let host = place.split([':', ' ']).next().unwrap_or(place);
    let name = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    name(user) && name(host) && place.split(' ').count() <= 2
}

fn is_hint(line: &str) -> bool {
    HINTS.iter().any(|hint| line.starts_with(hint))
}

fn holds(line: &str, marks: &[&str]) -> bool {
    marks.iter().any(|mark| line.contains(mark))
}

/// Whether the message so far is the output of a build that goes on below the command that failed: what the shell says
/// of that command is part of it.
fn in_build<P>(lines: &[(String, P)]) -> bool {
    let last = |head: &str| lines.iter().rposition(|(line, _)| line.trim_start().starts_with(head));
    last("FAILED: ") > last("ninja: build stopped")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_announces_and_what_is_indented_is_of_the_message() {
        for whole in [
            "1 validation error for ModelConfig\nInvalid repository ID",
            "NCCL error in: a.cpp:1, invalid usage\nLast error:\nDuplicate GPU detected",
            "\nCannot find a library",
            "The actor died.\n\tclass_name: A",
            "CUDA error: x\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
        ] {
            let first = whole.split('\n').next().unwrap().len();
            assert!(certain(whole) > first, "{whole}");
        }
        let broken = "The model's max seq len (40960) is larger than the maximum number of\ntokens that can be stored";
        assert_eq!(certain(broken), broken.len());
        assert_eq!(certain("no room\nI saw this yesterday, too."), "no room".len());
        assert_eq!(certain("no room"), "no room".len());
    }

    #[test]
    fn a_type_alone_and_a_key_are_whole() {
        assert!(is_whole("AssertionError", "", "AssertionError"));
        assert!(!is_whole("RuntimeError", "", "RuntimeError: "));
        assert!(is_whole("KeyError", "'a.b'", "KeyError: 'a.b'"));
        assert!(
            !is_whole("KeyError", "'a.bro", "KeyError: 'a.bro"),
            "a terminal broke it"
        );
        assert!(!is_whole("ValueError", "'a'", "ValueError: 'a'"));
    }

    #[test]
    fn warnings_prompts_and_exceptions_begin_anew() {
        for text in [
            "/usr/lib/python3.12/tempfile.py:1075: ResourceWarning: Implicitly cleaning up",
            "sys:1: DeprecationWarning: builtin type has no __module__ attribute",
            "root@gpu-01:/workspace# ",
            "(vllm) me@gpu-01:~$ nvidia-smi",
            "[me@gpu-01 logs]$ ls",
            "BrokenPipeError: [Errno 32] Broken pipe",
            "[...]",
        ] {
            assert!(begins_another(text), "{text}");
        }
        for text in [
            "Please mail me@host.org # or not",
            "  File \"a.py\"",
            "a.cu:12: error: no type",
            "Tried 1: Warning",
        ] {
            assert!(!begins_another(text), "{text}");
        }
    }
}
