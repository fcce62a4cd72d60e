//! Events that speak of a failure, each with what it states and how much that is worth.
//!
//! Owns the step from an event to a candidate: cause id, strength, place in code, phase, victim. Never compares two
//! candidates: that is `causality`'s work.

use crate::catalog::schema::Role;
use crate::catalog::structure::{Origin, Site, Structure};
use crate::catalog::{Catalog, Strength};
use crate::event::{Event, Exception, ExitStatus, Fact, Program, TracebackKind, Victim};
use crate::launch::machine::{Engine, is_ready};
use crate::launch::processes::{ProcessId, ProcessRole};
use crate::launch::{Launches, Placed};

/// Events of one kill report; about 45 lines, of which few are events.
const KILL_REPORT: usize = 40;

/// What a candidate is worth as a root, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Worth {
    /// A line at ERROR level that nothing explains; never a root on its own while anything else is there.
    Line,
    /// Says that something failed elsewhere.
    Carrier,
    /// Fails because something died before.
    Downstream,
    /// Says only that something died.
    Weak,
    /// A real exception that no rule knows.
    Unknown,
    /// What a cut log leaves of a more specific cause.
    Generic,
    /// Names a mechanism.
    Strong,
}

/// One candidate.
#[derive(Debug, Clone)]
pub struct Failure {
    /// Index of its event.
    pub event: usize,
    /// The process it happened in: the victim if an observer tells of it.
    pub process: ProcessId,
    /// The process that printed it.
    pub teller: ProcessId,
    /// Cause id; `unknown.exception` where no rule knows it; `None` for carriers.
    pub cause: Option<String>,
    /// Worth.
    pub worth: Worth,
    /// Phase of the process when it failed.
    pub phase: Option<String>,
    /// What the phase rests on.
    pub phase_basis: PhaseBasis,
    /// Where in the code.
    pub site: Site,
    /// Whose code.
    pub origin: Option<Origin>,
    /// How it was printed, if it is a traceback.
    pub traceback: Option<TracebackKind>,
    /// Whether it came after the launch was ready.
    pub after_ready: bool,
    /// Whether the process, or the launch, went on as if nothing had happened.
    pub survived: bool,
    /// Whether it ended something for sure: uncaught, or told by an exit.
    pub fatal: bool,
    /// Whether it may have been caught: a traceback that an actor printed, which Ray forwards caught or not.
    pub unproven: bool,
    /// Whether its frames are those of a process that only heard of it.
    pub observed: bool,
    /// Exit told of.
    pub exit: Option<ExitStatus>,
    /// Text that equal failures share.
    pub key: String,
}

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

/// All candidates of an attempt, in order.
pub fn collect(catalog: &Catalog, launches: &mut Launches, attempt: usize) -> Vec<Failure> {
    let ready = ready_at(catalog, launches, attempt);
    let news = first_of_each(catalog, launches, &ready);
    let served = says_served(catalog, launches, attempt);
    let indices: Vec<usize> = launches.of_attempt(attempt).collect();
    let mut failures = Vec::new();
    for index in indices {
        let Some(placed) = launches.events.get(index).cloned() else {
            continue;
        };
        let Some(mut failure) = candidate(catalog, launches, index, &placed) else {
            continue;
        };
        failure.after_ready = served || ready.first().is_some_and(|&r| r < index);
        failure.survived = news.iter().any(|&r| r > index)
            || failure.worth < Worth::Carrier
            || !failure.fatal && moved_on(launches, attempt, &failure, index);
        place_in_phase(catalog, launches, attempt, index, &placed, &mut failure);
        failures.push(failure);
    }
    share_phases(&mut failures);
    failures
}

