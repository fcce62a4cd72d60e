//! Sums for vLLM's `--gpu-memory-utilization` and for the threshold of Ray's memory monitor.
//!
//! vLLM's budget: requested = total × utilisation; KV cache = requested − weights − activation peak − other use
//! (and, where the version counts them, graphs). What utilisation leaves is for graphs and warm-up.

use super::{Computed, Sum};
use crate::remedy::evidence::{Evidence, Utilization};
use crate::remedy::units::{Gib, Share};
use crate::remedy::versions::Version;

/// Kept free beside a computed need, in GiB: measurements of two starts differ by some hundred MiB.
const MARGIN: Gib = Gib(0.5);
/// The least that is no rounding of the figures which vLLM prints.
const HELD_LEAST: Gib = Gib(1.0);
/// Kept free beside an allocation that failed, as a share of the device: it was one of many still to come.
const FAILED_MARGIN: Share = Share(0.02);
/// Growth of a node not yet seen when Ray's monitor cuts a peak short, as a share of the pool (an assumption).
const SPIKE: Share = Share(0.025);
/// What the operating system and other services need on a unified-memory machine, in GiB (8 to 16 are customary).
const SYSTEM: Gib = Gib(12.0);
/// Ray's threshold unless it is set.
const RAY_THRESHOLD: Share = Share(0.95);

const NO_UTILIZATION: Sum = Sum::Missing("the utilisation in force");
const NO_TOTAL: Sum = Sum::Missing("the device's total memory");

/// Down by what failed to be allocated, or by the graphs not yet captured, plus a margin.
pub fn down(e: &Evidence) -> Sum {
    let Some(u) = e.utilization() else {
        return NO_UTILIZATION;
    };
    let Some(total) = e.device_total() else { return NO_TOTAL };
    let Some((need, what)) = still_needed(e) else {
        return Sum::Missing("the size of the failed allocation");
    };
    let mut to = u.share - need / total - FAILED_MARGIN;
    let mut sum = format!("{} - {need} GiB {what} / {total} GiB - {FAILED_MARGIN} margin", u.share);
    // A neighbour that came after the start-up check is not in the budget.
    if let Some(other) = e.other_processes() {
        let ceiling = (total - other - need) / total - FAILED_MARGIN;
        if ceiling < to {
            to = ceiling;
            sum = format!(
                "({total} - {other} of other processes - {need} {what}) / {total} GiB - {FAILED_MARGIN} margin"
            );
        }
    }
    lowered(e, u, to, total, &sum)
}

/// What another process leaves of the device. What runs outside the share (graphs, warm-up) needs room beside it.
pub fn beside_holder(e: &Evidence) -> Sum {
    let Some(u) = e.utilization() else {
        return NO_UTILIZATION;
    };
    let (Some(total), Some(other)) = (e.device_total(), e.other_processes()) else {
        return NO_TOTAL;
    };
    // The profiling run and the KV cache are inside the share.
    let inside = matches!(e.cause, "gpu-oom.profile" | "gpu-oom.kv-alloc");
    if inside {
        let to = (total - other - MARGIN) / total;
        let sum = format!("({total} - {other} of other processes - {MARGIN} margin) / {total} GiB");
        return lowered(e, u, to, total, &sum);
    }
    let Some((need, what)) = still_needed(e) else {
        return Sum::Missing("the size of the failed allocation");
    };
    let to = (total - other - need) / total - FAILED_MARGIN;
    let own = u.share - need / total - FAILED_MARGIN;
    let sum = format!(
        "({total} - {other} of other processes - {need} {what}) / {total} GiB - {FAILED_MARGIN} margin, and no more \
         than {} - {need} / {total} GiB - {FAILED_MARGIN}",
        u.share
    );
    lowered(e, u, if own < to { own } else { to }, total, &sum)
}

/// What this step still needs: the failed allocation, or the part of a known total that was not allocated yet.
fn still_needed(e: &Evidence) -> Option<(Gib, &'static str)> {
    let tried = e
        .size("tried_to_allocate_gib")
        .map(|tried| (tried, "that could not be allocated"));
    let rest = match e.cause {
        "gpu-oom.graph-capture" => graphs_to_come(e).map(|rest| (rest, "of graphs still to capture")),
        "gpu-oom.kv-alloc" => kv_to_come(e).map(|rest| (rest, "of KV cache still to allocate")),
        _ => None,
    };
    match (tried, rest) {
        (Some(tried), Some(rest)) => Some(if rest.0 > tried.0 { rest } else { tried }),
        (tried, rest) => tried.or(rest),
    }
}

/// The measured estimate of graph memory.
pub fn graph_estimate(e: &Evidence) -> Sum {
    e.size("graph_estimate_gib").map_or(Sum::Nothing, |gib| {
        Sum::Value(Computed {
            vars: vec![("gib", gib.to_string())],
            arithmetic: None,
        })
    })
}

