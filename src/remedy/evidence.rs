//! What the verdict hands over: the cause and the root process's figures and settings.
//!
//! Owns the look-ups on it (figures that make sense, settings as people wrote them, version defaults). Never holds
//! figures of another process: a value computed from a neighbour's memory would be wrong.

use std::collections::BTreeMap;

use super::units::{Gib, Share, Tokens};
use super::versions::Version;
use crate::catalog::family;

/// Settings that only NCCL's lines of level INFO tell.
const NCCL_INFORMS: &[&str] = &["nccl_interface", "nccl_network"];
/// Settings that only ROCm's libraries tell.
const ROCM: &[&str] = &["hip_version", "rocm_version", "rccl_version"];
/// Words in the names of AMD's GPUs.
const AMD: &[&str] = &["AMD", "Instinct", "Radeon"];

/// A figure of another process.
#[derive(Debug, Clone, PartialEq)]
pub struct Elsewhere {
    /// The value; the unit is in the figure's name.
    pub value: f64,
    /// Id of the process that printed it.
    pub process: String,
}

/// A quantity that each rank printed of itself, where they differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Spread {
    /// The least of them.
    pub least: f64,
    /// Id of the process that printed it.
    pub process: String,
    /// The most.
    pub most: f64,
}

/// The evidence that remedies and the memory account are made from.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// Cause id.
    pub cause: &'a str,
    /// Sub-reason within the cause (`memlock`).
    pub reason: Option<&'a str>,
    /// `vllm`, `sglang`, `ray`, `torch`, `nccl`.
    pub engine: Option<&'a str>,
    /// Version of the engine as printed.
    pub version: Option<&'a str>,
    /// The newest version that prints what the log shows, where it prints no version and its lines set a bound.
    pub newest: Option<&'a str>,
    /// The weights of a rank as an earlier attempt had them, in GiB: this one may not have come so far.
    pub weights_before: Option<f64>,
    /// Programs of which there are lines in the inputs, as the catalog names them.
    pub heard: &'a [String],
    /// Whether there are lines of as many nodes as the launch says it has.
    pub all_nodes: bool,
    /// Figures of the root process by name; the unit is in the name.
    pub figures: &'a BTreeMap<String, f64>,
    /// Settings of the launch by name, as printed.
    pub settings: &'a BTreeMap<String, String>,
    /// Whether device and host share one pool; `None` if the log does not tell.
    pub unified: Option<bool>,
    /// Tags of the verdict.
    pub tags: &'a [String],
    /// Number of nodes seen.
    pub nodes: u32,
    /// What the launch runs under: `ray`, `kubernetes`, `slurm`, `docker`, `torchrun`.
    pub under: Vec<&'static str>,
    /// Phase of death.
    pub phase: Option<&'a str>,
    /// Id of the root process.
    pub process: Option<&'a str>,
    /// Process id of the root process.
    pub pid: Option<i64>,
    /// Node of the root process; under Kubernetes the pod.
    pub node: Option<&'a str>,
    /// Device of the root process.
    pub device: Option<u32>,
    /// What another process of the launch says of a quantity that all of its kind have.
    pub elsewhere: &'a BTreeMap<String, Elsewhere>,
    /// Quantities in which the ranks differ and of which the least counts for all.
    pub spreads: &'a BTreeMap<String, Spread>,
    /// Other processes on the device that the log names: pid and GiB.
    pub other_holders: Vec<(i64, f64)>,
    /// Pids of processes of earlier attempts that were there when this one began.
    pub leftovers: Vec<i64>,
}

