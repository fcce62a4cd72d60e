//! What is one incident: a file, a folder, or what a pattern says.
//!
//! Owns the rules by which files belong together. Never reads a file, only names.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use regex::Regex;

use crate::intake::{InputSpec, display_name};

/// Endings under which a compressed log is stored.
const PACKED: [&str; 4] = [".gz", ".zst", ".xz", ".bz2"];

/// Files that only a Ray session has.
const RAY: [&str; 3] = ["raylet.out", "raylet.err", "gcs_server.out"];

/// How files are grouped into incidents.
#[derive(Debug, Clone, Default)]
pub enum Rule {
    /// Every file, and every folder that plainly is one launch.
    #[default]
    File,
    /// Every folder with the files that stand directly in it.
    Folder,
    /// All files whose paths give the same text for the pattern's first group; a path it does not match stands alone.
    Pattern(Regex),
}

/// The logs of one launch.
#[derive(Debug, Clone, Default)]
pub struct Incident {
    /// Path of the file or folder, or what the pattern gave.
    pub source: String,
    /// The files.
    pub files: Vec<PathBuf>,
    /// Whether the files are one launch together, whatever is in them. A lone file may be an archive of many.
    pub whole: bool,
    /// Whether the folders below belong to it too.
    pub deep: bool,
    /// When the newest file was written.
    pub modified: Option<SystemTime>,
    /// Stored bytes of the files.
    pub bytes: u64,
}

impl Incident {
    /// One file alone.
    pub fn file(path: PathBuf, modified: Option<SystemTime>, bytes: u64) -> Self {
        Self {
            source: display_name(&path),
            files: vec![path],
            whole: false,
            deep: false,
            modified,
            bytes,
        }
    }

    /// Nothing yet of what will be one launch.
    pub fn group(source: String) -> Self {
        Self {
            source,
            whole: true,
            ..Self::default()
        }
    }

    /// Adds a file.
    pub fn add(&mut self, path: PathBuf, modified: Option<SystemTime>, bytes: u64) {
        self.files.push(path);
        self.modified = self.modified.max(modified);
        self.bytes += bytes;
    }
}

impl Rule {
    /// What the pattern gives for a path.
    pub fn key(&self, path: &str) -> Option<String> {
        let Self::Pattern(pattern) = self else { return None };
        pattern.captures(path)?.get(1).map(|group| group.as_str().to_owned())
    }
}

/// How much of a folder is the log of one launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The files that stand directly in it.
    Files,
    /// Everything below it.
    Tree,
}

/// Whether the folder is the log of one launch, and how much of it.
pub fn one_launch(folder: &Path) -> Option<Reach> {
    let names: Vec<String> = match fs::read_dir(folder) {
        Ok(entries) => entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|t| !t.is_dir()))
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect(),
        Err(_) => return None,
    };
    let session = folder.join("logs");
    match RAY.iter().any(|name| session.join(name).is_file()) {
        true => Some(Reach::Tree),
        false => names_one_launch(names.iter().map(String::as_str)),
    }
}

/// Whether the names of the files of a folder say that they are the logs of one launch: those of a Ray session, one for
/// each rank or node, all of which may have folders of their own, or the two streams of one program.
fn names_one_launch<'a>(names: impl Iterator<Item = &'a str>) -> Option<Reach> {
    let names: HashSet<&str> = names
        .filter(|name| !name.starts_with('.'))
        .map(|name| PACKED.iter().find_map(|p| name.strip_suffix(p)).unwrap_or(name))
        .collect();
    if names.iter().any(|name| RAY.contains(name) || is_of_rank_or_node(name)) {
        return Some(Reach::Tree);
    }
    let stems = names.iter().filter_map(|name| name.strip_suffix(".out"));
    // Of many programs each is a launch.
    let streams = stems
        .filter(|stem| names.contains(format!("{stem}.err").as_str()))
        .count();
    (streams == 1).then_some(Reach::Files)
}

/// `rank3.log`, `rank-3`, `node_a.out`, but not `nodes.txt` or `ranking.csv`.
fn is_of_rank_or_node(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("rank").or_else(|| name.strip_prefix("node")) else {
        return false;
    };
    let numbered = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    numbered(rest)
        || rest.strip_prefix('.').is_some_and(numbered)
        || rest.strip_prefix(['-', '_']).is_some_and(|rest| !rest.is_empty())
}

