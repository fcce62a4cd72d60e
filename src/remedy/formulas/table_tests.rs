//! One table over all sums: evidence, the value computed by hand, the bound that the figures fix, and how far from it
//! the value may lie. A sum that always says 0.50, or half of everything, fails.

use super::testing::var;
use super::{Sum, named};
use crate::remedy::evidence::testing::Case;

/// What the figures fix, without any margin of ours.
#[derive(Debug, Clone, Copy)]
enum Bound {
    AtMost(f64),
    AtLeast(f64),
}
use Bound::{AtLeast, AtMost};

impl Bound {
    /// Whether a value lies on the right side and no further than `step` away.
    fn admits(self, value: f64, step: f64) -> bool {
        let slack = 1e-9;
        match self {
            AtMost(most) => value <= most + slack && most - value <= step + slack,
            AtLeast(least) => value >= least - slack && value - least <= step + slack,
        }
    }
}

struct Row {
    formula: &'static str,
    engine: &'static str,
    version: &'static str,
    cause: &'static str,
    figures: &'static [(&'static str, f64)],
    settings: &'static [(&'static str, &'static str)],
    other: Option<f64>,
    unified: bool,
    value: &'static str,
    bound: Bound,
    step: f64,
}

impl Row {
    fn sum(&self) -> Sum {
        let mut case = Case::figures(self.figures);
        for (name, value) in self.settings {
            case = case.set(name, value);
        }
        if let Some(gib) = self.other {
            case = case.holder(4711, gib);
        }
        if self.unified {
            case = case.unified(true);
        }
        let formula = named(self.formula).unwrap_or_else(|| panic!("no formula {}", self.formula));
        formula(&case.evidence(self.cause, self.engine, self.version, ""))
    }
}

/// A row without neighbour on a machine with separate memory.
const fn row(
    formula: &'static str,
    engine: (&'static str, &'static str),
    cause: &'static str,
    figures: &'static [(&'static str, f64)],
    value: &'static str,
    bound: Bound,
    step: f64,
) -> Row {
    Row {
        formula,
        engine: engine.0,
        version: engine.1,
        cause,
        figures,
        settings: &[],
        other: None,
        unified: false,
        value,
        bound,
        step,
    }
}

impl Row {
    const fn beside(mut self, gib: f64) -> Self {
        self.other = Some(gib);
        self
    }

    const fn set(mut self, settings: &'static [(&'static str, &'static str)]) -> Self {
        self.settings = settings;
        self
    }

    const fn unified(mut self) -> Self {
        self.unified = true;
        self
    }
}

