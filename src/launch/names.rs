//! What a single word in a path can be the name of: a host or pod, or a process.
//!
//! Owns the forms of such names. A name that only says which part, stream, run or rank a file holds names no host. Never
//! looks at a whole path or at other names.

use std::net::IpAddr;

/// Words that only machines, and what stands for one, are named with.
const OF_HOSTS: &[&str] = &[
    "node", "host", "worker", "head", "master", "leader", "pod", "ip", "dgx", "hgx", "gb", "gh", "rack", "blade",
    "compute", "machine", "cn", "nid", "vm", "instance", "spark", "jetson",
];

/// Words that name what a file holds, not where it comes from, also with a number behind them.
const OF_CONTENT: &[&str] = &[
    "all",
    "api",
    "apiserver",
    "attempt",
    "capture",
    "chunk",
    "combined",
    "console",
    "container",
    "copy",
    "core",
    "dashboard",
    "dp",
    "driver",
    "engine",
    "enginecore",
    "ep",
    "err",
    "error",
    "event",
    "events",
    "execute",
    "gcs",
    "global",
    "gpu",
    "job",
    "launch",
    "launcher",
    "log",
    "logs",
    "main",
    "output",
    "out",
    "part",
    "pid",
    "pp",
    "pre",
    "proc",
    "process",
    "raw",
    "raylet",
    "rank",
    "run",
    "scheduler",
    "serve",
    "server",
    "session",
    "slurm",
    "start",
    "stderr",
    "stdout",
    "step",
    "stream",
    "task",
    "test",
    "tp",
    "trial",
    "try",
];

/// Words that are a machine's name by themselves.
const ALONE: &[&str] = &["node", "host", "worker", "head", "master"];

/// `node-b`, `head`, `worker_1`: the names that a launch of several nodes gives its parts.
pub fn is_node_name(text: &str) -> bool {
    let rest = ALONE.iter().find_map(|word| text.strip_prefix(word));
    rest.is_some_and(|rest| !rest.starts_with(char::is_alphabetic)) && !says_what_it_holds(text)
}

/// Whether a name can only be, or is most likely, that of a host or a pod: an address, a host with its domain, a word for
/// machines, a pod's number or hash.
pub fn is_host(name: &str) -> bool {
    if is_node_name(name) || is_address(name) || is_domain(name) {
        return true;
    }
    if says_what_it_holds(name) || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        // `gpu-07` is a host where `gpu7` is a device.
        return name
            .strip_prefix("gpu-")
            .is_some_and(|rest| !rest.is_empty() && words(rest).all(|w| !OF_CONTENT.contains(&w.as_str())));
    }
    let numbered = name.ends_with(|c: char| c.is_ascii_digit());
    let of_host = words(name).any(|word| OF_HOSTS.contains(&word.as_str()));
    of_host && numbered || is_pod(name)
}

/// Whether a word of the name says what the file holds.
fn says_what_it_holds(name: &str) -> bool {
    words(name).any(|word| OF_CONTENT.contains(&word.as_str()))
}

/// The words of a name, in lower case and without numbers.
fn words(name: &str) -> impl Iterator<Item = String> + '_ {
    let parts = name.split(|c: char| !c.is_ascii_alphabetic());
    parts.filter(|part| !part.is_empty()).map(str::to_ascii_lowercase)
}

/// `10.0.0.1`, also with dashes, as clouds name their machines.
fn is_address(name: &str) -> bool {
    let plain = name.trim_start_matches("ip-").replace(['-', '_'], ".");
    name.parse::<IpAddr>().is_ok() || plain.parse::<IpAddr>().is_ok()
}

/// `gpu07.cluster.local`.
fn is_domain(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    let label = |l: &&str| !l.is_empty() && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let top = labels
        .last()
        .is_some_and(|l| l.bytes().all(|b| b.is_ascii_alphabetic()));
    let named = labels.last().is_some_and(|l| !says_what_it_holds(l));
    labels.len() >= 3 && top && named && labels.iter().all(label)
}

