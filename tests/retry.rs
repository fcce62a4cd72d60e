//! Would the same launch end the same way? One row for every cause: whether to start it again, and whether there.

use std::collections::{BTreeMap, BTreeSet};

use Verdict::{AfterChange, MayHelp, Pointless, Unknown};
use coroner::catalog::Catalog;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Verdict {
    /// A setting, an image or a file: the same launch ends the same way.
    Pointless,
    /// Memory, a leftover process, a limit, a device: something has to change first.
    AfterChange,
    /// A peer, a hub, a time-out: it may be gone.
    MayHelp,
    /// The cause says too little.
    Unknown,
}

impl Verdict {
    fn id(self) -> &'static str {
        match self {
            Pointless => "pointless",
            AfterChange => "after-change",
            MayHelp => "may-help",
            Unknown => "unknown",
        }
    }
}

/// Cause, verdict, whether the same node is advisable (where the cause is about the node at all).
const ROWS: &[(&str, Verdict, Option<bool>)] = &[
    ("config.attention-backend", Pointless, None),
    ("config.chat-template", Pointless, None),
    ("config.device-type", Pointless, None),
    ("config.dtype", Pointless, None),
    ("config.env-var", Pointless, None),
    ("config.feature-conflict", Pointless, None),
    ("config.invalid-value", Pointless, None),
    ("config.kernel-unsupported", Pointless, None),
    ("config.lora", Pointless, None),
    ("config.max-model-len", Pointless, None),
    ("config.multimodal", Pointless, None),
    ("config.parallelism", Pointless, None),
    ("config.quantization", Pointless, None),
    ("config.speculative", Pointless, None),
    ("config.tokenizer", Pointless, None),
    ("config.trust-remote-code", Pointless, None),
    ("config.unknown-argument", Pointless, None),
    ("config.unsupported-arch", Pointless, None),
    ("cuda.busy", MayHelp, None),
    ("cuda.capture-invalid", Pointless, None),
    ("cuda.cublas", Unknown, None),
    ("cuda.device-lost", AfterChange, Some(false)),
    ("cuda.driver-library-mismatch", AfterChange, Some(false)),
    ("cuda.driver-too-old", Pointless, Some(false)),
    ("cuda.ecc", AfterChange, Some(false)),
    ("cuda.fabric", MayHelp, None),
    ("cuda.fork-reinit", Pointless, None),
    ("cuda.forward-compat", Pointless, None),
    ("cuda.illegal-access", MayHelp, None),
    ("cuda.invalid-device", Pointless, None),
    ("cuda.launch-failure", MayHelp, None),
    ("cuda.mps", MayHelp, None),
    ("cuda.no-device", Pointless, None),
    ("cuda.no-kernel-image", Pointless, Some(false)),
    ("cuda.toolkit-mismatch", Pointless, None),
    ("cuda.xid", AfterChange, Some(false)),
    ("dist.config-mismatch", Pointless, None),
    ("dist.custom-allreduce", AfterChange, None),
    ("dist.gloo", MayHelp, None),
    ("dist.port-in-use", AfterChange, None),
    ("dist.rendezvous-timeout", MayHelp, None),
    ("dist.service-unreachable", MayHelp, None),
    ("dist.store-unreachable", MayHelp, None),
    ("dist.world-size", Pointless, None),
    ("env.abi", Pointless, None),
    ("env.artifact-download", MayHelp, None),
    ("env.cache-corrupt", AfterChange, Some(true)),
    ("env.compiler", Pointless, None),
    ("env.cpu-isa", Pointless, Some(false)),
    ("env.dependency-version", Pointless, None),
    ("env.disk-full", AfterChange, None),
    ("env.import", Pointless, None),
    ("env.kernel-compile", Pointless, None),
    ("env.limits", AfterChange, None),
    ("env.permission", Pointless, None),
    ("env.shared-lib", Pointless, None),
    ("env.wrong-arch", Pointless, None),
    ("gpu-mem.fraction-limit", AfterChange, Some(true)),
    ("gpu-mem.imbalance", AfterChange, Some(true)),
    ("gpu-mem.kv-too-small", AfterChange, Some(true)),
    ("gpu-mem.no-kv-blocks", AfterChange, Some(true)),
    ("gpu-mem.occupied", AfterChange, Some(true)),
    ("gpu-mem.profiling-race", MayHelp, Some(true)),
    ("gpu-mem.state-cache", AfterChange, Some(true)),
    ("gpu-mem.static-fraction", AfterChange, Some(true)),
    ("gpu-oom.compile", AfterChange, Some(true)),
    ("gpu-oom.context", AfterChange, Some(true)),
    ("gpu-oom.graph-capture", AfterChange, Some(true)),
    ("gpu-oom.kv-alloc", AfterChange, Some(true)),
    ("gpu-oom.nccl", AfterChange, Some(true)),
    ("gpu-oom.other", AfterChange, Some(true)),
    ("gpu-oom.profile", AfterChange, Some(true)),
    ("gpu-oom.sampler-warmup", AfterChange, Some(true)),
    ("gpu-oom.serving", MayHelp, Some(true)),
    ("gpu-oom.weights", AfterChange, Some(true)),
    ("host-mem.address-space", AfterChange, Some(true)),
    ("host-mem.alloc", AfterChange, Some(true)),
    ("host-mem.budget", AfterChange, Some(true)),
    ("host-mem.object-store", AfterChange, Some(true)),
    ("host-mem.oom-killer", AfterChange, Some(true)),
    ("host-mem.ray-monitor", AfterChange, Some(true)),
    ("host-mem.shm", AfterChange, Some(true)),
    ("model.auth", AfterChange, None),
    ("model.bad-config", Pointless, None),
    ("model.corrupt", AfterChange, None),
    ("model.custom-code", Pointless, None),
    ("model.hub-unreachable", MayHelp, None),
    ("model.missing-weights", Pointless, None),
    ("model.no-weights", Pointless, None),
    ("model.not-found", Pointless, None),
    ("model.peer-load-timeout", MayHelp, None),
    ("model.shape-mismatch", Pointless, None),
    ("nccl.bootstrap-net", AfterChange, None),
    ("nccl.collective-mismatch", AfterChange, None),
    ("nccl.cuda-error", Unknown, None),
    ("nccl.duplicate-gpu", Pointless, None),
    ("nccl.ib", MayHelp, None),
    ("nccl.invalid-usage", Pointless, None),
    ("nccl.mnnvl", AfterChange, None),
    ("nccl.nvls", AfterChange, None),
    ("nccl.p2p", AfterChange, None),
    ("nccl.peer-died", MayHelp, None),
    ("nccl.plugin", Pointless, None),
    ("nccl.shm", AfterChange, None),
    ("nccl.system-error", Unknown, None),
    ("nccl.topology", Pointless, None),
    ("nccl.version-mismatch", Pointless, None),
    ("nccl.watchdog-timeout", MayHelp, None),
    ("process.abort", Unknown, None),
    ("process.bus-error", AfterChange, None),
    ("process.exec-failed", Pointless, None),
    ("process.handshake-timeout", MayHelp, None),
    ("process.interrupted", MayHelp, None),
    ("process.port-in-use", AfterChange, None),
    ("process.preempted", MayHelp, None),
    ("process.rpc-timeout", MayHelp, None),
    ("process.scheduler-limit", AfterChange, None),
    ("process.segfault", Unknown, None),
    ("process.sigkill", Unknown, None),
    ("process.sigterm", MayHelp, None),
    ("process.startup-timeout", MayHelp, None),
    ("process.watchdog", MayHelp, None),
    ("ray.auth", Pointless, None),
    ("ray.fd-or-thread-limit", AfterChange, None),
    ("ray.gcs-unreachable", MayHelp, None),
    ("ray.insufficient-resources", AfterChange, None),
    ("ray.ip-mismatch", Pointless, None),
    ("ray.node-died", MayHelp, Some(false)),
    ("ray.raylet-died", Unknown, None),
    ("ray.runtime-env", AfterChange, None),
    ("ray.start-timeout", MayHelp, None),
    ("ray.version-mismatch", Pointless, None),
    ("ray.worker-died", Unknown, None),
    ("ray.worker-start", AfterChange, None),
    ("unknown.exception", Unknown, None),
    ("unknown.silent", Unknown, None),
];

