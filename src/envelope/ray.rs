//! Ray's driver output: `(name pid=1, ip=10.0.0.2) text`, repeated lines and the tokens of worker files.
//!
//! Owns these grammars. vLLM's own `(EngineCore pid=1) ` has the same form and is left for the dialect.

use nom::branch::alt;
use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::{char, i64 as integer};
use nom::combinator::opt;
use nom::sequence::{preceded, terminated};
use nom::{IResult, Parser};

use super::grammar;
use super::said::{RaySaid, Said};

/// A longer name, in bytes, is no name of an actor.
const LONGEST_NAME: usize = 200;

/// Peels one driver prefix.
pub(super) fn driver<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    // The driver's own output may have got vLLM's prefix in front of what Ray printed there: the inner one is the
    // process that wrote the text.
    if let Some((rest, outer)) = worker(s)
        && outer.ip.is_none()
        && is_vllm(outer.name)
    {
        let (rest, ray) = prefix(rest)?;
        return (!is_vllm(ray.name) || ray.ip.is_some()).then(|| {
            said.ray = Some(ray);
            rest
        });
    }
    let (rest, ray) = prefix(s)?;
    said.ray = Some(ray);
    Some(rest)
}

fn prefix(s: &str) -> Option<(&str, RaySaid<'_>)> {
    worker(s).or_else(|| service(s).ok().map(|(rest, ray)| (behind(rest), ray)))
}

/// `(RayWorkerWrapper pid=12, ip=10.0.0.2) `, `(pid=12) `, `(pid=runtime_env, ip=10.0.0.2) `
fn worker(s: &str) -> Option<(&str, RaySaid<'_>)> {
    type Parts<'a> = ((Option<i64>, &'a str), Option<&'a str>);
    fn parts(s: &str) -> IResult<&str, Parts<'_>> {
        let number = integer.map(|pid| (Some(pid), ""));
        let word = alt((tag("gcs_server"), tag("runtime_env"))).map(|word| (None, word));
        let ip = opt(preceded(tag(", ip="), take_while1(|c| c != ')')));
        terminated((alt((number, word)), ip), char(')')).parse(s)
    }
    let inside = s.strip_prefix('(')?;
    let (name, fields) = inside.split_at_checked(grammar::pid(inside.as_bytes())?)?;
    let fields = fields.strip_prefix("pid=").filter(|_| name.len() < LONGEST_NAME)?;
    let name = match name.strip_suffix(' ') {
        Some(name) => name,
        None if name.is_empty() => "",
        None => return None,
    };
    // `(Actor(…): job ID=…, pid=…` of an out-of-memory report is no prefix.
    if name.ends_with(',') || (name.contains('=') && !is_vllm(name)) {
        return None;
    }
    let (rest, ((pid, word), ip)) = parts(fields).ok()?;
    let name = if word.is_empty() { name } else { word };
    Some((behind(rest), RaySaid { name, pid, ip }))
}

/// `(raylet, ip=10.0.0.2) `, `(autoscaler +1m2s) `, `(gcs_server) `
fn service(s: &str) -> IResult<&str, RaySaid<'_>> {
    let node = (
        alt((tag("raylet"), tag("gcs_server"))),
        opt(preceded(tag(", ip="), take_while1(|c| c != ')'))),
    );
    let autoscaler = terminated(
        tag("autoscaler"),
        (
            tag(" +"),
            take_while1(|c: char| c.is_ascii_digit() || "hms".contains(c)),
        ),
    );
    let name = alt((node, autoscaler.map(|name| (name, None))));
    let (rest, (_, (name, ip), _)) = (char('('), name, char(')')).parse(s)?;
    Ok((rest, RaySaid { name, pid: None, ip }))
}

fn behind(s: &str) -> &str {
    s.strip_prefix(' ').unwrap_or(s)
}