/// The estimate of graph memory minus what was captured.
fn graphs_to_come(e: &Evidence) -> Option<Gib> {
    let captured = e
        .gib("graph_gib")
        .or_else(|| e.gib("private_pools_gib"))
        .unwrap_or(Gib(0.0));
    Some(e.size("graph_estimate_gib")? - captured).filter(|rest| rest.0 > 0.0)
}

/// The KV cache as sized minus what torch holds beside the weights.
fn kv_to_come(e: &Evidence) -> Option<Gib> {
    let allocated = e.size("torch_allocated_gib")? - e.size("weights_gib")?;
    Some(e.size("kv_available_gib")? - allocated.max(Gib(0.0))).filter(|rest| rest.0 > 0.0)
}

/// A lower share, unless the weights would not fit into it.
fn lowered(e: &Evidence, u: Utilization, to: Share, total: Gib, sum: &str) -> Sum {
    let rounded = to.floor();
    let weights = e.gib("weights_gib").unwrap_or(Gib(0.0));
    if rounded.0 <= 0.0 || rounded * total <= weights || rounded >= u.share {
        return Sum::Unfit;
    }
    Computed::from_to(u, rounded, format!("{sum} = {:.4}, rounded down to {rounded}", to.0))
}

/// What the free memory allows, for the check `free < total × utilisation`.
pub fn for_free_memory(e: &Evidence) -> Sum {
    let (Some(free), Some(total)) = (e.gib("gpu_free_gib"), e.size("gpu_total_gib")) else {
        return Sum::Missing("the free and total memory of the device");
    };
    // From vLLM 0.32 on, weights that another process holds for the engine are part of its share, and no part of what it
    // asks for.
    let asked = e.utilization().zip(e.gib("requested_gib"));
    let held = asked.map(|(u, requested)| u.share * total - requested);
    let held = held.filter(|held| *held > HELD_LEAST).unwrap_or(Gib(0.0));
    let to = (free + held - MARGIN) / total;
    let rounded = to.floor();
    let weights = e.weights_before.map_or(Gib(0.0), Gib);
    if rounded.0 <= 0.0 || rounded * total <= weights + held {
        return Sum::Unfit;
    }
    let from = e.utilization().map_or_else(|| "unknown".to_owned(), |u| u.to_string());
    let beside = match held.0 > 0.0 {
        true => format!(" + {held} held by another process"),
        false => String::new(),
    };
    let sum = format!(
        "({free} free{beside} - {MARGIN} margin) / {total} GiB = {:.4}, rounded down to {rounded}",
        to.0
    );
    Computed::from_to(from, rounded, sum)
}

/// Down by what the node was over Ray's threshold plus the growth that the kill cut short.
pub fn for_ray_monitor(e: &Evidence) -> Sum {
    let Some(u) = e.utilization() else {
        return NO_UTILIZATION;
    };
    let Some(node) = node_use(e) else {
        return Sum::Missing("the node's memory use and limit");
    };
    let over = (node.used - node.threshold * node.pool).max(Gib(0.0));
    let (spike, why) = spike(e, node.pool);
    let to = u.share - (over + spike) / node.pool;
    let sum = format!(
        "{} - (({} used - {} x {} = {over} over) + {spike} spike {why}) / {} GiB",
        u.share, node.used, node.threshold, node.pool, node.pool
    );
    lowered(e, u, to, node.pool, &sum)
}

/// Head-room for the peak above what the node used when it was killed.
pub fn ray_threshold(e: &Evidence) -> Sum {
    let Some(node) = node_use(e) else {
        return Sum::Missing("the node's memory use and limit");
    };
    let (spike, _) = spike(e, node.pool);
    let to = ((node.used + spike) / node.pool).ceil();
    let to = if to.0 > 0.99 { Share(0.99) } else { to };
    let sum = format!(
        "({} used + {spike} spike) / {} GiB, rounded up, at most 0.99: {to}",
        node.used, node.pool
    );
    Sum::Value(Computed {
        vars: vec![("threshold", node.threshold.to_string()), ("to", to.to_string())],
        arithmetic: Some(sum),
    })
}

/// A node's memory as Ray's monitor saw it.
pub(super) struct NodeUse {
    pub used: Gib,
    pub pool: Gib,
    pub threshold: Share,
}

pub(super) fn node_use(e: &Evidence) -> Option<NodeUse> {
    let pool = e.size("node_limit_gib")?;
    let by_share = || e.figure("node_used_fraction").map(|share| Share(share) * pool);
    let used = e.size("node_used_gib").or_else(by_share)?;
    let threshold = e.ray_threshold().unwrap_or(RAY_THRESHOLD);
    Some(NodeUse { used, pool, threshold })
}

/// The growth not yet seen, and where it comes from.
pub(super) fn spike(e: &Evidence, pool: Gib) -> (Gib, &'static str) {
    let assumed = SPIKE * pool;
    match graphs_to_come(e) {
        Some(graphs) if graphs > assumed => (graphs, "of graphs still to capture"),
        _ => (assumed, "assumed, 2.5 % of the pool"),
    }
}

