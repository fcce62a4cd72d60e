//! How far the message of an exception reaches: which lines below its first one may belong to it, and which surely do.
//!
//! Owns that one question. Python marks no end of a message, so that a shell's prompt or a sentence of the person who
//! pasted the log stands below it like a further line of it. Never knows what a message means.

use super::lines::{exception_line, looks_like_error};
use super::tools::{is_number, is_of_build, is_of_tool};

/// Reports inside an exception message that hold blank lines: Ray's memory report.
const LONG_REPORTS: &[&str] = &["running low on memory"];

/// How messages begin that have paragraphs: an HTTP status first, below it what the model hub says of it.
const PARAGRAPHS: &[&str] = &[" Client Error", " Server Error"];

/// What a message holds whose further lines say why: pydantic's, torch's of an NCCL error, one that has details, and
/// torch's of an extension, whose build has the first line of its output there already.
const ANNOUNCING: &[&str] = &[
    VALIDATION,
    "NCCL error in: ",
    " the following ",
    "Error building extension '",
];

/// What names, alone or with a word before it, what a command printed, which stands below.
const STREAMS: &[&str] = &["stdout:", "stderr:"];

/// Below which NCCL's last warning stands, which is one line.
const LAST_ERROR: &str = "Last error:";

/// How pydantic's message begins, and what stands behind each of its reasons.
const VALIDATION: &str = " validation error";
const REASON_TYPE: &str = "[type=";

/// What stands above the frames of C++, and how each begins.
const CXX_FRAMES: &str = "(most recent call first):";
const CXX_FRAME: &str = "frame #";

/// The last line of a build that failed.
const BUILD_STOPPED: &str = "ninja: build stopped";

/// How the lines begin that torch puts below a CUDA error.
const HINTS: &[&str] = &[
    "Search for `cuda",
    "CUDA kernel errors might be asynchronously reported",
    "For debugging consider passing CUDA_LAUNCH_BLOCKING",
    "Compile with `TORCH_USE_CUDA_DSA`",
];

/// Lines of a message that has paragraphs.
const PARAGRAPH_LINES: usize = 8;

/// How a person begins, in markdown, what is quoted or listed.
const QUOTES: &[&str] = &["> ", "- ", "* "];

/// What a line ends in that need not go on.
const SENTENCE_ENDS: [char; 8] = ['.', '!', '?', ')', '\'', '"', '}', ']'];

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

/// How a line of a message was printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Printed {
    /// With the header of a logger's record.
    pub logged: bool,
    /// Up to the edge of a terminal, as far as the lines above it show where that is.
    pub full: bool,
}

/// What a line says of those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Announced {
    Nothing,
    /// The next line is of the message.
    Line,
    /// All lines are, until one that ends what was announced.
    All,
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
    let announced = lines
        .iter()
        .fold(Announced::Nothing, |so_far, (l, _)| announces(l, so_far));
    let opened = announced != Announced::Nothing;
    let another = !logged && !is_hint(trimmed) && (known == Known::Noise || begins_another(text));
    let inner = is_indented(text) && (logged || opened || lines.iter().skip(1).any(|(l, _)| is_indented(l)));
    // A compiler parts what it says by blank lines.
    let goes_on = in_build(lines) && (logged || is_of_build(text));
    let parted = blank && !inner && !paragraphs && !goes_on;
    own || parted || !opened && another
}

/// Whether a line begins something else wherever it stands: another exception, a warning of Python's, the prompt of a
/// shell, or what is left out of a shortened paste.
pub(super) fn begins_another(text: &str) -> bool {
    let left_out = text.trim().trim_matches(['[', ']', '(', ')', '<', '>']);
    let dots = !left_out.is_empty() && left_out.chars().all(|c| matches!(c, '.' | '…' | ' '));
    dots || is_warning(text) || is_prompt(text) || exception_line(text).is_some_and(|(kind, _)| looks_like_error(kind))
}

