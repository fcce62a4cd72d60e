//! Events that speak of a failure, each with what it states and how much that is worth.
//!
//! Owns the step from an event to a candidate: cause id, strength, place in code, victim. Never compares two
//! candidates: that is `causality`'s work.

use super::causality;
use super::own_names::OwnNames;
use super::phase::{self, PhaseBasis};
use super::preamble;
use super::ready;
use super::shutdown;
use super::strangers;
use crate::catalog::matcher::Signature;
use crate::catalog::schema::Role;
use crate::catalog::structure::{Origin, Site, Structure};
use crate::catalog::{self, Catalog, Strength};
use crate::event::{Event, Exception, ExitStatus, Fact, InputId, Program, TracebackKind, Victim};
use crate::launch::devices;
use crate::launch::earlier::{Earlier, before};
use crate::launch::machine::Machine;
use crate::launch::names::is_of_launches;
use crate::launch::processes::{Process, ProcessId};
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
    /// Whether it is a traceback whose end is not in the log.
    pub cut: bool,
    /// Whether its text tells of one try of several.
    pub retried: bool,
    /// Whether its text says only that a step failed.
    pub unspecific: bool,
    /// Whether the process that it hit is none of a launch's.
    pub foreign: bool,
    /// Whether a supervisor or a driver tells it of another unit, pod, container or device than the launch's.
    pub stranger: bool,
    /// Whether it tells of a process that is not known which, so that `process` is who told.
    pub of_another: bool,
    /// Exit told of.
    pub exit: Option<ExitStatus>,
    /// Text that equal failures share.
    pub key: String,
}

impl Failure {
    /// How its process ended, as far as it tells.
    pub fn end(&self) -> Option<ExitStatus> {
        self.exit.filter(|_| !self.of_another)
    }
}

/// All candidates of an attempt, in order.
pub fn collect(catalog: &Catalog, launches: &mut Launches, attempt: usize) -> Vec<Failure> {
    let ready = ready::lines(catalog, launches, attempt);
    let news = ready::news(catalog, launches, &ready);
    let served = ready::told_later(catalog, launches, attempt);
    let offline = ready::offline(catalog, launches, attempt, &news);
    let own_names = OwnNames::default();
    let indices: Vec<usize> = launches.of_attempt(attempt).collect();
    let role = |index: &usize| Launches::role(catalog, &launches.events.get(*index)?.event);
    let stops: Vec<usize> = indices
        .iter()
        .copied()
        .filter(|i| role(i) == Some(Role::Stop))
        .collect();
    let settled = settled_by(catalog, launches, &indices);
    let mut failures = Vec::new();
    for index in indices {
        let Some(placed) = launches.events.get(index).cloned() else {
            continue;
        };
        let Some(mut failure) = candidate(catalog, launches, index, &placed) else {
            continue;
        };
        let grace = launches
            .signature(catalog, index)
            .and_then(|s| s.def.grace)
            .map(f64::from);
        let later = |ready: &usize| came_later(launches, index, &placed, *ready);
        let offline = offline.contains(&placed.process);
        failure.stranger = own_names.tell_another(catalog, launches, &placed.event, !ready.is_empty())
            || devices::is_of_none(launches, index);
        let own = |ready: &&usize| !launches.of_other_servers(index, **ready);
        failure.after_ready = served || ready.iter().find(own).is_some_and(|r| !later(r));
        failure.survived = news.iter().filter(own).any(later)
            || failure.worth < Worth::Carrier
            || failure.unspecific && stops.first().is_some_and(|stop| *stop < index)
            || !failure.fatal
                && !is_told_from_outside(catalog, launches, &failure)
                && moved_on(launches, attempt, &failure, index)
            || launches
                .signature(catalog, index)
                .is_some_and(|s| settled.contains(&s.def.id.as_str()))
            || failure.after_ready && !offline && is_of_client(&placed.event.fact)
            || failure.retried && went_on(catalog, launches, attempt, index, 0.0)
            || grace.is_some_and(|seconds| went_on(catalog, launches, attempt, index, seconds))
            || preamble::outlived(catalog, launches, attempt, &placed, &failure)
            || failure.stranger;
        phase::place(catalog, launches, attempt, index, &placed, &mut failure);
        failures.push(failure);
    }
    phase::share(catalog, launches, attempt, &mut failures);
    await_ends(catalog, launches, &mut failures);
    strangers::settle(catalog, launches, attempt, &mut failures);
    strangers::name_the_counted(catalog, launches, attempt, &mut failures);
    strangers::excuse_swept(catalog, launches, &mut failures);
    demote_effects(catalog, launches, &mut failures);
    shutdown::demote(catalog, launches, attempt, &mut failures);
    failures
}