/// What the system can spare on a unified-memory machine.
pub fn for_unified(e: &Evidence) -> Sum {
    let Some(u) = e.utilization() else {
        return NO_UTILIZATION;
    };
    let Some(total) = e.device_total().or_else(|| e.size("host_total_gib")) else {
        return NO_TOTAL;
    };
    let Some(available) = e.size("host_available_gib") else {
        return Sum::Missing("the memory available on the machine");
    };
    let to = (available - SYSTEM) / total;
    lowered(
        e,
        u,
        to,
        total,
        &format!("({available} available - {SYSTEM} for the system) / {total} GiB"),
    )
}

/// Up by what one sequence of full length lacks.
pub fn up_for_one_sequence(e: &Evidence) -> Sum {
    let Some(available) = e.gib("kv_available_gib") else {
        return Sum::Missing("the KV cache that is available");
    };
    // A cache of so many tokens is so large: one of the longest sequence is larger in proportion.
    let by_tokens = || {
        let (longest, held) = (e.size_of_sequence()?, e.figure("kv_capacity_tokens")?);
        (held >= 1.0).then(|| Share(longest / held) * available)
    };
    match e.size("kv_needed_gib").or_else(by_tokens) {
        Some(needed) => raised(e, needed - available, "lacking"),
        None => Sum::Missing("the KV cache that is needed"),
    }
}

/// Up by the deficit plus the KV cache of one sequence, or 2 % of the device where that is not known.
pub fn up_for_blocks(e: &Evidence) -> Sum {
    let Some(available) = e.gib("kv_available_gib") else {
        return Sum::Missing("how much the budget is short ('Available KV cache memory')");
    };
    let deficit = Gib(-available.0).max(Gib(0.0));
    let kv = match (
        e.size("kv_needed_gib"),
        e.utilization().and_then(|u| total_at_least(e, u)),
    ) {
        (Some(needed), _) => needed,
        (None, Some((total, _))) => FAILED_MARGIN * total,
        (None, None) => Gib(0.0),
    };
    raised(e, deficit + kv, "of deficit and KV cache")
}

/// Up by the state-cache blocks that the sequences lack, each as large as those that are there.
pub fn up_for_state_cache(e: &Evidence) -> Sum {
    let blocks = e.figure("state_blocks_count").filter(|blocks| *blocks >= 1.0);
    let sequences = e.figure("max_num_seqs_count").or_else(|| e.number("max_num_seqs"));
    let (Some(blocks), Some(sequences)) = (blocks, sequences) else {
        return Sum::Missing("the number of state-cache blocks and of sequences");
    };
    let Some(available) = e.size("kv_available_gib") else {
        return Sum::Missing("the size of the cache that the blocks are cut from ('Available KV cache memory')");
    };
    if sequences <= blocks {
        return Sum::Nothing;
    }
    raised(
        e,
        Share((sequences - blocks) / blocks) * available,
        "of state-cache blocks that are lacking",
    )
}

fn raised(e: &Evidence, lacking: Gib, what: &str) -> Sum {
    let Some(u) = e.utilization() else {
        return NO_UTILIZATION;
    };
    if u.share >= highest(e) {
        return Sum::Unfit;
    }
    let Some((total, total_note)) = total_at_least(e, u) else {
        return NO_TOTAL;
    };
    let to = u.share + (lacking + MARGIN) / total;
    let rounded = to.ceil();
    let fits_free = e.size("gpu_free_gib").is_none_or(|free| rounded * total <= free);
    if rounded > highest(e) && !total_note.is_empty() {
        // The device may be larger than what the share must at least hold.
        return NO_TOTAL;
    }
    if rounded > highest(e) || !fits_free || rounded <= u.share {
        return Sum::Unfit;
    }
    let sum = format!(
        "{} + ({lacking} {what} + {MARGIN} margin) / {total}{total_note} GiB = {:.4}, rounded up to {rounded}",
        u.share, to.0
    );
    Computed::from_to(u, rounded, sum)
}

/// The device's memory, or the least that it can be: the requested share holds at least weights and KV cache. A
/// total that is too small makes the raise larger, which is the safe side.
fn total_at_least(e: &Evidence, u: Utilization) -> Option<(Gib, &'static str)> {
    if let Some(total) = e.device_total() {
        return Some((total, ""));
    }
    let share = Gib(e.size("weights_gib")?.0 + e.gib("kv_available_gib")?.0);
    let total = Gib(share.0 / u.share.0);
    (total.0 > 0.0).then_some((total, " at least, (weights + KV cache) / utilisation,"))
}

/// The largest share worth trying: a unified pool feeds the system too, and before 0.20 graphs come on top.
pub fn highest(e: &Evidence) -> Share {
    let graphs_in_budget = Version::parse("0.20.0");
    match e.version() {
        _ if e.is_unified() => Share(0.90),
        Some(version) if Some(&version) < graphs_in_budget.as_ref() => Share(0.95),
        _ => Share(0.98),
    }
}

#[cfg(test)]
#[path = "utilization_tests.rs"]
mod tests;