/// Equal failures of several processes are in the same phase: where one printing does not tell it, another may.
fn share_phases(failures: &mut [Failure]) {
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
            failure.cause = Some("gpu-oom.*".to_owned());
            resolve_by_phase(failure, true);
        }
    }
    for failure in failures.iter_mut().filter(|f| f.phase_basis <= PhaseBasis::Others) {
        if let Some((_, phase)) = known.iter().find(|(key, _)| *key == failure.key) {
            failure.phase = Some(phase.clone());
            failure.phase_basis = PhaseBasis::Marker;
            if failure.cause.as_deref() == Some("gpu-oom.other") {
                failure.cause = Some("gpu-oom.*".to_owned());
                failure.worth = Worth::Strong;
                resolve_by_phase(failure, true);
            }
        }
    }
}

/// Whether a line says that the engine had been serving although no ready line is in the log
/// (`EngineCore encountered a fatal error.` is only printed after ready).
fn says_served(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    launches
        .of_attempt(attempt)
        .filter_map(|i| launches.events.get(i))
        .any(|p| {
            let def = p.event.signature.and_then(|id| catalog.signature(id)).map(|s| &s.def);
            def.is_some_and(|d| {
                matches!(d.role, Role::Wrapper | Role::Consequence) && d.phase.as_deref() == Some("serving")
            })
        })
}

/// Where the launch became ready.
pub fn ready_at(catalog: &Catalog, launches: &Launches, attempt: usize) -> Vec<usize> {
    let is = |i: &usize| {
        let event = launches.events.get(*i).map(|p| &p.event);
        let signature = event.and_then(|e| e.signature).and_then(|id| catalog.signature(id));
        signature.is_some_and(|s| match s.def.role {
            Role::Ready => is_ready(launches.engine, &s.def.program),
            // The ready line may be cut off, but only a server that serves prints its throughput.
            Role::Phase => s.def.phase.as_deref() == Some("serving"),
            _ => false,
        })
    };
    launches.of_attempt(attempt).filter(is).collect()
}

/// The ready lines that are news: a bar printed again at the exit does not show that anything went on.
fn first_of_each(catalog: &Catalog, launches: &Launches, ready: &[usize]) -> Vec<usize> {
    let mut seen = std::collections::HashSet::new();
    let key = |i: usize| launches.events.get(i).map(|p| (p.process, p.event.signature));
    let said = |i: usize| {
        let signature = launches
            .events
            .get(i)
            .and_then(|p| p.event.signature)
            .and_then(|id| catalog.signature(id));
        signature.is_some_and(|s| s.def.role == Role::Ready)
    };
    ready
        .iter()
        .copied()
        .filter(|&i| said(i) && seen.insert(key(i)))
        .collect()
}

fn moved_on(launches: &Launches, attempt: usize, failure: &Failure, index: usize) -> bool {
    launches
        .machine(attempt, failure.process)
        .is_some_and(|m| m.advanced_after(index))
}

