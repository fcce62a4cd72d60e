//! The outcome of an attempt: failed, healthy, degraded, stopped, running or no launch.
//!
//! Owns what counts as a death before and after ready. Never picks the root.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::Catalog;
use crate::catalog::schema::{Role, SignatureDef};
use crate::catalog::structure::{Origin, Structure};
use crate::event::{Event, Exception, ExitStatus, Fact, Frame, Program, Traceback, TracebackKind};
use crate::launch::Launches;
use crate::launch::machine::Machine;
use crate::launch::nodes::{Nodes, workers_are_done};
use crate::launch::processes::ProcessRole;
use crate::report::model::Outcome;

use super::attribution::OBSERVERS;
use super::causality::is_request_to_end;
use super::failure::{Failure, Worth};
use super::ready;
use super::strangers::is_of_transport;

/// Programs whose lines show a launch.
const ENGINES: [&str; 4] = ["vllm", "sglang", "ray", "nccl"];

/// Judges an attempt.
pub fn outcome(catalog: &Catalog, launches: &Launches, attempt: usize, failures: &[Failure]) -> Outcome {
    let ready = ready::lines(catalog, launches, attempt);
    let role_at = |role: Role| {
        launches
            .of_attempt(attempt)
            .filter(move |&i| launches.events.get(i).and_then(|p| Launches::role(catalog, &p.event)) == Some(role))
    };
    let other = || {
        role_at(Role::NoLaunch).next().is_some()
            || builds(catalog, launches, attempt)
            || calls(catalog, launches, failures)
    };
    if !of_a_launch(catalog, launches, attempt) && other() {
        return Outcome::NoLaunch;
    }
    let stops: Vec<usize> = role_at(Role::Stop).collect();
    let open = || failures.iter().filter(|f| !f.survived);
    // What Ray forwards may have been caught, unless it names a mechanism and is the last that the log holds.
    let last = launches.of_attempt(attempt).last();
    let stands = |f: &Failure| !f.unproven || f.worth == Worth::Strong && Some(f.event) == last;
    // What is logged below the level of errors was seen and handled, or is part of an end that was meant.
    let grave = |f: &Failure| launches.events.get(f.event).is_some_and(|p| p.event.grave);
    let told = |f: &Failure| {
        let effect = || super::told_of(catalog, launches, f).is_some();
        let known = f.traceback.is_none() && grave(f) && (effect() || is_of_transport(f));
        known && !goes_on(launches, attempt, f.event) && !answers_after(catalog, launches, attempt, f.event)
    };
    // A parent that says of a process only that it is gone.
    let gone = |f: &Failure| {
        let role = launches.signature(catalog, f.event).map(|s| s.def.role);
        f.worth == Worth::Carrier && f.traceback.is_none() && f.exit.is_none() && role == Some(Role::Exit)
    };
    let up = || match sockets_despite_ib(launches, attempt) {
        Some(_) => Outcome::Degraded,
        None => Outcome::Healthy,
    };
    if !ready.is_empty() {
        let asked = open().find(|f| f.after_ready && is_request_to_end(f)).map(|f| f.event);
        let end = [asked, shutdown(launches, &stops, &ready)].into_iter().flatten().min();
        // What breaks while a server is shutting down is part of the shutdown.
        let of_another = |f: &Failure| ready.iter().all(|&r| launches.of_other_servers(f.event, r));
        let died = open().any(|f| {
            (told(f) || is_death(catalog, launches, f)) && stands(f) && end.is_none_or(|e| f.event < e)
                // One that is told to end loses its processes, too.
                || gone(f) && end.is_none()
                // A server beside it that never served has failed, whatever became of the others.
                || of_another(f) && !f.unproven && f.worth >= Worth::Weak
        });
        return if died {
            Outcome::Failed
        } else if end.is_some() {
            Outcome::Stopped
        } else if role_at(Role::Degraded).next().is_some() {
            Outcome::Degraded
        } else {
            up()
        };
    }
    let asked = open().find(|f| f.worth >= Worth::Weak).filter(|f| is_request_to_end(f));
    if asked.is_some_and(|f| did_its_part(launches, attempt, f.event)) {
        return Outcome::Stopped;
    }
    let proven = open().any(|f| stands(f) && f.worth >= Worth::Carrier);
    // An uncaught traceback ended its process, even where all that is left of it is the type that wraps another, or tells
    // what a failure elsewhere led to.
    let uncaught = |f: &Failure| {
        let last = || !goes_on(launches, attempt, f.event);
        let raw = f.traceback == Some(TracebackKind::Raw) && f.fatal;
        raw && (f.worth == Worth::Carrier || f.worth == Worth::Downstream && last())
    };
    if proven
        && open().any(|f| f.worth >= Worth::Weak || uncaught(f) || told(f) || gone(f) || is_death(catalog, launches, f))
    {
        return Outcome::Failed;
    }
    if !stops.is_empty() && !breaks_off(catalog, launches, attempt, &stops) {
        return Outcome::Stopped;
    }
    if ready::works(catalog, launches, attempt) {
        return up();
    }
    let launched = engine_speaks(catalog, launches, attempt);
    let at_work = |i| {
        let def = launches.signature(catalog, i).map(|s| &s.def);
        def.is_some_and(|d| {
            // Every command of an engine looks at the machine first, those for measuring and downloading too.
            let beyond = d.phase.as_deref() != Some("process-start") && d.program != "hub";
            d.role == Role::Launch || d.role == Role::Phase && beyond
        })
    };
    let engine = launches.of_attempt(attempt).any(at_work);
    if launched && (engine || !other()) {
        Outcome::Running
    } else {
        Outcome::NoLaunch
    }
}