impl Evidence<'_> {
    /// A figure, unless it is no number. One in GiB may have been printed in MiB or bytes.
    pub fn figure(&self, name: &str) -> Option<f64> {
        let printed = |name: &str| self.figures.get(name).copied().filter(|value| value.is_finite());
        printed(name).or_else(|| {
            let size = name.strip_suffix("_gib")?;
            let in_mib = printed(&format!("{size}_mib")).map(|mib| mib / 1024.0);
            in_mib.or_else(|| printed(&format!("{size}_bytes")).map(|bytes| bytes / f64::from(1u32 << 30)))
        })
    }

    /// A figure in GiB.
    pub fn gib(&self, name: &str) -> Option<Gib> {
        self.figure(name).map(Gib)
    }

    /// A length in tokens.
    pub fn tokens(&self, name: &str) -> Option<Tokens> {
        self.figure(name).map(Tokens)
    }

    /// A size that must be positive, such as a total.
    pub fn size(&self, name: &str) -> Option<Gib> {
        self.gib(name).filter(|size| size.0 > 0.0)
    }

    /// A setting without its quotes; one that prints as nothing counts as not set.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let value = self.settings.get(name)?.trim().trim_matches(['\'', '"']);
        (!matches!(value, "" | "None" | "null" | "none" | "auto")).then_some(value)
    }

    /// What the log shows of a setting or variable, as it stands there: also one that is not set (`None`) or left to
    /// the engine (`auto`).
    pub fn stated(&self, name: &str) -> Option<&str> {
        let shown = self
            .settings
            .get(name)
            .map(|value| value.trim().trim_matches(['\'', '"']));
        // NCCL's informing lines are there because somebody asked for them.
        let informs = || NCCL_INFORMS.iter().any(|told| self.settings.contains_key(*told));
        shown.or_else(|| (name == "NCCL_DEBUG" && informs()).then_some("INFO"))
    }

    /// Whether the launch is known to run on AMD's GPUs.
    pub fn is_amd(&self) -> bool {
        let of_amd = |name: &str| AMD.iter().any(|word| name.contains(word));
        ROCM.iter().any(|told| self.settings.contains_key(*told))
            || ["gpu_name", "gpu"]
                .iter()
                .any(|name| self.setting(name).is_some_and(of_amd))
    }

    /// Whether engines of the launch run on other nodes than its front end, as its data-parallel sizes say.
    pub fn has_remote_engines(&self) -> bool {
        let here = self.count("data_parallel_size_local");
        let all = self.count("data_parallel_size");
        all.zip(here).is_some_and(|(all, here)| here < all)
    }

    /// A setting that is a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.setting(name)?.parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// A setting that is a count of at least one.
    pub fn count(&self, name: &str) -> Option<u64> {
        self.setting(name)?
            .replace(',', "")
            .parse()
            .ok()
            .filter(|&count| count > 0)
    }

    /// Whether the engine is this one.
    pub fn engine_is(&self, name: &str) -> bool {
        self.engine == Some(name)
    }

    /// The version by which flags are chosen: the one printed, else the newest that the log can be of.
    pub fn version_of_flags(&self) -> Option<&str> {
        self.version.or(self.newest)
    }

    /// The engine's version, if it can be read.
    pub fn version(&self) -> Option<Version> {
        self.version.and_then(Version::parse)
    }

    /// Whether device and host are known to share one pool.
    pub fn is_unified(&self) -> bool {
        self.unified == Some(true) || self.has_tag("unified") || self.pool_is_the_node()
    }

    /// The device's memory equals the node's within 3 %: one pool, counted twice.
    fn pool_is_the_node(&self) -> bool {
        match (self.size("gpu_total_gib"), self.size("node_limit_gib")) {
            (Some(device), Some(node)) if self.unified.is_none() => (device.0 / node.0 - 1.0).abs() < 0.03,
            _ => false,
        }
    }

    /// Whether the log tells nothing of the kind of machine.
    pub fn is_platform_unknown(&self) -> bool {
        self.unified.is_none() && !self.is_unified()
    }

    /// Whether the verdict has a tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|t| t == tag)
    }

    /// The family of the cause.
    pub fn family(&self) -> &str {
        family(self.cause)
    }

    /// The share of the device that vLLM was told to use: the setting, what the check printed, or the version's
    /// default.
    pub fn utilization(&self) -> Option<Utilization> {
        if let Some(share) = self.number("gpu_memory_utilization").filter(|u| *u > 0.0 && *u <= 1.0) {
            return Some(Utilization {
                share: Share(share),
                default: false,
            });
        }
        if let (Some(requested), Some(total)) = (self.size("requested_gib"), self.size("gpu_total_gib"))
            && requested.0 <= total.0
        {
            return Some(Utilization {
                share: requested / total,
                default: false,
            });
        }
        let newer = Version::parse("0.20.0")?;
        let version = self.version().filter(|_| self.engine_is("vllm"))?;
        let share = Share(if version < newer { 0.90 } else { 0.92 });
        Some(Utilization { share, default: true })
    }

    /// Tokens of the longest sequence, as the message or the settings tell.
    pub fn size_of_sequence(&self) -> Option<f64> {
        self.figure("max_seq_len_tokens")
            .or_else(|| self.number("max_model_len"))
    }

    /// Memory of other processes on the device, as far as the log names it.
    pub fn other_processes(&self) -> Option<Gib> {
        let named: f64 = self
            .other_holders
            .iter()
            .map(|(_, gib)| gib)
            .filter(|gib| gib.is_finite())
            .sum();
        let named = Some(Gib(named)).filter(|gib| gib.0 > 0.0);
        named.or_else(|| self.size("other_process_gib"))
    }

    /// The threshold of Ray's memory monitor as a share of the node's memory. Some versions print it in per cent,
    /// others in bytes.
    pub fn ray_threshold(&self) -> Option<Share> {
        let share = self
            .figure("node_threshold_fraction")
            .map(|t| Share(if t > 1.5 { t / 100.0 } else { t }));
        share.or_else(|| Some(self.size("node_threshold_gib")? / self.size("node_limit_gib")?))
    }

    /// The size of the device or, where device and host share one pool, of the node.
    pub fn device_total(&self) -> Option<Gib> {
        let node = || {
            let size = self.size("node_limit_gib").or_else(|| self.size("host_total_gib"));
            size.filter(|_| self.is_unified())
        };
        self.size("gpu_total_gib").or_else(node)
    }
}

/// A utilisation in force, and whether it is only the version's default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Utilization {
    /// Share of the device's total memory.
    pub share: Share,
    /// The log does not show it; it is the default of the version.
    pub default: bool,
}