/// The troubles that lines say to be over: a pod that waited is placed, one whose probe failed is ready.
fn settled_by<'c>(catalog: &'c Catalog, launches: &Launches, indices: &[usize]) -> Vec<&'c str> {
    let events = indices.iter().filter_map(|i| launches.events.get(*i));
    let told = events.filter_map(|p| catalog.signature(p.event.signature));
    told.flat_map(|s| &s.def.settles).map(String::as_str).collect()
}

/// Whether an observer says it that names nobody: who stands for it in the log is not who died.
fn is_told_from_outside(catalog: &Catalog, launches: &Launches, failure: &Failure) -> bool {
    let signature = launches.signature(catalog, failure.event);
    failure.process == failure.teller && signature.is_some_and(|s| s.def.tells_of_others())
}

/// What ends nothing by itself, such as a probe that fails, is the cause of an end only where that is told of, and not
/// before it.
fn await_ends(catalog: &Catalog, launches: &Launches, failures: &mut [Failure]) {
    let pending = |f: &Failure| launches.signature(catalog, f.event).is_some_and(|s| s.def.pending);
    let ended = |failure: &Failure| {
        // What `kubectl describe` lists has no order.
        let undated = !launches.moment(failure.event).dated;
        let later =
            |f: &&Failure| undated || f.event > failure.event || !launches.in_known_order(failure.event, f.event);
        let mut later = failures.iter().filter(later);
        later.any(|f| !f.survived && causality::declares(catalog, launches, failure, f))
    };
    let waiting: Vec<usize> = (0..failures.len())
        .filter(|&i| failures.get(i).is_some_and(|f| pending(f) && !ended(f)))
        .collect();
    for index in waiting {
        if let Some(failure) = failures.get_mut(index) {
            failure.survived = true;
        }
    }
}

/// What an earlier report of a failure declares to be its own effect says nothing of the cause: a parent that ends the
/// tree it leads kills itself with it.
fn demote_effects(catalog: &Catalog, launches: &Launches, failures: &mut [Failure]) {
    let mut reports: Vec<Failure> = Vec::new();
    for failure in failures {
        if reports
            .iter()
            .any(|r| causality::declares(catalog, launches, r, failure))
        {
            (failure.worth, failure.cause) = (Worth::Downstream, None);
        } else if failure.worth == Worth::Carrier
            && !failure.survived
            && !reports.iter().any(|r| r.key == failure.key)
            && launches
                .signature(catalog, failure.event)
                .is_some_and(|s| !s.def.explains.is_empty())
        {
            reports.push(failure.clone());
        }
    }
}

/// Whether the launch became ready, at the event `ready`, after the one at `index`. What ended the server's process did
/// so after it was ready, unless the log proves the contrary.
fn came_later(launches: &Launches, index: usize, placed: &Placed, ready: usize) -> bool {
    let ended = match &placed.event.fact {
        Fact::Traceback(t) => t.kind == TracebackKind::Raw && t.chain.iter().any(Exception::left_the_program),
        _ => false,
    };
    ready > index && (!ended || launches.moment(ready).follows(placed.moment(index)))
}

/// Whether it was raised in a script in which no engine runs: who calls a server may print where the server does.
fn is_of_client(fact: &Fact) -> bool {
    let Fact::Traceback(traceback) = fact else { return false };
    let engine = |e: &Exception| {
        matches!(
            Structure::deciding_origin(&e.frames),
            Some(Origin::Engine | Origin::ModelCode)
        )
    };
    let script = traceback.chain.iter().any(Exception::is_from_script);
    traceback.kind == TracebackKind::Raw && script && !traceback.chain.iter().any(engine)
}