fn candidate(catalog: &Catalog, launches: &mut Launches, index: usize, placed: &Placed) -> Option<Failure> {
    let event = &placed.event;
    let signature = event.signature.and_then(|id| catalog.signature(id));
    let mut failure = Failure {
        event: index,
        process: placed.process,
        teller: placed.process,
        cause: None,
        worth: Worth::Line,
        phase: None,
        phase_basis: PhaseBasis::None,
        site: Site::default(),
        origin: None,
        traceback: None,
        after_ready: false,
        survived: false,
        fatal: false,
        unproven: false,
        observed: false,
        exit: event.exit,
        key: String::new(),
    };
    let method = event
        .method
        .as_deref()
        .and_then(|m| catalog.structure().phase_of_method(m));
    match &event.fact {
        Fact::Traceback(traceback) if traceback.kind == TracebackKind::Ignored => return None,
        Fact::Traceback(traceback) => {
            let exception = traceback.chain.get(traceback.chosen)?;
            failure.traceback = Some(traceback.kind);
            failure.fatal = matches!(traceback.kind, TracebackKind::Raw | TracebackKind::Native);
            let forwarded = event.speaker.program == Program::Unknown && event.speaker.label.is_some();
            failure.unproven = forwarded && traceback.kind == TracebackKind::Raw;
            failure.fatal &= !failure.unproven;
            // Ray raises its own types where the result is asked for, whoever died.
            failure.observed = traceback.kind == TracebackKind::Quoted || exception.kind.starts_with("ray.exceptions.");
            failure.key = key(&exception.kind, &exception.message);
            // The frames of the carrier tell the phase where the original has none of its own.
            let frames = traceback
                .chain
                .iter()
                .find(|e| !e.frames.is_empty())
                .map_or(&[][..], |e| &e.frames);
            let own = if exception.frames.is_empty() {
                frames
            } else {
                &exception.frames
            };
            failure.site = catalog.structure().site(own);
            if failure.site.phase.is_none() {
                let outer = traceback
                    .chain
                    .iter()
                    .skip(traceback.chosen + 1)
                    .map(|e| catalog.structure().site(&e.frames));
                failure.site.phase = outer.into_iter().find_map(|s| s.phase);
            }
            failure.site.phase = failure.site.phase.take().or_else(|| method.map(ToOwned::to_owned));
            failure.origin = Structure::deciding_origin(own);
            let role = exception
                .signature
                .and_then(|id| catalog.signature(id))
                .map(|s| s.def.role);
            if role == Some(Role::Benign) {
                return None;
            }
            rate_exception(catalog, exception, &mut failure);
        }
        Fact::Known => {
            let signature = signature?;
            failure.key = key(&signature.def.id, "");
            match signature.def.role {
                Role::Root => rate(signature.strength, signature.def.cause.as_deref(), &mut failure),
                Role::Wrapper => failure.worth = Worth::Carrier,
                Role::Consequence => failure.worth = Worth::Downstream,
                Role::Exit => {
                    failure.fatal = !matches!(event.exit, Some(ExitStatus::Code(0)));
                    if !failure.fatal {
                        return None;
                    }
                    match &signature.def.cause {
                        Some(cause) => rate(signature.strength, Some(cause), &mut failure),
                        None => rate_exit(event.exit, &mut failure),
                    }
                }
                _ => return None,
            }
        }
        Fact::UnknownError => failure.key = key("line", &event.place.text),
        Fact::Seen => return None,
    }
    let victim = victim_of(launches, index, event);
    failure.process = launches.processes.find_or_add(&victim).unwrap_or(placed.process);
    Some(failure)
}

/// Whom a line tells of. A kill report over several lines names the node in the first and the process in a later one.
fn victim_of(launches: &Launches, index: usize, event: &Event) -> Victim {
    let mut victim = event.victim.clone();
    if victim.node.is_some() && victim.pid.is_none() && victim.label.is_none() {
        let selects =
            |e: &&Event| e.place.input == event.place.input && e.figures.iter().any(|f| &*f.name == "victim_used_gib");
        let later = launches
            .events
            .iter()
            .skip(index + 1)
            .take(KILL_REPORT)
            .map(|p| &p.event);
        victim.pid = later.filter(selects).find_map(|e| e.victim.pid);
    }
    victim
}

fn rate(strength: Strength, cause: Option<&str>, failure: &mut Failure) {
    failure.cause = cause.map(ToOwned::to_owned);
    failure.worth = match strength {
        Strength::Strong => Worth::Strong,
        Strength::Generic => Worth::Generic,
        Strength::Weak => Worth::Weak,
    };
}

/// An exit status on its own: a signal has a name, a code of 1 only says that it ended.
fn rate_exit(exit: Option<ExitStatus>, failure: &mut Failure) {
    let (cause, worth) = match exit {
        Some(ExitStatus::Signal(9)) => ("process.sigkill", Worth::Weak),
        Some(ExitStatus::Signal(15)) => (("process.sigterm"), Worth::Weak),
        Some(ExitStatus::Signal(2)) => ("process.interrupted", Worth::Weak),
        Some(ExitStatus::Signal(11)) => ("process.segfault", Worth::Generic),
        Some(ExitStatus::Signal(7)) => ("process.bus-error", Worth::Generic),
        Some(ExitStatus::Signal(6)) => ("process.abort", Worth::Weak),
        Some(ExitStatus::Signal(4)) => ("env.cpu-isa", Worth::Generic),
        Some(ExitStatus::Code(126 | 127)) => ("process.exec-failed", Worth::Generic),
        _ => ("unknown.silent", Worth::Carrier),
    };
    failure.cause = Some(cause.to_owned());
    failure.worth = worth;
}

