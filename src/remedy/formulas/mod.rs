//! The sums behind a value: what to change a setting to, and the arithmetic in one line.
//!
//! Owns the formulas by name. A formula reads figures and settings of the root process and gives placeholders; it
//! never invents a figure: where one is missing it says which.

mod sizes;
mod static_fraction;
mod utilization;

use super::evidence::Evidence;

pub use utilization::highest;

/// What a formula gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Sum {
    /// Placeholders and the sum.
    Value(Computed),
    /// There is no value because the log lacks this figure.
    Missing(&'static str),
    /// There is nothing to compute here, and nothing is missing that the reader should look for.
    Nothing,
    /// The change cannot help: the value would be out of reach.
    Unfit,
}

/// Placeholders with their text, and the arithmetic.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Computed {
    /// Placeholder and text.
    pub vars: Vec<(&'static str, String)>,
    /// The sum in one line.
    pub arithmetic: Option<String>,
}

impl Computed {
    fn from_to(from: impl ToString, to: impl ToString, arithmetic: String) -> Sum {
        Sum::Value(Self {
            vars: vec![("from", from.to_string()), ("to", to.to_string())],
            arithmetic: Some(arithmetic),
        })
    }
}

/// A formula.
pub type Formula = fn(&Evidence) -> Sum;

/// All formulas by the names that the data uses.
const FORMULAS: &[(&str, Formula)] = &[
    ("utilization-down", utilization::down),
    ("utilization-for-free-memory", utilization::for_free_memory),
    ("utilization-for-ray-monitor", utilization::for_ray_monitor),
    ("utilization-for-unified", utilization::for_unified),
    ("utilization-up-for-kv", utilization::up_for_one_sequence),
    ("utilization-up-for-blocks", utilization::up_for_blocks),
    ("utilization-up-for-state-cache", utilization::up_for_state_cache),
    ("utilization-beside-holder", utilization::beside_holder),
    ("graph-estimate", utilization::graph_estimate),
    ("static-fraction-for-ray-monitor", static_fraction::for_ray_monitor),
    ("ray-threshold", utilization::ray_threshold),
    ("static-fraction-down", static_fraction::down),
    ("static-fraction-up", static_fraction::up),
    ("holder", sizes::holder),
    ("leftover", sizes::leftover),
    ("imbalance", sizes::imbalance),
    ("tight-rank", sizes::tight_rank),
    ("shortfall", sizes::shortfall),
    ("host-need", sizes::host_need),
    ("shard", sizes::shard),
    ("device", sizes::device),
    ("shm-size", sizes::shm_size),
    ("tensor-parallel-for-weights", sizes::tensor_parallel_for_weights),
    ("tensor-parallel-that-divides", sizes::tensor_parallel_that_divides),
    ("size-for-gpus", sizes::size_for_gpus),
    ("lora-rank", sizes::lora_rank),
    ("hicache-fit", sizes::hicache_fit),
    ("object-store-fit", sizes::object_store_fit),
    ("model-len-fit", sizes::model_len_fit),
    ("kv-cache-bytes", sizes::kv_cache_bytes),
    ("offload-for-blocks", sizes::offload_for_blocks),
    ("max-num-seqs-half", sizes::max_num_seqs_half),
    ("seqs-for-state-cache", sizes::seqs_for_state_cache),
    ("batched-tokens-half", sizes::batched_tokens_half),
    ("chunked-prefill-half", sizes::chunked_prefill_half),
    ("graph-size-half", sizes::graph_size_half),
    ("graph-max-bs-prefill-half", sizes::graph_max_bs_prefill_half),
    ("graph-max-bs-half", sizes::graph_max_bs_half),
];

/// The formula of a name.
pub fn named(name: &str) -> Option<Formula> {
    FORMULAS.iter().find(|(n, _)| *n == name).map(|(_, formula)| *formula)
}

#[cfg(test)]
mod testing {
    use super::Sum;

    /// One placeholder of a value; panics with the outcome if there is none.
    pub fn var(sum: &Sum, name: &str) -> String {
        match sum {
            Sum::Value(computed) => computed
                .vars
                .iter()
                .find(|(n, _)| *n == name)
                .map_or_else(|| panic!("no {{{name}}} in {computed:?}"), |(_, text)| text.clone()),
            other => panic!("{other:?}"),
        }
    }

    /// The value to set.
    pub fn to(sum: &Sum) -> String {
        var(sum, "to")
    }
}

#[cfg(test)]
mod table_tests;