/// The bytes at the head of a message, its lines joined by `\n`, that surely belong to it: the first line, what stands in
/// one record of a logger with it, what is indented below it, what a line announces, what a compiler, linker or loader
/// says, and what a terminal broke off. `printed` holds how each line was printed, `headed` says that a header stands
/// before each line of the record: then one without is at most the rest of a broken one.
pub fn certain(message: &str, printed: &[Printed], headed: bool) -> usize {
    let (mut end, mut announced, mut before) = (0, Announced::Nothing, None);
    let validation = message
        .split('\n')
        .next()
        .is_some_and(|first| first.contains(VALIDATION));
    for (i, line) in message.split('\n').enumerate() {
        let printed = printed.get(i).copied().unwrap_or_default();
        // The name of a field, below which its reason stands.
        let field = validation && !line.trim().contains(' ');
        let belongs = before.is_none_or(|broken: bool| {
            let below = announced != Announced::Nothing || field || is_inner(line);
            printed.logged || broken && continues(line) || !headed && below
        });
        if !belongs {
            break;
        }
        announced = if field {
            Announced::All
        } else {
            announces(line, announced)
        };
        end += line.len() + usize::from(before.is_some());
        before = Some(printed.full && !line.ends_with(SENTENCE_ENDS));
    }
    end
}

/// Whether a line is part of a message by its own form.
fn is_inner(line: &str) -> bool {
    let quoted = QUOTES.iter().any(|mark| line.trim_start().starts_with(mark));
    let below = line.is_empty() || is_indented(line) && !quoted || line.starts_with(CXX_FRAME);
    below || is_hint(line) || is_stream(line) || line.starts_with(LAST_ERROR) || is_of_tool(line)
}

fn is_indented(line: &str) -> bool {
    line.starts_with([' ', '\t'])
}

/// What is announced below a line of a message. `so_far` is what was before it.
fn announces(line: &str, so_far: Announced) -> Announced {
    let text = line.trim_end();
    let ends = text.starts_with(BUILD_STOPPED) || text.ends_with(']') && text.contains(REASON_TYPE);
    match so_far {
        _ if text == LAST_ERROR => Announced::Line,
        _ if ends || text.ends_with(CXX_FRAMES) => Announced::Nothing,
        Announced::All => Announced::All,
        _ if opens(text) => Announced::All,
        _ => Announced::Nothing,
    }
}

/// Whether a line of a message announces the lines below it.
fn opens(line: &str) -> bool {
    let marks = line.is_empty() || line.ends_with([':', '`', '=']);
    marks || holds(line, ANNOUNCING) || holds(line, PARAGRAPHS) || is_stream(line)
}

/// Whether a line names what a command printed, which follows below: `stdout:`, `Captured stderr:`.
fn is_stream(line: &str) -> bool {
    let mut words = line.split_whitespace().rev();
    let named = |word: &str| STREAMS.iter().any(|stream| word.eq_ignore_ascii_case(stream));
    words.next().is_some_and(named) && words.nth(1).is_none()
}

/// Whether a line begins as the rest of one that was broken off: within a sentence or a word.
fn continues(line: &str) -> bool {
    line.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit() || "_./,;:)]}'".contains(c))
}

