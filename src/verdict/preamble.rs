//! What stands in a stream before the launch that it shows: the words of a script that prepares it.
//!
//! Owns the test whether a failure is of that script and held up nothing. Never judges what the launch itself says.

use super::failure::Failure;
use crate::catalog::schema::Role;
use crate::catalog::structure::Origin;
use crate::catalog::{self, Catalog};
use crate::event::{Fact, Program};
use crate::launch::machine::Machine;
use crate::launch::{Launches, Placed};

/// Whether the failure stands above the launch's first line, is no program's that is judged here, and would have kept
/// the launch from a step that it took afterwards: a command that was not found, a module that a probe did not find, an
/// older server that was told to end, a tool that saw no device.
pub fn outlived(catalog: &Catalog, launches: &Launches, attempt: usize, placed: &Placed, failure: &Failure) -> bool {
    let (Some(step), true) = (step(catalog, placed, failure), is_of_a_script(catalog, placed, failure)) else {
        return false;
    };
    let place = &placed.event.place;
    let mut events = launches.events_of(attempt);
    let first = events.find(|p| p.event.place.input == place.input && is_of_the_launch(catalog, p));
    let Some(first) = first.filter(|p| p.event.place.line > place.line) else {
        return false;
    };
    let node = |p: &Placed| launches.processes.get(p.process).node.clone();
    let elsewhere = node(placed).zip(node(first)).is_some_and(|(a, b)| a != b);
    let now = launches.moment(failure.event);
    let mut entries = launches.machines(attempt).iter().flat_map(Machine::entries);
    let engine = launches.engine(attempt);
    let reached = engine.tier(step);
    !elsewhere && entries.any(|e| e.at.follows(now) && e.phase != "shutdown" && engine.tier(&e.phase) > reached)
}

/// The step that a program with such a failure does not get beyond.
fn step(catalog: &Catalog, placed: &Placed, failure: &Failure) -> Option<&'static str> {
    let cause = failure.cause.as_deref()?;
    let usual = || catalog.cause(cause).and_then(|c| c.phase.as_deref());
    match catalog::family(cause) {
        "process" => Some("process-start"),
        "env" if usual() == Some("process-start") => Some("process-start"),
        "unknown" if is_inline(placed) => Some("process-start"),
        "cuda" => Some("device-init"),
        _ => None,
    }
}

/// Whether it was raised by code that a shell handed to the interpreter. So do parents start their children.
fn is_inline(placed: &Placed) -> bool {
    let Fact::Traceback(traceback) = &placed.event.fact else {
        return false;
    };
    let frames = || traceback.chain.iter().flat_map(|e| &e.frames);
    let outermost = traceback.chain.iter().filter_map(|e| e.frames.first());
    let mut files = outermost.map(|f| &*f.file);
    files.any(|file| matches!(file, "<string>" | "<stdin>"))
        && !frames().any(|f| f.file.ends_with("multiprocessing/spawn.py"))
}

/// Whether no process of a launch says it, nor an observer, who tells of others.
fn is_of_a_script(catalog: &Catalog, placed: &Placed, failure: &Failure) -> bool {
    let speaker = &placed.event.speaker;
    let signature = catalog.signature(placed.event.signature);
    let named = speaker.explicit && (speaker.label.is_some() || speaker.rank.is_some());
    let engines = matches!(failure.origin, Some(Origin::Engine | Origin::ModelCode)) && !is_inline(placed);
    !named && !engines && !is_of_a_program(speaker.program) && !signature.is_some_and(|s| s.def.tells_of_others())
}

/// Whether a launch shows in it.
fn is_of_the_launch(catalog: &Catalog, placed: &Placed) -> bool {
    let role = Launches::role(catalog, &placed.event);
    matches!(role, Some(Role::Launch | Role::Phase | Role::Ready)) || is_of_a_program(placed.event.speaker.program)
}

fn is_of_a_program(program: Program) -> bool {
    matches!(
        program,
        Program::Vllm | Program::Sglang | Program::Ray | Program::Nccl | Program::Torch
    )
}
