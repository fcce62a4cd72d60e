//! What the name of a file says about the process that wrote it.
//!
//! Owns the naming of Ray session files, rank and node files. Never opens a file.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::rounds::Rounds;
use super::{Source, folders, names, stated};
use crate::catalog::Catalog;
use crate::event::{Event, Program, Speaker};

/// Label of a worker of Ray's whose lines do not name it.
const RAY_WORKER: &str = "ray-worker";

/// What a file name tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileHint {
    /// Node, from `node-b.log`, `worker-1.log`, `head.log`, or a folder of such a name; else the one host that its lines
    /// name.
    pub node: Option<Arc<str>>,
    /// Label of the process whose only output this is.
    pub label: Option<Arc<str>>,
    /// Process id.
    pub pid: Option<i64>,
    /// Global rank, from `rank3.log`.
    pub rank: Option<u32>,
    /// Local rank, from the folders in which torchrun keeps what each of its processes prints.
    pub local: Option<u32>,
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

    /// The rank and the local rank of a speaker in the file: those of one that does not say that it is another. The
    /// agent that started the ranks prints its pid.
    pub fn places(&self, speaker: &Speaker) -> (Option<u32>, Option<u32>) {
        let agent = speaker.program == Program::Torch && speaker.pid.is_some();
        let other = speaker.label.is_some() || agent;
        (self.rank.filter(|_| !other), self.local.filter(|_| !other))
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
    let mut told = told_hosts(sources);
    let names = sources.iter().map(|s| bare(file_of(&s.name)));
    told.extend(names::pods_of_sets(&names.collect()));
    for (source, hint) in sources.iter().zip(&mut hints) {
        let heard = &source.harvest.heard;
        let name = bare(file_of(&source.name));
        if !alone && hint.label.is_none() && hint.rank.is_none() {
            hint.node = named_for(name, &told).map(Into::into).or(hint.node.take());
        }
        // A file that holds the lines of other ranks too is named for something else.
        let mut ranks = heard.iter().filter_map(|h| h.speaker.rank.or(h.identity.rank));
        hint.rank = hint.rank.filter(|own| ranks.all(|rank| rank == *own));
        if hint.label.is_some() && hint.pid.is_none() && !hint.ray_session {
            let own = heard.iter().filter(|h| h.speaker.label == hint.label);
            let mut pids = own.filter_map(|h| h.speaker.pid);
            hint.pid = pids.next().filter(|pid| pids.all(|other| other == *pid));
        }
    }
    let by_folder = by_folder(sources, &mut hints, rounds);
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
    // What a machine or a supervisor keeps is named for a node where a log of the launch is, too.
    let of_launch = hints.iter().filter(|h| !h.observer).filter_map(|h| h.node.clone());
    let of_launch: HashSet<Arc<str>> = of_launch.collect();
    for ((source, hint), by_folder) in sources.iter().zip(&mut hints).zip(by_folder) {
        let beside = hint.observer && hint.node.as_ref().is_some_and(|node| of_launch.contains(node));
        let named = by_folder || beside || node_in_name(&source.name).is_some();
        if !named && (at_once <= 1 || hint.observer) {
            hint.node = None;
        } else if !hint.ray_session && !hint.observer {
            hint.node = only_host(source).or(hint.node.take());
        }
    }
    stated::name_nodes(sources, &mut hints);
    for (source, hint) in sources.iter().zip(&mut hints).filter(|(_, hint)| !hint.observer) {
        hint.node = hint.node.take().or_else(|| host_of_agent(catalog, source));
    }
    hints
}

/// The node of torchrun's agent, whose summaries name it: each agent tells of its own ranks only.
fn host_of_agent(catalog: &Catalog, source: &Source) -> Option<Arc<str>> {
    if source.harvest.heard.iter().any(|h| h.speaker.node.is_some()) {
        return None;
    }
    let of_agent = |e: &&Event| catalog.signature(e.signature).is_some_and(|s| s.def.program == "torch");
    let told = source.harvest.events.iter().filter(of_agent);
    let mut hosts = told.filter_map(|e| e.victim.node.as_ref());
    // Every machine calls itself so.
    let first = hosts.next().filter(|host| !host.starts_with("localhost"))?;
    hosts.all(|host| host == first).then(|| first.clone())
}

