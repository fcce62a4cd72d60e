//! Sums for sizes and counts: lengths that fit, batches cut in half, ranks that hold the weights.

use super::{Computed, Sum};
use crate::remedy::evidence::Evidence;
use crate::remedy::units::{Gib, Share, Tokens};

/// Part of a device that weights may take, so that KV cache, activations and graphs fit beside them.
const WEIGHTS_SHARE: f64 = 0.75;
/// Most ranks that are suggested.
const MOST_RANKS: u64 = 64;
/// Lengths are rounded down to a multiple of this, so that a few MiB less at the next start do no harm.
const LENGTH_STEP: Tokens = Tokens(256.0);
/// vLLM takes this off the byte counts that it suggests itself, in GiB.
const REDUNDANCY: Gib = Gib(150.0 / 1024.0);
/// Left of the free memory for a peak that was not measured, as a share of it (an assumption).
const UNMEASURED_PEAK: Share = Share(0.15);
/// Ranks of adapters that vLLM makes buffers for.
const LORA_RANKS: &[f64] = &[8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 320.0, 512.0];
/// Most pids that are listed.
const MOST_PIDS: usize = 4;

/// The other processes that the log names.
pub fn holder(e: &Evidence) -> Sum {
    let Some(gib) = e.other_processes() else {
        return Sum::Missing("which process holds the memory, and how much");
    };
    let mut vars = vec![("gib", gib.to_string())];
    vars.extend(pids(e.other_holders.iter().map(|(pid, _)| *pid)));
    Sum::Value(Computed { vars, arithmetic: None })
}

/// How much less free memory one rank found before loading than the others, and which.
pub fn tight_rank(e: &Evidence) -> Sum {
    let Some(spread) = e.spreads.get("load_avail_gib") else {
        return Sum::Nothing;
    };
    let (least, most) = (Gib(spread.least), Gib(spread.most));
    let less = most - least;
    Sum::Value(Computed {
        vars: vec![("rank", spread.process.clone()), ("gib", less.to_string())],
        arithmetic: Some(format!("{most} - {least} GiB free before loading = {less} GiB")),
    })
}

/// The processes of earlier attempts that are still there.
pub fn leftover(e: &Evidence) -> Sum {
    match pids(e.leftovers.iter().copied()) {
        Some(pids) => Sum::Value(Computed {
            vars: vec![pids],
            arithmetic: None,
        }),
        None => Sum::Nothing,
    }
}

/// Pids to be ended. Pid 1 is the first process of whatever counts it: of a container, or of the machine.
fn pids(all: impl Iterator<Item = i64>) -> Option<(&'static str, String)> {
    let pids: Vec<String> = all
        .filter(|pid| *pid > 1)
        .take(MOST_PIDS)
        .map(|pid| pid.to_string())
        .collect();
    (!pids.is_empty()).then(|| ("pids", pids.join(" ")))
}

/// The number of the device.
pub fn device(e: &Evidence) -> Sum {
    e.device.map_or(Sum::Nothing, |device| {
        Sum::Value(Computed {
            vars: vec![("device", device.to_string())],
            arithmetic: None,
        })
    })
}

/// A rank's part of the checkpoint.
pub fn shard(e: &Evidence) -> Sum {
    let (Some(checkpoint), Some(ranks)) = (e.size("checkpoint_gib"), ranks(e)) else {
        return Sum::Missing("the size of the checkpoint and the number of ranks that share it");
    };
    let part = Gib(checkpoint.0 / ranks as f64);
    Sum::Value(Computed {
        vars: vec![("to", part.to_string())],
        arithmetic: Some(format!("{checkpoint} GiB checkpoint / {ranks} ranks = {part} GiB")),
    })
}

/// Ranks that share the weights.
fn ranks(e: &Evidence) -> Option<u64> {
    let tensor = e.count("tensor_parallel_size").or_else(|| e.count("tp_size"));
    let pipeline = e.count("pipeline_parallel_size").or_else(|| e.count("pp_size"));
    let ranks = tensor.unwrap_or(1).checked_mul(pipeline.unwrap_or(1))?;
    (tensor.is_some() || pipeline.is_some()).then_some(ranks)
}