/// Where NCCL says that it takes the network of sockets, in a launch of several nodes in which it had found InfiniBand or
/// RoCE devices. Whoever wants sockets switches these off, and NCCL does not look for them.
pub fn sockets_despite_ib(launches: &Launches, attempt: usize) -> Option<usize> {
    let event = |i: usize| launches.events.get(i).map(|p| &p.event);
    let says = |i: usize, name: &str| event(i).and_then(|e| e.setting(name)).map(|v| &**v);
    let any = |name: &str, wanted: &dyn Fn(&str) -> bool| {
        let mut all = launches.of_attempt(attempt);
        all.find(|&i| says(i, name).is_some_and(wanted))
    };
    let nodes = || -> BTreeSet<&Arc<str>> {
        let all = launches.processes.all().iter();
        all.filter_map(|p| p.node.as_ref()).collect()
    };
    // Nearly no log gets past the first question.
    let sockets = any("nccl_network", &|network| network == "Socket")?;
    let other = any("nccl_network", &|network| network != "Socket").is_some();
    let found = !other && any("nccl_ib_devices", &|_| true).is_some();
    let several = || nodes().len() > 1 || any("nodes", &|n| n != "1").is_some();
    (found && several()).then_some(sockets)
}

/// Whether any process is told to begin a phase after an event.
fn goes_on(launches: &Launches, attempt: usize, index: usize) -> bool {
    let now = launches.moment(index);
    let mut entries = launches.machines(attempt).iter().flat_map(Machine::entries);
    entries.any(|e| e.at.follows(now) && e.phase != "shutdown")
}

/// Whether the server answered a request after an event.
fn answers_after(catalog: &Catalog, launches: &Launches, attempt: usize, index: usize) -> bool {
    let answers = |i: &usize| launches.signature(catalog, *i).is_some_and(|s| s.def.answers);
    let mut later = launches.of_attempt(attempt).filter(|&i| i > index);
    later.any(|i| answers(&i) && !launches.of_other_servers(index, i))
}

/// Whether the logs are of nodes that do not lead, which never say that the server is ready, and their workers had done
/// all that a start asks of them.
fn did_its_part(launches: &Launches, attempt: usize, index: usize) -> bool {
    Nodes::of(launches, attempt).only_follow() && workers_are_done(launches, attempt, index)
}

/// Where the shutdown of a launch that was ready begins: with the first word of the program itself after it served.
/// Ray's daemons end after it, or one by one while the others go on.
fn shutdown(launches: &Launches, stops: &[usize], ready: &[usize]) -> Option<usize> {
    let (first, last) = (ready.first()?, ready.last()?);
    let begins = stops.iter().find(|&stop| stop > last && !by_daemon(launches, *stop));
    begins.or(stops.last().filter(|&stop| stop > first)).copied()
}

/// Whether one of Ray's daemons tells of its end.
fn by_daemon(launches: &Launches, stop: usize) -> bool {
    let teller = launches
        .events
        .get(stop)
        .map(|p| launches.processes.get(p.process).role);
    teller == Some(ProcessRole::RayDaemon)
}

/// Whether the output of the program that runs on Ray is at hand, and breaks off with nothing said of its end.
fn breaks_off(catalog: &Catalog, launches: &Launches, attempt: usize, stops: &[usize]) -> bool {
    let under_way = |i: usize| {
        let placed = launches.events.get(i)?;
        let marks = matches!(Launches::role(catalog, &placed.event)?, Role::Launch | Role::Phase);
        let role = launches.processes.get(placed.process).role;
        Some(marks && !matches!(role, ProcessRole::RayDaemon | ProcessRole::Observer))
    };
    stops.iter().all(|&stop| by_daemon(launches, stop))
        && launches.of_attempt(attempt).any(|i| under_way(i) == Some(true))
}

/// Whether any line is of a program whose launches are judged here.
fn engine_speaks(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    events(launches, attempt).any(|event| {
        let def = catalog.signature(event.signature).map(|s| &s.def);
        let launch = |d: &SignatureDef| {
            matches!(d.role, Role::Launch | Role::Phase)
                || ENGINES.contains(&d.program.as_str())
                || d.program == "torch"
        };
        def.is_some_and(launch) || is_judged(event.speaker.program)
    })
}