/// `path.py:12: UserWarning: text`, as `warnings` prints it; `sys:1: …` when the interpreter ends.
fn is_warning(text: &str) -> bool {
    let Some((place, said)) = text.split_once(": ") else {
        return false;
    };
    let category = said.split(": ").next().unwrap_or(said);
    let at_line = place
        .rsplit_once(':')
        .is_some_and(|(file, line)| !file.is_empty() && is_number(line));
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
pub(super) fn in_build<P>(lines: &[(String, P)]) -> bool {
    let last = |head: &str| lines.iter().rposition(|(line, _)| line.trim_start().starts_with(head));
    last("FAILED: ") > last(BUILD_STOPPED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sure(message: &str) -> usize {
        certain(message, &[], false)
    }

    #[test]
    fn what_a_line_announces_and_what_is_indented_is_of_the_message() {
        for whole in [
            "1 validation error for ModelConfig\nInvalid repository ID",
            "NCCL error in: a.cpp:1, invalid usage\nLast error:\nDuplicate GPU detected",
            "Internal check failed.\nLast error:\nDuplicate GPU detected",
            "\nCannot find a library",
            "The actor died.\n\tclass_name: A",
            "CUDA error: x\nCompile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.",
            "Error building extension 'a': [1/2] nvcc -c a.cu\nFAILED: a.o\nKilled\nninja: build stopped: subcommand failed.",
            "Command failed with status 1.\nSTDOUT:\nall the output\nstderr: no room\nfor it",
            "Internal codegen error\n`ptxas` stderr:\nno room",
        ] {
            assert_eq!(sure(whole), whole.len(), "{whole}");
        }
        assert_eq!(sure("no room\nI saw this yesterday, too."), "no room".len());
        assert_eq!(sure("no room"), "no room".len());
        assert_eq!(sure("no room\nBelow there is stderr:\nno room"), "no room".len());
        let stopped = "Ninja build failed. Ninja output:\nFAILED: a.o\nninja: build stopped: subcommand failed.";
        assert_eq!(sure(&format!("{stopped}\nWith gcc 12 I see more.")), stopped.len());
    }

    #[test]
    fn what_a_tool_says_is_of_the_message_and_what_a_person_indents_or_heads_so_is_not() {
        let first = "Failed to load.";
        let below = |line: &str| sure(&format!("{first}\n{line}")) - first.len();
        for line in [
            "/usr/bin/ld: cannot find -lcuda",
            "  key: value",
            "`ptxas` stderr:",
            "STDERR:",
        ] {
            assert_eq!(below(line), line.len() + 1, "{line}");
        }
        for line in [
            "cc: @someone: I get CUDA out of memory too",
            "stderr: nothing else, but yesterday CUDA out of memory",
            "  > RuntimeError: CUDA error: an illegal memory access was encountered",
            "  - No space left on device: checked, there is enough",
            "\t* CUDA out of memory: no",
        ] {
            assert_eq!(below(line), 0, "{line}");
        }
    }

    #[test]
    fn a_blank_line_ends_what_neither_indents_nor_announces_more() {
        let over = |lines: &[&str], text: &str| {
            let lines: Vec<(String, ())> = lines.iter().map(|line| ((*line).to_owned(), ())).collect();
            is_over(&lines, text, false, Known::No, true)
        };
        assert!(over(&["Failed to load."], "    Yesterday it was another."));
        assert!(!over(&["Failed to load. Run:"], "    pip install x"));
        assert!(!over(&["Failed to load.", "  a: 1"], "  b: 2"));
        let build = ["Error building extension 'a': [1/2] nvcc -c a.cu", "FAILED: a.o"];
        assert!(!over(&build, "1 error detected in the compilation of \"a.cu\"."));
        assert!(!over(&build, "ninja: build stopped: subcommand failed."));
        assert!(over(&build, "On my other box c++: fatal error: no room"));
    }

    #[test]
    fn a_line_that_fills_the_terminal_goes_on_within_a_sentence() {
        let first = "The model's max seq len (40960) is larger than the maximum number of";
        let full = Printed {
            full: true,
            ..Printed::default()
        };
        let rest = |below: &str, printed| certain(&format!("{first}\n{below}"), &[printed], false) - first.len();
        assert!(rest("tokens that can be stored", full) > 0);
        assert_eq!(rest("Tokens were missing yesterday, too.", full), 0);
        assert_eq!(rest("tokens that can be stored", Printed::default()), 0);
    }

    #[test]
    fn what_stands_in_one_record_of_a_logger_is_one_message() {
        let logged = Printed {
            logged: true,
            ..Printed::default()
        };
        let message = "no room\nfor the planes:\nI saw this yesterday, too.";
        let record = "no room\nfor the planes:";
        assert_eq!(certain(message, &[logged, logged], true), record.len());
        assert_eq!(certain(message, &[logged], true), "no room".len());
        assert_eq!(certain(message, &[logged, logged], false), message.len());
    }

    #[test]
    fn what_was_announced_ends() {
        for said in [
            "NCCL error in: a.cpp:1, invalid usage\nncclInvalidUsage: usage\nLast error:\nDuplicate GPU detected",
            "2 validation errors for CacheConfig\nblock_size\n  Input should be 16 [type=literal, input_value=1]\nspace\nToo \
             much.\nSee below. [type=value_error, input_value=2]\n    For further information visit x",
            "failed to recv\n  Exception raised from recvBytes at a.hpp:670 (most recent call first):\nframe #0: c10::Error",
        ] {
            assert_eq!(
                sure(&format!("{said}\nWith others I see no room.")),
                said.len(),
                "{said}"
            );
        }
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
