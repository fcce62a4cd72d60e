//! Sums for SGLang's `--mem-fraction-static`.
//!
//! SGLang's budget: KV cache = free after loading − free before loading × (1 − fraction). The fraction is of the
//! memory that was free at start, not of the device.

use super::utilization::{node_use, spike};
use super::{Computed, Sum};
use crate::remedy::evidence::Evidence;
use crate::remedy::units::{Gib, Share};

/// The step that SGLang's own hint suggests at least (0.8, 0.7): smaller ones need several starts.
const STEP: Share = Share(0.05);
/// Kept free beside the failed allocation, as a share of the memory free at start.
const MARGIN: Share = Share(0.02);
/// Room for a useful KV cache above the smallest fraction that works at all.
const KV_ROOM: Share = Share(0.03);
/// Above this nothing is left for activations and graphs.
const HIGHEST: Share = Share(0.95);

const NO_FRACTION: Sum = Sum::Missing("the static fraction in force");

/// Down by what could not be allocated, at least by one step.
pub fn down(e: &Evidence) -> Sum {
    let Some(f) = e.number("mem_fraction_static").map(Share) else {
        return NO_FRACTION;
    };
    let Some(base) = e.size("load_avail_gib").or_else(|| e.size("gpu_total_gib")) else {
        return Sum::Missing("the memory free before loading");
    };
    let Some(tried) = e.size("tried_to_allocate_gib") else {
        return Sum::Missing("the size of the failed allocation");
    };
    let step = tried / base + MARGIN;
    let (to, sum) = if step > STEP {
        let sum = format!("{f} - {tried} GiB that could not be allocated / {base} GiB - {MARGIN} margin");
        (f - step, sum)
    } else {
        let sum =
            format!("{f} - {STEP}, the smallest step worth a start ({tried} of {base} GiB could not be allocated)");
        (f - STEP, sum)
    };
    let rounded = to.floor();
    if rounded.0 <= 0.0 {
        return Sum::Unfit;
    }
    Computed::from_to(f, rounded, format!("{sum} = {:.4}, rounded down to {rounded}", to.0))
}

/// Down by what the node was over Ray's threshold plus the growth that the kill cut short, of the memory free at
/// start (or of the pool, which is larger and gives the smaller step).
pub fn for_ray_monitor(e: &Evidence) -> Sum {
    let Some(f) = e.number("mem_fraction_static").map(Share) else {
        return NO_FRACTION;
    };
    let Some(node) = node_use(e) else {
        return Sum::Missing("the node's memory use and limit");
    };
    let base = e.size("load_avail_gib").unwrap_or(node.pool);
    let over = (node.used - node.threshold * node.pool).max(Gib(0.0));
    let (spike, why) = spike(e, node.pool);
    let to = f - (over + spike) / base;
    let rounded = to.floor();
    if rounded.0 <= 0.0 {
        return Sum::Unfit;
    }
    let sum = format!(
        "{f} - (({} used - {} x {} = {over} over) + {spike} spike {why}) / {base} GiB = {:.4}, rounded down to {rounded}",
        node.used, node.threshold, node.pool, to.0
    );
    Computed::from_to(f, rounded, sum)
}

/// Up to what the message asks for, or to the share that the weights take plus room for a KV cache.
pub fn up(e: &Evidence) -> Sum {
    let f = e.number("mem_fraction_static").map(Share);
    let shown = f.map_or_else(|| "unknown".to_owned(), |f| f.to_string());
    let (to, sum) = if let Some(asked) = e.figure("suggested_static_fraction").map(Share) {
        let to = asked + Share(0.01);
        (to, format!("{asked} asked for by the message + 0.01"))
    } else if let Some(smallest) = e.figure("minimum_static_fraction").map(Share) {
        (
            smallest + KV_ROOM,
            format!("{smallest} at least + {KV_ROOM} for the KV cache"),
        )
    } else {
        // SGLang takes the least of the ranks for all, before loading and after.
        let tight = e
            .spreads
            .get("after_load_avail_gib")
            .or(e.spreads.get("load_avail_gib"));
        let least = |name: &str| e.spreads.get(name).map(|spread| Gib(spread.least));
        let before = least("load_avail_gib").or_else(|| e.size("load_avail_gib"));
        let after = least("after_load_avail_gib").or_else(|| e.gib("after_load_avail_gib"));
        let (Some(before), Some(after)) = (before, after) else {
            return Sum::Missing("the memory free before and after loading");
        };
        let used: Share = Gib(before.0 - after.0) / before;
        let whose = tight.map_or_else(String::new, |spread| format!(" on {}, the tight rank", spread.process));
        let sum =
            format!("({before} - {after} GiB free after loading{whose}) / {before} GiB + {KV_ROOM} for the KV cache");
        (used + KV_ROOM, sum)
    };
    let rounded = to.ceil();
    if rounded > HIGHEST || f.is_some_and(|f| rounded <= f) {
        return Sum::Unfit;
    }
    Computed::from_to(shown, rounded, format!("{sum} = {:.4}, rounded up to {rounded}", to.0))
}