fn moved_on(launches: &Launches, attempt: usize, failure: &Failure, index: usize) -> bool {
    launches
        .machine(attempt, failure.process)
        .is_some_and(|m| m.advanced_after(launches.moment(index)))
}

/// Whether the launch got further than any process had been, and further than the step that was tried, after so many
/// seconds: a try that failed held up nobody.
fn went_on(catalog: &Catalog, launches: &Launches, attempt: usize, index: usize, grace: f64) -> bool {
    let engine = launches.engine(attempt);
    let step = launches.signature(catalog, index).and_then(|s| s.def.phase.as_deref());
    let reached = [step, launches.furthest_before(attempt, index)];
    let reached = reached.into_iter().flatten().map(|phase| engine.tier(phase)).max();
    let now = launches.moment(index);
    let mut entries = launches.machines(attempt).iter().flat_map(Machine::entries);
    let late = |at: usize| {
        launches
            .seconds_between(index, at)
            .map_or(grace == 0.0, |seconds| seconds >= grace)
    };
    let further = |phase: &str| phase != "shutdown" && Some(engine.tier(phase)) > reached;
    entries.any(|e| e.at.follows(now) && further(&e.phase) && late(e.at.index))
}

fn candidate(catalog: &Catalog, launches: &mut Launches, index: usize, placed: &Placed) -> Option<Failure> {
    let event = &placed.event;
    let signature = catalog.signature(event.signature);
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
        cut: false,
        retried: signature.is_some_and(|s| s.def.retried),
        unspecific: signature.is_some_and(|s| s.def.weak),
        foreign: false,
        stranger: false,
        of_another: false,
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
            // A traceback that begins at the script itself has passed every handler.
            let from_script = traceback.chain.iter().any(Exception::is_from_script);
            let own_file = launches.processes.get(placed.process).ray_worker && !from_script;
            failure.unproven = (forwarded || own_file) && traceback.kind == TracebackKind::Raw;
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
            let row = catalog.structure().exception(&exception.kind);
            failure.site.phase = row.and_then(|r| r.phase.clone()).or(failure.site.phase);
            failure.origin = Structure::deciding_origin(own);
            let role = catalog.signature(exception.signature).map(|s| s.def.role);
            // What another program raised, as a gateway in front of the server, is no failure of the launch.
            if matches!(role, Some(Role::Benign | Role::NoLaunch)) {
                return None;
            }
            if traceback.cut {
                // Something was raised, and the log shows neither what nor whether it was fatal.
                (failure.cut, failure.fatal) = (true, false);
                (failure.cause, failure.worth) = (Some("unknown.exception".to_owned()), Worth::Weak);
            } else if let Some(end) = end_told(catalog, exception, event) {
                // What the exception stands in is the place of who noticed, not of who ended.
                (failure.site, failure.origin, failure.traceback) = (Site::default(), None, None);
                rate_end(end, event.exit, &mut failure);
            } else {
                rate_exception(catalog, exception, &mut failure);
            }
        }
        Fact::Known => {
            let signature = signature?;
            match signature.def.role {
                Role::Root => rate(signature.strength, signature.def.cause.as_deref(), &mut failure),
                Role::Wrapper => failure.worth = Worth::Carrier,
                Role::Consequence => failure.worth = Worth::Downstream,
                Role::Exit => {
                    failure.fatal = !matches!(event.exit, Some(ExitStatus::Code(0)));
                    if !failure.fatal {
                        return None;
                    }
                    rate_end(signature, event.exit, &mut failure);
                }
                // A cluster that is told to end before anything has come up has not done its work. Who told it is open:
                // a driver that fails ends the cluster that it has started in the same way.
                Role::Stop => {
                    let machines = launches.machines(placed.attempt);
                    let begun = |m: &Machine| m.at(placed.moment(index)).is_some();
                    let cause = signature.def.cause.as_deref().filter(|_| !machines.iter().any(begun))?;
                    rate(Strength::Weak, Some(cause), &mut failure);
                }
                _ => return None,
            }
            failure.key = key(&signature.def.id, "");
        }
        Fact::UnknownError => failure.key = key("line", &event.place.text),
        Fact::Seen => return None,
    }
    let victim = victim_of(catalog, launches, index, placed);
    let of_agent = launches
        .signature(catalog, index)
        .is_some_and(|s| s.def.program == "torch");
    if let Some(pid) = victim.pid.filter(|_| of_agent)
        && launches.processes.find(&victim, placed.teller()).is_none()
        && let Some(own) = lone_rank(launches, event.place.input, pid)
    {
        launches.processes.note_pid(own, pid);
    }
    let told_of = launches.processes.find_or_add(&victim, placed.teller());
    failure.process = told_of.unwrap_or(placed.process);
    failure.of_another = told_of.is_none() && victim.is_named();
    if failure.worth >= Worth::Generic && signature_is_kernels(catalog, launches, index) {
        let earlier = before(launches, placed);
        let silent = is_silent(launches, &failure) && !is_told_of(launches, &failure, event);
        let foreign = silent && event.victim.label.as_deref().is_some_and(|name| !is_of_launches(name));
        if earlier == Some(Earlier::Surely) || earlier.is_some() && foreign {
            return None;
        }
        // The machine was short of memory, which need not be what this launch died of: what else tells of its end is
        // nearer to it.
        if foreign || earlier.is_some() && silent && !told_of_sigkill(launches, placed.attempt) {
            (failure.worth, failure.foreign) = (Worth::Weak, true);
        }
    }
    Some(failure)
}