/// The smallest power of two at which a rank's weights leave room for the rest.
pub fn tensor_parallel_for_weights(e: &Evidence) -> Sum {
    let Some(checkpoint) = e.size("checkpoint_gib") else {
        return Sum::Missing("the size of the checkpoint");
    };
    let Some(total) = e.device_total() else {
        return Sum::Missing("the device's total memory");
    };
    let from = e
        .count("tensor_parallel_size")
        .or_else(|| e.count("tp_size"))
        .unwrap_or(1);
    let fits = |ranks: u64| checkpoint.0 / ranks as f64 <= WEIGHTS_SHARE * total.0;
    if fits(from) {
        return Sum::Nothing;
    }
    let to = std::iter::successors(Some(from.saturating_mul(2)), |n| n.checked_mul(2))
        .take_while(|&n| n <= MOST_RANKS)
        .find(|&n| fits(n));
    let Some(to) = to else { return Sum::Unfit };
    let part = Gib(checkpoint.0 / to as f64);
    let sum = format!("{checkpoint} GiB checkpoint / {to} = {part} GiB a rank, at most {WEIGHTS_SHARE} of {total} GiB");
    Computed::from_to(from, to, sum)
}

/// The largest power of two below the size in force that divides the model's heads. Other parts of a model are divided
/// by powers of two, if by anything.
pub fn tensor_parallel_that_divides(e: &Evidence) -> Sum {
    let from = e.count("tensor_parallel_size").or_else(|| e.count("tp_size"));
    let heads = e.figure("heads_count").filter(|heads| *heads >= 1.0);
    let (Some(heads), Some(from)) = (heads, from) else {
        // Not every check names them, and most messages hold other numbers.
        return Sum::Nothing;
    };
    let divides = |size: u64| heads % size as f64 == 0.0;
    if divides(from) {
        return Sum::Nothing;
    }
    let powers = || std::iter::successors(Some(1_u64), |n| n.checked_mul(2)).take_while(|&n| n <= MOST_RANKS);
    let Some(to) = powers().filter(|&n| n < from && divides(n)).last() else {
        return Sum::Unfit;
    };
    let above = powers().find(|&n| n > from && divides(n));
    let above = above.map_or_else(String::new, |n| {
        format!("; {n} divides them too, where there are as many GPUs")
    });
    Computed::from_to(
        from,
        to,
        format!("{heads} heads / {to} = {} a GPU{above}", heads / to as f64),
    )
}

/// The smallest rank that may be set and holds the adapter's.
pub fn lora_rank(e: &Evidence) -> Sum {
    let Some(rank) = e.figure("lora_rank_count") else {
        return Sum::Missing("the adapter's rank");
    };
    let Some(to) = LORA_RANKS.iter().find(|&&size| size >= rank) else {
        return Sum::Unfit;
    };
    let from = e.stated("max_lora_rank").unwrap_or("16 (default)");
    Computed::from_to(from, to, format!("the adapter's rank is {rank}"))
}

/// What is free on the host, shared by the ranks of a node.
pub fn hicache_fit(e: &Evidence) -> Sum {
    let Some(free) = e.size("host_available_gib") else {
        return Sum::Missing("the host memory that is free");
    };
    let nodes = f64::from(e.nodes.max(1));
    let here = (ranks(e).unwrap_or(1) as f64 / nodes).max(1.0);
    let to = (free.0 / here).floor();
    if to < 1.0 {
        return Sum::Unfit;
    }
    let from = e.stated("hicache_size").filter(|size| *size != "0");
    let sum = format!("{free} GB free / {here} ranks of this node, rounded down");
    Computed::from_to(from.unwrap_or("set by the ratio"), format!("{to:.0}"), sum)
}

/// What /dev/shm has room for, in bytes. Ray reads its size and the store's in decimal GB.
pub fn object_store_fit(e: &Evidence) -> Sum {
    let Some(free) = e.size("shm_free_gib") else {
        return Sum::Missing("the size of /dev/shm");
    };
    let bytes = (Share(0.95) * free).0 * 1e9;
    Sum::Value(Computed {
        vars: vec![("to", format!("{bytes:.0}"))],
        arithmetic: Some(format!("0.95 x {free} GB of /dev/shm, in bytes")),
    })
}