const GIB: f64 = 1_073_741_824.0;
const V25: (&str, &str) = ("vllm", "0.25.1");
const V19: (&str, &str) = ("vllm", "0.19.0");
const V17: (&str, &str) = ("vllm", "0.17.0");
const SGL: (&str, &str) = ("sglang", "0.5.9");
const OCCUPIED: &str = "gpu-mem.occupied";
const GRAPHS: &str = "gpu-oom.graph-capture";
const MONITOR: &str = "host-mem.ray-monitor";
const U: &str = "gpu_memory_utilization";
const F: &str = "mem_fraction_static";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // --- --gpu-memory-utilization down to what is free at start: free / total, 0.5 GiB less, floored
    // 58.08 / 139.80 = 0.4155; 57.58 / 139.80 = 0.4119
    row("utilization-for-free-memory", V25, OCCUPIED, &[("gpu_free_gib", 58.08), ("gpu_total_gib", 139.80)], "0.41", AtMost(0.4155), 0.04),
    // 9.81 / 139.80 = 0.0702; 9.31 / 139.80 = 0.0666
    row("utilization-for-free-memory", V25, OCCUPIED, &[("gpu_free_gib", 9.81), ("gpu_total_gib", 139.80)], "0.06", AtMost(0.0702), 0.04),
    // 9.30 / 139.80 = 0.0665; 8.80 / 139.80 = 0.0629
    row("utilization-for-free-memory", V25, OCCUPIED, &[("gpu_free_gib", 9.30), ("gpu_total_gib", 139.80)], "0.06", AtMost(0.0665), 0.04),
    // 16.01 / 93.00 = 0.1722; 15.51 / 93.00 = 0.1668
    row("utilization-for-free-memory", V25, OCCUPIED, &[("gpu_free_gib", 16.01), ("gpu_total_gib", 93.00)], "0.16", AtMost(0.1722), 0.04),
    // 54.34 / 79.18 = 0.6863; 53.84 / 79.18 = 0.67997
    row("utilization-for-free-memory", V17, OCCUPIED, &[("gpu_free_gib", 54.34), ("gpu_total_gib", 79.18)], "0.67", AtMost(0.6863), 0.04),
    // 21.90 / 23.65 = 0.9260; 21.40 / 23.65 = 0.9049
    row("utilization-for-free-memory", V17, OCCUPIED, &[("gpu_free_gib", 21.90), ("gpu_total_gib", 23.65)], "0.90", AtMost(0.9260), 0.04),

    // --- down by what a step outside the share still needs, and 0.02
    // graphs 2.83 - 1.61 = 1.22; 0.95 - 1.22 / 79.19 = 0.9346; - 0.02 = 0.9146
    row("utilization-down", V19, GRAPHS, &[("tried_to_allocate_gib", 0.0957), ("gpu_total_gib", 79.19), ("private_pools_gib", 1.61), ("graph_estimate_gib", 2.83)], "0.91", AtMost(0.9346), 0.04).set(&[(U, "0.95")]),
    // the default 0.92 - 0.0195 / 139.80 = 0.9199; - 0.02 = 0.8999
    row("utilization-down", V25, GRAPHS, &[("tried_to_allocate_gib", 0.0195), ("gpu_total_gib", 139.80)], "0.89", AtMost(0.9199), 0.04),
    // 0.95 - 0.25 / 23.65 = 0.9394; - 0.02 = 0.9194
    row("utilization-down", V19, GRAPHS, &[("tried_to_allocate_gib", 0.25), ("gpu_total_gib", 23.65)], "0.91", AtMost(0.9394), 0.04).set(&[(U, "0.95")]),
    // 30 of 80 are another's: (80 - 30 - 1) / 80 = 0.6125; - 0.02 = 0.5925
    row("utilization-down", V25, "gpu-oom.serving", &[("tried_to_allocate_gib", 1.0), ("gpu_total_gib", 80.0)], "0.59", AtMost(0.6125), 0.04).beside(30.0),
    // 60 sized - (40 - 15) allocated = 35 to come; 0.92 - 35 / 139.8 = 0.6696; - 0.02 = 0.6496
    row("utilization-down", V25, "gpu-oom.kv-alloc", &[("tried_to_allocate_gib", 2.0), ("gpu_total_gib", 139.8), ("torch_allocated_gib", 40.0), ("weights_gib", 15.0), ("kv_available_gib", 60.0)], "0.64", AtMost(0.6696), 0.04),
    // the default 0.90 of 0.17 - 2.5 / 47.43 = 0.8473; - 0.02 = 0.8273
    row("utilization-down", V17, "gpu-oom.serving", &[("tried_to_allocate_gib", 2.5), ("gpu_total_gib", 47.43)], "0.82", AtMost(0.8473), 0.04),
    // 0.90 - 4.0 / 79.10 = 0.8494; - 0.02 = 0.8294
    row("utilization-down", V25, "gpu-oom.compile", &[("tried_to_allocate_gib", 4.0), ("gpu_total_gib", 79.10)], "0.82", AtMost(0.8494), 0.04).set(&[(U, "0.9")]),

    // --- beside another process
    // min((139.80 - 11.12 - 0.0195) / 139.80 = 0.9203, 0.92 - 0.0195 / 139.80 = 0.9199); - 0.02 = 0.8999
    row("utilization-beside-holder", V25, GRAPHS, &[("tried_to_allocate_gib", 0.0195), ("gpu_total_gib", 139.80)], "0.89", AtMost(0.9199), 0.04).beside(11.12),
    // (139.80 - 11.23 - 0.4902) / 139.80 = 0.9162; - 0.02 = 0.8962
    row("utilization-beside-holder", V25, "gpu-oom.sampler-warmup", &[("tried_to_allocate_gib", 0.4902), ("gpu_total_gib", 139.80)], "0.89", AtMost(0.9162), 0.04).beside(11.23).set(&[(U, "0.92")]),
    // inside the share: (139.80 - 123.08) / 139.80 = 0.1196; (16.72 - 0.5) / 139.80 = 0.1160
    row("utilization-beside-holder", V25, "gpu-oom.profile", &[("tried_to_allocate_gib", 0.25), ("gpu_total_gib", 139.80), ("weights_gib", 15.27)], "0.11", AtMost(0.1196), 0.04).beside(123.08).set(&[(U, "0.5")]),
    // (80 - 50) / 80 = 0.375; (30 - 0.5) / 80 = 0.3688
    row("utilization-beside-holder", V25, "gpu-oom.kv-alloc", &[("tried_to_allocate_gib", 1.0), ("gpu_total_gib", 80.0)], "0.36", AtMost(0.375), 0.04).beside(50.0),

    // --- under Ray's monitor: u - (over + spike) / pool; without the spike it is u - over / pool at most
    // over 113.78 - 0.95 x 119.70 = 0.065; spike 0.025 x 119.70 = 2.9925; 0.90 - 3.0575 / 119.70 = 0.8745
    row("utilization-for-ray-monitor", V17, MONITOR, &[("node_used_gib", 113.78), ("node_limit_gib", 119.70), ("node_threshold_fraction", 0.95)], "0.87", AtMost(0.8995), 0.03).unified(),
    // the estimate says more than the assumption: 0.90 - (0.065 + 6.5) / 119.70 = 0.8452
    row("utilization-for-ray-monitor", V17, MONITOR, &[("node_used_gib", 113.78), ("node_limit_gib", 119.70), ("node_threshold_fraction", 0.95), ("graph_estimate_gib", 6.5)], "0.84", AtMost(0.8452), 0.01).unified(),
    // over 110.0 - 0.90 x 119.70 = 2.27; 0.85 - 2.27 / 119.70 = 0.8310; with the spike 0.85 - 5.2625 / 119.70 = 0.8060
    row("utilization-for-ray-monitor", V17, MONITOR, &[("node_used_gib", 110.0), ("node_limit_gib", 119.70), ("node_threshold_percent", 90.0), ("node_threshold_fraction", 0.90)], "0.80", AtMost(0.8310), 0.04).unified().set(&[(U, "0.85")]),
    // used 0.97 x 119.70 = 116.109; over 2.394; 0.90 - 0.02 = 0.88; with the spike 0.90 - 5.3865 / 119.70 = 0.855
    row("utilization-for-ray-monitor", V17, MONITOR, &[("node_used_fraction", 0.97), ("node_limit_gib", 119.70)], "0.85", AtMost(0.88), 0.04).unified(),
    // the same for the static fraction: 0.85 - 3.0575 / 119.70 = 0.8245
    row("static-fraction-for-ray-monitor", SGL, MONITOR, &[("node_used_gib", 113.78), ("node_limit_gib", 119.70), ("node_threshold_fraction", 0.95)], "0.82", AtMost(0.8495), 0.04).unified().set(&[(F, "0.85")]),
    // of what was free at start: 0.80 - 3.0575 / 110.0 = 0.7722; without the spike 0.80 - 0.065 / 110.0 = 0.7994
    row("static-fraction-for-ray-monitor", SGL, MONITOR, &[("node_used_gib", 113.78), ("node_limit_gib", 119.70), ("load_avail_gib", 110.0)], "0.77", AtMost(0.7994), 0.04).unified().set(&[(F, "0.8")]),

    // --- one pool: 12 GiB for the system, at least 8 must stay
    // (105 - 8) / 119.7 = 0.8104; (105 - 12) / 119.7 = 0.7769
    row("utilization-for-unified", V25, "host-mem.oom-killer", &[("host_available_gib", 105.0), ("gpu_total_gib", 119.7)], "0.77", AtMost(0.8104), 0.045).unified(),
    // (60 - 8) / 119.7 = 0.4344; (60 - 12) / 119.7 = 0.4010
    row("utilization-for-unified", V25, "host-mem.oom-killer", &[("host_available_gib", 60.0), ("host_total_gib", 119.7)], "0.40", AtMost(0.4344), 0.04).unified(),

    // --- up for one sequence: u + lacking / total, 0.5 GiB more, rounded up
    // total at least (2.81 + 3.81) / 0.05 = 132.4; 0.05 + 0.19 / 132.4 = 0.0514; + 0.69 / 132.4 = 0.0552
    row("utilization-up-for-kv", V25, "gpu-mem.kv-too-small", &[("kv_needed_gib", 4.0), ("kv_available_gib", 3.81), ("weights_gib", 2.81)], "0.06", AtLeast(0.0514), 0.01).set(&[(U, "0.05")]),
    // 0.92 + 2 / 80 = 0.945; 0.92 + 2.5 / 80 = 0.9513
    row("utilization-up-for-kv", V25, "gpu-mem.kv-too-small", &[("kv_needed_gib", 4.0), ("kv_available_gib", 2.0), ("gpu_total_gib", 80.0)], "0.96", AtLeast(0.945), 0.02),
    // 0.50 + 6 / 47.5 = 0.6263; 0.50 + 6.5 / 47.5 = 0.6368
    row("utilization-up-for-kv", V25, "gpu-mem.kv-too-small", &[("kv_needed_gib", 10.0), ("kv_available_gib", 4.0), ("gpu_total_gib", 47.5)], "0.64", AtLeast(0.6263), 0.02).set(&[(U, "0.5")]),
    // 0.30 + 9.63 / 119.7 = 0.3805; 0.30 + 10.13 / 119.7 = 0.3846
    row("utilization-up-for-kv", V17, "gpu-mem.kv-too-small", &[("kv_needed_gib", 18.35), ("kv_available_gib", 8.72), ("gpu_total_gib", 119.7)], "0.39", AtLeast(0.3805), 0.02).set(&[(U, "0.3")]),

    // --- up for any KV cache at all: u + deficit / total; 2 % of the device (or one sequence) and 0.5 GiB more
    // total at least (15.0 - 2.12) / 0.1 = 128.8; 0.1 + 2.12 / 128.8 = 0.1165; + (2.576 + 0.5) / 128.8 = 0.1403
    row("utilization-up-for-blocks", V25, "gpu-mem.no-kv-blocks", &[("kv_available_gib", -2.12), ("weights_gib", 15.0)], "0.15", AtLeast(0.1165), 0.04).set(&[(U, "0.1")]),
    // 0.60 + 3 / 80 = 0.6375; 0.60 + (3 + 1.6 + 0.5) / 80 = 0.6638
    row("utilization-up-for-blocks", V25, "gpu-mem.no-kv-blocks", &[("kv_available_gib", -3.0), ("gpu_total_gib", 80.0)], "0.67", AtLeast(0.6375), 0.04).set(&[(U, "0.6")]),
    // 0.70 + (1 + 4) / 47.5 = 0.8053; 0.70 + 5.5 / 47.5 = 0.8158
    row("utilization-up-for-blocks", V25, "gpu-mem.no-kv-blocks", &[("kv_available_gib", -1.0), ("kv_needed_gib", 4.0), ("gpu_total_gib", 47.5)], "0.82", AtLeast(0.8053), 0.02).set(&[(U, "0.7")]),

    // --- --mem-fraction-static down: f - tried / base at most, by 0.05 at least
    // 0.88 - 0.656 / 138.0 = 0.8752; 0.88 - 0.05 = 0.83
    row("static-fraction-down", SGL, GRAPHS, &[("tried_to_allocate_gib", 0.656), ("load_avail_gib", 138.0)], "0.83", AtMost(0.8752), 0.05).set(&[(F, "0.88")]),
    // 0.85 - 8.0 / 78.0 = 0.7474; - 0.02 = 0.7274
    row("static-fraction-down", SGL, GRAPHS, &[("tried_to_allocate_gib", 8.0), ("load_avail_gib", 78.0)], "0.72", AtMost(0.7474), 0.04).set(&[(F, "0.85")]),
    // 0.90 - 1.02 / 79.1 = 0.8871; 0.90 - 0.05 = 0.85
    row("static-fraction-down", SGL, GRAPHS, &[("tried_to_allocate_gib", 1.02), ("load_avail_gib", 79.1)], "0.85", AtMost(0.8871), 0.04).set(&[(F, "0.9")]),
    // 0.80 - 5 / 44.4 = 0.6874; - 0.02 = 0.6674
    row("static-fraction-down", SGL, "gpu-oom.kv-alloc", &[("tried_to_allocate_gib", 5.0), ("gpu_total_gib", 44.4)], "0.66", AtMost(0.6874), 0.04).set(&[(F, "0.8")]),

    // --- --mem-fraction-static up
    // the message asks for more than 0.81
    row("static-fraction-up", SGL, "gpu-mem.static-fraction", &[("suggested_static_fraction", 0.81)], "0.82", AtLeast(0.81), 0.02).set(&[(F, "0.7")]),
    // viable from 0.6904; + 0.03 = 0.7204
    row("static-fraction-up", SGL, "gpu-mem.static-fraction", &[("minimum_static_fraction", 0.6904)], "0.73", AtLeast(0.6904), 0.04).set(&[(F, "0.55")]),
    // weights (78.6 - 9.6) / 78.6 = 0.8779; + 0.03 = 0.9079
    row("static-fraction-up", SGL, "gpu-mem.static-fraction", &[("load_avail_gib", 78.6), ("after_load_avail_gib", 9.6)], "0.91", AtLeast(0.8779), 0.04).set(&[(F, "0.85")]),
    // weights (44 - 12) / 44 = 0.7273; + 0.03 = 0.7573
    row("static-fraction-up", SGL, "gpu-mem.static-fraction", &[("load_avail_gib", 44.0), ("after_load_avail_gib", 12.0)], "0.76", AtLeast(0.7273), 0.04).set(&[(F, "0.6")]),

    // --- --kv-cache-memory-bytes
    // 10 - 1 = 9 GiB at most; less 150 MiB 8.8535 GiB
    row("kv-cache-bytes", V25, "gpu-oom.kv-alloc", &[("kv_available_gib", 10.0), ("tried_to_allocate_gib", 1.0)], "9506390016", AtMost(9.0 * GIB), 0.25 * GIB),
    // 48 - 2 = 46 GiB at most; less 150 MiB 45.8535 GiB
    row("kv-cache-bytes", V25, "gpu-oom.kv-alloc", &[("kv_available_gib", 48.0), ("tried_to_allocate_gib", 2.0)], "49234837504", AtMost(46.0 * GIB), 0.25 * GIB),
    // 8.6 free - 0.01 weights = 8.59 GiB at most; less 15 % of 8.6 = 7.30 GiB
    row("kv-cache-bytes", V25, "gpu-mem.profiling-race", &[("initial_free_gib", 8.6), ("weights_gib", 0.01)], "7838315315", AtMost(8.59 * GIB), 1.3 * GIB),

    // --- the longest length that fits, in steps of 256
    // 124784 by the engine's estimate; 487 x 256 = 124672
    row("model-len-fit", V25, "gpu-mem.kv-too-small", &[("max_seq_len_tokens", 131_072.0), ("estimated_max_len_tokens", 124_784.0)], "124672", AtMost(124_784.0), 256.0),
    // 262144 x 8.72 / 18.35 = 124573; 486 x 256 = 124416
    row("model-len-fit", ("vllm", "0.8.2"), "gpu-mem.kv-too-small", &[("max_seq_len_tokens", 262_144.0), ("kv_needed_gib", 18.35), ("kv_available_gib", 8.72)], "124416", AtMost(124_573.0), 256.0),
    // the pool holds 100000; 390 x 256 = 99840
    row("model-len-fit", SGL, "gpu-mem.kv-too-small", &[("kv_capacity_tokens", 100_000.0)], "99840", AtMost(100_000.0), 256.0).set(&[("context_length", "131072")]),

    // --- counts: half, so that one start tells much
    // 1024 dummy requests; 512
    row("max-num-seqs-half", V25, "gpu-oom.sampler-warmup", &[("dummy_requests_count", 1024.0)], "512", AtMost(512.0), 256.0),
    // 48 set; 24
    row("max-num-seqs-half", V25, "gpu-oom.profile", &[], "24", AtMost(24.0), 12.0).set(&[("max_num_seqs", "48")]),
    // 37 blocks, one a sequence
    row("seqs-for-state-cache", V25, "gpu-mem.state-cache", &[("state_blocks_count", 37.0), ("max_num_seqs_count", 256.0)], "37", AtMost(37.0), 0.0),
    // 32768 set; 16384
    row("batched-tokens-half", V25, "gpu-oom.profile", &[], "16384", AtMost(16_384.0), 8192.0).set(&[("max_num_batched_tokens", "32768")]),
    // 512 is the largest size; 256
    row("graph-size-half", V25, GRAPHS, &[("capture_bs_max_count", 512.0)], "256", AtMost(256.0), 128.0),
    // 512 may be captured, 128 was the largest; 64
    row("graph-size-half", V25, GRAPHS, &[("capture_bs_max_count", 128.0)], "64", AtMost(64.0), 32.0).set(&[("max_cudagraph_capture_size", "512")]),
    // 160 captured first; 80
    row("graph-max-bs-half", SGL, GRAPHS, &[("capture_bs_max_count", 160.0)], "80", AtMost(80.0), 40.0),
    // 24 set; 12
    row("graph-max-bs-half", SGL, GRAPHS, &[], "12", AtMost(12.0), 6.0).set(&[("cuda_graph_max_bs", "24")]),
    // 8192 set; 4096
    row("chunked-prefill-half", SGL, "gpu-oom.serving", &[], "4096", AtMost(4096.0), 2048.0).set(&[("chunked_prefill_size", "8192")]),

    // 8192 set; 4096
    row("graph-max-bs-prefill-half", SGL, GRAPHS, &[], "4096", AtMost(4096.0), 2048.0).set(&[("cuda_graph_max_bs_prefill", "8192")]),

    // --- ranks that the GPUs allow: at most as many as there are, and a divisor of those asked for
    row("size-for-gpus", V25, "config.parallelism", &[("requested_gpus_count", 8.0), ("available_gpus_count", 2.0)], "2", AtMost(2.0), 0.0),
    // 6 ranks on 4 GPUs: 3 is the largest divisor
    row("size-for-gpus", SGL, "cuda.invalid-device", &[], "3", AtMost(4.0), 1.0).set(&[("tp_size", "6"), ("CUDA_VISIBLE_DEVICES", "0,1,2,3")]),

    // --- ranks that hold the weights: at most 0.75 of a device each
    // 110.8 / (0.75 x 47.4) = 3.12; the next power of two from 2 is 4
    row("tensor-parallel-for-weights", V25, "gpu-oom.weights", &[("checkpoint_gib", 110.8), ("gpu_total_gib", 47.4)], "4", AtLeast(3.12), 2.0).set(&[("tensor_parallel_size", "2")]),
    // 140 / (0.75 x 79.19) = 2.36; from 1: 4
    row("tensor-parallel-for-weights", SGL, "gpu-oom.weights", &[("checkpoint_gib", 140.0), ("gpu_total_gib", 79.19)], "4", AtLeast(2.36), 2.0),
    // 1290 / (0.75 x 139.8) = 12.3; from 8: 16
    row("tensor-parallel-for-weights", V25, "gpu-oom.weights", &[("checkpoint_gib", 1290.0), ("gpu_total_gib", 139.8)], "16", AtLeast(12.3), 4.0).set(&[("tensor_parallel_size", "8")]),

    // --- Ray's threshold: what was used, and room for the spike of 2.5 % of the node
    // 113.78 / 119.70 = 0.9505; (113.78 + 2.9925) / 119.70 = 0.9755
    row("ray-threshold", V17, MONITOR, &[("node_used_gib", 113.78), ("node_limit_gib", 119.70), ("node_threshold_fraction", 0.95)], "0.98", AtLeast(0.9505), 0.04),
    // 4.10 / 23.54 = 0.1742; (4.10 + 0.5885) / 23.54 = 0.1992
    row("ray-threshold", ("ray", "2.60.0"), MONITOR, &[("node_used_gib", 4.10), ("node_limit_gib", 23.54), ("node_threshold_percent", 17.1), ("node_threshold_fraction", 0.171)], "0.20", AtLeast(0.1742), 0.04),
    // 60 / 64 = 0.9375; (60 + 1.6) / 64 = 0.9625
    row("ray-threshold", ("ray", "2.55.0"), MONITOR, &[("node_used_gib", 60.0), ("node_limit_gib", 64.0)], "0.97", AtLeast(0.9375), 0.04),

    // --- host side
    // 2.12 short + 2 for the KV cache = 4.12; 5
    row("offload-for-blocks", V25, "gpu-mem.no-kv-blocks", &[("kv_available_gib", -2.12)], "5", AtLeast(4.12), 1.0),
    // 612 blocks in 9.18 GiB, 0.015 each; 716 sequences lack 104, 1.56 GiB: 0.80 + (1.56 + 0.50) / 79.1 = 0.826.
    Row {
        formula: "utilization-up-for-state-cache",
        engine: "vllm",
        version: "0.28.0",
        cause: "gpu-mem.state-cache",
        figures: &[
            ("max_num_seqs_count", 716.0),
            ("state_blocks_count", 612.0),
            ("kv_available_gib", 9.18),
            ("gpu_total_gib", 79.1),
        ],
        settings: &[("gpu_memory_utilization", "0.80")],
        other: None,
        unified: false,
        value: "0.83",
        bound: AtLeast(0.80 + 1.56 / 79.1),
        step: 0.02,
    },
    // Of 1, 2, 4, 8 and 16 only up to 4 divides 28.
    Row {
        formula: "tensor-parallel-that-divides",
        engine: "vllm",
        version: "0.25.1",
        cause: "config.parallelism",
        figures: &[("heads_count", 28.0)],
        settings: &[("tensor_parallel_size", "8")],
        other: None,
        unified: false,
        value: "4",
        bound: AtMost(4.0),
        step: 0.0,
    },
    // 24 lies between the sizes 16 and 32.
    Row {
        formula: "lora-rank",
        engine: "vllm",
        version: "0.16.0",
        cause: "config.lora",
        figures: &[("lora_rank_count", 24.0)],
        settings: &[("max_lora_rank", "16")],
        other: None,
        unified: false,
        value: "32",
        bound: AtLeast(24.0),
        step: 8.0,
    },
    // 171.33 / 2 = 85.665.
    Row {
        formula: "hicache-fit",
        engine: "sglang",
        version: "0.5.9",
        cause: "host-mem.budget",
        figures: &[("host_requested_gib", 200.0), ("host_available_gib", 171.33)],
        settings: &[("tp_size", "2"), ("hicache_size", "200")],
        other: None,
        unified: false,
        value: "85",
        bound: AtMost(171.33 / 2.0),
        step: 1.0,
    },
    // 0.95 x 8 GB, in bytes.
    Row {
        formula: "object-store-fit",
        engine: "ray",
        version: "2.55.0",
        cause: "host-mem.shm",
        figures: &[("shm_required_gib", 64.0), ("shm_free_gib", 8.0)],
        settings: &[],
        other: None,
        unified: false,
        value: "7600000000",
        bound: AtMost(8e9),
        step: 5e8,
    },
];