/// The rank that the output of a node is named for, where no other one speaks in it, it raised something, and its agent
/// tells of one process alone: that one.
fn lone_rank(launches: &Launches, input: InputId, pid: i64) -> Option<ProcessId> {
    let here = || launches.events.iter().filter(move |p| p.event.place.input == input);
    let mut told = here().filter_map(|p| p.event.victim.pid);
    if !told.all(|other| other == pid) {
        return None;
    }
    let ranks: std::collections::BTreeSet<ProcessId> = here()
        .map(|p| p.process)
        .filter(|id| launches.processes.get(*id).rank.is_some())
        .collect();
    let mut ranks = ranks.into_iter();
    let only = ranks.next().filter(|_| ranks.next().is_none())?;
    let raised = here().any(|p| p.process == only && matches!(p.event.fact, Fact::Traceback(_)));
    let own = launches.processes.get(only);
    (raised && own.by_file && own.pid.is_none()).then_some(only)
}

fn signature_is_kernels(catalog: &Catalog, launches: &Launches, index: usize) -> bool {
    launches
        .signature(catalog, index)
        .is_some_and(|s| s.def.program == "kernel")
}

/// Whether another source than that of the event names the process that it hit.
fn is_told_of(launches: &Launches, failure: &Failure, event: &Event) -> bool {
    let pid = launches.processes.get(failure.process).pid;
    let others = launches
        .events
        .iter()
        .map(|p| &p.event)
        .filter(|e| e.speaker != event.speaker);
    others.into_iter().any(|e| pid.is_some() && e.victim.pid == pid)
}

/// Whether it tells of another process, of which there is no line.
fn is_silent(launches: &Launches, failure: &Failure) -> bool {
    failure.process != failure.teller && launches.processes.get(failure.process).last_line.1 == 0
}

/// Whether a parent or an agent tells of an end by SIGKILL.
fn told_of_sigkill(launches: &Launches, attempt: usize) -> bool {
    let events = launches.events_of(attempt);
    events.into_iter().any(|p| p.event.exit == Some(ExitStatus::Signal(9)))
}