impl std::fmt::Display for Utilization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let note = if self.default { " (default)" } else { "" };
        write!(f, "{}{note}", self.share)
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Evidence for tests, owned.
    use super::*;

    /// Owned parts of an [`Evidence`].
    #[derive(Default)]
    pub struct Case {
        pub figures: BTreeMap<String, f64>,
        pub settings: BTreeMap<String, String>,
        pub tags: Vec<String>,
        pub unified: Option<bool>,
        pub holders: Vec<(i64, f64)>,
        pub under: Vec<&'static str>,
        pub nodes: u32,
        pub reason: Option<&'static str>,
        pub node: Option<&'static str>,
        pub elsewhere: BTreeMap<String, Elsewhere>,
        pub spreads: BTreeMap<String, Spread>,
        pub heard: Vec<String>,
        pub weights_before: Option<f64>,
    }

    impl Case {
        pub fn figures(figures: &[(&str, f64)]) -> Self {
            let figures = figures
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect();
            Self {
                figures,
                nodes: 1,
                ..Self::default()
            }
        }

        pub fn set(mut self, name: &str, value: &str) -> Self {
            self.settings.insert(name.to_owned(), value.to_owned());
            self
        }

        pub fn unified(mut self, unified: bool) -> Self {
            self.unified = Some(unified);
            self
        }

        pub fn holder(mut self, pid: i64, gib: f64) -> Self {
            self.holders.push((pid, gib));
            self
        }

        pub fn elsewhere(mut self, name: &str, value: f64, process: &str) -> Self {
            let process = process.to_owned();
            self.elsewhere.insert(name.to_owned(), Elsewhere { value, process });
            self
        }

        pub fn spread(mut self, name: &str, least: f64, process: &str, most: f64) -> Self {
            let process = process.to_owned();
            self.spreads.insert(name.to_owned(), Spread { least, process, most });
            self
        }

        pub fn evidence<'a>(
            &'a self,
            cause: &'a str,
            engine: &'a str,
            version: &'a str,
            phase: &'a str,
        ) -> Evidence<'a> {
            Evidence {
                cause,
                reason: self.reason,
                engine: Some(engine).filter(|s| !s.is_empty()),
                version: Some(version).filter(|s| !s.is_empty()),
                newest: None,
                heard: &self.heard,
                weights_before: self.weights_before,
                all_nodes: false,
                figures: &self.figures,
                settings: &self.settings,
                unified: self.unified,
                tags: &self.tags,
                nodes: self.nodes,
                under: self.under.clone(),
                phase: Some(phase).filter(|s| !s.is_empty()),
                process: None,
                pid: None,
                node: self.node,
                device: None,
                elsewhere: &self.elsewhere,
                spreads: &self.spreads,
                other_holders: self.holders.clone(),
                leftovers: Vec::new(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::Case;

    #[test]
    fn the_default_share_depends_on_the_version() {
        let case = Case::figures(&[]);
        let shown = |engine, version| {
            let e = case.evidence("gpu-oom.other", engine, version, "");
            e.utilization().map(|u| u.to_string())
        };
        assert_eq!(shown("vllm", "0.19.1").as_deref(), Some("0.90 (default)"));
        assert_eq!(shown("vllm", "0.20.0").as_deref(), Some("0.92 (default)"));
        assert_eq!(shown("vllm", ""), None);
        assert_eq!(shown("sglang", "0.5.13"), None);
    }

    #[test]
    fn a_setting_wins_over_the_default() {
        let case = Case::figures(&[]).set("gpu_memory_utilization", "'0.5'");
        let e = case.evidence("gpu-oom.other", "vllm", "0.20.0", "");
        assert_eq!(e.utilization().map(|u| u.to_string()).as_deref(), Some("0.50"));
    }

    #[test]
    fn a_pool_that_is_the_node_is_unified() {
        let case = Case::figures(&[("gpu_total_gib", 119.7), ("node_limit_gib", 119.7)]);
        assert!(case.evidence("host-mem.ray-monitor", "vllm", "", "").is_unified());
        let case = Case::figures(&[("gpu_total_gib", 79.2), ("node_limit_gib", 503.0)]);
        assert!(!case.evidence("host-mem.ray-monitor", "vllm", "", "").is_unified());
    }

    #[test]
    fn nonsense_figures_are_not_figures() {
        let case = Case::figures(&[("gpu_total_gib", f64::NAN), ("gpu_free_gib", 0.0)]);
        let e = case.evidence("gpu-oom.other", "vllm", "", "");
        assert_eq!(e.gib("gpu_total_gib"), None);
        assert_eq!(e.size("gpu_free_gib"), None);
    }

    #[test]
    fn a_size_in_another_unit_is_the_same_figure() {
        let case = Case::figures(&[("shm_free_mib", 512.0), ("node_used_bytes", 3_221_225_472.0)]);
        let e = case.evidence("host-mem.shm", "vllm", "", "");
        assert_eq!(
            (e.figure("shm_free_gib"), e.figure("node_used_gib")),
            (Some(0.5), Some(3.0))
        );
    }
}
