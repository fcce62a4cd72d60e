//! The header Ray puts above a remote traceback: `ray::RayWorkerWrapper.load_model() (pid=187, ip=10.0.0.1, …)`.
//!
//! Owns that one grammar: which actor's method, in which process, on which node. Never judges the exception.

use nom::bytes::complete::{tag, take_while1};
use nom::character::complete::digit1;
use nom::combinator::opt;
use nom::sequence::preceded;
use nom::{IResult, Parser};

use crate::event::Victim;

/// What a carrier tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrier<'a> {
    /// Process id.
    pub pid: Option<i64>,
    /// Node's address.
    pub ip: Option<&'a str>,
    /// Actor class or task name.
    pub name: &'a str,
    /// Method, for an actor.
    pub method: Option<&'a str>,
}

impl Carrier<'_> {
    /// The process it tells of.
    pub fn victim(&self) -> Victim {
        Victim {
            pid: self.pid,
            label: Some(self.name.into()),
            ..Victim::default()
        }
    }
}

/// The first carrier header in a message.
pub fn find(message: &str) -> Option<Carrier<'_>> {
    let mut starts = message.match_indices("ray::").map(|(at, _)| at);
    starts.find_map(|at| {
        let (rest, carrier) = carrier(message.get(at..)?).ok()?;
        // `ray::rpc::NodeInfoGcsService` is a name in Ray's own code.
        (!rest.starts_with("::")).then_some(carrier)
    })
}

fn carrier(input: &str) -> IResult<&str, Carrier<'_>> {
    let word = |i| take_while1(|c: char| c.is_ascii_alphanumeric() || c == '_').parse(i);
    let (rest, (_, name)) = (tag("ray::"), word).parse(input)?;
    let (rest, method) = opt(preceded(tag("."), word)).parse(rest)?;
    let (rest, _) = opt(tag("()")).parse(rest)?;
    let (rest, pid) = opt(preceded(tag(" (pid="), digit1)).parse(rest)?;
    let (rest, ip) = opt(preceded(
        tag(", ip="),
        take_while1(|c: char| !matches!(c, ',' | ')' | ' ')),
    ))
    .parse(rest)?;
    let pid = pid.and_then(|p: &str| p.parse().ok());
    Ok((rest, Carrier { pid, ip, name, method }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_and_tasks() {
        let c = find("x ray::RayWorkerWrapper.load_model() (pid=187, ip=10.0.0.1, actor_id=9)").unwrap();
        assert_eq!(
            (c.name, c.method, c.pid, c.ip),
            ("RayWorkerWrapper", Some("load_model"), Some(187), Some("10.0.0.1"))
        );
        let c = find("ray::loader() (pid=5, ip=10.0.0.2)").unwrap();
        assert_eq!((c.name, c.method, c.pid), ("loader", None, Some(5)));
        assert_eq!(find("no carrier"), None);
        assert_eq!(find("ray::rpc::NodeInfoGcsService.grpc_client - 1 total"), None);
    }
}
