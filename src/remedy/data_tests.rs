//! Tests on the data: every cause has its page and remedies, every word in an entry exists, the flagships come out
//! as their story asks.

use std::collections::BTreeSet;

use super::evidence::testing::Case;
use super::select::{Advice, advise};
use super::versions::Range;
use super::{conditions, formulas, template};
use crate::catalog::Catalog;
use crate::catalog::schema::{CHANGES, OWNERS, RETRIES, RISKS, Role};

fn catalog() -> &'static Catalog {
    Catalog::shared()
}

fn advice(case: &Case, cause: &str, engine: &str, version: &str, phase: &str) -> Advice {
    let catalog = catalog();
    advise(
        catalog.cause(cause),
        catalog.remedies_of(cause),
        &case.evidence(cause, engine, version, phase),
    )
}

fn ids(advice: &Advice) -> Vec<&str> {
    advice.remedies.iter().map(|remedy| remedy.id.as_str()).collect()
}

#[test]
fn every_cause_has_two_remedies_whatever_the_engine() {
    for cause in catalog().causes() {
        for engine in ["", "vllm", "sglang", "ray", "torch", "nccl"] {
            if cause.id == "gpu-mem.static-fraction" && engine == "vllm" {
                continue; // a setting that only SGLang has
            }
            let found = advice(&Case::figures(&[]), &cause.id, engine, "", "");
            assert!(
                found.remedies.len() >= 2,
                "{} with engine {engine:?}: {:?}",
                cause.id,
                ids(&found)
            );
        }
    }
}

#[test]
fn every_cause_of_a_signature_has_a_page() {
    let known: BTreeSet<&str> = catalog().causes().map(|cause| cause.id.as_str()).collect();
    for signature in catalog().signatures() {
        if let Some(cause) = signature.def.cause.as_deref().filter(|cause| !cause.ends_with('*')) {
            assert!(
                known.contains(cause),
                "{}: cause {cause} has no entry",
                signature.def.id
            );
        }
        assert!(
            signature.def.role != Role::Root || signature.def.cause.is_some(),
            "{}",
            signature.def.id
        );
    }
}

#[test]
fn every_remedy_is_well_formed() {
    let catalog = catalog();
    let causes: BTreeSet<&str> = catalog.causes().map(|cause| cause.id.as_str()).collect();
    let families: BTreeSet<String> = causes
        .iter()
        .filter_map(|id| id.split_once('.'))
        .map(|(family, _)| format!("{family}.*"))
        .collect();
    let all: BTreeSet<&str> = catalog.remedies().map(|remedy| remedy.id.as_str()).collect();
    assert_eq!(all.len(), catalog.remedies().count(), "remedy ids are unique");
    for remedy in catalog.remedies() {
        let id = &remedy.id;
        for cause in remedy.applies.keys() {
            assert!(
                causes.contains(cause.as_str()) || families.contains(cause),
                "{id}: unknown cause {cause}"
            );
        }
        for condition in remedy.when.iter().chain(&remedy.unless) {
            assert!(conditions::is_known(condition), "{id}: unknown condition {condition}");
        }
        assert!(
            Range::parse(&remedy.versions).is_some(),
            "{id}: versions {}",
            remedy.versions
        );
        assert!(
            remedy.versions.is_empty() || remedy.engines.len() == 1,
            "{id}: versions of which engine?"
        );
        assert!(RISKS.contains(&remedy.risk.as_str()), "{id}: risk {}", remedy.risk);
        let formula = remedy.formula.as_deref();
        assert!(
            formula.is_none_or(|name| formulas::named(name).is_some()),
            "{id}: formula {formula:?}"
        );
        let needs = template::needs_formula(&remedy.title);
        assert!(
            !needs || formula.is_some() && remedy.plain_title.is_some(),
            "{id}: title without value"
        );
        assert!(
            !remedy.plain_title.as_deref().is_some_and(template::needs_formula),
            "{id}: plain title"
        );
        assert!(
            !remedy.title.ends_with('.') && !remedy.cost.is_empty() && !remedy.verify.is_empty(),
            "{id}"
        );
        assert!(!remedy.sources.is_empty(), "{id}: no source");
        assert!(!remedy.change.is_empty(), "{id}: no change");
        for change in &remedy.change {
            assert!(
                change.when.iter().all(|c| conditions::is_known(c)),
                "{id}: {:?}",
                change.when
            );
            assert!(CHANGES.contains(&change.kind.as_str()), "{id}: {}", change.kind);
            assert!(!template::needs_formula(&change.name), "{id}: name without default");
        }
        let pair = remedy.pair_with.as_deref();
        assert!(pair.is_none_or(|pair| all.contains(pair)), "{id}: pair {pair:?}");
    }
}

