//! The memory account: who holds how much of which pool, what was asked for, by how much it is short.
//!
//! Owns the sum of the root process's figures for one device or one node, and says what does not add up. Never
//! computes a change (see `remedy`) and never mixes figures of two processes.

use std::collections::BTreeMap;

use crate::remedy::evidence::Evidence;
use crate::remedy::units::Gib;
use crate::report::model::{Holder, Measurement, Memory};

/// A difference below this is measuring error, in GiB.
const NOISE: f64 = 0.5;

/// Figures that each rank prints of itself, and what they are of.
const PER_RANK: &[(&str, &str)] = &[
    ("kv_available_gib", "for the KV cache"),
    ("load_avail_gib", "free before loading"),
];

/// Parts of the process on the device: figure and what it is. Only the first that is there of each group counts.
const PARTS: &[(&str, &[&str])] = &[
    ("weights", &["weights_gib"]),
    ("activation peak", &["activation_peak_gib"]),
    ("outside torch (context, NCCL)", &["non_torch_gib"]),
    ("CUDA graphs", &["graph_gib", "private_pools_gib", "graph_estimate_gib"]),
    ("reserved by torch, not in use", &["torch_reserved_unallocated_gib"]),
];

/// The account of the pool that the cause is about; `None` if the log has no figure of it.
pub fn account(e: &Evidence) -> Option<Memory> {
    let host = matches!(e.family(), "host-mem") || e.figure("node_used_gib").is_some() && e.family() != "gpu-oom";
    let mut memory = if host { node(e) } else { device(e) };
    memory.short_by_gib = short_by(e).filter(|short| *short > 0.0).map(rounded);
    memory.holders.retain(|holder| holder.gib > 0.005);
    memory.holders.sort_by(|a, b| b.gib.total_cmp(&a.gib));
    memory
        .holders
        .iter_mut()
        .for_each(|holder| holder.gib = rounded(holder.gib));
    let says_something = memory.total_gib.is_some()
        || memory.free_at_start_gib.is_some()
        || memory.short_by_gib.is_some()
        || !memory.holders.is_empty();
    says_something.then_some(memory)
}

/// Which rank is the tight one, where several printed the same figure of themselves and they differ.
pub fn tight_rank(measurements: &[Measurement]) -> Option<String> {
    let of = |name: &str| {
        let mut last: BTreeMap<&str, f64> = BTreeMap::new();
        let own = measurements.iter().filter(|m| m.name == name && m.value.is_finite());
        for measurement in own {
            if let Some(process) = measurement.process.as_deref() {
                last.insert(process, measurement.value);
            }
        }
        last
    };
    PER_RANK.iter().find_map(|(name, what)| {
        let values = of(name);
        let (process, least) = values.iter().min_by(|a, b| a.1.total_cmp(b.1))?;
        let most = values.values().copied().max_by(f64::total_cmp)?;
        (most - least > NOISE).then(|| {
            format!(
                "{process} is the tight one: {} {what}, against up to {} on the other ranks.",
                Gib(*least).in_words(),
                Gib(most).in_words()
            )
        })
    })
}

/// The account of one device.
fn device(e: &Evidence) -> Memory {
    let total = e.device_total().map(|gib| gib.0);
    let mut memory = empty(if e.is_unified() { "unified" } else { "gpu" }, e);
    memory.device = e.device;
    memory.total_gib = total.map(rounded);
    memory.free_at_start_gib = free_at_start(e).map(rounded);
    memory.requested_gib = requested(e, total).map(rounded);
    memory.holders = own_parts(e);
    other_part(e, &mut memory.holders);
    others(e, &mut memory.holders);
    let free = e.figure("gpu_free_gib").filter(|_| e.family() == "gpu-oom");
    if let (Some(free), Some(tried)) = (free, e.figure("tried_to_allocate_gib")) {
        memory.notes.push(format!(
            "{} were free when {} were asked for.",
            Gib(free).in_words(),
            Gib(tried).in_words()
        ));
    }
    if let (Some(total), Some(free)) = (total, free) {
        unexplained(e, total - free, &mut memory);
    }
    if e.is_unified() {
        host_side(e, &mut memory);
    }
    if total.is_none() {
        memory
            .notes
            .push("The log does not state the device's total memory.".to_owned());
    }
    memory
}