#[test]
fn every_value_is_the_one_computed_by_hand_and_close_to_its_bound() {
    assert!(ROWS.len() >= 40, "{} rows", ROWS.len());
    for (n, row) in ROWS.iter().enumerate() {
        let told = var(&row.sum(), "to");
        assert_eq!(told, row.value, "row {n}, {}", row.formula);
        let value: f64 = told.parse().unwrap();
        assert!(
            row.bound.admits(value, row.step),
            "row {n}, {}: {value} against {:?} within {}",
            row.formula,
            row.bound,
            row.step
        );
    }
}

#[test]
fn one_answer_for_all_would_fail_every_share() {
    for (n, row) in ROWS.iter().enumerate().filter(|(_, row)| row.value.starts_with("0.")) {
        assert!(!row.bound.admits(0.50, row.step), "row {n}, {}", row.formula);
    }
}

#[test]
fn every_sum_with_a_value_is_in_the_table() {
    // These only name what the log says: a holder, a device, a rank, a shard, an estimate, a size of shared memory.
    let names_only = [
        "holder",
        "leftover",
        "device",
        "shard",
        "graph-estimate",
        "shm-size",
        "shortfall",
        "imbalance",
        "tight-rank",
        "host-need",
    ];
    for (name, _) in super::FORMULAS {
        let has = ROWS.iter().any(|row| row.formula == *name) || names_only.contains(name);
        assert!(has, "no row for {name}");
    }
}
