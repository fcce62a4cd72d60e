//! What the name of a file says about the process that wrote it.
//!
//! Owns the naming of Ray session files, rank and node files. Never opens a file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::rounds::Rounds;
use super::{Source, folders};
use crate::catalog::Catalog;

/// Programs that only tell of others, as the catalog names them.
const OBSERVERS: &[&str] = &["kernel", "k8s", "slurm", "systemd", "docker", "earlyoom"];

/// Label of a worker of Ray's whose lines do not name it.
const RAY_WORKER: &str = "ray-worker";

/// What a file name tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHint {
    /// Node, from `node-b.log`, `worker-1.log`, `head.log`, or a folder of such a name.
    pub node: Option<Arc<str>>,
    /// Label of the process whose only output this is.
    pub label: Option<Arc<str>>,
    /// Process id.
    pub pid: Option<i64>,
    /// Global rank, from `rank3.log`.
    pub rank: Option<u32>,
    /// Whether the file is one component's of a Ray session.
    pub ray_session: bool,
    /// Whether the kernel or a supervisor wrote it, which only tell of others.
    pub observer: bool,
}

impl FileHint {
    /// What a name tells by itself.
    pub(super) fn of(name: &str) -> Self {
        hint(name, true)
    }

    /// Whether it holds what the code of one of Ray's workers prints.
    pub fn is_ray_worker(&self) -> bool {
        self.ray_session && self.label.as_deref() == Some(RAY_WORKER)
    }
}

/// What the names of all sources tell. The name of a file stands for a node only where names tell nodes apart: one log
/// beside a kernel log or a Ray session has the name of the launch. A host that the file itself names goes before.
pub fn hints(catalog: &Catalog, sources: &[Arc<Source>], rounds: &Rounds) -> Vec<FileHint> {
    let alone = sources.len() <= 1;
    let named = |source: &Arc<Source>| FileHint {
        observer: tells_of_others(catalog, source),
        ..hint(&source.name, alone)
    };
    let mut hints: Vec<FileHint> = sources.iter().map(named).collect();
    let by_folder = by_folder(sources, &mut hints);
    // Attempts that were written to files of their own are no nodes.
    let outputs: HashSet<(Option<usize>, String)> = sources
        .iter()
        .zip(&hints)
        .enumerate()
        .filter(|(_, (_, h))| h.label.is_none() && h.rank.is_none() && !h.observer && !h.ray_session)
        .map(|(at, (s, _))| (rounds.round(at), output(&s.name)))
        .collect();
    let mut per_round: HashMap<Option<usize>, usize> = HashMap::new();
    for (round, _) in &outputs {
        *per_round.entry(*round).or_default() += 1;
    }
    let of_none = per_round.remove(&None).unwrap_or(0);
    let at_once = of_none + per_round.into_values().max().unwrap_or(0);
    for ((source, hint), by_folder) in sources.iter().zip(&mut hints).zip(by_folder) {
        let named = by_folder || node_in_name(&source.name).is_some();
        if !named && (at_once <= 1 || hint.observer) {
            hint.node = None;
        } else if hint.node.is_some() && hint.label.is_none() {
            hint.node = only_host(source).or(hint.node.take());
        }
    }
    hints
}

/// Corrects nodes by the folders of all files: a Ray session of several nodes has one for each, and so has a dump of
/// pods, where every pod's file has the same name. Tells which lie in a session whose folder is that
/// of a node.
fn by_folder(sources: &[Arc<Source>], hints: &mut [FileHint]) -> Vec<bool> {
    let mut told = vec![false; sources.len()];
    let of = |name: &str| {
        name.rsplit_once(['/', '\\'])
            .map_or(String::new(), |(f, _)| f.replace('\\', "/"))
    };
    let folders: Vec<String> = sources.iter().map(|s| of(&s.name)).collect();
    // There is one raylet on each node.
    let raylets = folders
        .iter()
        .zip(&*hints)
        .filter(|(_, h)| h.label.as_deref() == Some("raylet"));
    let sessions: BTreeSet<&str> = raylets.map(|(f, _)| folders::of_session(f)).collect();
    let apart = folders::apart(&sessions);
    for ((folder, hint), told) in folders.iter().zip(&mut *hints).zip(&mut told) {
        let session = folders::of_session(folder);
        let within = session.len() < folder.len() || hint.ray_session;
        let Some(own) = apart.get(session).filter(|_| within) else {
            continue;
        };
        if hint.label.is_none() && hint.rank.is_none() {
            // What else lies in a session is named for what wrote it, and not for a node.
            hint.node = None;
            hint.ray_session = true;
        }
        *told = hint.node.is_none() && own.is_some();
        hint.node = hint.node.take().or_else(|| own.as_deref().map(Into::into));
    }
    let mut same: HashMap<Arc<str>, Vec<usize>> = HashMap::new();
    for (at, (source, hint)) in sources.iter().zip(&*hints).enumerate() {
        let by_name = hint.label.is_none() && hint.rank.is_none() && node_in_name(&source.name).is_none();
        if let Some(node) = hint.node.as_ref().filter(|_| by_name) {
            let key = if folders::names_nothing(node) {
                "".into()
            } else {
                node.clone()
            };
            same.entry(key).or_default().push(at);
        }
    }
    for (key, members) in same {
        let own: BTreeSet<&str> = members
            .iter()
            .filter_map(|&at| folders.get(at).map(String::as_str))
            .collect();
        let apart = folders::apart(&own);
        if own.len() < 2 {
            continue;
        }
        for at in members {
            let own = folders.get(at).and_then(|f| apart.get(f.as_str())).cloned().flatten();
            if let Some(hint) = hints.get_mut(at) {
                hint.node = own
                    .map(Into::into)
                    .or_else(|| hint.node.take().filter(|_| !key.is_empty()));
            }
        }
    }
    told
}

