//! Figures, settings and identity of the launch, collected from the events of one attempt.
//!
//! Owns which figure belongs to the root's process. Never computes a new figure.

use std::collections::{BTreeMap, BTreeSet};

use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::Program;
use crate::launch::Launches;
use crate::launch::arrival::size_from_settings;
use crate::launch::communicators::are_parts;
use crate::launch::links::RAYLET_HOST;
use crate::launch::machine::Engine;
use crate::launch::nodes;
use crate::launch::processes::{Process, ProcessId};
use crate::remedy::evidence::{Elsewhere, Spread};
use crate::remedy::{Evidence, patch};
use crate::report::model::{Launch, Measurement, Platform};
use crate::time::Stamp;
use crate::verdict::failure::{Failure, Worth};
use crate::verdict::{Verdict, exception_of};

use super::dating;
use super::{agents, cut, leftover};

/// Measurements listed at most.
const MAX_MEASUREMENTS: usize = 200;
/// Names of devices that share one memory pool with the host (NVIDIA's integrated and Grace-class parts).
const UNIFIED: &[&str] = &["GB10", "DGX Spark", "Jetson", "Orin", "Thor", "GH200", "GB200"];
/// Figures that are the same for every process of a launch, so that any process's may stand in.
const LAUNCH_WIDE: &[&str] = &[
    "max_seq_len_tokens",
    "kv_capacity_tokens",
    "checkpoint_gib",
    "graph_estimate_gib",
    "node_used_gib",
    "node_limit_gib",
    "node_used_fraction",
    "node_threshold_fraction",
    "node_threshold_percent",
    "gpu_total_gib",
    "weights_gib",
    "kv_cache_gib",
    "activation_peak_gib",
    "non_torch_gib",
];
/// Figures that each rank has of its own, about the same on all: another rank's is told as that rank's.
const PER_RANK: &[&str] = &["kv_available_gib"];
/// Figures that each rank prints of itself and of which SGLang takes the least for all.
const LEAST_OF_RANKS: &[&str] = &["load_avail_gib", "after_load_avail_gib"];
/// Ranks that differ by less hold the same, in GiB: the driver and other small users vary.
const SAME_GIB: f64 = 0.5;
/// What `free` says of a node, whoever asked it.
const OF_THE_NODE: &[&str] = &[
    "host_total_gib",
    "host_used_gib",
    "host_free_gib",
    "host_cache_gib",
    "host_available_gib",
];
/// Causes for which a listing of the device's processes tells who has the memory: it was gone before the launch.
pub(super) const GONE_BEFORE: &[&str] = &["gpu-oom.context", "gpu-mem.occupied"];
/// Settings that tell what Ray was asked for, the most telling first.
const REQUESTS: [&str; 3] = ["pending_demand", "infeasible_request", "required_resources"];
/// Characters shown of such a request.
const MOST_OF_A_REQUEST: usize = 160;
/// Captured beside settings, but none of the launch.
const NOT_SETTINGS: &[&str] = &[
    "other_pid",
    "other_name",
    "other_device",
    leftover::UNIT,
    "oom_hint",
    "alloc_variable",
    "blocking_hint",
    "command",
    "argv",
    RAYLET_HOST,
    "ray_cluster",
    "ray_job",
    "ray_job_ended",
    "nccl_comm_id",
    "group_rank",
    "group_size",
    "bus_id",
    "process_group",
    "store_barrier",
    "init_method",
    "odd_node",
    "odd_address",
    "head_address",
    "odd_host",
    "head_host",
    "same_rank_nodes",
    "same_rank",
    "odd_interface",
    "odd_setting",
    "odd_values",
    "right_interface",
    "refused_for",
    "refused_value",
    "unexpected_rank",
    "port_holder",
    "busy_port",
    "unresolved_host",
    "failed_runner",
    "required_option",
    "requiring_option",
    "missing_files",
    "flashinfer_extra",
];

