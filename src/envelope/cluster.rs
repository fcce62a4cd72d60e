//! Launchers of many tasks: srun, mpirun, pdsh and clush, torchrun's `--tee`, torch's rank prefix, honcho.
//!
//! Owns their grammars. The forms that any text could have (`3: `, `node-b: `) are only taken where the profile says
//! so.

use nom::bytes::complete::{tag, take_while, take_while1};
use nom::character::complete::{char, u32 as number};
use nom::sequence::{delimited, preceded, separated_pair};
use nom::{IResult, Parser};

use crate::record::Stream;

use super::said::Said;
use super::{container, grammar, stamps};

/// `[1,3]<stderr>:text` of Open MPI; 5.x writes a job name for the first number and a blank behind the colon.
pub(super) fn mpirun<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    fn prefix(s: &str) -> IResult<&str, (&str, u32, &str)> {
        let job = take_while1(|c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '@' | '.'));
        let task = delimited(char('['), separated_pair(job, char(','), number), char(']'));
        let stream = delimited(char('<'), take_while1(|c: char| c.is_ascii_lowercase()), tag(">:"));
        (task, stream).map(|((job, rank), stream)| (job, rank, stream)).parse(s)
    }
    let (rest, (job, rank, stream)) = prefix(s).ok()?;
    said.stream = match stream {
        "stdout" => Some(Stream::Stdout),
        "stderr" | "stddiag" => Some(Stream::Stderr),
        _ => return None,
    };
    said.task = Some(rank);
    let named = job.bytes().any(|b| !b.is_ascii_digit());
    Some(if named {
        rest.strip_prefix(' ').unwrap_or(rest)
    } else {
        rest
    })
}

/// `[default1]:text` of `torchrun --tee`: the role and the local rank.
pub(super) fn tee<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    fn prefix(s: &str) -> IResult<&str, (&str, u32)> {
        delimited(
            char('['),
            (take_while1(|c: char| c.is_ascii_alphabetic()), number),
            tag("]:"),
        )
        .parse(s)
    }
    let (rest, (role, local)) = prefix(s).ok()?;
    // `[rank0]:` is torch's own and says the global rank.
    if role == "rank" {
        return None;
    }
    said.local = Some(local);
    Some(rest)
}

/// `[rank0]: text`, which torch's exception hook puts before every line of a traceback. `[rank0]:[E1125 …` is the
/// header of a torch logger and stays.
pub(super) fn rank<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (rank, rest) = grammar::rank(s)?;
    let text = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    said.rank = Some(rank);
    Some(text)
}

/// `14:24:12 head.1   | text` of honcho and foreman.
pub(super) fn honcho<'a>(s: &'a str, said: &mut Said<'a>) -> Option<&'a str> {
    let (name, _, text) = container::piped(stamps::time_of_day(s)?.strip_prefix(' ')?)?;
    // The instances of a process are numbered. `13:00:07 INFO | text` is a program's own layout.
    if name != "system" && name.rsplit_once('.').is_none_or(|(_, n)| n.parse::<u32>().is_err()) {
        return None;
    }
    container::named(name, said);
    Some(text)
}

/// ` 3: text` of `srun -l`.
pub(super) fn labelled(s: &str) -> Option<(u32, &str)> {
    fn prefix(s: &str) -> IResult<&str, u32> {
        delimited(take_while(|c| c == ' '), number, char(':')).parse(s)
    }
    numbered(prefix(s).ok()?)
}

/// `[3] text` of `mpiexec -l`.
pub(super) fn bracketed(s: &str) -> Option<(u32, &str)> {
    fn prefix(s: &str) -> IResult<&str, u32> {
        delimited(char('['), number, char(']')).parse(s)
    }
    numbered(prefix(s).ok()?)
}

fn numbered((rest, rank): (&str, u32)) -> Option<(u32, &str)> {
    let text = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    (rank < 100_000).then_some((rank, text))
}

/// `node-b: text` of pdsh, clush and MPI jobs.
pub(super) fn host(s: &str) -> Option<(&str, &str)> {
    fn prefix(s: &str) -> IResult<&str, &str> {
        preceded(
            nom::combinator::peek(nom::character::complete::satisfy(|c| c.is_ascii_alphanumeric())),
            take_while1(is_host),
        )
        .parse(s)
    }
    let (rest, host) = prefix(s).ok()?;
    let rest = rest.strip_prefix(':')?;
    let text = if rest.is_empty() { rest } else { rest.strip_prefix(' ')? };
    host_like(host).then_some((host, text))
}

fn is_host(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}

/// Exceptions, levels, file names and tools write `name: ` as well; no cluster names its nodes so.
fn host_like(name: &str) -> bool {
    const WORDS: [&str; 9] = [
        "Exit",
        "Interrupt",
        "Error",
        "Exception",
        "Warning",
        "Iteration",
        "srun",
        "slurmstepd",
        "Note",
    ];
    name.len() <= 64
        && name.bytes().any(|b| b.is_ascii_alphabetic())
        && !name.bytes().all(|b| b.is_ascii_uppercase())
        && !WORDS.iter().any(|word| name.ends_with(word))
        && ![".py", ".sh", ".cc", ".cpp", ".so", ".yaml", ".json"]
            .iter()
            .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_prefixes() {
        let mut said = Said::default();
        assert_eq!(mpirun("[1,3]<stderr>:  File", &mut said), Some("  File"));
        assert_eq!((said.task, said.stream), (Some(3), Some(Stream::Stderr)));
        assert_eq!(
            mpirun("[prterun-node-a-7@1,2]<stdout>:   File", &mut said),
            Some("  File")
        );
        assert_eq!(tee("[default1]:[rank5]: x", &mut said), Some("[rank5]: x"));
        assert_eq!((said.rank, said.local), (None, Some(1)));
        assert_eq!(rank("[rank5]:   File", &mut said), Some("  File"));
        assert_eq!(rank("[rank5]:", &mut said), Some(""));
        assert_eq!(said.rank, Some(5));
        assert_eq!(honcho("14:24:12 head.1   | INFO", &mut said), Some("INFO"));
        assert_eq!(said.container, Some("head.1"));
        assert_eq!(honcho("14:24:12 INFO | x", &mut said), None);
        assert_eq!(labelled(" 3:   File"), Some((3, "  File")));
    }

    #[test]
    fn torch_headers_stay() {
        let mut said = Said::default();
        for line in [
            "[rank5]:[E1118 20:32:23.957487695 ProcessGroupNCCL.cpp:681] x",
            "[rank0]:E0731 16:03:52.115000 1 a.py:1] x",
            "[rankx]: y",
        ] {
            assert_eq!(rank(line, &mut said), None);
            assert_eq!(tee(line, &mut said), None);
        }
    }

    #[test]
    fn names_that_are_no_hosts() {
        for line in [
            "ValueError: x",
            "KeyboardInterrupt: x",
            "INFO: x",
            "a.py: x",
            "srun: error: x",
            "key : x",
            "key:x",
            "SystemExit: 1",
        ] {
            assert_eq!(host(line), None, "{line}");
        }
        assert_eq!(host("node-b: x"), Some(("node-b", "x")));
    }
}
