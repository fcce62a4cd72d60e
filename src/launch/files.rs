//! What the name of a file says about the process that wrote it.
//!
//! Owns the naming of Ray session files, rank and node files. Never opens a file.

use std::sync::Arc;

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
}

/// Reads a name. `alone` says that there is no other input: then a node name from the file name distinguishes nothing.
pub fn hint(name: &str, alone: bool) -> FileHint {
    let path = name.replace('\\', "/");
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", &path));
    let (stem, ending) = file.split_once('.').unwrap_or((file, ""));
    let mut hint = FileHint::default();
    match stem {
        "raylet" | "gcs_server" | "monitor" | "log_monitor" | "dashboard" | "dashboard_agent" | "runtime_env_agent" => {
            hint.label = Some(stem.into());
            hint.ray_session = matches!(ending.split('.').next(), Some("out" | "err" | "log"));
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
            hint.label = Some("ray-worker".into());
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
                hint.node = Some(stem.into());
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

#[cfg(test)]
mod tests {
    use super::*;

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