/// The longest sequence that the KV cache holds.
pub fn model_len_fit(e: &Evidence) -> Sum {
    let from = e
        .tokens("max_seq_len_tokens")
        .or_else(|| e.number("max_model_len").map(Tokens))
        .or_else(|| e.number("context_length").map(Tokens));
    let estimate = e
        .tokens("estimated_max_len_tokens")
        .map(|t| (t, "by the engine's estimate"));
    let said = estimate.or_else(|| e.tokens("kv_capacity_tokens").map(|t| (t, "in the KV cache")));
    let (fits, sum) = match (said, from, e.size("kv_available_gib"), e.size("kv_needed_gib")) {
        (Some((tokens, what)), ..) => (tokens, format!("{tokens} tokens {what}")),
        (None, Some(length), Some(available), Some(needed)) if available < needed => (
            length * (available / needed),
            format!("{length} x {available} / {needed} GiB"),
        ),
        _ => return Sum::Missing("how many tokens the KV cache holds"),
    };
    let to = fits.floor_to(LENGTH_STEP);
    if to < LENGTH_STEP || from.is_some_and(|from| to >= from) {
        return Sum::Unfit;
    }
    let from = from.map_or_else(|| "unknown".to_owned(), |from| from.to_string());
    Computed::from_to(from, to, format!("{sum}, rounded down to a multiple of {LENGTH_STEP}"))
}

/// The KV cache as sized, less what could not be allocated; where it was not sized, what was free at start less the
/// weights and a part for the activation peak that was never measured.
pub fn kv_cache_bytes(e: &Evidence) -> Sum {
    let (to, sum) = if let Some((available, tried)) = e.size("kv_available_gib").zip(e.size("tried_to_allocate_gib")) {
        let sum = format!("({available} sized - {tried} that could not be allocated - {REDUNDANCY} reserve) GiB");
        (available - tried - REDUNDANCY, sum)
    } else {
        let (Some(free), Some(weights)) = (e.size("initial_free_gib"), e.size("weights_gib")) else {
            return Sum::Missing("the size of the KV cache, nor the free memory and the weights to take it from");
        };
        let peak = UNMEASURED_PEAK * free;
        let sum = format!("({free} free at start - {weights} weights - {peak} assumed for activations and graphs) GiB");
        (free - weights - peak, sum)
    };
    if to.0 <= 0.0 {
        return Sum::Unfit;
    }
    let bytes = (to.0 * f64::from(1u32 << 30)).floor();
    Computed::from_to(
        "computed by profiling",
        format!("{bytes:.0}"),
        format!("{sum} = {to} GiB"),
    )
}

/// The deficit of the budget plus room for a KV cache, in whole GiB.
pub fn offload_for_blocks(e: &Evidence) -> Sum {
    let Some(available) = e.gib("kv_available_gib").filter(|gib| gib.0 < 0.0) else {
        return Sum::Nothing;
    };
    let to = (2.0 - available.0).ceil();
    let sum = format!("{} GiB short + 2 GiB for the KV cache, rounded up", Gib(-available.0));
    Computed::from_to("0", format!("{to:.0}"), sum)
}

/// Room in shared memory: twice what was asked for, in whole GiB; an object store asks for all it needs at once.
pub fn shm_size(e: &Evidence) -> Sum {
    let Some(required) = e.size("shm_required_gib") else {
        return Sum::Missing("how much shared memory was asked for");
    };
    if e.reason == Some("object-store") {
        let gib = required.0.ceil() + 1.0;
        return Sum::Value(Computed {
            vars: vec![("gib", format!("{gib:.0}"))],
            arithmetic: Some(format!("{required} GiB asked for + 1 GiB, rounded up to {gib:.0} GiB")),
        });
    }
    let gib = (2.0 * required.0).ceil().max(1.0);
    Sum::Value(Computed {
        vars: vec![("gib", format!("{gib:.0}"))],
        arithmetic: Some(format!("2 x {required} GiB asked for, rounded up to {gib:.0} GiB")),
    })
}

