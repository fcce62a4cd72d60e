//! Conditions on the evidence: the small language of `when` and `unless` in the data.
//!
//! Owns which words exist and when they hold. Never reads a log. A word that is unknown is an error that a test on
//! the data finds; at run time it never holds.

use super::evidence::Evidence;
use super::formulas;
use super::units::Share;

/// A reserved-but-unallocated amount below this is no fragmentation worth a setting, in GiB.
const FRAGMENTED_FLOOR: f64 = 0.5;
/// A rank that finds so much less free than another shares its GPU with somebody, in GiB.
const HELD_BY_ANOTHER: f64 = 1.0;
/// From this part of the room outside the share on, another process decides whether the launch fits.
const MOST_OF_THE_ROOM: f64 = 0.75;

/// One condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    /// The launch runs under this: `ray`, `kubernetes`, `slurm`, `docker`, `torchrun`.
    Under(&'a str),
    /// The engine is this: `vllm`, `sglang`; or there is none, and what runs is a job of `nccl` or `torch`.
    Engine(&'a str),
    /// `unified`: device and host share one pool.
    Unified,
    /// `platform-unknown`: the log does not tell whether they do.
    PlatformUnknown,
    /// `tight-rank`: one rank found clearly less free memory than the others before it loaded the model.
    TightRank,
    /// `host-memory-only`: the cause is of the host's memory, and the device has its own.
    HostMemoryOnly,
    /// `multi-node`: more than one node.
    MultiNode,
    /// `single-gpu`: the launch is known to use one device.
    SingleGpu,
    /// `amd`: the launch is known to run on AMD's GPUs.
    Amd,
    /// `remote-engines`: data-parallel engines of the launch run on other nodes than its front end.
    RemoteEngines,
    /// `other-holder`: the log names another process on the device.
    OtherHolder,
    /// `holder-decides`: that process holds all, or nearly all, of what this launch leaves of the device.
    HolderDecides,
    /// `alone-on-device`: what the process itself holds is, with what is free, nearly the whole device.
    AloneOnDevice,
    /// `fragmented`: torch holds unused what it could not get.
    Fragmented,
    /// `reserve-negligible`: what torch holds unused is known, little, and less than what it could not get.
    ReserveNegligible,
    /// `weights-fill-device`: the weights alone take what the largest share of the device allows.
    WeightsFillDevice,
    /// `eager`: CUDA graphs are off already.
    Eager,
    /// `multimodal`: the model takes images, video or audio.
    Multimodal,
    /// `all-nodes`: there are lines of as many nodes as the launch says it has.
    AllNodes,
    /// `lines:PROGRAM`: there are lines of this program in the inputs.
    Lines(&'a str),
    /// `phase:ID`: the phase of death.
    Phase(&'a str),
    /// `tag:ID`: a tag of the verdict.
    Tag(&'a str),
    /// `reason:ID`: the sub-reason.
    Reason(&'a str),
    /// `figure:NAME`: the log states it.
    Figure(&'a str),
    /// `setting:NAME`, or `setting:NAME=VALUE`: the log shows it.
    Setting(&'a str, Option<&'a str>),
}

impl<'a> Condition<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        if let Some((kind, word)) = text.split_once(':') {
            return match kind {
                _ if word.is_empty() => None,
                "lines" => Some(Self::Lines(word)),
                "phase" => Some(Self::Phase(word)),
                "tag" => Some(Self::Tag(word)),
                "reason" => Some(Self::Reason(word)),
                "figure" => Some(Self::Figure(word)),
                "setting" => Some(match word.split_once('=') {
                    Some((name, value)) => Self::Setting(name, Some(value)),
                    None => Self::Setting(word, None),
                }),
                _ => None,
            };
        }
        match text {
            "ray" | "kubernetes" | "slurm" | "docker" | "torchrun" => Some(Self::Under(text)),
            "vllm" | "sglang" | "nccl" | "torch" => Some(Self::Engine(text)),
            "unified" => Some(Self::Unified),
            "platform-unknown" => Some(Self::PlatformUnknown),
            "all-nodes" => Some(Self::AllNodes),
            "tight-rank" => Some(Self::TightRank),
            "host-memory-only" => Some(Self::HostMemoryOnly),
            "multi-node" => Some(Self::MultiNode),
            "single-gpu" => Some(Self::SingleGpu),
            "amd" => Some(Self::Amd),
            "remote-engines" => Some(Self::RemoteEngines),
            "other-holder" => Some(Self::OtherHolder),
            "holder-decides" => Some(Self::HolderDecides),
            "alone-on-device" => Some(Self::AloneOnDevice),
            "fragmented" => Some(Self::Fragmented),
            "reserve-negligible" => Some(Self::ReserveNegligible),
            "weights-fill-device" => Some(Self::WeightsFillDevice),
            "eager" => Some(Self::Eager),
            "multimodal" => Some(Self::Multimodal),
            _ => None,
        }
    }

    fn holds(self, e: &Evidence) -> bool {
        match self {
            Self::Under(what) => e.under.contains(&what),
            Self::Engine(name) => e.engine_is(name),
            Self::Unified => e.is_unified(),
            Self::PlatformUnknown => e.is_platform_unknown(),
            Self::AllNodes => e.all_nodes,
            Self::Lines(program) => e.heard.iter().any(|heard| heard == program),
            Self::TightRank => is_tight(e),
            Self::HostMemoryOnly => is_host_memory_only(e),
            Self::MultiNode => e.nodes > 1,
            Self::SingleGpu => is_single_gpu(e),
            Self::Amd => e.is_amd(),
            Self::RemoteEngines => e.has_remote_engines(),
            Self::OtherHolder => e.other_processes().is_some(),
            Self::HolderDecides => holder_decides(e),
            Self::AloneOnDevice => is_alone_on_device(e),
            Self::Fragmented => is_fragmented(e),
            Self::ReserveNegligible => is_reserve_negligible(e),
            Self::WeightsFillDevice => weights_fill_device(e),
            Self::Eager => e
                .setting("enforce_eager")
                .is_some_and(|v| v.eq_ignore_ascii_case("true")),
            Self::Multimodal => is_multimodal(e),
            Self::Phase(id) => e.phase == Some(id),
            Self::Tag(tag) => e.has_tag(tag),
            Self::Reason(reason) => e.reason == Some(reason),
            Self::Figure(name) => e.figure(name).is_some(),
            Self::Setting(name, None) => e.setting(name).is_some(),
            Self::Setting(name, Some(value)) => e.stated(name) == Some(value),
        }
    }
}

/// A host-memory cause where lowering what the device holds changes nothing. While graphs are captured host use
/// hardly grows, so a machine of unknown kind is not counted as one with separate memory there.
fn is_host_memory_only(e: &Evidence) -> bool {
    let undecided = e.is_platform_unknown() && e.phase == Some("graph-capture");
    e.family() == "host-mem" && !e.is_unified() && !undecided
}

fn is_tight(e: &Evidence) -> bool {
    let spread = e.spreads.get("load_avail_gib");
    spread.is_some_and(|spread| spread.most - spread.least >= HELD_BY_ANOTHER)
}

fn is_single_gpu(e: &Evidence) -> bool {
    let sizes = [
        "tensor_parallel_size",
        "tp_size",
        "pipeline_parallel_size",
        "data_parallel_size",
        "world_size",
    ];
    let known: Vec<u64> = sizes.iter().filter_map(|name| e.count(name)).collect();
    e.nodes <= 1 && !known.is_empty() && known.iter().all(|&size| size == 1)
}

fn holder_decides(e: &Evidence) -> bool {
    let Some((other, total)) = e.other_processes().zip(e.device_total()) else {
        return false;
    };
    // Without a share in force: whoever holds more than half.
    let left = e.utilization().map_or(Share(0.5), |u| Share(1.0) - u.share) * total;
    other.0 >= MOST_OF_THE_ROOM * left.0
}

/// What is left for others is rounding and the driver's own. In a pool that the host shares it would be anybody's.
fn is_alone_on_device(e: &Evidence) -> bool {
    let known = || {
        let held = e.figure("process_in_use_gib")? + e.figure("gpu_free_gib")?;
        Some(e.figure("gpu_total_gib")? - held < HELD_BY_ANOTHER)
    };
    e.other_processes().is_none() && known().unwrap_or(false)
}

fn is_fragmented(e: &Evidence) -> bool {
    let unused = e.figure("torch_reserved_unallocated_gib").unwrap_or(0.0);
    let wanted = e.figure("tried_to_allocate_gib").unwrap_or(f64::INFINITY);
    unused >= FRAGMENTED_FLOOR && unused >= wanted
}

fn is_reserve_negligible(e: &Evidence) -> bool {
    let wanted = e.figure("tried_to_allocate_gib").unwrap_or(FRAGMENTED_FLOOR);
    e.figure("torch_reserved_unallocated_gib")
        .is_some_and(|unused| unused < FRAGMENTED_FLOOR && unused < wanted)
}

fn weights_fill_device(e: &Evidence) -> bool {
    let total = e.device_total().or_else(|| e.size("load_avail_gib"));
    e.size("weights_gib")
        .zip(total)
        .is_some_and(|(weights, total)| weights >= formulas::highest(e) * total)
}

fn is_multimodal(e: &Evidence) -> bool {
    e.figure("encoder_budget_tokens").is_some()
        || e.setting("limit_mm_per_prompt").is_some()
        || e.family() == "config" && e.cause == "config.multimodal"
}

/// Whether a condition as written in the data holds; `!` in front turns it round.
pub fn holds(text: &str, e: &Evidence) -> bool {
    match text.strip_prefix('!') {
        Some(text) => Condition::parse(text).is_some_and(|c| !c.holds(e)),
        None => Condition::parse(text).is_some_and(|c| c.holds(e)),
    }
}

/// Whether the words of a condition exist.
pub fn is_known(text: &str) -> bool {
    Condition::parse(text.strip_prefix('!').unwrap_or(text)).is_some()
}

#[cfg(test)]
mod tests {
    use super::super::evidence::testing::Case;
    use super::*;

    #[test]
    fn a_process_is_alone_where_it_holds_what_is_not_free() {
        let holds_alone = |own: f64, other: Option<f64>| {
            let figures = [
                ("gpu_total_gib", 79.1),
                ("gpu_free_gib", 1.2),
                ("process_in_use_gib", own),
            ];
            let case = Case::figures(&figures);
            let case = other.map_or_else(|| Case::figures(&figures), |gib| case.holder(7, gib));
            holds("alone-on-device", &case.evidence("gpu-oom.other", "torch", "", ""))
        };
        assert!(holds_alone(77.8, None));
        assert!(!holds_alone(60.0, None), "17.9 GiB are somebody's");
        assert!(!holds_alone(77.8, Some(1.1)), "named");
        let unknown = Case::figures(&[("gpu_total_gib", 79.1), ("gpu_free_gib", 1.2)]);
        assert!(!holds(
            "alone-on-device",
            &unknown.evidence("gpu-oom.other", "torch", "", "")
        ));
    }

    #[test]
    fn words_hold_by_the_evidence() {
        let mut case = Case::figures(&[("torch_reserved_unallocated_gib", 2.0), ("tried_to_allocate_gib", 1.0)])
            .set("enforce_eager", "True")
            .set("tensor_parallel_size", "1")
            .holder(1413, 11.1);
        case.under = vec!["ray"];
        let e = case.evidence("gpu-oom.profile", "vllm", "0.25.1", "memory-profile");
        for word in [
            "ray",
            "vllm",
            "fragmented",
            "eager",
            "single-gpu",
            "other-holder",
            "platform-unknown",
        ] {
            assert!(holds(word, &e), "{word}");
            assert!(!holds(&format!("!{word}"), &e), "!{word}");
        }
        for word in [
            "kubernetes",
            "sglang",
            "unified",
            "multi-node",
            "host-memory-only",
            "phase:serving",
        ] {
            assert!(!holds(word, &e), "{word}");
            assert!(holds(&format!("!{word}"), &e), "!{word}");
        }
        assert!(holds("phase:memory-profile", &e));
        assert!(holds("setting:enforce_eager=True", &e) && !holds("setting:enforce_eager=False", &e));
    }

    #[test]
    fn a_little_reserve_is_no_fragmentation() {
        let case = Case::figures(&[("torch_reserved_unallocated_gib", 0.2), ("tried_to_allocate_gib", 0.02)]);
        let e = case.evidence("gpu-oom.profile", "vllm", "", "");
        // Enough for the allocation, if it were in one piece: neither a finding nor advice to overrule.
        assert!(!holds("fragmented", &e) && !holds("reserve-negligible", &e));
        let case = Case::figures(&[("torch_reserved_unallocated_gib", 2.0), ("tried_to_allocate_gib", 4.0)]);
        let e = case.evidence("gpu-oom.profile", "vllm", "", "");
        assert!(!holds("fragmented", &e) && !holds("reserve-negligible", &e));
        let case = Case::figures(&[
            ("torch_reserved_unallocated_gib", 0.006),
            ("tried_to_allocate_gib", 0.02),
        ]);
        assert!(holds(
            "reserve-negligible",
            &case.evidence("gpu-oom.profile", "vllm", "", "")
        ));
        let case = Case::figures(&[("tried_to_allocate_gib", 0.02)]);
        assert!(!holds(
            "reserve-negligible",
            &case.evidence("gpu-oom.profile", "vllm", "", "")
        ));
    }

    #[test]
    fn a_neighbour_decides_when_it_fills_what_the_share_leaves() {
        // 0.08 x 139.8 = 11.18 left; 11.12 is nearly all of it, 1.17 of 0.05 x 79.19 = 3.96 is not.
        for (total, share, other, decides) in [
            (139.80, "0.92", 11.12, true),
            (79.19, "0.95", 1.17, false),
            (139.80, "0.5", 123.08, true),
        ] {
            let case = Case::figures(&[("gpu_total_gib", total)])
                .set("gpu_memory_utilization", share)
                .holder(7, other);
            let e = case.evidence("gpu-oom.graph-capture", "vllm", "0.25.1", "");
            assert_eq!(holds("holder-decides", &e), decides, "{other}");
        }
        let case = Case::figures(&[("gpu_total_gib", 139.8)]).holder(7, 136.86);
        assert!(holds(
            "holder-decides",
            &case.evidence("gpu-oom.other", "torch", "", "")
        ));
        let case = Case::figures(&[("gpu_total_gib", 139.8)]);
        assert!(!holds(
            "holder-decides",
            &case.evidence("gpu-oom.other", "torch", "", "")
        ));
    }

    #[test]
    fn weights_fill_a_device_when_the_largest_share_is_theirs() {
        let holds_for = |weights: f64| {
            let case = Case::figures(&[("gpu_total_gib", 80.0), ("weights_gib", weights)]);
            holds(
                "weights-fill-device",
                &case.evidence("gpu-mem.no-kv-blocks", "vllm", "0.25.1", ""),
            )
        };
        assert!(holds_for(79.0) && !holds_for(70.0)); // 0.98 x 80 = 78.4
        let case = Case::figures(&[("weights_gib", 79.0)]);
        assert!(!holds(
            "weights-fill-device",
            &case.evidence("gpu-mem.no-kv-blocks", "vllm", "", "")
        ));
    }

    #[test]
    fn unknown_words_never_hold() {
        let case = Case::figures(&[]);
        let e = case.evidence("gpu-oom.profile", "vllm", "", "");
        for word in ["windows", "!windows", "phase:", "moon:full", ""] {
            assert!(!holds(word, &e) && !is_known(word), "{word}");
        }
    }

    #[test]
    fn host_memory_is_apart_unless_the_pool_is_shared() {
        let case = Case::figures(&[]);
        assert!(holds(
            "host-memory-only",
            &case.evidence("host-mem.ray-monitor", "vllm", "", "weight-load")
        ));
        assert!(!holds(
            "host-memory-only",
            &case.evidence("host-mem.ray-monitor", "vllm", "", "graph-capture")
        ));
        let case = Case::figures(&[]).unified(false);
        assert!(holds(
            "host-memory-only",
            &case.evidence("host-mem.ray-monitor", "vllm", "", "graph-capture")
        ));
    }
}