/// The host's side of a shared pool: what is really used, and the page cache, which is not.
fn host_side(e: &Evidence, memory: &mut Memory) {
    let named: f64 = memory.holders.iter().map(|holder| holder.gib).sum();
    if let Some(used) = e.figure("host_used_gib") {
        memory.holders.push(Holder {
            what: "used on the host by others".to_owned(),
            gib: used - named,
        });
    }
    if let Some(cache) = e.figure("host_cache_gib") {
        memory.holders.push(Holder {
            what: "page cache, reclaimable".to_owned(),
            gib: cache,
        });
    }
    if let (Some(free), Some(available)) = (e.figure("host_free_gib"), e.figure("host_available_gib")) {
        memory.notes.push(format!(
            "{} are free and {} available: the difference is page cache, which a new CUDA allocation may fail to get \
             until it is released.",
            Gib(free).in_words(),
            Gib(available).in_words()
        ));
    }
}

/// What this process holds beside its known parts, if the message gives its sum.
fn other_part(e: &Evidence, holders: &mut Vec<Holder>) {
    let Some(sum) = e.figure("process_in_use_gib") else {
        return;
    };
    let known: f64 = holders.iter().map(|holder| holder.gib).sum();
    let (what, rest) = if holders.is_empty() {
        ("this process", sum)
    } else {
        ("this process, the rest", sum - known)
    };
    if rest > NOISE {
        holders.push(Holder {
            what: what.to_owned(),
            gib: rest,
        });
    }
}

/// Other processes that the log names.
fn others(e: &Evidence, holders: &mut Vec<Holder>) {
    let named = e.other_holders.iter().filter(|(_, gib)| gib.is_finite());
    holders.extend(named.map(|(pid, gib)| Holder {
        what: format!("process {pid}"),
        gib: *gib,
    }));
    if e.other_holders.is_empty()
        && let Some(gib) = e.other_processes()
    {
        holders.push(Holder {
            what: "other processes".to_owned(),
            gib: gib.0,
        });
    } else if e.other_holders.is_empty()
        && e.cause == "gpu-mem.occupied"
        && let Some((total, free)) = e.size("gpu_total_gib").zip(e.gib("gpu_free_gib"))
    {
        holders.push(Holder {
            what: "held by others when this launch began".to_owned(),
            gib: (total - free).0,
        });
    }
}

/// Says how much of the used memory nobody in the log accounts for.
fn unexplained(e: &Evidence, used: f64, memory: &mut Memory) {
    let own = e.figure("process_in_use_gib");
    let own = own.unwrap_or_else(|| memory.holders.iter().map(|holder| holder.gib).sum());
    let other = e.other_processes().map_or(0.0, |gib| gib.0);
    let rest = used - own - other;
    if rest > NOISE {
        let who = if e.figure("process_in_use_gib").is_some() {
            "processes that the log does not name"
        } else {
            "what the log does not name"
        };
        memory
            .notes
            .push(format!("{rest:.2} GiB of the used memory belong to {who}."));
    } else if rest < -NOISE {
        memory
            .notes
            .push(format!("The parts add up to {:.2} GiB more than is in use.", -rest));
    }
}

/// Weights, activations, KV cache and so on, as far as the log states them.
fn own_parts(e: &Evidence) -> Vec<Holder> {
    let part = |(what, names): &(&str, &[&str])| {
        let (name, gib) = names.iter().find_map(|name| Some((*name, e.figure(name)?)))?;
        let what = match e.elsewhere.get(name).filter(|other| other.value == gib) {
            Some(other) => as_said_by(what, &other.process),
            None => (*what).to_owned(),
        };
        Some(Holder { what, gib })
    };
    let mut parts: Vec<Holder> = PARTS.iter().filter_map(part).collect();
    parts.extend(kv_cache(e));
    parts
}

/// The KV cache as allocated or, once it is allocated, as sized; another rank's figure where this one printed none.
fn kv_cache(e: &Evidence) -> Option<Holder> {
    let allocated = matches!(
        e.phase,
        Some("graph-capture" | "compile" | "warmup" | "serve-start" | "serving")
    );
    let own = e
        .figure("kv_cache_gib")
        .or_else(|| e.figure("kv_available_gib").filter(|_| allocated));
    if let Some(gib) = own {
        let what = "KV cache".to_owned();
        return Some(Holder { what, gib });
    }
    let other = e.elsewhere.get("kv_available_gib").filter(|_| allocated)?;
    Some(Holder {
        what: as_said_by("KV cache", &other.process),
        gib: other.value,
    })
}

/// Marks a part whose figure another process printed: ranks of one launch hold about the same.
fn as_said_by(what: &str, process: &str) -> String {
    format!("{what} (as {process} has it)")
}

fn free_at_start(e: &Evidence) -> Option<f64> {
    let checked_at_start = matches!(e.cause, "gpu-mem.occupied" | "gpu-mem.imbalance");
    let checked = || e.figure("gpu_free_gib").filter(|_| checked_at_start);
    e.figure("initial_free_gib")
        .or_else(checked)
        .or_else(|| e.figure("load_avail_gib"))
}