#[test]
fn every_cause_has_its_row() {
    let rows: BTreeMap<&str, (Verdict, Option<bool>)> = ROWS.iter().map(|(id, v, node)| (*id, (*v, *node))).collect();
    assert_eq!(rows.len(), ROWS.len(), "one row each");
    let mut seen = BTreeSet::new();
    for cause in Catalog::shared().causes() {
        let (verdict, node) = rows
            .get(cause.id.as_str())
            .unwrap_or_else(|| panic!("no row for {}", cause.id));
        assert_eq!(cause.retry.verdict, verdict.id(), "{}", cause.id);
        assert_eq!(cause.retry.same_node, *node, "{}", cause.id);
        assert!(!cause.retry.why.is_empty(), "{}: no reason", cause.id);
        let after = cause.retry.after.is_some();
        assert!(after || *verdict != AfterChange, "{}: after what?", cause.id);
        seen.insert(cause.id.as_str());
    }
    let gone: Vec<&&str> = rows.keys().filter(|id| !seen.contains(**id)).collect();
    assert!(gone.is_empty(), "rows without a cause: {gone:?}");
}

/// The list of cause ids that people agreed on, where it is at hand.
#[test]
fn every_id_of_the_taxonomy_has_its_row() {
    let Ok(text) = std::fs::read_to_string("../shared/taxonomy.md") else {
        println!("the taxonomy is not at hand: skipped");
        return;
    };
    let (_, causes) = text.split_once("\n### ").expect("families");
    let ids: BTreeSet<&str> = causes
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|id| {
            let families = [
                "gpu-oom", "gpu-mem", "host-mem", "nccl", "dist", "ray", "cuda", "env", "config", "model", "process",
                "unknown",
            ];
            let known = |family: &str| families.contains(&family);
            let word = |name: &str| {
                !name.is_empty()
                    && name
                        .chars()
                        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            };
            id.split_once('.')
                .is_some_and(|(family, name)| known(family) && word(name))
        })
        .collect();
    assert!(ids.len() > 100, "{} ids", ids.len());
    for id in ids {
        assert!(ROWS.iter().any(|(row, ..)| *row == id), "no row for {id}");
    }
}

#[test]
fn a_broken_device_is_not_tried_again_where_it_is() {
    for id in ["cuda.xid", "cuda.ecc", "cuda.device-lost"] {
        assert!(ROWS.contains(&(id, AfterChange, Some(false))), "{id}");
    }
}