/// The members of an archive as incidents: a folder in it that is one launch, and every other member by itself.
pub fn of_members(archive: &str, members: Vec<InputSpec>) -> Vec<(String, Vec<InputSpec>)> {
    let prefix = format!("{archive}!/");
    let launches: HashMap<String, Reach> = {
        let mut names: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for input in &members {
            if let Some((folder, name)) = input.name.rsplit_once('/') {
                names.entry(folder.to_owned()).or_default().push(name);
            }
        }
        let one = names
            .into_iter()
            .filter_map(|(folder, names)| Some((folder, names_one_launch(names.iter().copied())?)));
        // Of a Ray session the folder above `logs` is the launch, as on disk.
        one.map(|(folder, reach)| match folder.strip_suffix("/logs") {
            Some(session) if session.len() >= prefix.len() && reach == Reach::Tree => (session.to_owned(), reach),
            _ => (folder, reach),
        })
        .collect()
    };
    let mut incidents: Vec<(String, Vec<InputSpec>)> = Vec::new();
    let mut open: HashMap<String, usize> = HashMap::new();
    for input in members {
        let above = input.name.match_indices('/').filter_map(|(at, _)| input.name.get(..at));
        let own = input.name.rsplit_once('/').map(|(folder, _)| folder);
        let holds = |folder: &str| match launches.get(folder) {
            Some(Reach::Tree) => true,
            Some(Reach::Files) => own == Some(folder),
            None => false,
        };
        let launch = above
            .filter(|folder| folder.len() + 1 >= prefix.len())
            .find(|folder| holds(folder));
        match launch.map(str::to_owned) {
            Some(launch) => {
                let at = *open.entry(launch.clone()).or_insert(incidents.len());
                match incidents.get_mut(at) {
                    Some((_, inputs)) => inputs.push(input),
                    None => incidents.push((launch, vec![input])),
                }
            }
            None => incidents.push((input.name.clone(), vec![input])),
        }
    }
    incidents
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(names: &[&str]) -> bool {
        names_one_launch(names.iter().copied()).is_some()
    }

    #[test]
    fn folders_of_ranks_nodes_streams_and_ray_are_one_launch() {
        assert!(one(&["rank0.log", "rank1.log"]));
        assert!(one(&["node-a.log", "notes.txt"]));
        assert!(one(&["serve.out.gz", "serve.err.gz"]));
        assert!(one(&["raylet.out", "monitor.log"]));
        assert!(!one(&["a.log", "b.log"]));
        assert!(!one(&["a.out", "b.err"]));
        assert!(!one(&["slurm-1.out", "slurm-1.err", "slurm-2.out", "slurm-2.err"]));
        assert_eq!(names_one_launch(["a.out", "a.err"].into_iter()), Some(Reach::Files));
        assert_eq!(names_one_launch(["raylet.out"].into_iter()), Some(Reach::Tree));
        assert!(!one(&["nodes.txt", "ranking.csv", "node", "node.log", ".node-a.swp"]));
        assert!(!one(&[]));
    }

    #[test]
    fn members_group_like_files() {
        let input = |name: &str| InputSpec::memory(format!("a.tar!/{name}"), *b"x");
        let members = [
            "one.log",
            "s/logs/raylet.out",
            "s/other.log",
            "two.log",
            "n/rank0.log",
            "n/rank1.log",
        ];
        let got = of_members("a.tar", members.map(input).to_vec());
        let got: Vec<(&str, usize)> = got.iter().map(|(n, i)| (n.as_str(), i.len())).collect();
        let want = [
            ("a.tar!/one.log", 1),
            ("a.tar!/s", 2),
            ("a.tar!/two.log", 1),
            ("a.tar!/n", 2),
        ];
        assert_eq!(got, want);
    }

    #[test]
    fn a_pattern_gives_its_group() {
        let rule = Rule::Pattern(Regex::new(r"job-(\d+)").unwrap());
        assert_eq!(rule.key("logs/job-12/rank.log").as_deref(), Some("12"));
        assert_eq!(rule.key("logs/other.log"), None);
        assert_eq!(Rule::File.key("job-12"), None);
    }
}