#[test]
fn every_cause_is_well_formed() {
    let mut seen = BTreeSet::new();
    for cause in catalog().causes() {
        let id = &cause.id;
        assert!(seen.insert(id), "{id} twice");
        assert!(cause.title.len() <= 70, "{id}: title");
        assert!(cause.headline.len() <= 90, "{id}: headline");
        assert!(
            ["strong", "generic", "weak"].contains(&cause.strength.as_str()),
            "{id}: {}",
            cause.strength
        );
        assert!(
            cause.strength == "strong" || !cause.next_evidence.is_empty(),
            "{id}: no next evidence"
        );
        assert!(
            cause.strength != "strong" || cause.often.is_empty(),
            "{id}: it says itself what it is"
        );
        for other in &cause.often {
            assert!(other != id && catalog().cause(other).is_some(), "{id}: often {other}");
        }
        assert!(
            RETRIES.contains(&cause.retry.verdict.as_str()),
            "{id}: {}",
            cause.retry.verdict
        );
        assert!(OWNERS.contains(&cause.owner.as_str()), "{id}: {}", cause.owner);
        for entry in &cause.next_evidence {
            assert!(
                entry.when.iter().all(|c| conditions::is_known(c)),
                "{id}: {:?}",
                entry.when
            );
        }
        if ["cuda.xid", "cuda.ecc"].contains(&id.as_str()) {
            assert_eq!(cause.retry.same_node, Some(false), "{id}");
        }
    }
}

#[test]
fn weak_causes_name_evidence_wherever_they_run() {
    for cause in catalog().causes().filter(|cause| cause.strength != "strong") {
        for under in ["", "ray", "kubernetes", "slurm", "docker", "torchrun"] {
            let mut case = Case::figures(&[]);
            case.under = [under].into_iter().filter(|u| !u.is_empty()).collect();
            let found = advice(&case, &cause.id, "vllm", "", "");
            assert!(!found.next_evidence.is_empty(), "{} under {under:?}", cause.id);
        }
    }
}

#[test]
fn every_remedy_has_a_change_wherever_it_runs() {
    for cause in catalog().causes() {
        for under in ["", "ray", "kubernetes", "slurm", "docker", "torchrun"] {
            for engine in ["", "vllm", "sglang"] {
                for amd in [false, true] {
                    let mut case = Case::figures(&[]);
                    case.under = [under].into_iter().filter(|u| !u.is_empty()).collect();
                    if amd {
                        case = case.set("rocm_version", "6.3.0");
                    }
                    for remedy in advice(&case, &cause.id, engine, "", "").remedies {
                        assert!(!remedy.change.is_empty(), "{} under {under:?}", remedy.id);
                        let pod = |text: &str| {
                            ["kubectl", "the pod", "PersistentVolumeClaim", "resources.limits"]
                                .iter()
                                .any(|w| text.contains(w))
                        };
                        let names = remedy.change.iter().map(|change| change.name.as_str());
                        let asks = names.chain([remedy.title.as_str()]).any(pod);
                        assert!(!asks || under == "kubernetes", "{} under {under:?}", remedy.id);
                    }
                }
            }
        }
    }
}

#[test]
fn every_reason_of_a_remedy_is_that_of_a_signature_of_its_cause() {
    let of_signatures: BTreeSet<(&str, &str)> = catalog()
        .signatures()
        .filter_map(|s| s.def.cause.as_deref().zip(s.def.reason.as_deref()))
        .collect();
    for remedy in catalog().remedies() {
        for reason in remedy.reasons.iter().filter(|reason| *reason != "unknown") {
            let known = remedy
                .applies
                .keys()
                .any(|cause| of_signatures.contains(&(cause.as_str(), reason.as_str())));
            assert!(known, "{}: no signature gives {reason}", remedy.id);
        }
        for word in remedy.when.iter().chain(&remedy.unless) {
            let reason = word.trim_start_matches('!').strip_prefix("reason:");
            let known = reason.is_none_or(|reason| of_signatures.iter().any(|(_, of)| *of == reason));
            assert!(known, "{}: no signature gives {word}", remedy.id);
        }
    }
}

