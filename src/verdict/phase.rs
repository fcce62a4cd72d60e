//! The phase a failure happened in, and the out-of-memory cause that follows from it.
//!
//! Owns the order of what a phase may rest on: frame, text, marker, other processes, usual phase of the cause. Never
//! decides which failure is the root.

use std::collections::HashMap;

use super::failure::{Failure, Worth};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Fact, Program, TracebackKind};
use crate::launch::machine::Engine;
use crate::launch::processes::{ProcessId, ProcessRole};
use crate::launch::{Launches, Placed};

/// An out-of-memory of which no phase is known for certain.
const UNPLACED: &str = "gpu-oom.other";
/// An allocation on a device that is named after where it failed.
const UNNAMED: &str = "gpu-oom.*";

/// What a phase rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PhaseBasis {
    /// Nothing.
    None,
    /// The cause's usual phase.
    Cause,
    /// The furthest phase of any process.
    Others,
    /// The process's last marker.
    Marker,
    /// The text of the failure fixes it.
    Text,
    /// The innermost known frame.
    Frame,
}

/// The phase: frame, then the failure's own text, then markers, then the cause's usual one.
pub fn place(
    catalog: &Catalog,
    launches: &Launches,
    attempt: usize,
    index: usize,
    placed: &Placed,
    failure: &mut Failure,
) {
    let event = &placed.event;
    let engine = launches.engine(attempt);
    let signature = catalog.signature(event.signature);
    let told = match &event.fact {
        Fact::Traceback(t) => t.chain.get(t.chosen).and_then(|e| e.told_phase.as_deref()),
        _ => None,
    };
    let stated = signature.filter(|s| !matches!(s.def.role, Role::Phase | Role::Stop));
    let text = told
        .map(ToOwned::to_owned)
        .or_else(|| stated.and_then(|s| s.def.phase.clone()));
    let marker = launches
        .phase_before(attempt, failure.process, index)
        .map(|phase| fitted(engine, stated.map_or(&[], |s| &s.def.phases), phase).to_owned());
    let marker_stands = marker.is_some();
    let teller_is_observer = matches!(
        launches.processes.get(failure.process).role,
        ProcessRole::Observer | ProcessRole::RayDaemon | ProcessRole::Main | ProcessRole::Driver
    );
    // What the group shares says how far one came at least that never spoke, or only to NCCL under its pid, while the
    // engine names its workers.
    let workers = launches
        .processes
        .all()
        .iter()
        .filter(|p| p.role.is_worker_like() && !p.absorbed);
    let named = workers.filter(|p| p.label.is_some()).count() > 0;
    let own = launches.processes.get(failure.process);
    let silent = own.last_line.1 == 0 || named && own.role.is_worker_like() && own.label.is_none();
    let others = || launches.furthest_before(attempt, index).map(ToOwned::to_owned);
    let usual = |cause: &str| catalog.cause(cause).and_then(|c| c.phase.clone());
    // What kills tasks at work came after they had joined the cluster, whether or not they said what they were doing.
    let came_so_far = |phase: &String| phase != "cluster-join" || !past_joining_ray(launches, failure);
    let had_work = |phase: &String| came_so_far(phase) || !filled_up(failure);
    let bind = text.as_deref() == Some("serve-start");
    // Frames of the forward pass before the server is ready: SGLang's own warm-up request, or a profile run.
    let at_work = failure.site.phase.as_deref().or(text.as_deref());
    let forward = at_work == Some("serving") && engine != Engine::Ray;
    let marked = marker
        .clone()
        .or_else(others)
        .filter(|_| forward && !failure.after_ready);
    // The phase that a report's text fixes is that of the one who failed.
    let states = signature.is_some_and(|s| s.def.role == Role::Root);
    let (phase, basis) = if failure.after_ready && !bind {
        (Some("serving".to_owned()), PhaseBasis::Marker)
    } else if let Some(phase) = ahead_of_observer(launches, failure, others()) {
        failure.site.oom = None;
        (Some(phase), PhaseBasis::Others)
    } else if let Some(phase) = marked {
        let sglang = engine.is_sglang() && engine.tier(&phase) >= engine.tier("kv-cache");
        (
            Some(if sglang { "warmup".to_owned() } else { phase }),
            PhaseBasis::Marker,
        )
    } else if let Some(phase) = failure.site.phase.clone().filter(|_| !failure.site.deferred) {
        (Some(phase), PhaseBasis::Frame)
    } else if let Some(phase) = text.clone().filter(|_| states) {
        (Some(phase), PhaseBasis::Text)
    } else if let Some(phase) = failure.site.phase.clone() {
        // What several phases call says no more than that it was one of them: a later one that was announced counts.
        let alone =
            launches.processes.get(failure.process).role == ProcessRole::Main && failure.worth > Worth::Downstream;
        let own = !teller_is_observer || alone;
        let later = |marker: &&String| own && engine.tier(marker) > engine.tier(&phase);
        let announced = marker.as_ref().filter(later).cloned();
        (Some(announced.unwrap_or(phase)), PhaseBasis::Frame)
    } else if let Some(phase) = text {
        (Some(phase), PhaseBasis::Text)
    } else if let Some(phase) = marker.filter(|p| !teller_is_observer && !silent && had_work(p)) {
        (Some(phase), PhaseBasis::Marker)
    } else if let Some(phase) = others().filter(came_so_far) {
        (Some(phase), PhaseBasis::Others)
    } else if let Some(phase) = joined(launches, failure, placed) {
        (Some(phase), PhaseBasis::Cause)
    } else if let Some(phase) = failure.cause.as_deref().and_then(usual) {
        (Some(phase), PhaseBasis::Cause)
    } else if joins(launches, placed) && !past_joining_ray(launches, failure) {
        (Some("cluster-join".to_owned()), PhaseBasis::Cause)
    } else {
        (None, PhaseBasis::None)
    };
    let (phase, basis) = match asked_to_end(launches, failure, phase.as_deref(), others()) {
        Some(furthest) => (Some(furthest), PhaseBasis::Others),
        None => (phase, basis),
    };
    if basis == PhaseBasis::Marker && failure.site.oom.is_none() && failure.cause.as_deref() == Some(UNNAMED) {
        failure.site.oom = behind_marker(catalog, launches, attempt, index, failure.process);
    }
    failure.phase = phase;
    failure.phase_basis = basis;
    // The forward pass runs in many phases: where the log shows neither its caller nor a marker, which one is not known.
    let unsure = forward && failure.site.deferred && basis == PhaseBasis::Frame && !marker_stands;
    // Ray's daemons are the cluster: whatever they do at their start, the launch is joining it.
    let early = |phase: &str| engine.tier(phase) < engine.tier("cluster-join");
    let daemon = launches.processes.get(failure.process).role == ProcessRole::RayDaemon;
    if daemon && failure.phase.as_deref().is_some_and(early) {
        failure.phase = Some("cluster-join".to_owned());
    }
    let elsewhere = signature.is_some_and(|s| {
        !s.def.only_in.is_empty() && failure.phase.as_ref().is_none_or(|p| !s.def.only_in.contains(p))
    });
    if elsewhere {
        failure.cause = Some("unknown.exception".to_owned());
        failure.worth = if failure.traceback.is_some() {
            Worth::Unknown
        } else {
            Worth::Line
        };
    }
    resolve_by_phase(
        failure,
        event.figures.iter().any(|f| &*f.name == "tried_to_allocate_gib"),
        unsure,
    );
}