/// Whom a line tells of. A kill report over several lines names the node in the first and the process in a later one.
fn victim_of(catalog: &Catalog, launches: &Launches, index: usize, placed: &Placed) -> Victim {
    let event = &placed.event;
    let mut victim = event.victim.clone();
    let def = launches.signature(catalog, index).map(|s| &s.def);
    // A status of which the line before says whose it is.
    if victim.is_empty()
        && event.exit.is_some()
        && let Some(before) = index.checked_sub(1).and_then(|before| launches.events.get(before))
        && before.process == placed.process
        && before.event.exit.is_none()
        && Launches::role(catalog, &before.event) == Some(Role::Exit)
    {
        victim = before.event.victim.clone();
    }
    // Who it tells of stands in no word of the line: it is the one of the teller's node.
    if let Some(label) = def.and_then(|d| d.tells_of.as_deref())
        && victim.pid.is_none()
    {
        victim.label = Some(label.into());
        victim.node = victim
            .node
            .or_else(|| launches.processes.get(placed.process).node.clone());
    }
    let names_itself = |p: &Process| p.role.is_engine() && p.explicit;
    match def.map(|d| d.program.as_str()) {
        // An agent or a parent tells of the processes that it has started on its own node.
        Some("torch" | "sglang") if victim.node.is_none() && victim.pid.is_some() => {
            victim.node.clone_from(&launches.processes.get(placed.process).node);
        }
        // A kernel tells of the processes of its own node.
        Some("kernel") if victim.node.is_none() => {
            victim.node = launches.processes.observed_node(placed.process).cloned();
            // One that no process is named with is of the rank that has it.
            let unnamed = !victim.is_named();
            if let Some(holder) = unnamed.then(|| devices::holder(launches, index)).flatten() {
                let holder = launches.processes.get(holder);
                (victim.pid, victim.rank) = (holder.pid, holder.rank);
                victim.node = victim.node.or_else(|| holder.node.clone());
            }
        }
        // Slurm and mpirun count their tasks; an engine that one of them starts counts its own workers. The ranks of a
        // program for MPI are mpirun's.
        Some("slurm") if launches.processes.all().iter().any(names_itself) => victim.rank = None,
        Some("mpi")
            if launches
                .processes
                .all()
                .iter()
                .any(|p| names_itself(p) && p.label.is_some()) =>
        {
            victim.rank = None;
        }
        _ => {}
    }
    if victim.node.is_some() && victim.pid.is_none() {
        let selects =
            |e: &&Event| e.place.input == event.place.input && e.figures.iter().any(|f| &*f.name == "victim_used_gib");
        let later = launches
            .events
            .iter()
            .skip(index + 1)
            .take(KILL_REPORT)
            .map(|p| &p.event);
        if let Some(told) = later.filter(selects).find(|e| e.victim.pid.is_some()) {
            victim.pid = told.victim.pid;
            victim.label = victim.label.take().or_else(|| told.victim.label.clone());
        }
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

/// The signature of an exception that only tells how another process ended. A code of its own, or the signal by which a
/// supervisor ends what is left, says no more than that something went wrong before.
fn end_told<'c>(catalog: &'c Catalog, exception: &Exception, event: &Event) -> Option<&'c Signature> {
    let signature = catalog
        .signature(exception.signature)
        .filter(|_| event.victim.is_named() || event.victim.coords.local.is_some())?;
    let killed = matches!(event.exit, Some(ExitStatus::Signal(signal)) if signal != 15 && signal != 2);
    (signature.def.role == Role::Exit || signature.def.role == Role::Wrapper && killed).then_some(signature)
}

/// The end of a process, by the cause of the line that tells it or else by the status.
fn rate_end(signature: &Signature, exit: Option<ExitStatus>, failure: &mut Failure) {
    match &signature.def.cause {
        Some(cause) => rate(signature.strength, Some(cause), failure),
        None => rate_exit(exit, failure),
    }
}

/// An exit status on its own: a signal has a name, a code of 1 only says that it ended.
fn rate_exit(exit: Option<ExitStatus>, failure: &mut Failure) {
    let (cause, worth) = match exit {
        Some(ExitStatus::Signal(9)) => ("process.sigkill", Worth::Weak),
        Some(ExitStatus::Signal(15)) => ("process.sigterm", Worth::Weak),
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
    let signature = catalog.signature(exception.signature).map(|s| s.def.id.as_str());
    if let Some(cause) = catalog
        .structure()
        .cause_by_place(&exception.frames, signature, &exception.kind)
    {
        rate(catalog.strength(cause), Some(cause), failure);
        return;
    }
    if let Some(signature) = catalog.signature(exception.signature) {
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
        let family = catalog::family(cause);
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

/// What equal failures share: type and first line of the message, numbers masked.
fn key(kind: &str, message: &str) -> String {
    let first = message.split('\n').next().unwrap_or("");
    let last = kind.rsplit('.').next().unwrap_or(kind);
    format!("{last}: {}", super::fingerprint::mask(first))
}