/// Corrects nodes by the folders of all files: a Ray session of several nodes has one for each, and so has a dump of
/// pods, where every pod's file has the same name. Tells which lie in a session whose folder is that
/// of a node.
fn by_folder(sources: &[Arc<Source>], hints: &mut [FileHint], rounds: &Rounds) -> Vec<bool> {
    let mut told = vec![false; sources.len()];
    let of = |name: &str| {
        name.rsplit_once(['/', '\\'])
            .map_or(String::new(), |(f, _)| f.replace('\\', "/"))
    };
    let folders: Vec<String> = sources.iter().map(|s| of(&s.name)).collect();
    // There is one raylet on each node of a cluster.
    let mut sessions: HashMap<Option<usize>, BTreeSet<&str>> = HashMap::new();
    for (at, (folder, source)) in folders.iter().zip(sources).enumerate() {
        if file_of(&source.name).starts_with("raylet.") {
            let of_cluster = sessions.entry(rounds.cluster(at)).or_default();
            of_cluster.insert(folders::of_session(folder));
        }
    }
    let apart = |own: &BTreeSet<_>| folders::apart(own, |_| true);
    let apart: HashMap<Option<usize>, _> = sessions.iter().map(|(c, own)| (*c, apart(own))).collect();
    for (at, ((folder, hint), told)) in folders.iter().zip(&mut *hints).zip(&mut told).enumerate() {
        let session = folders::of_session(folder);
        let within = session.len() < folder.len() || hint.ray_session;
        let of_cluster = apart.get(&rounds.cluster(at));
        let Some(own) = of_cluster.and_then(|apart| apart.get(session)).filter(|_| within) else {
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
    let mut same: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, (source, hint)) in sources.iter().zip(&*hints).enumerate() {
        let whose = hint.label.is_some() || hint.rank.is_some() || hint.local.is_some() || hint.ray_session;
        if !whose && node_in_name(&source.name).is_none() {
            let name = bare(file_of(&source.name));
            let name = if folders::names_nothing(name) { "" } else { name };
            same.entry(name).or_default().push(at);
        }
    }
    for members in same.into_values() {
        let own: BTreeSet<&str> = members
            .iter()
            .filter_map(|&at| folders.get(at).map(String::as_str))
            .collect();
        let apart = folders::apart(&own, names::is_host);
        if own.len() < 2 {
            continue;
        }
        for at in members {
            let own = folders.get(at).and_then(|f| apart.get(f.as_str())).cloned().flatten();
            if let (Some(hint), Some(own)) = (hints.get_mut(at), own) {
                hint.node = Some(own.into());
            }
        }
    }
    told
}

/// The file's own name in a path.
pub fn file_of(name: &str) -> &str {
    name.rsplit(['/', '\\']).next().unwrap_or(name)
}

/// The host that a file is named for, alone or beside the job's name and number, as Slurm's `%x-%j-%N` gives it.
fn named_for<'t>(name: &str, told: &HashSet<&'t str>) -> Option<&'t str> {
    let joint = |rest: &str| rest.is_empty() || rest.ends_with(['-', '_', '.']);
    let is = |host: &&&str| name.strip_suffix(**host).is_some_and(joint);
    told.iter().filter(is).max_by_key(|host| host.len()).copied()
}

/// The hosts that any line names.
fn told_hosts(sources: &[Arc<Source>]) -> HashSet<&str> {
    let events = sources.iter().flat_map(|s| &s.harvest.events);
    let victims = events.filter_map(|e| e.victim.node.as_deref());
    let heard = sources.iter().flat_map(|s| &s.harvest.heard);
    victims.chain(heard.filter_map(|h| h.speaker.node.as_deref())).collect()
}

/// Whether all that is known of a source is what a kernel or a supervisor prints.
pub(super) fn tells_of_others(catalog: &Catalog, source: &Source) -> bool {
    let events = source.harvest.events.iter();
    let mut known = events.filter_map(|e| catalog.signature(e.signature)).peekable();
    known.peek().is_some() && known.all(|s| s.def.tells_of_others())
}

/// The one host that the lines of a source name.
pub(super) fn only_host(source: &Source) -> Option<Arc<str>> {
    let mut hosts = source.harvest.heard.iter().filter_map(|h| h.speaker.node.as_ref());
    // What Ray hands on names the nodes of others, and leaves out its own.
    let unlabelled = source.harvest.heard.iter().filter(|h| h.speaker.label.is_none());
    let first = unlabelled.into_iter().find_map(|h| h.speaker.node.as_ref())?;
    hosts.all(|h| h == first).then(|| first.clone())
}

/// The part of a launch that a file, or a folder above it, is named for.
pub(super) fn part_in_name(name: &str) -> Option<String> {
    in_name(name, is_part_name)
}

/// The node that a file, or a folder above it, is named for.
fn node_in_name(name: &str) -> Option<String> {
    in_name(name, names::is_node_name)
}

fn in_name(name: &str, is: fn(&str) -> bool) -> Option<String> {
    let path = name.replace('\\', "/");
    let mut parts = path.rsplit('/');
    let file = bare(parts.next().unwrap_or(""));
    if is(file) {
        return Some(file.to_owned());
    }
    parts.find(|part| is(part)).map(ToOwned::to_owned)
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
        "debug_state" | "debug_state_gcs" => {
            let component = if stem == "debug_state" { "raylet" } else { "gcs_server" };
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
            hint.local = of_torchrun(folder, stem);
            if let Some((label, pid)) = names::process(stem) {
                (hint.label, hint.pid) = (Some(label.into()), pid);
            } else if !alone && hint.rank.is_none() && hint.local.is_none() {
                hint.node = Some(bare(file)).filter(|name| names::is_host(name)).map(Into::into);
            }
        }
    }
    if hint.node.is_none() && !alone {
        // A Ray session of several nodes has a folder per node above its files.
        let parent = folder.rsplit('/').find(|p| names::is_node_name(p));
        hint.node = parent.map(Into::into);
    }
    hint
}