/// What an allocation of a process is called behind the last marker that it printed, where that says so.
fn behind_marker(
    catalog: &Catalog,
    launches: &Launches,
    attempt: usize,
    index: usize,
    process: ProcessId,
) -> Option<String> {
    let marker = |i: usize| {
        let own = launches.events.get(i).is_some_and(|p| p.process == process);
        let signature = launches.signature(catalog, i).filter(|_| own)?;
        (signature.def.role == Role::Phase).then_some(signature)
    };
    launches.before(attempt, index).find_map(marker)?.def.oom.clone()
}

/// The phase of the furthest process, where it is beyond that of the one who only heard of the failure, or whose wait for
/// the others ran out.
fn ahead_of_observer(launches: &Launches, failure: &Failure, others: Option<String>) -> Option<String> {
    let engine = launches.engine_at(failure.event);
    let waited = failure.cause.as_deref() == Some("process.startup-timeout");
    let here = failure.site.phase.as_deref().map(|phase| engine.tier(phase));
    let here = here.or(waited.then_some(0))?;
    others.filter(|phase| (failure.observed || waited) && engine.tier(phase) > here)
}

/// The phase of the furthest process, where whoever started the launch was asked to end it: that one had handed the work on.
fn asked_to_end(launches: &Launches, failure: &Failure, own: Option<&str>, furthest: Option<String>) -> Option<String> {
    let role = launches.processes.get(failure.process).role;
    let started_it = matches!(role, ProcessRole::ApiServer | ProcessRole::Main | ProcessRole::Driver);
    let engine = launches.engine_at(failure.event);
    let tier = |phase: &str| engine.tier(phase);
    let asked = super::causality::is_request_to_end(failure) && started_it && !failure.after_ready;
    furthest.filter(|phase| asked && own.is_none_or(|own| tier(phase) > tier(own)))
}

