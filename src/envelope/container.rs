//! Container transports: CRI and `docker logs -t` stamps, `kubectl logs --prefix`, compose's names.
//!
//! Owns their grammars. Whether a name before a `|` is a transport's is decided by the profile, not here.

use nom::bytes::complete::{tag, take_while1};
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

use crate::record::Stream;

use super::said::Said;
use super::{fields, stamps};

/// `2026-11-25T12:00:00.123456789Z stderr F text`; `P` marks a part that the next line of the stream goes on with.
pub(super) fn cri<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (at, rest) = stamps::iso(s)?;
    let rest = rest.strip_prefix(' ')?;
    let (stream, rest) = stream(rest)?;
    let (partial, rest) = match rest.strip_prefix('F') {
        Some(rest) => (false, rest),
        None => (true, rest.strip_prefix('P')?),
    };
    // An empty text may have lost its blank.
    let rest = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    said.at(at);
    said.stream = Some(stream);
    said.partial = partial;
    Some(rest)
}

fn stream(s: &str) -> Option<(Stream, &str)> {
    if let Some(rest) = s.strip_prefix("stderr ") {
        return Some((Stream::Stderr, rest));
    }
    Some((Stream::Stdout, s.strip_prefix("stdout ")?))
}

/// `[pod/vllm-0/server] text`
pub(super) fn kubectl<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    fn prefix(s: &str) -> IResult<&str, (&str, &str)> {
        terminated(
            (
                preceded(tag("[pod/"), take_while1(is_name)),
                preceded(tag("/"), take_while1(is_name)),
            ),
            tag("]"),
        )
        .parse(s)
    }
    let (rest, (pod, container)) = prefix(s).ok()?;
    said.node = Some(pod);
    said.container = Some(container);
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `vllm-0 server ` of stern, which puts pod and container in front, after the namespace where it reads several and
/// before the stamp where it is asked for one. A pod is named for what made it: `set-0`, `deployment-7d9f8b6c5d-x2k4p`.
pub(super) fn stern<'a>(prefix: &'a str, said: &mut Said<'a>) -> bool {
    let is_label = |word: &&str| {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
        word.starts_with(|c: char| c.is_ascii_lowercase()) && word.bytes().all(letters)
    };
    let words = prefix.split_ascii_whitespace();
    let names: Vec<&str> = words.take_while(is_label).collect();
    let rest = prefix.split_ascii_whitespace().count() - names.len();
    let (pod, container) = match names.as_slice() {
        [pod, container] | [_, pod, container] if rest < 2 => (*pod, *container),
        _ => return false,
    };
    if pod.contains('-') {
        (said.node, said.container) = (Some(pod), Some(container));
    }
    pod.contains('-')
}

/// `name-1  | text`: the name, the column of the bar and the text. Also `service.1.id@node    | text` of a swarm.
pub(super) fn piped(s: &str) -> Option<(&str, usize, &str)> {
    fn name(s: &str) -> IResult<&str, &str> {
        take_while1(|c| is_name(c) || c == '@').parse(s)
    }
    let (rest, name) = name(s).ok()?;
    let bar = rest.trim_start_matches(' ');
    let column = s.len() - bar.len();
    let text = bar.strip_prefix('|')?;
    if column == name.len() || !name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
        return None;
    }
    Some((name, column, text.strip_prefix(' ').unwrap_or(text)))
}

/// Whether a name is that of a numbered container, `vllm-1`; compose puts two blanks behind the longest of them.
pub(super) fn is_instance(name: &str) -> bool {
    let number = name.rsplit_once(['-', '_']).map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.len() < 4 && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Notes the name of a compose or swarm container.
pub(super) fn named<'a>(name: &'a str, said: &mut Said<'a>) {
    match name.split_once('@') {
        Some((task, node)) => {
            said.container = Some(task);
            said.node = Some(node);
        }
        None => said.container = Some(name),
    }
}

/// `{app="vllm", pod="vllm-0"} text` of logcli, behind its stamp.
pub(super) fn labels<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let mut rest = s.strip_prefix('{')?;
    loop {
        let (name, value) = rest.split_once("=\"")?;
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        // A quote inside a value is escaped.
        let (value, behind) = fields::split_unescaped(value, '"')?;
        match name {
            "pod" | "host" | "hostname" | "node" | "node_name" | "instance" => said.node = Some(value),
            "container" | "container_name" | "compose_service" => said.container = Some(value),
            _ => {}
        }
        rest = behind;
        match rest.strip_prefix(", ").or_else(|| rest.strip_prefix(',')) {
            Some(next) => rest = next,
            None => {
                let text = rest.strip_prefix('}')?;
                return Some(text.strip_prefix(' ').unwrap_or(text));
            }
        }
    }
}

/// `job<TAB>step<TAB>2026-11-25T12:00:00.1234567Z text` of `gh run view --log`.
pub(super) fn step<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (_job, rest) = s.split_once('\t')?;
    let (_step, rest) = rest.split_once('\t')?;
    let (at, rest) =
        stamps::iso(rest.strip_prefix('\u{feff}').unwrap_or(rest)).filter(|(at, _)| at.offset.is_some())?;
    said.at(at);
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cri_lines() {
        let mut said = Said::default();
        let line = "2026-11-29T14:30:04.319170111+00:00 stderr F   File \"a.py\", line 1, in f";
        assert_eq!(cri(line, &mut said), Some("  File \"a.py\", line 1, in f"));
        assert_eq!((said.stream, said.partial), (Some(Stream::Stderr), false));
        assert_eq!(cri("2026-11-29T14:30:04.3Z stdout P half", &mut said), Some("half"));
        assert!(said.partial);
        assert_eq!(cri("2026-11-29T14:30:04.3Z stdout F", &mut said), Some(""));
        assert_eq!(cri("2026-11-29T14:30:04.3Z stdout Full", &mut said), None);
    }

    #[test]
    fn kubectl_prefix() {
        let mut said = Said::default();
        assert_eq!(kubectl("[pod/vllm-0/server] INFO x", &mut said), Some("INFO x"));
        assert_eq!((said.node, said.container), (Some("vllm-0"), Some("server")));
        assert_eq!(kubectl("[pod/vllm-0] x", &mut said), None);
    }

    #[test]
    fn logcli_labels() {
        let mut said = Said::default();
        let line = r#"{app="a\"b", pod="vllm-0",container="server"}   File"#;
        assert_eq!(labels(line, &mut said), Some("  File"));
        assert_eq!((said.node, said.container), (Some("vllm-0"), Some("server")));
        for line in [r#"{"app": "x"} y"#, "{a=1} x", "{} x", r#"{a="b" x"#] {
            assert_eq!(labels(line, &mut said), None, "{line}");
        }
    }

    #[test]
    fn steps_of_hosted_ci() {
        let mut said = Said::default();
        assert_eq!(
            step("test\tRun server\t2026-11-25T12:00:00.1234567Z   File", &mut said),
            Some("  File")
        );
        assert_eq!(step("2026-11-25 12:00:00,123\tINFO\tx", &mut said), None);
    }

    #[test]
    fn compose_names() {
        assert_eq!(piped("vllm-1  | INFO"), Some(("vllm-1", 8, "INFO")));
        assert_eq!(piped("vllm-1  |"), Some(("vllm-1", 8, "")));
        assert_eq!(
            piped("web.1.x@node-b    |   File"),
            Some(("web.1.x@node-b", 18, "  File"))
        );
        for line in ["a|b", " | b", "  | Traceback", "two words | x", "----- | x"] {
            assert_eq!(piped(line), None, "{line}");
        }
    }
}