/// Whether a program's launches are judged here.
pub(super) fn is_judged(program: Program) -> bool {
    matches!(
        program,
        Program::Vllm | Program::Sglang | Program::Ray | Program::Nccl | Program::Torch
    )
}

fn events(launches: &Launches, attempt: usize) -> impl Iterator<Item = &Event> {
    launches.events_of(attempt).map(|placed| &placed.event)
}

/// Whether an exception arose while a package was built or installed.
fn builds(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    tracebacks(launches, attempt).any(|t| t.chain.iter().any(|e| catalog.structure().is_build(&e.frames)))
}

/// Whether all that failed is a script's call of a server, or a command of the model hub's own.
fn calls(catalog: &Catalog, launches: &Launches, failures: &[Failure]) -> bool {
    let open = || failures.iter().filter(|f| !f.survived && f.worth >= Worth::Weak);
    let call = |f: &Failure| {
        let event = launches.events.get(f.event).map(|p| &p.event.fact);
        let Some(Fact::Traceback(traceback)) = event else {
            return false;
        };
        let frames: Vec<&Frame> = traceback.chain.iter().flat_map(|e| &e.frames).collect();
        let unknown = f.cause.as_deref() == Some("unknown.exception") && !f.cut;
        Structure::is_hub_command(&frames) || unknown && catalog.structure().is_client_call(&frames)
    };
    let engine = launches.heard.iter().any(|program| is_judged(*program));
    !engine && open().next().is_some() && open().all(call)
}

/// Whether anything in the log is an engine's, Ray's or a distributed job's: a line of theirs, or their code at work.
fn of_a_launch(catalog: &Catalog, launches: &Launches, attempt: usize) -> bool {
    let at_work = |frame: &Frame| {
        matches!(
            Structure::origin(std::slice::from_ref(frame)),
            Some(Origin::Engine | Origin::ModelCode)
        )
    };
    let spoken = events(launches, attempt).any(|event| {
        let def = catalog.signature(event.signature).map(|s| &s.def);
        let marked = |d: &SignatureDef| matches!(d.role, Role::Launch | Role::Phase | Role::Ready);
        let told = |d: &SignatureDef| d.role == Role::Root && OBSERVERS.contains(&d.program.as_str());
        def.is_some_and(|d| marked(d) || told(d) || ENGINES.contains(&d.program.as_str()))
            || event.speaker.rank.is_some()
            || is_judged(event.speaker.program)
    });
    // What Ray hands on was raised in a task or an actor of a cluster.
    let handed_on = |e: &Exception| e.kind.starts_with("ray.exceptions.");
    let raised = |e: &Exception| handed_on(e) || e.frames.iter().any(at_work);
    spoken || tracebacks(launches, attempt).any(|t| t.chain.iter().any(raised))
}

fn tracebacks(launches: &Launches, attempt: usize) -> impl Iterator<Item = &Traceback> {
    events(launches, attempt).filter_map(|event| match &event.fact {
        Fact::Traceback(t) => Some(&**t),
        _ => None,
    })
}

/// Whether a failure after ready shows that the engine itself died, rather than one request or one client.
fn is_death(catalog: &Catalog, launches: &Launches, failure: &Failure) -> bool {
    let event = launches.events.get(failure.event).map(|p| &p.event);
    let signature = catalog.signature(event.and_then(|e| e.signature));
    let role = launches.processes.get(failure.process).role;
    match failure.worth {
        Worth::Line | Worth::Downstream => false,
        Worth::Carrier => {
            let fatal_exit = failure
                .exit
                .is_some_and(|e| !matches!(e, ExitStatus::Code(0) | ExitStatus::Signal(15 | 2)));
            fatal_exit || signature.is_some_and(|s| s.def.role == Role::Wrapper)
        }
        _ if is_request_to_end(failure) => false,
        // Another program's end is none of the server's.
        _ if failure.foreign => false,
        // A server prints the tracebacks of requests that fail.
        _ if failure.cut => role.is_worker_like() || role == ProcessRole::EngineCore,
        // The engine's own watchdog ends the process that it speaks of.
        _ if failure.cause.as_deref() == Some("process.watchdog") => true,
        _ if failure.traceback == Some(TracebackKind::Native) => true,
        _ if failure.exit.is_some() || signature.is_some_and(|s| s.def.role == Role::Exit) => true,
        _ if failure.traceback == Some(TracebackKind::Logged) => {
            role.is_worker_like() || role == ProcessRole::EngineCore
        }
        _ if failure.traceback == Some(TracebackKind::Raw) => role != ProcessRole::ApiServer,
        _ if failure.traceback.is_some() => role.is_worker_like() || role == ProcessRole::EngineCore,
        _ => failure.worth >= Worth::Generic,
    }
}