/// What the mere form of a line tells: torch prefixes `[rank3]: ` only once a process group exists, NCCL speaks while
/// communicators are set up, and a Ray task that fails in the middle of a job was working.
fn joined(launches: &Launches, failure: &Failure, placed: &Placed) -> Option<String> {
    let speaker = &placed.event.speaker;
    // A device that is full at its first use says nothing of the group.
    let oom = failure.cause.as_deref() == Some("gpu-oom.*");
    let torch_rank = !oom && speaker.rank.is_some() && speaker.label.is_none() && failure.traceback.is_some();
    let nccl = speaker.program == Program::Nccl;
    match launches.engine(placed.attempt) {
        Engine::Nccl | Engine::Torch if torch_rank || nccl => Some("distributed-init".to_owned()),
        Engine::Ray if works_on_ray(launches, failure) => Some("serving".to_owned()),
        // A log of NCCL's lines alone, beside which an engine's exception stands.
        _ if nccl => Some("distributed-init".to_owned()),
        _ => None,
    }
}

/// Whether Ray's own library or torchrun's agent speaks, in a log that shows nothing of the processes they start.
fn joins(launches: &Launches, placed: &Placed) -> bool {
    let speaker = &placed.event.speaker;
    let of = |engine: Engine, program: Program| launches.engine(placed.attempt) == engine && speaker.program == program;
    of(Engine::Ray, Program::Ray) || of(Engine::Torch, Program::Torch) && speaker.rank.is_none()
}

/// A marker's phase, moved on to one in which the failure can occur: the marker between is missing. Which comes next
/// is the engine's order; where none follows, the marker stands.
fn fitted<'p>(engine: Engine, possible: &'p [String], marker: &'p str) -> &'p str {
    let here = engine.tier(marker);
    let later = possible.iter().filter(|p| engine.tier(p) > here);
    let next = later.min_by_key(|p| engine.tier(p));
    let fits = possible.iter().any(|p| p == marker);
    next.filter(|_| !fits).map_or(marker, String::as_str)
}

/// Whether a job without an engine died of something that only happens to tasks and actors at work. An engine's own
/// actor may have been starting: what it did stands in the engine's log.
fn works_on_ray(launches: &Launches, failure: &Failure) -> bool {
    let label = launches.processes.get(failure.process).label.as_deref();
    past_joining_ray(launches, failure) && !label.is_some_and(|label| label.starts_with("RayWorker"))
}