/// The largest number of GPUs that a group of ranks splits into evenly and that are there, by what the message or
/// CUDA_VISIBLE_DEVICES says.
pub fn size_for_gpus(e: &Evidence) -> Sum {
    let visible = e
        .stated("CUDA_VISIBLE_DEVICES")
        .or_else(|| e.stated("cuda_visible_devices"));
    let listed = visible.filter(|list| !list.is_empty() && *list != "None");
    let listed = listed.map(|list| list.split(',').count() as u64);
    let stated = e.figure("available_gpus_count").filter(|n| *n >= 1.0).map(|n| n as u64);
    let size = e.count("tp_size").or_else(|| e.count("tensor_parallel_size"));
    let size = size.or_else(|| e.figure("requested_gpus_count").filter(|n| *n >= 1.0).map(|n| n as u64));
    let (Some(gpus), Some(size)) = (stated.or(listed), size) else {
        return Sum::Missing("how many GPUs there are and how many are asked for");
    };
    match (1..=gpus.min(size)).rev().find(|n| size.is_multiple_of(*n)) {
        Some(to) if to < size => Sum::Value(Computed {
            vars: vec![
                ("from", size.to_string()),
                ("to", to.to_string()),
                ("gpus", gpus.to_string()),
            ],
            arithmetic: Some(format!(
                "{size} ranks, {gpus} GPUs: {to} is the largest divisor of {size} that fits"
            )),
        }),
        _ => Sum::Nothing,
    }
}

/// The least free memory of all ranks, against this rank's.
pub fn imbalance(e: &Evidence) -> Sum {
    let (Some(least), Some(here)) = (e.gib("min_rank_free_gib"), e.size("gpu_free_gib")) else {
        return Sum::Missing("how much memory each rank had free");
    };
    let gap = here - least;
    Computed::from_to(
        here,
        least,
        format!("{here} here - {least} at the least = {gap} GiB apart"),
    )
}

/// By how much an allocation on the device was too large.
pub fn shortfall(e: &Evidence) -> Sum {
    let (Some(tried), Some(free)) = (e.size("tried_to_allocate_gib"), e.gib("gpu_free_gib")) else {
        return Sum::Missing("how much was asked for and how much was free");
    };
    let short = tried - free;
    if short.0 <= 0.0 {
        return Sum::Nothing;
    }
    Sum::Value(Computed {
        vars: vec![("gib", short.to_string())],
        arithmetic: Some(format!("{tried} asked for - {free} free = {short} GiB short")),
    })
}

/// What a request for host memory lacked, or what the process that was killed for it held.
pub fn host_need(e: &Evidence) -> Sum {
    let requested = e
        .size("host_requested_gib")
        .or_else(|| e.size("requested_gib"))
        .or_else(|| e.size("host_required_gib"))
        .or_else(|| e.size("object_gib"));
    let told = |gib: Gib, sum: String| {
        Sum::Value(Computed {
            vars: vec![("gib", gib.to_string())],
            arithmetic: Some(sum),
        })
    };
    let held = e.size("victim_used_gib").or_else(|| e.size("anon_rss_gib"));
    match (requested, e.gib("host_available_gib"), held) {
        (Some(asked), Some(free), _) if asked > free => {
            let short = asked - free;
            told(
                short,
                format!("{asked} asked for - {free} available = {short} GiB short"),
            )
        }
        (_, _, Some(held)) => told(held, format!("the process that was killed held {held} GiB")),
        (Some(asked), ..) => told(asked, format!("{asked} GiB were asked for")),
        _ => Sum::Missing("how much host memory the process used or asked for"),
    }
}

/// As many sequences as the state cache has blocks.
pub fn seqs_for_state_cache(e: &Evidence) -> Sum {
    let blocks = ["state_blocks_count", "mamba_cache_count"]
        .iter()
        .find_map(|name| e.figure(name));
    let Some(blocks) = blocks.filter(|blocks| *blocks >= 1.0) else {
        return Sum::Missing("the number of state-cache blocks");
    };
    let from = e.figure("max_num_seqs_count").or_else(|| e.number("max_num_seqs"));
    let from = from.map_or_else(|| "unknown".to_owned(), |from| format!("{from:.0}"));
    Computed::from_to(
        from,
        format!("{blocks:.0}"),
        format!("one block a sequence: {blocks:.0} blocks"),
    )
}

/// Half the sequences.
pub fn max_num_seqs_half(e: &Evidence) -> Sum {
    half(
        e,
        &["max_num_seqs"],
        &["dummy_requests_count"],
        "sequences",
        "the number of sequences in force",
    )
}

/// Half the tokens of a batch.
pub fn batched_tokens_half(e: &Evidence) -> Sum {
    half(
        e,
        &["max_num_batched_tokens"],
        &[],
        "tokens a batch",
        "the tokens of a batch in force",
    )
}