#[cfg(test)]
mod tests {
    use super::super::testing::to;
    use super::*;
    use crate::remedy::evidence::testing::Case;

    #[test]
    fn a_small_failure_takes_one_step() {
        // 0.656 / 138.0 + 0.02 = 0.0248, less than the step: 0.88 - 0.05 = 0.83
        let case = Case::figures(&[("tried_to_allocate_gib", 0.656), ("load_avail_gib", 138.0)])
            .set("mem_fraction_static", "0.88");
        assert_eq!(
            to(&down(&case.evidence("gpu-oom.graph-capture", "sglang", "0.5.9", ""))),
            "0.83"
        );
    }

    #[test]
    fn the_tight_rank_decides_whether_a_larger_fraction_helps() {
        let own = || {
            Case::figures(&[("load_avail_gib", 77.9), ("after_load_avail_gib", 16.7)])
                .set("mem_fraction_static", "0.78")
        };
        let up = |case: &Case| up(&case.evidence("gpu-mem.static-fraction", "sglang", "0.5.9", ""));
        // (77.9 - 16.7) / 77.9 = 0.7856; + 0.03 = 0.8156
        assert_eq!(to(&up(&own())), "0.82");
        // (63.1 - 1.9) / 63.1 = 0.9699: nothing is left for activations.
        let tight =
            own()
                .spread("load_avail_gib", 63.1, "PP1 TP3", 77.9)
                .spread("after_load_avail_gib", 1.9, "PP1 TP3", 16.7);
        assert_eq!(up(&tight), Sum::Unfit);
        // (74.9 - 13.7) / 74.9 = 0.8171; + 0.03 = 0.8471
        let less =
            own()
                .spread("load_avail_gib", 74.9, "PP1 TP3", 77.9)
                .spread("after_load_avail_gib", 13.7, "PP1 TP3", 16.7);
        assert_eq!(to(&up(&less)), "0.85");
    }

    #[test]
    fn a_large_failure_takes_its_size() {
        // 8.0 / 78.0 + 0.02 = 0.1226: 0.85 - 0.1226 = 0.7274
        let case = Case::figures(&[("tried_to_allocate_gib", 8.0), ("load_avail_gib", 78.0)])
            .set("mem_fraction_static", "0.85");
        assert_eq!(
            to(&down(&case.evidence("gpu-oom.graph-capture", "sglang", "0.5.9", ""))),
            "0.72"
        );
    }

    #[test]
    fn up_follows_the_message_or_the_weights() {
        let case = Case::figures(&[("suggested_static_fraction", 0.81)]).set("mem_fraction_static", "0.7");
        assert_eq!(
            to(&up(&case.evidence("gpu-mem.static-fraction", "sglang", "0.5.21", ""))),
            "0.82"
        );
        // (78.6 - 9.6) / 78.6 = 0.8779, + 0.03 = 0.9079
        let case = Case::figures(&[("load_avail_gib", 78.6), ("after_load_avail_gib", 9.6)])
            .set("mem_fraction_static", "0.85");
        assert_eq!(
            to(&up(&case.evidence("gpu-mem.static-fraction", "sglang", "0.5.9", ""))),
            "0.91"
        );
    }

    #[test]
    fn weights_that_fill_the_device_leave_nothing_to_raise() {
        let case =
            Case::figures(&[("load_avail_gib", 78.6), ("after_load_avail_gib", 2.0)]).set("mem_fraction_static", "0.9");
        assert_eq!(
            up(&case.evidence("gpu-mem.static-fraction", "sglang", "0.5.9", "")),
            Sum::Unfit
        );
    }

    #[test]
    fn a_missing_figure_is_named() {
        let case = Case::figures(&[("load_avail_gib", 78.6)]).set("mem_fraction_static", "0.9");
        let sum = down(&case.evidence("gpu-oom.graph-capture", "sglang", "0.5.9", ""));
        assert_eq!(sum, Sum::Missing("the size of the failed allocation"));
    }
}