/// Whether all that is known of a source is what a kernel or a supervisor prints.
fn tells_of_others(catalog: &Catalog, source: &Source) -> bool {
    let known = source
        .harvest
        .events
        .iter()
        .filter_map(|e| catalog.signature(e.signature));
    let mut programs = known.map(|s| s.def.program.as_str()).peekable();
    programs.peek().is_some() && programs.all(|p| OBSERVERS.contains(&p))
}

/// The one host that the lines of a source name.
fn only_host(source: &Source) -> Option<Arc<str>> {
    let mut hosts = source.harvest.heard.iter().filter_map(|h| h.speaker.node.as_ref());
    let first = hosts.next()?;
    hosts.all(|h| h == first).then(|| first.clone())
}

/// The node that a file, or a folder above it, is named for.
pub(super) fn node_in_name(name: &str) -> Option<String> {
    let path = name.replace('\\', "/");
    let mut parts = path.rsplit('/');
    let file = without_endings(parts.next().unwrap_or(""));
    if is_node_name(file) {
        return Some(file.to_owned());
    }
    parts.find(|part| is_node_name(part)).map(ToOwned::to_owned)
}

/// Folder and file name of an output, its parts and streams taken as one.
pub(super) fn output(name: &str) -> String {
    let path = name.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    format!("{folder}/{}", without_endings(file))
}

/// Reads a name. `alone` says that there is no other input: then a node name from the file name distinguishes nothing.
fn hint(name: &str, alone: bool) -> FileHint {
    let path = name.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let (stem, ending) = file.split_once('.').unwrap_or((file, ""));
    let mut hint = FileHint::default();
    match stem {
        "raylet" | "gcs_server" | "monitor" | "log_monitor" | "dashboard" | "dashboard_agent" | "runtime_env_agent" => {
            hint.label = Some(stem.into());
            hint.ray_session = matches!(ending.split('.').next(), Some("out" | "err" | "log"));
        }
        "event_RAYLET" | "event_GCS" | "event_AUTOSCALER" => {
            let component = match stem {
                "event_RAYLET" => "raylet",
                "event_GCS" => "gcs_server",
                _ => "monitor",
            };
            hint.label = Some(component.into());
            hint.ray_session = true;
        }
        _ if stem.starts_with("ray_client_server") => {
            hint.label = Some("ray_client_server".into());
            hint.ray_session = true;
        }
        _ if stem.starts_with("python-core-") => {
            let kind = if stem.starts_with("python-core-driver-") {
                "driver"
            } else {
                "worker"
            };
            hint.pid = stem.rsplit('_').next().and_then(|p| p.parse().ok());
            hint.label = Some(kind.into());
            hint.ray_session = true;
        }
        _ if stem.starts_with("worker-") && stem.len() > 60 => {
            hint.pid = stem.rsplit('-').next().and_then(|p| p.parse().ok());
            hint.label = Some(RAY_WORKER.into());
            hint.ray_session = true;
        }
        _ if stem.starts_with("job-driver-") => {
            hint.label = Some("driver".into());
            hint.ray_session = true;
        }
        _ => {
            let digits = stem.strip_prefix("rank").map(|r| r.trim_start_matches(['-', '_', '.']));
            hint.rank = digits.and_then(|d| d.parse().ok());
            if !alone && hint.rank.is_none() && stem != "-" {
                let name = without_endings(file);
                hint.node = Some(
                    name.trim_end_matches("previous")
                        .trim_end_matches(['-', '_', '.'])
                        .into(),
                )
                .filter(|name: &Arc<str>| !name.is_empty())
                .or_else(|| Some(name.into()));
            }
        }
    }
    if hint.node.is_none() && !alone {
        // A Ray session of several nodes has a folder per node above its files.
        let parent = folder
            .rsplit('/')
            .find(|p| p.starts_with("node") || p.starts_with("host") || *p == "head");
        hint.node = parent.map(Into::into);
    }
    hint
}