#[test]
fn flagship_a_holder_then_cache_then_verify() {
    for engine in ["sglang", "vllm"] {
        let case = Case::figures(&[]).unified(true);
        let found = advice(&case, "gpu-oom.context", engine, "", "device-init");
        assert_eq!(
            ids(&found),
            ["stop-other-holder", "drop-page-cache", "verify-free-memory"]
        );
        let names: Vec<&str> = found.remedies[0]
            .change
            .iter()
            .map(|change| change.name.as_str())
            .collect();
        assert_eq!(
            names[1..],
            [
                "systemctl stop UNIT",
                "docker stop CONTAINER && docker rm CONTAINER",
                "ps -fp PID   # on the host: inside a container pids are other ones",
                "kill PID"
            ],
            "supervisor, container, pids"
        );
        assert!(!found.will_not_help.is_empty());
    }
    let case = Case::figures(&[("checkpoint_gib", 110.8)])
        .set("tp_size", "2")
        .unified(true);
    let found = advice(&case, "gpu-oom.context", "sglang", "0.5.13", "device-init");
    assert!(
        found.remedies[2].title.contains("more than 55.40 GiB"),
        "{}",
        found.remedies[2].title
    );
    let found = advice(&case, "gpu-oom.context", "sglang", "0.5.13", "device-init");
    let text = format!("{:?}", found.remedies);
    assert!(
        !text.contains("mem-fraction-static"),
        "nothing was allocated for the model yet"
    );
}

#[test]
fn flagship_a_names_the_holder_when_the_log_does() {
    let case = Case::figures(&[]).unified(true).holder(4711, 11.7);
    let found = advice(&case, "gpu-oom.context", "sglang", "0.5.13", "device-init");
    assert_eq!(
        found.remedies[0].title,
        "Stop the other holder of GPU memory: pid 4711 has 11.70 GiB"
    );
    assert_eq!(found.remedies[0].change[4].name, "kill 4711");
}

#[test]
fn flagship_b_value_pair_fewer_graphs_eager() {
    let case = Case::figures(&[
        ("node_used_gib", 113.78),
        ("node_limit_gib", 119.70),
        ("node_threshold_fraction", 0.95),
        ("kv_available_gib", 49.12),
    ])
    .unified(true);
    let found = advice(&case, "host-mem.ray-monitor", "vllm", "0.17.0", "graph-capture");
    let expected = [
        "utilization-down-for-ray-monitor",
        "ray-memory-threshold",
        "fewer-graphs",
        "max-num-seqs-down",
        "enforce-eager",
    ];
    assert_eq!(ids(&found), expected);
    let first = &found.remedies[0];
    assert_eq!(
        first.title,
        "Lower --gpu-memory-utilization from 0.90 (default) to 0.87 on every node"
    );
    assert_eq!(first.change[0].to.as_deref(), Some("0.87"));
    assert_eq!(first.pair_with.as_deref(), Some("ray-memory-threshold"));
    assert!(
        first.arithmetic.as_deref().is_some_and(|sum| sum.contains("assumed")),
        "{:?}",
        first.arithmetic
    );
    let second = &found.remedies[1];
    assert_eq!(second.pair_with.as_deref(), Some("utilization-down-for-ray-monitor"));
    assert!(second.cost.starts_with("Only unblocks"), "{}", second.cost);
    assert!(
        second
            .change
            .iter()
            .any(|change| change.name == "RAY_memory_monitor_refresh_ms")
    );
}

#[test]
fn flagship_b_on_a_machine_of_unknown_kind_says_if() {
    let case = Case::figures(&[("node_used_gib", 113.78), ("node_limit_gib", 119.70)]);
    let found = advice(&case, "host-mem.ray-monitor", "vllm", "0.17.0", "graph-capture");
    assert!(
        found.remedies[0].title.starts_with("If device and host share one pool"),
        "{:?}",
        ids(&found)
    );
    assert_eq!(found.remedies[0].change[0].to.as_deref(), Some("0.87"));
    let found = advice(
        &case.unified(false),
        "host-mem.ray-monitor",
        "vllm",
        "0.17.0",
        "weight-load",
    );
    assert!(
        !format!("{:?}", found.remedies).contains("gpu-memory-utilization"),
        "{:?}",
        ids(&found)
    );
}

