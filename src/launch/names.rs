//! What a single word in a path can be the name of: a host or pod, or a process.
//!
//! Owns the forms of such names. A name that only says which part, stream, run or rank a file holds names no host. Never
//! looks at a whole path or at other names.

use std::collections::HashSet;
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
/// machines, a pod's hash. Pods that only a number tells apart are known by each other: `pods_of_sets`.
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

/// Whether a name is an address as it stands.
pub(super) fn is_ip(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

/// `10.0.0.1`, also with dashes, as clouds name their machines.
fn is_address(name: &str) -> bool {
    let plain = name.trim_start_matches("ip-").replace(['-', '_'], ".");
    is_ip(name) || is_ip(&plain)
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

/// Those of several names that are of pods in sets, `llm-0` and `llm-1`: pods are counted from 0, where the number of a
/// model, as in `qwen-2`, stands alone. `llm-0-1` is of the group that `llm-0` leads.
pub fn pods_of_sets<'a>(names: &HashSet<&'a str>) -> HashSet<&'a str> {
    let counted = |name: &str| {
        let of = set_of(name);
        of.is_some_and(|(set, number)| number == 0 || names.contains(format!("{set}-0").as_str()))
    };
    let led = |name: &str| set_of(name).is_some_and(|(set, _)| names.contains(set) && counted(set));
    let is_pod = |name: &&str| counted(name) || led(name);
    names.iter().copied().filter(is_pod).collect()
}

/// The set and the number of what is named as a pod of a set is.
fn set_of(name: &str) -> Option<(&str, u32)> {
    let (set, number) = name.rsplit_once('-')?;
    let digits = number.len() <= 4 && number.bytes().all(|b| b.is_ascii_digit());
    let named = lower(set) && set.starts_with(|c: char| c.is_ascii_alphabetic()) && !says_what_it_holds(name);
    number.parse().ok().filter(|_| digits && named).map(|n| (set, n))
}

/// Whether a text has the letters that Kubernetes allows in names.
fn lower(text: &str) -> bool {
    text.bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// `vllm-7d9f8b6c5d-x2k4p` of a deployment.
fn is_pod(name: &str) -> bool {
    let Some((set, last)) = name.rsplit_once('-') else {
        return false;
    };
    let hash = |text: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&text.len()) && lower(text) && text.bytes().any(|b| b.is_ascii_digit())
    };
    let deployed = set
        .rsplit_once('-')
        .is_some_and(|(_, of_set)| hash(of_set, 8..=10) && last.len() == 5 && lower(last));
    lower(set) && deployed
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

/// Words in the names of units that run an engine or a distributed job.
const OF_UNITS: &[&str] = &[
    "vllm", "sglang", "sgl", "ray", "torchrun", "torch", "llm", "trtllm", "triton",
];

/// The unit of a service manager that a name is, without the slice that it is in: `/system.slice/vllm.service`.
pub fn unit(name: &str) -> Option<&str> {
    let last = name.rsplit('/').next().unwrap_or(name);
    let stem = [".service", ".scope", ".slice"]
        .iter()
        .find_map(|kind| last.strip_suffix(kind));
    stem.filter(|stem| !stem.is_empty())
}

/// Whether a unit is named for what runs in a launch.
pub fn is_unit_of_launches(unit: &str) -> bool {
    words(unit).any(|word| OF_UNITS.contains(&word.as_str()))
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
            "vllm-7d9f8b6c5d-x2k4p",
            "gpu07.cluster.local",
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
            "qwen-2",
            "tp-0",
        ] {
            assert!(!is_host(other), "{other}");
        }
    }

    #[test]
    fn units_of_a_service_manager() {
        assert_eq!(unit("/system.slice/vllm.service"), Some("vllm"));
        assert_eq!(unit("user-1000.slice/app-firefox.scope"), Some("app-firefox"));
        assert_eq!(unit("python3"), None);
        for own in ["vllm", "ray-head", "vllm@gpu0", "my_sglang"] {
            assert!(is_unit_of_launches(own), "{own}");
        }
        for other in ["jupyter", "snapd", "raid-check", "app-firefox", "xray"] {
            assert!(!is_unit_of_launches(other), "{other}");
        }
    }

    #[test]
    fn pods_of_a_set_are_counted_from_zero() {
        let pods = |names: &[&'static str]| {
            let pods = pods_of_sets(&names.iter().copied().collect());
            let mut pods: Vec<&str> = pods.into_iter().collect();
            pods.sort_unstable();
            pods
        };
        assert_eq!(pods(&["llm-0", "llm-1", "dmesg"]), ["llm-0", "llm-1"]);
        assert_eq!(pods(&["prefill-0", "decode-0"]), ["decode-0", "prefill-0"]);
        assert_eq!(pods(&["llm-0", "llm-0-1", "llm-0-2"]), ["llm-0", "llm-0-1", "llm-0-2"]);
        assert!(pods(&["qwen-2", "llama-3", "llama-3-8", "run-0", "2026-0"]).is_empty());
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