/// What is known of the launch.
pub struct Facts {
    /// Figures of the root's process.
    pub figures: BTreeMap<String, f64>,
    /// All figures with their places.
    pub measurements: Vec<Measurement>,
    /// Settings.
    pub settings: BTreeMap<String, String>,
    /// The program that was launched, whose version follows.
    pub engine: Option<&'static str>,
    /// Engine version.
    pub version: Option<String>,
    /// The newest version that the engine can be of, where none is printed.
    pub newest: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// The weights of a rank as an earlier attempt had them.
    pub weights_before: Option<f64>,
    /// Programs of which there are lines in the inputs.
    pub heard: Vec<String>,
    /// Tags of the verdict.
    pub tags: Vec<String>,
    /// Whether device and host share one pool.
    pub unified: Option<bool>,
    /// What the launch runs under.
    pub under: Vec<&'static str>,
    /// Other holders of the device: pid, GiB.
    pub other_holders: Vec<(i64, f64)>,
    /// Pids of processes of earlier attempts that are still there.
    pub leftovers: Vec<i64>,
    /// What other processes say of quantities that the root's process has too.
    pub elsewhere: BTreeMap<String, Elsewhere>,
    /// Quantities in which the ranks differ and of which the least counts for all.
    pub spreads: BTreeMap<String, Spread>,
    /// Nodes of the launch.
    pub nodes: u32,
}

/// Collects the facts of the verdict's attempt.
pub fn gather(catalog: &Catalog, launches: &Launches, verdict: &Verdict) -> Facts {
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let mut facts = Facts {
        figures: BTreeMap::new(),
        measurements: Vec::new(),
        settings: BTreeMap::new(),
        engine: launches.engine(verdict.attempt).id(),
        version: None,
        newest: None,
        weights_before: None,
        heard: Vec::new(),
        model: None,
        tags: Vec::new(),
        unified: None,
        under: Vec::new(),
        other_holders: Vec::new(),
        leftovers: Vec::new(),
        elsewhere: BTreeMap::new(),
        spreads: BTreeMap::new(),
        nodes: nodes::count(launches, verdict.attempt),
    };
    let mut of_ranks: BTreeMap<&str, BTreeMap<ProcessId, f64>> = BTreeMap::new();
    let mut programs: BTreeSet<&str> = BTreeSet::new();
    let root_node = root.and_then(|r| launches.processes.get(r.process).node.as_deref());
    let listed = verdict
        .cause
        .as_deref()
        .is_some_and(|cause| GONE_BEFORE.contains(&cause));
    // The first failure of an event counts.
    let victims: BTreeMap<usize, ProcessId> = verdict.failures.iter().rev().map(|f| (f.event, f.process)).collect();
    let active = launches.active(verdict.attempt);
    // The kernel tells of a kill in several lines.
    let told_again = |index: usize| {
        let same = |r: &Failure, f: &Failure| f.teller == r.teller && f.process == r.process && f.cause == r.cause;
        let mut of_event = verdict.failures.iter().filter(|f| f.event == index);
        root.is_some_and(|r| r.teller != r.process && of_event.any(|f| same(r, f)))
    };
    for index in launches.of_attempt(verdict.attempt) {
        let Some(placed) = launches.events.get(index) else {
            continue;
        };
        let event = &placed.event;
        for (name, value) in &event.settings {
            // What is left to the engine is set once it has chosen.
            let open = facts.settings.get(&**name).is_none_or(|known| known == "None");
            if open {
                facts.settings.insert(name.to_string(), value.to_string());
            }
        }
        let process = victims.get(&index).copied().unwrap_or(placed.process);
        let own = root.is_none_or(|r| r.process == process || r.teller == placed.process);
        let who = launches.processes.get(process);
        for figure in &event.figures {
            // What is printed after the root is no part of its account, except by the root's own copies.
            let before = root.is_none_or(|r| index <= r.event) || told_again(index);
            if before && LEAST_OF_RANKS.contains(&&*figure.name) {
                // A rank that loads a second model, as a draft, prints the same of that.
                let of_ranks = of_ranks.entry(&*figure.name).or_default();
                of_ranks.entry(process).or_insert(figure.value);
            }
            if own && before {
                facts.figures.insert(figure.name.to_string(), figure.value);
            } else if OF_THE_NODE.contains(&&*figure.name) && may_be_of(root_node, who, launches) {
                facts.figures.entry(figure.name.to_string()).or_insert(figure.value);
            } else if LAUNCH_WIDE.contains(&&*figure.name) || before && PER_RANK.contains(&&*figure.name) {
                let other = || Elsewhere {
                    value: figure.value,
                    process: who.id.clone(),
                };
                facts.elsewhere.entry(figure.name.to_string()).or_insert_with(other);
            }
            if facts.measurements.len() < MAX_MEASUREMENTS {
                facts.measurements.push(Measurement {
                    name: figure.name.to_string(),
                    value: figure.value,
                    printed: figure.printed.to_string(),
                    process: Some(who.id.clone()),
                    device: who.device,
                    line: event.place.line,
                    evidence: root.filter(|r| r.event == index).map(|_| 0),
                });
            }
        }
        let Some(signature) = catalog.signature(event.signature) else {
            continue;
        };
        programs.insert(signature.def.program.as_str());
        if root.is_some_and(|r| r.event == index) {
            facts.tags.extend(signature.def.tags.iter().cloned());
            // What the failing process itself was told comes before a listing of another minute.
            let named = other_holders(event);
            if !named.is_empty() {
                facts.other_holders = named;
            }
        } else if listed && signature.def.role == Role::Note && may_be_of(root_node, who, launches) {
            let device = root.and_then(|r| launches.processes.get(r.process).device);
            let others = other_holders(event).into_iter().filter(|(pid, _)| {
                // A process of an earlier attempt that is still there is another holder.
                let own = active
                    .iter()
                    .any(|&i| launches.processes.get(ProcessId(i)).pid == Some(*pid));
                !own && facts.other_holders.iter().all(|(known, _)| known != pid)
            });
            let others: Vec<_> = others.filter(|_| is_on(event, device)).collect();
            facts.other_holders.extend(others);
        }
        if signature.def.tags.iter().any(|t| t == "unified") {
            facts.unified = Some(true);
        }
    }
    facts.spreads = of_ranks
        .into_iter()
        .filter_map(|(name, ranks)| Some((name.to_owned(), spread(launches, &ranks)?)))
        .collect();
    facts.elsewhere.retain(|name, _| !facts.figures.contains_key(name));
    for (name, other) in &facts.elsewhere {
        if LAUNCH_WIDE.contains(&name.as_str()) {
            facts.figures.insert(name.clone(), other.value);
        }
    }
    normalise(&mut facts.figures);
    if let Some(gpu) = facts.settings.get("gpu_name") {
        facts.unified = Some(UNIFIED.iter().any(|u| gpu.contains(u)));
    }
    if facts.unified == Some(true) && root.is_some() && !facts.tags.iter().any(|t| t == "unified") {
        let memory = verdict
            .cause
            .as_deref()
            .is_some_and(|c| c.starts_with("gpu-oom.") || c.starts_with("host-mem."));
        if memory {
            facts.tags.push("unified".to_owned());
        }
    }
    let leftovers = leftover::among(launches, verdict, &facts.other_holders);
    if !leftovers.is_empty() {
        facts.tags.push("leftover".to_owned());
    }
    let unit = leftover::unit(launches, verdict);
    facts
        .settings
        .extend(unit.map(|unit| (leftover::UNIT.to_owned(), unit)));
    facts.leftovers = leftovers.iter().map(|left| left.pid).collect();
    facts.version = version(catalog, launches, verdict.attempt);
    facts.newest = dating::newest(catalog, launches, verdict.attempt);
    if facts.version.is_none()
        && let Some(version) = nccl_version(launches, verdict.attempt)
    {
        (facts.engine, facts.version) = (Engine::Nccl.id(), Some(version));
    }
    facts.model = facts
        .settings
        .get("model")
        .or_else(|| facts.settings.get("model_path"))
        .cloned()
        .or_else(|| {
            launches
                .processes
                .all()
                .iter()
                .find_map(|p| p.identity.model.as_ref().map(ToString::to_string))
        });
    facts.under = under(launches, &programs, facts.settings.get("oom_memcg"));
    facts.heard = programs.into_iter().map(ToOwned::to_owned).collect();
    facts
}