/// Whether what it died of only happens on a cluster that had come up, where the log shows no more than that.
fn past_joining_ray(launches: &Launches, failure: &Failure) -> bool {
    let cause = failure.cause.as_deref().unwrap_or("");
    let of_work = filled_up(failure) || matches!(cause, "ray.worker-died" | "ray.raylet-died" | "ray.node-died");
    launches.engine_at(failure.event) == Engine::Ray && of_work
}

/// Whether the failure is one of space that fills up with work.
fn filled_up(failure: &Failure) -> bool {
    let cause = failure.cause.as_deref().unwrap_or("");
    cause.starts_with("host-mem.") || cause == "env.disk-full"
}

/// `gpu-oom.*`: the allocation is named after the phase it failed in.
/// A bare "CUDA error: out of memory" of a process that shows no phase comes from its first use of the device.
/// A phase that is not sure names none.
fn resolve_by_phase(failure: &mut Failure, with_sizes: bool, unsure: bool) {
    if failure.cause.as_deref() != Some(UNNAMED) {
        return;
    }
    // A pinned host allocation fails without figures; a message with figures is always about the device.
    if let Some(cause) = failure
        .site
        .oom
        .as_ref()
        .filter(|c| !(with_sizes && c.starts_with("host-mem.")))
    {
        if cause == UNPLACED {
            failure.worth = Worth::Generic;
        }
        failure.cause = Some(cause.clone());
        return;
    }
    let cause = match failure.phase.as_deref() {
        _ if unsure => UNPLACED,
        Some("process-start" | "config" | "cluster-join" | "device-init") => "gpu-oom.context",
        // Sizes are torch's: its allocator serves whatever follows the last marker, and communicators only where the code
        // that asked is theirs.
        Some("distributed-init") if with_sizes && failure.phase_basis < PhaseBasis::Text => UNPLACED,
        Some("distributed-init") => "gpu-oom.nccl",
        Some("model-fetch" | "weight-load") => "gpu-oom.weights",
        Some("memory-profile") => "gpu-oom.profile",
        Some("compile") => "gpu-oom.compile",
        Some("kv-cache") => "gpu-oom.kv-alloc",
        Some("graph-capture") => "gpu-oom.graph-capture",
        Some("warmup") => "gpu-oom.sampler-warmup",
        Some("serving" | "serve-start") => "gpu-oom.serving",
        None if !with_sizes && failure.traceback.is_some_and(|t| t != TracebackKind::Quoted) => {
            failure.phase = Some("device-init".to_owned());
            failure.phase_basis = PhaseBasis::Cause;
            "gpu-oom.context"
        }
        _ => UNPLACED,
    };
    failure.cause = Some(cause.to_owned());
    if cause == UNPLACED {
        failure.worth = Worth::Generic;
    }
}

/// Where a failure does not tell its phase, what is said of it again may: the exception of the same signature that
/// follows a native line has frames, equal failures of several processes are in the same phase, and ranks move in step.
pub fn share(catalog: &Catalog, launches: &Launches, attempt: usize, failures: &mut [Failure]) {
    take_from_report(failures);
    take_from_method(catalog, launches, attempt, failures);
    let id = |f: &Failure| launches.events.get(f.event).and_then(|p| p.event.signature);
    let by_phase = |f: &Failure| {
        launches
            .signature(catalog, f.event)
            .and_then(|s| s.def.cause.as_deref())
            == Some("gpu-oom.*")
    };
    let framed: Vec<_> = failures
        .iter()
        .filter(|f| f.phase_basis == PhaseBasis::Frame && f.cause.as_deref() != Some(UNPLACED))
        .filter_map(|f| Some((f.event, id(f)?, f.phase.clone()?)))
        .collect();
    let guessed = |f: &&mut Failure| f.phase_basis <= PhaseBasis::Others && by_phase(f);
    for failure in failures.iter_mut().filter(guessed) {
        let same =
            |(event, signature, _): &&(usize, _, String)| *event > failure.event && id(failure) == Some(*signature);
        if let Some((_, _, phase)) = framed.iter().find(same) {
            failure.phase = Some(phase.clone());
            failure.phase_basis = PhaseBasis::Frame;
            renamed(failure);
        }
    }
    share_with_message(launches, failures);
    share_equal(failures);
    share_crash(launches, failures);
    let worker = |f: &Failure| launches.processes.get(f.process).role == ProcessRole::Worker;
    let in_step = failures
        .iter()
        .filter(|f| worker(f) && f.phase_basis >= PhaseBasis::Marker)
        .find_map(|f| f.phase.clone());
    for failure in failures.iter_mut().filter(|f| f.phase.is_none() && worker(f)) {
        failure.phase.clone_from(&in_step);
        failure.phase_basis = in_step.as_ref().map_or(PhaseBasis::None, |_| PhaseBasis::Others);
        if by_phase(failure) {
            renamed(failure);
        }
    }
}