#[test]
fn flagship_c_value_graphs_estimate_neighbour_eager() {
    let case = Case::figures(&[
        ("tried_to_allocate_gib", 98.0 / 1024.0),
        ("gpu_total_gib", 79.19),
        ("gpu_free_gib", 41.06 / 1024.0),
        ("private_pools_gib", 1.61),
        ("graph_estimate_gib", 2.83),
    ])
    .set("gpu_memory_utilization", "0.95")
    .unified(false)
    .holder(20817, 1.17);
    let found = advice(&case, "gpu-oom.graph-capture", "vllm", "0.19.0", "graph-capture");
    let expected = [
        "utilization-down",
        "fewer-graphs",
        "max-num-seqs-down",
        "graph-memory-estimate",
        "stop-small-holder",
        "piecewise-graphs",
        "enforce-eager",
    ];
    assert_eq!(ids(&found), expected);
    assert_eq!(
        found.remedies[0].title,
        "Lower --gpu-memory-utilization from 0.95 to 0.91"
    );
    assert!(!found.remedies[0].cost.is_empty());
}

#[test]
fn a_version_gets_its_own_spelling() {
    let flags = |version: &str| {
        let found = advice(
            &Case::figures(&[]),
            "gpu-oom.graph-capture",
            "vllm",
            version,
            "graph-capture",
        );
        format!(
            "{:?}",
            found
                .remedies
                .iter()
                .flat_map(|r| r.change.iter().map(|c| c.name.clone()))
                .collect::<Vec<_>>()
        )
    };
    assert!(
        flags("0.10.2").contains("--cuda-graph-sizes") && !flags("0.10.2").contains("--max-cudagraph-capture-size")
    );
    assert!(flags("0.25.1").contains("--max-cudagraph-capture-size") && !flags("0.25.1").contains("ESTIMATE"));
    assert!(flags("0.18.0").contains("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"));
    let sglang = |version: &str| {
        let found = advice(
            &Case::figures(&[]),
            "gpu-oom.graph-capture",
            "sglang",
            version,
            "graph-capture",
        );
        format!(
            "{:?}",
            found
                .remedies
                .iter()
                .flat_map(|r| r.change.iter().map(|c| c.name.clone()))
                .collect::<Vec<_>>()
        )
    };
    assert!(sglang("0.5.9").contains("\"--cuda-graph-max-bs\""));
    assert!(
        sglang("0.5.21").contains("\"--cuda-graph-max-bs-decode\"")
            && !sglang("0.5.21").contains("\"--cuda-graph-max-bs\"")
    );
}

#[test]
fn memory_that_another_holds_comes_before_the_value() {
    let case = Case::figures(&[
        ("gpu_free_gib", 58.08),
        ("gpu_total_gib", 139.80),
        ("requested_gib", 128.62),
    ]);
    let found = advice(&case, "gpu-mem.occupied", "vllm", "0.25.1", "device-init");
    assert_eq!(ids(&found)[..2], ["stop-other-holder", "utilization-to-free-memory"]);
    assert_eq!(found.remedies[1].change[0].to.as_deref(), Some("0.41"));
    let case = Case::figures(&[("tried_to_allocate_gib", 0.25), ("gpu_total_gib", 139.8)]).holder(1275, 123.08);
    let found = advice(&case, "gpu-oom.profile", "vllm", "0.25.1", "memory-profile");
    assert_eq!(ids(&found)[0], "stop-named-holder");
}

#[test]
fn a_missing_figure_is_named_and_no_number_invented() {
    let found = advice(
        &Case::figures(&[]),
        "gpu-oom.graph-capture",
        "vllm",
        "0.25.1",
        "graph-capture",
    );
    let first = &found.remedies[0];
    assert_eq!(first.title, "Lower --gpu-memory-utilization by a few points");
    assert_eq!(first.change[0].from.as_deref(), Some("0.92 (default)"));
    assert_eq!(first.change[0].to, None);
    assert!(
        first.why.ends_with("the log does not state the device's total memory."),
        "{}",
        first.why
    );
}

#[test]
fn the_estimate_that_ran_out_is_not_cured_by_the_share() {
    let found = advice(
        &Case::figures(&[]),
        "gpu-oom.graph-capture",
        "vllm",
        "0.25.1",
        "memory-profile",
    );
    assert!(!ids(&found).contains(&"utilization-down"), "{:?}", ids(&found));
    assert_eq!(ids(&found)[0], "fewer-graphs");
}

#[test]
fn a_sub_reason_picks_its_remedies() {
    let mut case = Case::figures(&[]);
    case.reason = Some("nofile");
    let found = advice(&case, "env.limits", "", "", "");
    assert_eq!(ids(&found)[0], "raise-nofile");
    assert!(!ids(&found).contains(&"raise-memlock"), "{:?}", ids(&found));
}