/// The least and the most of what the ranks printed, where they differ.
fn spread(launches: &Launches, ranks: &BTreeMap<ProcessId, f64>) -> Option<Spread> {
    let (process, least) = ranks.iter().min_by(|a, b| a.1.total_cmp(b.1))?;
    let most = ranks.values().copied().max_by(f64::total_cmp)?;
    (most - least > SAME_GIB).then(|| Spread {
        least: *least,
        process: launches.processes.get(*process).id.clone(),
        most,
    })
}

/// One name for figures that are printed in two units.
fn normalise(figures: &mut BTreeMap<String, f64>) {
    if let Some(percent) = figures.get("node_threshold_percent").copied() {
        figures
            .entry("node_threshold_fraction".to_owned())
            .or_insert(percent / 100.0);
    }
}

/// Whether a line may be about the node. A source without a node may be any's, and so may one that holds no process of
/// the launch, unless it is named after another node.
fn may_be_of(node: Option<&str>, who: &Process, launches: &Launches) -> bool {
    let Some((node, other)) = node.zip(who.node.as_deref()) else {
        return true;
    };
    let processes = || launches.processes.all().iter().filter(|p| p.label.is_some());
    let mut nodes = processes().filter_map(|p| p.node.as_deref());
    node == other || other.starts_with(node) || nodes.all(|name| !other.starts_with(name))
}