/// Words for what a machine or a supervisor keeps itself, beside the name of the machine or pod: `node-b.dmesg.txt`.
const KEPT_BY_MACHINES: &[&str] = &[
    "dmesg",
    "kern",
    "kernel",
    "messages",
    "syslog",
    "journal",
    "journalctl",
    "describe",
    "events",
    "previous",
];

/// A file name without its endings and without the words that say what of a machine or pod it holds.
pub(super) fn bare(file: &str) -> &str {
    let joints = ['-', '_', '.'];
    let mut name = without_endings(file);
    loop {
        let behind = KEPT_BY_MACHINES
            .iter()
            .find_map(|word| name.strip_suffix(word)?.strip_suffix(joints));
        let before = || {
            KEPT_BY_MACHINES
                .iter()
                .find_map(|word| name.strip_prefix(word)?.strip_prefix(joints))
        };
        match behind.or_else(before).filter(|rest| !rest.is_empty()) {
            Some(rest) => name = without_endings(rest),
            None => return name,
        }
    }
}

/// The local rank of what a process of torchrun prints, `LOGS/RUN/attempt_0/3/stderr.log`.
fn of_torchrun(folder: &str, stem: &str) -> Option<u32> {
    let (within, local) = folder
        .rsplit_once('/')
        .filter(|_| matches!(stem, "stdout" | "stderr"))?;
    numbered(within.rsplit('/').next()?).and(local.parse().ok())
}

/// The folder of a run of torchrun's agent, and the number of the try that a file in it is of.
pub(super) fn attempt_folder(name: &str) -> Option<(String, u32)> {
    let path = name.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/')?;
    of_torchrun(folder, without_endings(file))?;
    let (within, _) = folder.rsplit_once('/')?;
    let (run, attempt) = within.rsplit_once('/').unwrap_or(("", within));
    Some((run.to_owned(), numbered(attempt)?))
}

/// The number of a folder `attempt_0`.
fn numbered(folder: &str) -> Option<u32> {
    folder.strip_prefix("attempt_")?.parse().ok()
}

/// What the place of a file says of the launch it belongs to: files that share a key are of one.
///
/// The files of a Ray session and files named for a node or rank share their folder, node folders left out; the parts
/// of one program's output share their name but for its ending.
pub fn layout_keys(name: &str) -> Vec<String> {
    let path = name.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let (base, by_node) = base(folder);
    let mut keys = Vec::new();
    keys.extend(folders::session(folder).map(|name| format!("session {name}")));
    let session = hint(name, true).ray_session;
    if session {
        keys.push(format!("session {base}"));
    }
    if by_node || session || is_part_name(without_endings(file)) {
        keys.push(format!("folder {base}"));
        // `X.d` holds the session of the launch whose output is `X.log`.
        keys.push(format!("output {}", output(&base)));
    }
    keys.push(format!("output {}", output(name)));
    keys
}

/// The folder of a session or of an output without those of nodes, and whether anything in it is of a node or session.
fn base(folder: &str) -> (String, bool) {
    let mut base: Vec<&str> = Vec::new();
    let mut by_node = false;
    for part in folders::without_parts(folder).split('/') {
        if is_part_name(part) {
            by_node = true;
            continue;
        }
        base.push(part);
        if part.starts_with("session_") {
            by_node = true;
            break;
        }
    }
    (base.join("/"), by_node)
}

/// The folder in which a file lies, without those of nodes and of parts of a session.
pub(super) fn folder_of_launch(name: &str) -> String {
    let path = name.replace('\\', "/");
    base(path.rsplit_once('/').map_or("", |(folder, _)| folder)).0
}

/// The folder of the Ray session that a file is of, without the folders of nodes.
pub(super) fn session_folder(name: &str) -> Option<String> {
    let within = name
        .split(['/', '\\'])
        .rev()
        .skip(1)
        .any(|part| part.starts_with("session_"));
    (within || hint(name, true).ray_session).then(|| folder_of_launch(name))
}

/// `node-b`, `head`, `worker_1`, `rank3`: what only a part of a launch is named.
fn is_part_name(text: &str) -> bool {
    let rank = text.strip_prefix("rank");
    names::is_node_name(text) || rank.is_some_and(|rest| !rest.starts_with(char::is_alphabetic))
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
        let of_try = attempt_folder("logs/none_k2j3h/attempt_1/3/stderr.log");
        assert_eq!(of_try, Some(("logs/none_k2j3h".to_owned(), 1)));
        assert_eq!(attempt_folder("logs/attempt_1/serve.log"), None);
    }
}
