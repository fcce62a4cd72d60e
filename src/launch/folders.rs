//! Which node or pod a file is of, by the folders it lies in.
//!
//! Owns what the folders of several files tell beside each other: those of the nodes of one Ray session, and those of
//! the pods of a dump, where the files in them have the same names. Never opens a file.

use std::collections::{BTreeSet, HashMap};

use super::names;

/// Folders that say how logs are kept, not whose they are.
const OF_KEEPING: &[&str] = &["logs", "log", "old", "events", "output", "container", "containers"];
/// Folders that hold one for each pod, node or host, whatever these are called.
const OF_HOSTS: &[&str] = &["pods", "nodes", "hosts"];

/// Folders that a session has within its own.
const WITHIN_SESSION: &[&str] = &["events", "export_events", "old"];

/// The folder of a Ray session's component without what every session has: `a/session_2026/logs` is `a`.
pub fn of_session(folder: &str) -> &str {
    let folder = without_parts(folder);
    match folder.split('/').position(|part| part.starts_with("session_")) {
        Some(0) => "",
        Some(at) => {
            let end: usize = folder.split('/').take(at).map(|part| part.len() + 1).sum();
            folder.get(..end.saturating_sub(1)).unwrap_or(folder)
        }
        None => folder,
    }
}

/// A folder of a session without one that holds only a part of its files.
pub fn without_parts(folder: &str) -> &str {
    let (above, last) = folder.rsplit_once('/').unwrap_or(("", folder));
    if WITHIN_SESSION.contains(&last) { above } else { folder }
}

/// The name of a session that is unlike that of any other: Ray makes it of time and pid.
pub fn session(folder: &str) -> Option<&str> {
    let named = |part: &&str| {
        part.strip_prefix("session_")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    folder.split('/').find(named)
}

/// What tells each folder from the others: the first part of its path that is not the same in all. None for one that
/// all others lie in, and where there is but one folder. A name counts if it `is_one` of what is to be told apart, or
/// stands where only pods and hosts do.
pub fn apart<'a>(folders: &BTreeSet<&'a str>, is_one: fn(&str) -> bool) -> HashMap<&'a str, Option<String>> {
    let parts: Vec<Vec<&str>> = folders.iter().map(|f| f.split('/').collect()).collect();
    let shared = parts.first().map_or(0, |first| {
        let same = |at: &usize| parts.iter().all(|p| p.get(*at) == first.get(*at));
        (0..first.len()).take_while(same).count()
    });
    let first = |folder: &'a str| {
        let mut parts = folder.split('/').enumerate().skip(shared);
        parts.find(|(_, part)| !OF_KEEPING.contains(part))
    };
    let names = folders
        .iter()
        .filter_map(|folder| first(folder))
        .map(|(_, part)| pod(part));
    let pods = names::pods_of_sets(&names.collect());
    let own = |folder: &'a str| {
        let (at, part) = first(folder)?;
        let above = at.checked_sub(1).and_then(|at| folder.split('/').nth(at));
        let name = pod(part);
        let stands = name != part || above.is_some_and(|above| OF_HOSTS.contains(&above));
        let counts = stands || is_one(name) || pods.contains(name);
        (!name.is_empty() && counts).then(|| name.to_owned())
    };
    folders.iter().map(|folder| (*folder, own(folder))).collect()
}

/// `vllm-0` of the kubelet's `default_vllm-0_2f7e5a08-…`.
fn pod(folder: &str) -> &str {
    let mut parts = folder.split('_');
    let (Some(_), Some(pod), Some(uid), None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
        return folder;
    };
    let is_uid = uid.len() >= 32 && uid.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
    if is_uid { pod } else { folder }
}

/// Whether a file's name says only which part or stream of a log it is, as the kubelet's `0.log` and `previous.log` do.
pub fn names_nothing(stem: &str) -> bool {
    let words = [
        "current", "previous", "stdout", "stderr", "output", "out", "err", "log", "console", "",
    ];
    words.contains(&stem) || stem.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_differs_tells_folders_apart() {
        let told = |folders: &[&'static str]| {
            let told = apart(&folders.iter().copied().collect(), |_| true);
            let mut told: Vec<Option<String>> = folders.iter().map(|f| told[f].clone()).collect();
            told.dedup();
            told.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()
        };
        let uid = "2f7e5a08-3f7c-4f6e-9d0a-5b0f5c3e9a11";
        let (a, b) = (format!("p/ns_llm-0_{uid}/vllm"), format!("p/ns_llm-1_{uid}/vllm"));
        assert_eq!(told(&[&*a.leak(), &*b.leak()]), ["llm-0", "llm-1"]);
        assert_eq!(told(&["d/10.0.0.1", "d/10.0.0.2"]), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(told(&["d", "d/worker"]), ["", "worker"]);
        assert_eq!(told(&["d"]), [""]);
        assert_eq!(
            of_session("dump/gpu7/session_2026-11-29_14-11-02_112233_1/logs/old"),
            "dump/gpu7"
        );
        assert_eq!(of_session("session_latest/logs"), "");
        assert_eq!(of_session("x.d/events"), "x.d");
    }
}