/// Whether a listed process is on the device, as far as both are known.
fn is_on(event: &crate::event::Event, device: Option<u32>) -> bool {
    let listed = event.setting("other_device").and_then(|v| v.parse::<u32>().ok());
    listed.zip(device).is_none_or(|(listed, device)| listed == device)
}

fn other_holders(event: &crate::event::Event) -> Vec<(i64, f64)> {
    let pid = event.setting("other_pid").and_then(|v| v.parse().ok());
    let gib = event
        .figures
        .iter()
        .find(|f| &*f.name == "other_process_gib")
        .map(|f| f.value);
    pid.zip(gib).into_iter().collect()
}

/// The engine's version, from its own lines only.
fn version(catalog: &Catalog, launches: &Launches, attempt: usize) -> Option<String> {
    let engine = launches.engine(attempt).id()?;
    let own = |event: &crate::event::Event| {
        let signature = catalog.signature(event.signature)?;
        let stated = event
            .setting("engine_version")
            .filter(|_| signature.def.program == engine)?;
        Some(stated.to_string())
    };
    let events = || launches.events_of(attempt);
    events()
        .find_map(|p| own(&p.event))
        .or_else(|| launches.events.iter().find_map(|p| own(&p.event)))
}

/// A job that shows nothing above torch and NCCL, and no version of torch, is known by NCCL's.
fn nccl_version(launches: &Launches, attempt: usize) -> Option<String> {
    if !matches!(launches.engine(attempt), Engine::Nccl | Engine::Torch) {
        return None;
    }
    let mut events = launches.events.iter();
    events.find_map(|p| Some(p.event.setting("nccl_version")?.to_string()))
}

fn under(launches: &Launches, programs: &BTreeSet<&str>, group: Option<&String>) -> Vec<&'static str> {
    let mut under = Vec::new();
    // The group whose limit was hit is named after what made it.
    let made_by = |name: &str| group.is_some_and(|group| group.contains(name));
    let has = |name: &str| match name {
        "k8s" => programs.contains(name) || made_by("kubepods"),
        "slurm" => programs.contains(name) || made_by("/slurm"),
        "docker" => programs.contains(name) || made_by("docker"),
        _ => programs.contains(name),
    };
    let ray = launches.processes.all().iter().any(|p| {
        p.label
            .as_deref()
            .is_some_and(|l| l.starts_with("Ray") || l == "raylet" || l == "ray-worker")
    });
    if ray || has("ray") || launches.events.iter().any(|p| p.event.speaker.program == Program::Ray) {
        under.push("ray");
    }
    if has("k8s") {
        under.push("kubernetes");
    }
    if has("slurm") {
        under.push("slurm");
    }
    let processes = launches.processes.all();
    // A prefix that is the node's own name is no container's.
    let contained = |p: &&Process| p.container.is_some() && p.container != p.node;
    let placed = |wanted: bool| processes.iter().filter(contained).any(|p| p.node.is_some() == wanted);
    // kubectl puts the pod before the container, Compose its service alone.
    if placed(true) && !has("k8s") {
        under.push("kubernetes");
    } else if placed(false) {
        under.push("compose");
    }
    if has("docker") || processes.iter().any(|p| contained(&p)) {
        under.push("docker");
    }
    if has("torchrun") {
        under.push("torchrun");
    }
    under
}

/// The engine in whose code the root was raised: what is left of it where the log begins below its own lines.
fn engine_of(launches: &Launches, root: &Failure) -> Option<&'static str> {
    let event = &launches.events.get(root.event)?.event;
    let engines = [Program::Vllm.name(), Program::Sglang.name()];
    if let Some(name) = engines.iter().find(|name| **name == event.speaker.program.name()) {
        return Some(*name);
    }
    let exception = exception_of(launches, root)?;
    let innermost_first = exception.frames.iter().rev();
    innermost_first
        .flat_map(|frame| frame.file.split('/'))
        .find_map(|part| engines.iter().find(|name| **name == part).copied())
}

impl Facts {
    /// What Ray was asked for and cannot place.
    pub fn request(&self) -> Option<String> {
        let asked = REQUESTS.iter().find_map(|name| self.settings.get(*name))?;
        Some(cut(asked, MOST_OF_A_REQUEST))
    }