/// The labels of vLLM's own processes, over all versions.
fn is_vllm(name: &str) -> bool {
    const EXACT: [&str; 7] = [
        "Worker",
        "VllmWorker",
        "VllmWorkerProcess",
        "EngineCore",
        "APIServer",
        "DPSupervisor",
        "VLLM_DP_Coordinator",
    ];
    const STARTS: [&str; 9] = [
        "Worker_",
        "VllmWorker ",
        "VllmWorker-",
        "EngineCore_",
        "APIServer_",
        "ApiServer_",
        "MainProcess",
        "SpawnProcess-",
        "Process-",
    ];
    EXACT.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

/// Splits ` [repeated 3x across cluster]`, with or without the hint behind it, off the end of a text.
pub(super) fn repeated(text: &str) -> (&str, u32) {
    const HINT: &str = "(Ray deduplicates logs by default.";
    let bare = match text.as_bytes().last() {
        Some(b']') => text,
        // The hint has no bracket inside.
        Some(b')') => match memchr::memrchr(b'(', text.as_bytes()) {
            Some(at) if text.split_at(at).1.starts_with(HINT) => text.split_at(at).0.trim_end(),
            _ => return (text, 0),
        },
        _ => return (text, 0),
    };
    let split = || {
        let head = bare.strip_suffix("x across cluster]")?;
        let digits = head.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (head, number) = head.split_at(head.len() - digits);
        let times = number.parse().ok()?;
        Some((head.strip_suffix("[repeated ")?, times))
    };
    match split() {
        Some((rest, times)) => (rest.strip_suffix(' ').unwrap_or(rest), times),
        None => (text, 0),
    }
}

/// A line of a worker's file that is no log line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// `:actor_name:RayWorkerWrapper` or `:task_name:f`: who writes the rest of the file.
    Name(&'a str),
    /// `:job_id:01000000`
    Other,
}

/// Recognises the magic tokens that Ray's log monitor takes out of worker files.
pub(super) fn token(s: &str) -> Option<Token<'_>> {
    let rest = s.strip_prefix(':')?;
    if let Some(name) = rest
        .strip_prefix("actor_name:")
        .or_else(|| rest.strip_prefix("task_name:"))
    {
        return Some(Token::Name(name.trim_end()));
    }
    rest.starts_with("job_id:").then_some(Token::Other)
}

/// What the raylet marks for printing: `:info_message:text`.
pub(super) fn marked(s: &str) -> Option<&str> {
    s.strip_prefix(":info_message:")
        .or_else(|| s.strip_prefix(":event_summary:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peeled(line: &str) -> Option<(&str, RaySaid<'_>)> {
        let mut said = Said::default();
        let rest = driver(line, &mut said)?;
        Some((rest, said.ray.unwrap()))
    }

    #[test]
    fn driver_prefixes() {
        let ray = |name, pid, ip| RaySaid { name, pid, ip };
        for (line, expected) in [
            (
                "(RayWorkerWrapper pid=331, ip=10.0.0.2)   File",
                ray("RayWorkerWrapper", Some(331), Some("10.0.0.2")),
            ),
            ("(RayWorkerProc pid=331)   File", ray("RayWorkerProc", Some(331), None)),
            (
                "(ServeReplica:app:dep pid=7)   File",
                ray("ServeReplica:app:dep", Some(7), None),
            ),
            ("(pid=7)   File", ray("", Some(7), None)),
            (
                "(pid=runtime_env, ip=10.0.0.2)   File",
                ray("runtime_env", None, Some("10.0.0.2")),
            ),
            ("(raylet)   File", ray("raylet", None, None)),
            ("(raylet, ip=10.0.0.2)   File", ray("raylet", None, Some("10.0.0.2"))),
            ("(autoscaler +1m2s)   File", ray("autoscaler", None, None)),
            ("(my actor (two) pid=7)   File", ray("my actor (two)", Some(7), None)),
            (
                "(EngineCore_0 pid=1159) (RayWorkerWrapper pid=1273)   File",
                ray("RayWorkerWrapper", Some(1273), None),
            ),
            (
                "(APIServer pid=1) (DPEngineCoreActor pid=2)   File",
                ray("DPEngineCoreActor", Some(2), None),
            ),
            (
                "(Worker pid=7, ip=10.0.0.2)   File",
                ray("Worker", Some(7), Some("10.0.0.2")),
            ),
        ] {
            assert_eq!(peeled(line), Some(("  File", expected)), "{line}");
        }
        assert_eq!(peeled("(raylet)").map(|p| p.0), Some(""));
    }

    #[test]
    fn other_brackets_stay() {
        for line in [
            "(EngineCore_DP0 pid=77) INFO",
            "(VllmWorker rank=1 pid=191128) ERROR",
            "(EngineCore_DP0 pid=77) (Worker_TP0 pid=91) INFO",
            "(Worker pid=7) x",
            "(global lru) x",
            "(Actor(ID=1): job ID=01, pid=12) x",
            "(Actor(MyActor, 1): job ID=01000000, pid=12, actual memory used=1GB)",
            "(raylets) x",
            "(a pid=x) y",
            "(pid 3) y",
        ] {
            assert_eq!(peeled(line), None, "{line}");
        }
    }

    #[test]
    fn repeats() {
        assert_eq!(repeated("OSError: x [repeated 3x across cluster]"), ("OSError: x", 3));
        let hint = "x [repeated 12x across cluster] (Ray deduplicates logs by default. Set RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io/en/master/x.html for more options.)";
        assert_eq!(repeated(hint), ("x", 12));
        for line in ["x [repeated 3x]", "x]", "", "f(x)", "[repeated x across cluster]"] {
            assert_eq!(repeated(line), (line, 0));
        }
    }

    #[test]
    fn tokens() {
        assert_eq!(
            token(":actor_name:RayWorkerWrapper"),
            Some(Token::Name("RayWorkerWrapper"))
        );
        assert_eq!(token(":job_id:01000000"), Some(Token::Other));
        assert_eq!(token(":x"), None);
        assert_eq!(marked(":info_message:hello"), Some("hello"));
    }
}