/// An exception by its signature, else by its structure: the two tables must agree before a cause is named.
fn rate_exception(catalog: &Catalog, exception: &Exception, failure: &mut Failure) {
    if let Some(signature) = exception.signature.and_then(|id| catalog.signature(id)) {
        match signature.def.role {
            Role::Wrapper => failure.worth = Worth::Carrier,
            Role::Consequence => failure.worth = Worth::Downstream,
            _ => rate(signature.strength, signature.def.cause.as_deref(), failure),
        }
        if failure.cause.is_some() || failure.worth != Worth::Strong {
            return;
        }
    }
    let row = catalog.structure().exception(&exception.kind);
    failure.cause = Some("unknown.exception".to_owned());
    failure.worth = Worth::Unknown;
    let Some(row) = row else { return };
    if row.wrapper {
        failure.worth = Worth::Carrier;
        failure.cause = None;
        return;
    }
    if row.consequence {
        failure.worth = Worth::Downstream;
        failure.cause = None;
        return;
    }
    if let Some(cause) = &row.cause {
        let family = cause.split('.').next().unwrap_or("");
        let agrees = failure
            .site
            .family
            .as_deref()
            .is_some_and(|f| f == family || f == cause);
        if !row.ambiguous || agrees {
            rate(catalog.strength(cause), Some(cause), failure);
            return;
        }
    }
    // A place that fails in one way tells the cause of an exception whose type proves nothing, if the type's family does
    // not speak against it. It stays an exception that no rule knows: its words may say something else.
    let place = failure.site.cause.as_deref().filter(|_| row.ambiguous);
    let contradicts = |cause: &str| row.family.as_deref().is_some_and(|f| !cause.starts_with(f));
    if let Some(cause) = place.filter(|c| !contradicts(c)) {
        failure.cause = Some(cause.to_owned());
    }
}

/// The phase: frame, then the failure's own text, then markers, then the cause's usual one.
fn place_in_phase(
    catalog: &Catalog,
    launches: &Launches,
    attempt: usize,
    index: usize,
    placed: &Placed,
    failure: &mut Failure,
) {
    let event = &placed.event;
    let signature = event.signature.and_then(|id| catalog.signature(id));
    let told = match &event.fact {
        Fact::Traceback(t) => t.chain.get(t.chosen).and_then(|e| e.told_phase.as_deref()),
        _ => None,
    };
    let own = signature.filter(|s| s.def.role != Role::Phase);
    let text = told
        .map(ToOwned::to_owned)
        .or_else(|| own.and_then(|s| s.def.phase.clone()));
    let marker = launches
        .phase_before(attempt, failure.process, index)
        .map(ToOwned::to_owned);
    let teller_is_observer = matches!(
        launches.processes.get(failure.process).role,
        ProcessRole::Observer | ProcessRole::RayDaemon | ProcessRole::Main | ProcessRole::Driver
    );
    let others = || launches.furthest_before(attempt, index).map(ToOwned::to_owned);
    let usual = |cause: &str| catalog.cause(cause).and_then(|c| c.phase.clone());
    let bind = text.as_deref() == Some("serve-start");
    // Frames of the forward pass before the server is ready: SGLang's own warm-up request, or a profile run.
    let forward = failure.site.phase.as_deref() == Some("serving") && launches.engine != Engine::Ray;
    let marked = marker
        .clone()
        .or_else(others)
        .filter(|_| forward && !failure.after_ready);
    let (phase, basis) = if failure.after_ready && !bind {
        (Some("serving".to_owned()), PhaseBasis::Marker)
    } else if let Some(phase) = ahead_of_observer(launches, failure, others()) {
        failure.site.oom = None;
        (Some(phase), PhaseBasis::Others)
    } else if let Some(phase) = marked {
        let sglang = launches.engine.is_sglang() && launches.engine.tier(&phase) >= launches.engine.tier("kv-cache");
        (
            Some(if sglang { "warmup".to_owned() } else { phase }),
            PhaseBasis::Marker,
        )
    } else if let Some(phase) = failure.site.phase.clone() {
        (Some(phase), PhaseBasis::Frame)
    } else if let Some(phase) = text {
        (Some(phase), PhaseBasis::Text)
    } else if let Some(phase) = marker.filter(|_| !teller_is_observer) {
        (Some(phase), PhaseBasis::Marker)
    } else if let Some(phase) = others().filter(|p| p != "cluster-join" || !works_on_ray(launches, failure)) {
        (Some(phase), PhaseBasis::Others)
    } else if let Some(phase) = joined(launches, failure, placed) {
        (Some(phase), PhaseBasis::Cause)
    } else if let Some(phase) = failure.cause.as_deref().and_then(usual) {
        (Some(phase), PhaseBasis::Cause)
    } else {
        (None, PhaseBasis::None)
    };
    failure.phase = phase;
    failure.phase_basis = basis;
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
    );
}