/// What the place of a file says of the launch it belongs to: files that share a key are of one.
///
/// The files of a Ray session and files named for a node or rank share their folder, node folders left out; the parts
/// of one program's output share their name but for its ending.
pub fn layout_keys(name: &str) -> Vec<String> {
    let path = name.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let mut base: Vec<&str> = Vec::new();
    let mut by_node = false;
    for part in folder.split('/') {
        if is_node_name(part) {
            by_node = true;
            continue;
        }
        base.push(part);
        if part.starts_with("session_") {
            by_node = true;
            break;
        }
    }
    let base = base.join("/");
    let mut keys = Vec::new();
    keys.extend(folders::session(folder).map(|name| format!("session {name}")));
    let session = hint(name, true).ray_session;
    if session {
        keys.push(format!("session {base}"));
    }
    if by_node || session || is_node_name(without_endings(file)) {
        keys.push(format!("folder {base}"));
        // `X.d` holds the session of the launch whose output is `X.log`.
        keys.push(format!("output {}", output(&base)));
    }
    keys.push(format!("output {}", output(name)));
    keys
}

/// `node-b`, `head`, `worker_1`, `rank3`.
pub fn is_node_name(text: &str) -> bool {
    let words = ["node", "host", "rank", "worker", "head", "master"];
    let rest = words.iter().find_map(|word| text.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphabetic()))
}

/// A file name without what says only how, or which part of it, is stored.
fn without_endings(mut name: &str) -> &str {
    let known = [
        "log", "out", "err", "txt", "d", "gz", "zst", "xz", "bz2", "stdout", "stderr",
    ];
    while let Some((stem, ending)) = name.rsplit_once('.') {
        let dated = |text: &str| text.len() >= 8 && text.bytes().all(|b| b.is_ascii_digit() || b == b'-');
        let part = ending.len() <= 3 && ending.bytes().all(|b| b.is_ascii_digit()) || dated(ending);
        // `qwen-0.6.log` is no part of `qwen-0`: a number counts only behind another ending.
        let rotated = part && known.iter().any(|k| stem.ends_with(&format!(".{k}")));
        // `serve.log-20261129`, as logrotate names it.
        let (kind, date) = ending.split_once('-').unwrap_or((ending, ""));
        let rotated = rotated || dated(date) && known.contains(&kind);
        if stem.is_empty() || !(known.contains(&ending) || rotated) {
            break;
        }
        name = stem;
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_tell_of_one_launch() {
        let share = |a: &str, b: &str| {
            let b = layout_keys(b);
            layout_keys(a).iter().any(|key| b.contains(key))
        };
        assert!(share("run/head.log", "run/worker-1.log"));
        assert!(share("x.d/raylet.out", "x.d/node-b/gcs_server.out"));
        assert!(share("x.log", "x.d/raylet.out"));
        assert!(share("job-7.out", "job-7.err"));
        assert!(share("serve.log", "serve.log.2.gz"));
        assert!(share(
            "n1/session_2026-11-29/logs/raylet.out",
            "n1/session_2026-11-29/logs/events/e.log"
        ));
        assert!(!share("job-7.out", "job-8.out"));
        assert!(!share("qwen-0.6.log", "qwen-0.8.log"));
        assert!(!share("a/head.log", "b/head.log"));
    }

    #[test]
    fn names_of_session_rank_and_node_files() {
        let worker = format!("s/logs/worker-{}-ffffffff-187.err", "a".repeat(56));
        assert_eq!(hint(&worker, false).pid, Some(187));
        assert_eq!(hint("x.d/node-b/raylet.out", false).node.as_deref(), Some("node-b"));
        assert_eq!(hint("x.d/raylet.out", false).label.as_deref(), Some("raylet"));
        assert_eq!(hint("rank3.log", false).rank, Some(3));
        assert_eq!(hint("logs/node-b.log", false).node.as_deref(), Some("node-b"));
        assert_eq!(hint("launch.log", true), FileHint::default());
    }
}
