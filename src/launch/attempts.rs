//! Where one launch ends and the next begins.
//!
//! Owns the splitting of restarts. A launch line is a restart only when the launch before it got somewhere or failed
//! and its processes are not heard again; two servers side by side are one attempt. The parts of a rotated log, and the
//! two streams of one program, are one output.

use std::collections::HashMap;
use std::sync::Arc;

use super::files::output;
use super::processes::{ProcessId, Processes};
use super::{Placed, Source};
use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Fact, InputId, TracebackKind};

/// Events of an earlier process that may still trail behind a restart (buffered output of the dying one).
const TRAILING: usize = 12;

/// Writes the attempt into every event and gives the number of attempts.
pub fn split(catalog: &Catalog, sources: &[Arc<Source>], processes: &Processes, events: &mut [Placed]) -> usize {
    let names: HashMap<InputId, String> = sources.iter().map(|s| (s.input, output(&s.name))).collect();
    let mut per_output: HashMap<Option<&str>, Vec<usize>> = HashMap::new();
    for (i, placed) in events.iter().enumerate() {
        let name = names.get(&placed.event.place.input).map(String::as_str);
        per_output.entry(name).or_default().push(i);
    }
    let outputs: Vec<Vec<usize>> = per_output.into_values().collect();
    let boundaries: Vec<Vec<usize>> = outputs
        .iter()
        .map(|own| boundaries(catalog, processes, events, own))
        .collect();
    let attempts = boundaries.iter().map(Vec::len).max().unwrap_or(0) + 1;
    for (own, starts) in outputs.iter().zip(&boundaries) {
        // A source with fewer launches than another joined late: its last launch is the last attempt.
        let offset = attempts - 1 - starts.len();
        for &index in own {
            let passed = starts.partition_point(|&start| start <= index);
            let lone = starts.is_empty() && attempts > 1;
            if let Some(placed) = events.get_mut(index) {
                placed.attempt = if lone { attempts - 1 } else { passed + offset };
            }
        }
    }
    attempts
}

/// The events of one output at which a new attempt begins; the first launch is no boundary.
fn boundaries(catalog: &Catalog, processes: &Processes, events: &[Placed], own: &[usize]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut current: Option<Started> = None;
    let mut to_come: HashMap<ProcessId, usize> = HashMap::new();
    for placed in own.iter().filter_map(|&index| events.get(index)) {
        *to_come.entry(placed.process).or_default() += 1;
    }
    for &index in own {
        let Some(placed) = events.get(index) else { continue };
        to_come.entry(placed.process).and_modify(|n| *n -= 1);
        let role = catalog
            .signature(placed.event.signature)
            .map(|s| (s.def.role, s.def.program.as_str()));
        if let Some((Role::Launch, program)) = role {
            if program == "nccl" || program == "torch" {
                current.get_or_insert_with(|| Started::new(placed.process, program));
                continue;
            }
            match &current {
                // The bare NCCL start of an engine launch is not a launch of its own.
                Some(started) if started.progressed && started.engine => {
                    let old = started.process;
                    let other = old != placed.process && processes.get(old).explicit;
                    let heard = to_come.get(&old).copied().unwrap_or(0);
                    if !other || heard <= TRAILING {
                        starts.push(index);
                        current = Some(Started::new(placed.process, program));
                    }
                }
                Some(started) if started.engine => {}
                _ => current = Some(Started::new(placed.process, program)),
            }
        } else if let Some(started) = &mut current {
            started.progressed |= match role.map(|r| r.0) {
                Some(Role::Phase) => far(catalog, placed),
                Some(Role::Ready | Role::Stop | Role::Wrapper | Role::Exit | Role::Root) => true,
                _ => is_failure(&placed.event.fact),
            };
        }
    }
    starts
}

struct Started {
    process: ProcessId,
    engine: bool,
    progressed: bool,
}

impl Started {
    fn new(process: ProcessId, program: &str) -> Self {
        Self {
            process,
            engine: !matches!(program, "nccl" | "torch"),
            progressed: false,
        }
    }
}

/// Phases beyond reading the configuration show that the launch was under way.
fn far(catalog: &Catalog, placed: &Placed) -> bool {
    let phase = catalog
        .signature(placed.event.signature)
        .and_then(|s| s.def.phase.as_deref());
    !matches!(phase, None | Some("process-start" | "config"))
}

fn is_failure(fact: &Fact) -> bool {
    matches!(fact, Fact::Traceback(t) if t.kind != TracebackKind::Ignored)
}