fn requested(e: &Evidence, total: Option<f64>) -> Option<f64> {
    // vLLM holds nothing to its share before it sizes the KV cache: weights take what they need.
    let by_share = || Some(total? * e.utilization().filter(|_| e.cause != "gpu-oom.weights")?.share.0);
    let by_fraction = || Some(e.figure("load_avail_gib")? * e.number("mem_fraction_static")?);
    e.figure("requested_gib").or_else(by_fraction).or_else(by_share)
}

/// The account of one node's memory.
fn node(e: &Evidence) -> Memory {
    let mut memory = empty(if e.is_unified() { "unified" } else { "host" }, e);
    let total = e.figure("node_limit_gib").or_else(|| e.figure("host_total_gib"));
    memory.total_gib = total.map(rounded);
    memory.requested_gib = e.figure("requested_gib").map(rounded);
    let used = e.figure("node_used_gib");
    if e.is_unified() {
        memory.holders = own_parts(e);
    } else if let Some(gib) = e.figure("victim_used_gib") {
        memory.holders.push(Holder {
            what: "the killed process".to_owned(),
            gib,
        });
    }
    let known: f64 = memory.holders.iter().map(|holder| holder.gib).sum();
    if let Some(used) = used {
        let what = if memory.holders.is_empty() {
            "in use on the node"
        } else {
            "everything else on the node"
        };
        memory.holders.push(Holder {
            what: what.to_owned(),
            gib: used - known,
        });
        if used - known < -NOISE {
            memory.notes.push(format!(
                "The parts add up to {:.2} GiB more than the node had in use.",
                known - used
            ));
        }
    }
    if let (Some(limit), Some(threshold)) = (total, e.ray_threshold()) {
        memory.notes.push(format!(
            "Ray's threshold is {:.2} GiB ({threshold} of the pool).",
            limit * threshold.0
        ));
    }
    memory
}

/// By how much the account is short, as far as the cause has such a difference.
fn short_by(e: &Evidence) -> Option<f64> {
    let difference = |need: &str, have: &str| Some(e.figure(need)? - e.figure(have)?);
    match e.cause {
        "gpu-mem.occupied" => difference("requested_gib", "gpu_free_gib"),
        "gpu-mem.kv-too-small" => difference("kv_needed_gib", "kv_available_gib"),
        "gpu-mem.no-kv-blocks" => e.figure("kv_available_gib").map(|gib| -gib),
        "host-mem.ray-monitor" => Some(e.figure("node_used_gib")? - e.ray_threshold()?.0 * e.figure("node_limit_gib")?),
        "host-mem.budget" => difference("requested_gib", "host_available_gib")
            .or_else(|| difference("host_requested_gib", "host_available_gib")),
        "host-mem.shm" => difference("shm_required_gib", "shm_free_gib"),
        _ if e.family() == "gpu-oom" => difference("tried_to_allocate_gib", "gpu_free_gib"),
        _ => None,
    }
}

fn empty(pool: &str, e: &Evidence) -> Memory {
    Memory {
        pool: pool.to_owned(),
        process: e.process.map(str::to_owned),
        device: None,
        total_gib: None,
        free_at_start_gib: None,
        requested_gib: None,
        holders: Vec::new(),
        short_by_gib: None,
        notes: Vec::new(),
    }
}