/// Names an out-of-memory anew after its phase has become known.
fn renamed(failure: &mut Failure) {
    failure.cause = Some("gpu-oom.*".to_owned());
    failure.worth = Worth::Strong;
    resolve_by_phase(failure, true, false);
}

/// A process crashes once. What its own file says of that has frames, where a log of Ray's beside it has none.
fn share_crash(launches: &Launches, failures: &mut [Failure]) {
    let crash = |f: &Failure| {
        let cause = f.cause.clone().filter(|cause| cause.starts_with("process."))?;
        launches.processes.get(f.process).pid.map(|_| (f.process, cause))
    };
    let mut framed: HashMap<(ProcessId, String), String> = HashMap::new();
    for failure in failures.iter().filter(|f| f.phase_basis == PhaseBasis::Frame) {
        if let (Some(key), Some(phase)) = (crash(failure), &failure.phase) {
            framed.entry(key).or_insert_with(|| phase.clone());
        }
    }
    for failure in failures.iter_mut().filter(|f| f.phase_basis <= PhaseBasis::Marker) {
        if let Some(phase) = crash(failure).and_then(|key| framed.get(&key)) {
            failure.phase = Some(phase.clone());
            failure.phase_basis = PhaseBasis::Frame;
        }
    }
}

/// An engine prints the message first and the traceback below it: the frames know the phase better than the last marker,
/// and what a text means that says too little.
fn share_with_message(launches: &Launches, failures: &mut [Failure]) {
    let signature = |f: &Failure| launches.events.get(f.event).and_then(|p| p.event.signature);
    for at in 1..failures.len() {
        let (before, rest) = failures.split_at_mut(at);
        let (Some(message), Some(traced)) = (before.last_mut(), rest.first()) else {
            continue;
        };
        let of_one = message.process == traced.process && message.traceback.is_none() && traced.traceback.is_some();
        let text = signature(message).is_some() && signature(message) == signature(traced);
        let placed = |f: &Failure| f.cause.as_deref().is_some_and(|c| !c.starts_with("gpu-oom."));
        if of_one && text && placed(message) && placed(traced) {
            message.cause.clone_from(&traced.cause);
            message.worth = traced.worth;
        }
        let framed = message.phase_basis <= PhaseBasis::Marker && traced.phase_basis == PhaseBasis::Frame;
        if of_one && framed && message.cause == traced.cause {
            message.phase.clone_from(&traced.phase);
            message.phase_basis = PhaseBasis::Frame;
        }
    }
}