    /// What the remedies are chosen by.
    pub fn advice_evidence<'a>(
        &'a self,
        cause: &'a str,
        reason: Option<&'a str>,
        verdict: &'a Verdict,
        launches: &'a Launches,
        root: &Failure,
    ) -> Evidence<'a> {
        let who = launches.processes.get(root.process);
        let program = launches.engine(verdict.attempt);
        let engine = program.id().filter(|id| ["vllm", "sglang"].contains(id));
        Evidence {
            cause,
            reason,
            engine: engine.or_else(|| engine_of(launches, root)).or_else(|| program.id()),
            version: self.version.as_deref(),
            newest: self.newest.as_deref(),
            heard: &self.heard,
            weights_before: self.weights_before,
            all_nodes: self.settings.get("nnodes").is_some_and(|n| {
                let stated = n.parse::<u32>().unwrap_or(u32::MAX);
                stated > 1 && stated <= nodes::named(launches, verdict.attempt)
            }),
            figures: &self.figures,
            settings: &self.settings,
            unified: self.unified,
            tags: &self.tags,
            nodes: self.nodes,
            under: self.under.clone(),
            phase: verdict.phase.as_deref(),
            process: Some(who.id.as_str()),
            pid: who.pid,
            node: launches.node(root.event, root.process).map(|node| &**node),
            device: who.device,
            elsewhere: &self.elsewhere,
            spreads: &self.spreads,
            other_holders: self.other_holders.clone(),
            leftovers: self.leftovers.clone(),
        }
    }

    /// The launch block of the report, but for the ids.
    pub fn launch(&self, catalog: &Catalog, launches: &Launches, verdict: &Verdict, root: Option<usize>) -> Launch {
        let time = |index: usize| launches.events.get(index).and_then(|p| p.event.place.time.clone());
        let started = launches.start(verdict.attempt);
        // When a line without a stamp was written is not known.
        let stamped = |index: &usize| launches.events.get(*index).is_some_and(|p| p.event.place.own_time);
        let died = root.filter(stamped);
        // Where the first stamp is that of a failure, the launch began at some time before it.
        let fails = |index: &usize| {
            verdict
                .failures
                .iter()
                .any(|f| f.event == *index && f.worth > Worth::Line)
        };
        let began = died.map_or(started, |died| launches.start_for(verdict.attempt, died));
        let began = began.filter(|index| !fails(index));
        let seconds = began.zip(died).and_then(|(s, d)| launches.seconds_between(s, d));
        let seconds = seconds.filter(|seconds| *seconds >= 0.0);
        let (started, died) = (started.and_then(time), died.and_then(time));
        let printed = |t: &Stamp| t.rfc3339().unwrap_or_else(|| t.printed());
        let active = launches.active(verdict.attempt);
        let processes = || active.iter().map(|&i| launches.processes.get(ProcessId(i)));
        let world = processes().filter_map(|p| p.identity.world_size).max();
        let ranks = processes().filter_map(|p| p.rank).max().map(|r| r + 1);
        let number = |name: &str| self.settings.get(name).and_then(|n| n.parse::<u32>().ok());
        let of_agents = || number(agents::NODES)?.checked_mul(number("nproc_per_node")?);
        let settings_say = size_from_settings(launches, verdict.attempt);
        let world = match are_parts(catalog, launches, verdict.attempt) {
            // NCCL's ranks are those of the parts.
            true => settings_say.or_else(of_agents),
            false => world.or(settings_say).max(ranks).or_else(of_agents),
        };
        let settings = self
            .settings
            .iter()
            .filter(|(name, _)| !NOT_SETTINGS.contains(&name.as_str()))
            .take(256)
            .map(|(k, v)| (k.clone(), json_value(v)))
            .collect();
        Launch {
            command: patch::argv(&self.settings).and_then(|argv| patch::in_shell(&argv)),
            model: self.model.clone(),
            settings,
            platform: Platform {
                gpu: self.settings.get("gpu_name").cloned(),
                unified_memory: self.unified,
            },
            started: started.as_ref().map(printed),
            died: died.as_ref().map(printed),
            seconds_to_death: seconds,
            world_size: world,
            nodes: Some(self.nodes),
            gpus: world,
            ..Launch::default()
        }
    }
}

/// A setting as JSON: numbers and booleans as such.
fn json_value(text: &str) -> serde_json::Value {
    match text {
        "True" => true.into(),
        "False" => false.into(),
        "None" => serde_json::Value::Null,
        _ => text
            .parse::<i64>()
            .map(Into::into)
            .or_else(|_| text.parse::<f64>().map(Into::into))
            .unwrap_or_else(|_| text.into()),
    }
}