/// Half the tokens of a prefill chunk.
pub fn chunked_prefill_half(e: &Evidence) -> Sum {
    half(
        e,
        &["chunked_prefill_size"],
        &[],
        "tokens a chunk",
        "the chunk size in force",
    )
}

/// Half the largest captured batch, vLLM.
pub fn graph_size_half(e: &Evidence) -> Sum {
    half(
        e,
        &["max_cudagraph_capture_size"],
        &["capture_bs_max_count"],
        "tokens in the largest graph",
        "the largest graph",
    )
}

/// Half the largest captured batch, SGLang.
pub fn graph_max_bs_half(e: &Evidence) -> Sum {
    let settings = ["cuda_graph_max_bs_decode", "cuda_graph_max_bs"];
    half(
        e,
        &settings,
        &["capture_bs_max_count", "capture_bs_count"],
        "the largest batch",
        "the largest captured batch",
    )
}

/// Half the largest prefill graph, SGLang.
pub fn graph_max_bs_prefill_half(e: &Evidence) -> Sum {
    let settings = ["cuda_graph_max_bs_prefill"];
    half(
        e,
        &settings,
        &[],
        "the largest graph",
        "the tokens of the largest prefill graph",
    )
}

/// Halves a count: peaks grow about in proportion, and half is one start away from knowing more.
fn half(e: &Evidence, settings: &[&str], figures: &[&str], what: &str, missing: &'static str) -> Sum {
    let set = settings.iter().find_map(|name| e.count(name));
    let seen = || {
        figures
            .iter()
            .find_map(|name| e.figure(name))
            .filter(|n| (2.0..1e12).contains(n))
            .map(|n| n as u64)
    };
    // What the engine did may be less than what it may do: half of an upper limit changes nothing then.
    let from = match (set, seen()) {
        (Some(set), Some(seen)) => Some(set.min(seen)),
        (set, seen) => set.or(seen),
    };
    match from {
        None => Sum::Missing(missing),
        Some(1) => Sum::Unfit,
        Some(from) => Computed::from_to(from, from / 2, format!("half of {from} ({what})")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{to, var};
    use super::*;
    use crate::remedy::evidence::testing::Case;

    #[test]
    fn the_length_follows_the_engines_estimate() {
        // 124784 / 256 = 487.4 -> 487 x 256 = 124672
        let case = Case::figures(&[
            ("max_seq_len_tokens", 131_072.0),
            ("estimated_max_len_tokens", 124_784.0),
        ]);
        let e = case.evidence("gpu-mem.kv-too-small", "vllm", "0.25.1", "kv-cache");
        assert_eq!(to(&model_len_fit(&e)), "124672");
        assert_eq!(var(&model_len_fit(&e), "from"), "131072");
    }

    #[test]
    fn without_an_estimate_the_length_is_in_proportion() {
        // 262144 x 8.72 / 18.35 = 124573 -> 486 x 256 = 124416
        let case = Case::figures(&[
            ("max_seq_len_tokens", 262_144.0),
            ("kv_needed_gib", 18.35),
            ("kv_available_gib", 8.72),
        ]);
        assert_eq!(
            to(&model_len_fit(&case.evidence(
                "gpu-mem.kv-too-small",
                "vllm",
                "0.8.2",
                ""
            ))),
            "124416"
        );
        let case = Case::figures(&[("kv_available_gib", 8.72)]);
        assert_eq!(
            model_len_fit(&case.evidence("gpu-mem.kv-too-small", "vllm", "0.8.2", "")),
            Sum::Missing("how many tokens the KV cache holds")
        );
    }

    #[test]
    fn ranks_hold_the_weights() {
        // 110.8 / 2 = 55.4 > 0.75 x 47.4 = 35.6; / 4 = 27.7 fits
        let case =
            Case::figures(&[("checkpoint_gib", 110.8), ("gpu_total_gib", 47.4)]).set("tensor_parallel_size", "2");
        assert_eq!(
            to(&tensor_parallel_for_weights(&case.evidence(
                "gpu-oom.weights",
                "vllm",
                "0.25.1",
                ""
            ))),
            "4"
        );
        let case = Case::figures(&[("checkpoint_gib", 15.0), ("gpu_total_gib", 79.2)]);
        assert_eq!(
            tensor_parallel_for_weights(&case.evidence("gpu-oom.weights", "vllm", "0.25.1", "")),
            Sum::Nothing
        );
    }

    #[test]
    fn the_shard_is_the_checkpoint_over_the_ranks() {
        let case = Case::figures(&[("checkpoint_gib", 110.8)]).set("tp_size", "2");
        assert_eq!(to(&shard(&case.evidence("gpu-oom.context", "sglang", "", ""))), "55.40");
        let case = Case::figures(&[("checkpoint_gib", 110.8)]);
        let sum = shard(&case.evidence("gpu-oom.context", "sglang", "", ""));
        assert!(
            matches!(sum, Sum::Missing(what) if what.contains("number of ranks")),
            "{sum:?}"
        );
    }

    #[test]
    fn holders_are_named() {
        let case = Case::figures(&[]).holder(1413, 11.12).holder(1500, 1.0);
        let sum = holder(&case.evidence("gpu-oom.profile", "vllm", "", ""));
        assert_eq!(var(&sum, "pids"), "1413 1500");
        assert_eq!(var(&sum, "gib"), "12.12");
        let first = Case::figures(&[]).holder(1, 11.12);
        let Sum::Value(computed) = holder(&first.evidence("gpu-oom.profile", "vllm", "", "")) else {
            panic!("the size is known");
        };
        assert!(
            computed.vars.iter().all(|(name, _)| *name != "pids"),
            "pid 1 is no pid to end"
        );
    }

    #[test]
    fn counts_are_halved_and_missing_ones_named() {
        let case = Case::figures(&[("dummy_requests_count", 1024.0)]);
        let e = case.evidence("gpu-oom.sampler-warmup", "vllm", "0.25.1", "warmup");
        assert_eq!(to(&max_num_seqs_half(&e)), "512");
        assert_eq!(batched_tokens_half(&e), Sum::Missing("the tokens of a batch in force"));
        let case = Case::figures(&[]).set("max_num_seqs", "1");
        assert_eq!(
            max_num_seqs_half(&case.evidence("gpu-oom.profile", "vllm", "", "")),
            Sum::Unfit
        );
    }

    #[test]
    fn bytes_and_offload() {
        // (10 - 1 - 0.1465) GiB = 8.8535 GiB = 9506390016 bytes
        let case = Case::figures(&[("kv_available_gib", 10.0), ("tried_to_allocate_gib", 1.0)]);
        assert_eq!(
            to(&kv_cache_bytes(&case.evidence(
                "gpu-oom.kv-alloc",
                "vllm",
                "0.25.1",
                ""
            ))),
            "9506390016"
        );
        // 2.12 + 2 = 4.12 -> 5
        let case = Case::figures(&[("kv_available_gib", -2.12)]);
        assert_eq!(
            to(&offload_for_blocks(&case.evidence(
                "gpu-mem.no-kv-blocks",
                "vllm",
                "0.25.1",
                ""
            ))),
            "5"
        );
    }

    #[test]
    fn shared_memory_gets_twice_what_was_asked_for() {
        let case = Case::figures(&[("shm_required_mib", 1600.0), ("shm_free_mib", 64.0)]);
        assert_eq!(
            var(&shm_size(&case.evidence("host-mem.shm", "vllm", "0.27.0", "")), "gib"),
            "4"
        );
    }

    #[test]
    fn what_was_lacking_is_told() {
        // 3.00 - 0.62
        let case = Case::figures(&[("tried_to_allocate_gib", 3.0), ("gpu_free_gib", 0.62)]);
        assert_eq!(
            var(&shortfall(&case.evidence("gpu-oom.profile", "torch", "", "")), "gib"),
            "2.38"
        );
        // 40.0 - 12.5
        let case = Case::figures(&[("host_requested_gib", 40.0), ("host_available_gib", 12.5)]);
        assert_eq!(
            var(&host_need(&case.evidence("host-mem.budget", "sglang", "", "")), "gib"),
            "27.50"
        );
        let case = Case::figures(&[("victim_used_gib", 8.12)]);
        assert_eq!(
            var(&host_need(&case.evidence("host-mem.oom-killer", "", "", "")), "gib"),
            "8.12"
        );
        let case = Case::figures(&[]);
        let sum = host_need(&case.evidence("host-mem.oom-killer", "", "", ""));
        assert_eq!(sum, Sum::Missing("how much host memory the process used or asked for"));
    }
}