/// `llm-0` of a set, `vllm-7d9f8b6c5d-x2k4p` of a deployment.
fn is_pod(name: &str) -> bool {
    let Some((set, last)) = name.rsplit_once('-') else {
        return false;
    };
    let lower = |text: &str| {
        text.bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let number = last.len() <= 4 && !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let hash = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && lower(text) && text.bytes().any(|b| b.is_ascii_digit())
    };
    let deployed = set
        .rsplit_once('-')
        .is_some_and(|(_, of_set)| hash(of_set, 8..=10) && last.len() == 5 && lower(last));
    lower(set) && (number || deployed)
}

/// The label and pid of the process that a file is named for, as vLLM labels its own lines: `Worker_TP1-pid4114`.
pub fn process(stem: &str) -> Option<(&str, Option<i64>)> {
    let (label, pid) = match stem.find("pid") {
        Some(at) => {
            let (label, rest) = stem.split_at(at);
            let pid = rest.trim_start_matches("pid").trim_start_matches(['-', '_', '=']);
            (label.trim_end_matches(['-', '_', '.', ' ']), Some(pid.parse().ok()?))
        }
        None => (stem, None),
    };
    let (role, place) = label.split_once('_').unwrap_or((label, ""));
    let coordinate = |part: &str| {
        let name = part.trim_end_matches(|c: char| c.is_ascii_digit());
        !name.is_empty() && name.len() < part.len() && name.bytes().all(|b| b.is_ascii_uppercase())
    };
    let placed = place.is_empty()
        || place
            .split('_')
            .all(|part| part.bytes().all(|b| b.is_ascii_digit()) || coordinate(part));
    // A worker of which nothing more is said may be any node's.
    let named = match role {
        "EngineCore" | "APIServer" | "ApiServer" => true,
        "Worker" | "VllmWorker" => !place.is_empty() || pid.is_some(),
        _ => false,
    };
    (named && placed).then_some((label, pid))
}

/// How the names of processes begin that a launch consists of or is started by.
const OF_LAUNCHES: &[&str] = &[
    "python",
    "pt_",
    "ray",
    "gcs_server",
    "VLLM",
    "vllm",
    "sglang",
    "Engine",
    "APIServer",
    "Worker",
    "torchrun",
    "uvicorn",
    "mpi",
    "orted",
    "trtllm",
    "triton",
    "accelerate",
    "deepspeed",
    "launch",
    "bash",
    "sh",
    "tini",
    "srun",
    "slurm",
];

/// Whether a process that the kernel calls so can be one that a launch consists of or is started by.
pub fn is_of_launches(name: &str) -> bool {
    OF_LAUNCHES.iter().any(|own| name.starts_with(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_hosts_and_pods() {
        for host in [
            "node-b",
            "head",
            "worker_1",
            "10.0.0.1",
            "ip-10-0-0-17",
            "gpu-07",
            "gpu-worker-7",
            "rack1",
            "dgx03",
            "llm-0",
            "vllm-7d9f8b6c5d-x2k4p",
            "gpu07.cluster.local",
            "prefill-0",
        ] {
            assert!(is_host(host), "{host}");
        }
        for other in [
            "events",
            "main",
            "rank0",
            "rank-3",
            "stderr",
            "run2",
            "attempt-1",
            "gpu0",
            "serve-1",
            "job-7",
            "slurm-4711",
            "Worker_TP0",
            "EngineCore-pid77",
            "launch",
            "log",
            "all",
            "2026-11-29",
            "0",
            "qwen",
            "tp-0",
        ] {
            assert!(!is_host(other), "{other}");
        }
    }

    #[test]
    fn files_that_are_named_for_a_process() {
        assert_eq!(process("Worker_TP1-pid4114"), Some(("Worker_TP1", Some(4114))));
        assert_eq!(process("Worker_DP0_TP1_EP1"), Some(("Worker_DP0_TP1_EP1", None)));
        assert_eq!(process("EngineCore_DP0"), Some(("EngineCore_DP0", None)));
        assert_eq!(process("APIServer_pid=1"), Some(("APIServer", Some(1))));
        for other in ["worker-1", "Worker", "Worker_log", "pid7", "main", "EngineCore_old"] {
            assert_eq!(process(other), None, "{other}");
        }
    }
}