/// Six decimals: a KiB or so, so that what was printed in MiB reads the same again.
fn rounded(gib: f64) -> f64 {
    (gib * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remedy::evidence::testing::Case;

    fn holds(memory: &Memory, what: &str) -> Option<f64> {
        memory
            .holders
            .iter()
            .find(|holder| holder.what == what)
            .map(|holder| holder.gib)
    }

    #[test]
    fn an_out_of_memory_message_is_an_account() {
        let case = Case::figures(&[
            ("gpu_total_gib", 139.80),
            ("gpu_free_gib", 0.013),
            ("tried_to_allocate_gib", 0.02),
            ("process_in_use_gib", 128.66),
            ("weights_gib", 15.0),
            ("kv_available_gib", 112.28),
        ])
        .holder(1413, 11.12);
        let memory = account(&case.evidence("gpu-oom.graph-capture", "vllm", "0.25.1", "graph-capture")).unwrap();
        assert_eq!(memory.pool, "gpu");
        assert_eq!(memory.requested_gib, Some(128.616)); // 0.92 x 139.80
        assert_eq!(memory.short_by_gib, Some(0.007)); // 0.02 - 0.013
        assert_eq!(memory.holders.first().map(|h| h.what.as_str()), Some("KV cache"));
        assert_eq!(holds(&memory, "process 1413"), Some(11.12));
        assert_eq!(holds(&memory, "this process, the rest"), Some(1.38)); // 128.66 - 15.0 - 112.28
        assert_eq!(memory.notes.len(), 1, "{:?}", memory.notes);
    }

    #[test]
    fn a_part_that_another_rank_printed_says_so() {
        let case = Case::figures(&[
            ("gpu_total_gib", 79.19),
            ("gpu_free_gib", 0.04),
            ("tried_to_allocate_gib", 0.1),
            ("process_in_use_gib", 77.97),
            ("weights_gib", 30.59),
        ])
        .elsewhere("weights_gib", 30.59, "Worker_TP0 pid=4113")
        .elsewhere("kv_available_gib", 41.52, "Worker_TP0 pid=4113");
        let memory = account(&case.evidence("gpu-oom.graph-capture", "vllm", "0.19.0", "graph-capture")).unwrap();
        assert_eq!(holds(&memory, "KV cache (as Worker_TP0 pid=4113 has it)"), Some(41.52));
        assert_eq!(holds(&memory, "weights (as Worker_TP0 pid=4113 has it)"), Some(30.59));
        assert_eq!(holds(&memory, "this process, the rest"), Some(5.86)); // 77.97 - 41.52 - 30.59
        // Before it is allocated it holds nothing.
        let memory = account(&case.evidence("gpu-oom.profile", "vllm", "0.19.0", "memory-profile")).unwrap();
        assert!(memory.holders.iter().all(|holder| !holder.what.starts_with("KV cache")));
    }

    #[test]
    fn the_tight_rank_is_named() {
        let measured = |name: &str, process: &str, value: f64| Measurement {
            name: name.to_owned(),
            value,
            printed: String::new(),
            process: Some(process.to_owned()),
            device: None,
            line: 1,
            evidence: None,
        };
        let told = tight_rank(&[
            measured("kv_available_gib", "Worker_TP0", 49.12),
            measured("kv_available_gib", "Worker_TP1", 41.52),
            measured("kv_available_gib", "Worker_TP2", 49.10),
        ]);
        let expected =
            "Worker_TP1 is the tight one: 41.52 GiB for the KV cache, against up to 49.12 GiB on the other ranks.";
        assert_eq!(told.as_deref(), Some(expected));
        let alike = [
            measured("kv_available_gib", "a", 49.12),
            measured("kv_available_gib", "b", 49.10),
        ];
        assert_eq!(tight_rank(&alike), None);
        assert_eq!(tight_rank(&alike[..1]), None);
    }

    #[test]
    fn memory_that_nobody_names_is_said() {
        let case = Case::figures(&[
            ("gpu_total_gib", 79.19),
            ("gpu_free_gib", 0.1),
            ("tried_to_allocate_gib", 1.0),
            ("process_in_use_gib", 60.0),
        ]);
        let memory = account(&case.evidence("gpu-oom.weights", "vllm", "", "weight-load")).unwrap();
        // 79.19 - 0.1 - 60.0
        assert!(
            memory
                .notes
                .iter()
                .any(|note| note.starts_with("19.09 GiB of the used memory")),
            "{:?}",
            memory.notes
        );
    }

    #[test]
    fn the_node_of_flagship_b() {
        let case = Case::figures(&[
            ("node_used_gib", 113.78),
            ("node_limit_gib", 119.70),
            ("node_threshold_fraction", 0.95),
            ("kv_available_gib", 49.12),
            ("weights_gib", 55.4),
        ])
        .unified(true);
        let memory = account(&case.evidence("host-mem.ray-monitor", "vllm", "0.17.0", "graph-capture")).unwrap();
        assert_eq!((memory.pool.as_str(), memory.total_gib), ("unified", Some(119.7)));
        assert_eq!(memory.short_by_gib, Some(0.065));
        assert_eq!(holds(&memory, "everything else on the node"), Some(9.26)); // 113.78 - 49.12 - 55.4
    }

    #[test]
    fn a_start_up_check_is_short_by_its_difference() {
        let case = Case::figures(&[
            ("gpu_total_gib", 139.8),
            ("gpu_free_gib", 58.08),
            ("requested_gib", 128.62),
        ]);
        let memory = account(&case.evidence("gpu-mem.occupied", "vllm", "0.25.1", "device-init")).unwrap();
        assert_eq!(memory.free_at_start_gib, Some(58.08));
        assert_eq!(memory.short_by_gib, Some(70.54));
        assert_eq!(holds(&memory, "held by others when this launch began"), Some(81.72)); // 139.8 - 58.08
    }

    #[test]
    fn without_figures_there_is_no_account() {
        let case = Case::figures(&[("wait_s", 600.0)]);
        assert!(account(&case.evidence("gpu-oom.context", "sglang", "", "device-init")).is_none());
        assert!(account(&case.evidence("host-mem.oom-killer", "vllm", "", "")).is_none());
    }
}