/// The phase of the furthest process, where it is beyond that of the one who only heard of the failure.
fn ahead_of_observer(launches: &Launches, failure: &Failure, others: Option<String>) -> Option<String> {
    let engine = launches.engine;
    let here = failure.site.phase.as_deref()?;
    others.filter(|phase| failure.observed && engine.tier(phase) > engine.tier(here))
}

/// What the mere form of a line tells: torch prefixes `[rank3]: ` only once a process group exists, NCCL speaks while
/// communicators are set up, and a Ray task that fails in the middle of a job was working.
fn joined(launches: &Launches, failure: &Failure, placed: &Placed) -> Option<String> {
    let speaker = &placed.event.speaker;
    // A device that is full at its first use says nothing of the group.
    let oom = failure.cause.as_deref() == Some("gpu-oom.*");
    let torch_rank = !oom && speaker.rank.is_some() && speaker.label.is_none() && failure.traceback.is_some();
    let nccl = speaker.program == Program::Nccl;
    match launches.engine {
        Engine::Nccl | Engine::Torch if torch_rank || nccl => Some("distributed-init".to_owned()),
        Engine::Ray => works_on_ray(launches, failure).then(|| "serving".to_owned()),
        _ => None,
    }
}

/// Whether a job without an engine died of something that only happens to tasks and actors at work on a cluster that
/// had come up.
fn works_on_ray(launches: &Launches, failure: &Failure) -> bool {
    let cause = failure.cause.as_deref().unwrap_or("");
    let of_work = cause.starts_with("host-mem.")
        || matches!(
            cause,
            "ray.worker-died" | "ray.raylet-died" | "ray.node-died" | "env.disk-full"
        );
    launches.engine == Engine::Ray && of_work
}

/// `gpu-oom.*`: the allocation is named after the phase it failed in.
/// A bare "CUDA error: out of memory" of a process that shows no phase comes from its first use of the device.
fn resolve_by_phase(failure: &mut Failure, with_sizes: bool) {
    if failure.cause.as_deref() != Some("gpu-oom.*") {
        return;
    }
    // A pinned host allocation fails without figures; a message with figures is always about the device.
    if let Some(cause) = failure
        .site
        .oom
        .as_ref()
        .filter(|c| !(with_sizes && c.starts_with("host-mem.")))
    {
        failure.cause = Some(cause.clone());
        return;
    }
    let cause = match failure.phase.as_deref() {
        Some("process-start" | "config" | "cluster-join" | "device-init") => "gpu-oom.context",
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
        _ => "gpu-oom.other",
    };
    failure.cause = Some(cause.to_owned());
    if cause == "gpu-oom.other" {
        failure.worth = Worth::Generic;
    }
}

/// What equal failures share: type and first line of the message, numbers masked.
fn key(kind: &str, message: &str) -> String {
    let first = message.split('\n').next().unwrap_or("");
    let last = kind.rsplit('.').next().unwrap_or(kind);
    format!("{last}: {}", super::fingerprint::mask(first))
}