fn share_equal(failures: &mut [Failure]) {
    let known: Vec<(String, String)> = failures
        .iter()
        .filter(|f| f.phase_basis >= PhaseBasis::Marker)
        .filter_map(|f| f.phase.clone().map(|p| (f.key.clone(), p)))
        .collect();
    // A message raised from an out-of-memory error says in which step it was: "… when warming up sampler".
    let told: Vec<(usize, ProcessId, String)> = failures
        .iter()
        .filter(|f| f.phase_basis == PhaseBasis::Text && f.cause.as_deref().is_some_and(|c| c.starts_with("gpu-oom.")))
        .filter_map(|f| f.phase.clone().map(|p| (f.event, f.process, p)))
        .collect();
    for failure in failures
        .iter_mut()
        .filter(|f| f.phase_basis <= PhaseBasis::Marker && f.traceback.is_some())
    {
        let oom = failure.cause.as_deref().is_some_and(|c| c.starts_with("gpu-oom."));
        let next = told
            .iter()
            .find(|(event, process, _)| *event > failure.event && *process == failure.process);
        if let Some((_, _, phase)) = next.filter(|_| oom) {
            failure.phase = Some(phase.clone());
            failure.phase_basis = PhaseBasis::Text;
            renamed(failure);
        }
    }
    for failure in failures.iter_mut().filter(|f| f.phase_basis <= PhaseBasis::Others) {
        if let Some((_, phase)) = known.iter().find(|(key, _)| *key == failure.key) {
            settle(failure, phase, PhaseBasis::Marker);
        }
    }
}

/// A process that goes on to report its own failure may say in which step it was: `Capture cuda graph failed`.
fn take_from_report(failures: &mut [Failure]) {
    let reports: Vec<(usize, ProcessId, String)> = failures
        .iter()
        .filter(|f| f.worth <= Worth::Downstream && f.phase_basis == PhaseBasis::Text && !f.after_ready)
        .filter_map(|f| f.phase.clone().map(|phase| (f.event, f.process, phase)))
        .collect();
    for failure in failures
        .iter_mut()
        .filter(|f| f.phase_basis <= PhaseBasis::Others && f.worth > Worth::Downstream && !f.after_ready)
    {
        let own = |(event, process, _): &&(usize, ProcessId, String)| {
            *process == failure.process && (failure.event..failure.event + REPORT).contains(event)
        };
        let Some((_, _, phase)) = reports.iter().find(own) else {
            continue;
        };
        settle(failure, phase, PhaseBasis::Text);
    }
}

/// Events within which a process reports its failure.
const REPORT: usize = 10;

/// A call that is reported to have failed names the method that ran in the workers, who ran it together. It tells the
/// phase of those that fell silent in it, and of a worker whose own lines had not come so far.
fn take_from_method(catalog: &Catalog, launches: &Launches, attempt: usize, failures: &mut [Failure]) {
    let structure = catalog.structure();
    let methods = launches.of_attempt(attempt).filter_map(|i| {
        let event = &launches.events.get(i)?.event;
        let marker = Launches::role(catalog, event) == Some(Role::Phase);
        event.method.as_deref().filter(|_| !marker)
    });
    let phases: std::collections::BTreeSet<&str> = methods.filter_map(|m| structure.phase_of_method(m)).collect();
    let mut phases = phases.into_iter();
    let (Some(phase), None) = (phases.next(), phases.next()) else {
        return;
    };
    let engine = launches.engine(attempt);
    for failure in failures
        .iter_mut()
        .filter(|f| f.phase_basis <= PhaseBasis::Marker && !f.after_ready)
    {
        let role = launches.processes.get(failure.process).role;
        let of_workers = role.is_worker_like() || matches!(role, ProcessRole::Observer | ProcessRole::RayDaemon);
        let behind = |now: &str| engine.tier(now) < engine.tier(phase);
        let open = failure.phase_basis <= PhaseBasis::Cause || failure.phase.as_deref().is_none_or(behind);
        if of_workers && open {
            settle(failure, phase, PhaseBasis::Text);
        }
    }
}

/// Gives a failure the phase that something else told, and an out-of-memory the cause that follows from it.
fn settle(failure: &mut Failure, phase: &str, basis: PhaseBasis) {
    failure.phase = Some(phase.to_owned());
    failure.phase_basis = basis;
    if failure.cause.as_deref() == Some(UNPLACED) {
        renamed(failure);
    }
}
