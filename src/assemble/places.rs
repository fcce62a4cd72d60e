//! Places, processes and the timeline in the report's words.
//!
//! Owns the mapping of ids to names. Never chooses evidence.

use crate::event::{Coords, ExitStatus};
use crate::launch::Launches;
use crate::launch::files::file_of;
use crate::launch::processes::{Process as Proc, ProcessId};
use crate::report::model::{CoordsReport, PlaceReport, Process, TimelineEntry};
use crate::time::Stamp;
use crate::verdict::Verdict;
use crate::verdict::failure::Failure;
use crate::verdict::phase::PhaseBasis;

/// Processes listed in a report at most.
const MAX_PROCESSES: usize = 1024;
/// Timeline entries in a report at most.
const MAX_TIMELINE: usize = 400;

/// Names of inputs and processes.
pub struct Names<'a> {
    /// Names of the inputs.
    pub inputs: &'a [String],
    /// The launches.
    pub launches: &'a Launches,
}

impl Names<'_> {
    /// The name of an input.
    pub fn input(&self, id: crate::event::InputId) -> String {
        self.inputs
            .get(id.0 as usize)
            .cloned()
            .unwrap_or_else(|| "-".to_owned())
    }

    /// Where an event stands, in words: `line 11`, and of which file where there are several.
    pub fn stands_at(&self, event: usize) -> String {
        let place = self.launches.events.get(event).map(|placed| &placed.event.place);
        place.map_or_else(String::new, |place| self.line_of(place.input, place.line))
    }

    /// The same of a line.
    pub fn line_of(&self, input: crate::event::InputId, line: u64) -> String {
        if self.inputs.len() < 2 {
            return format!("line {line}");
        }
        let name = self.input(input);
        let file = file_of(&name);
        let alone = self.inputs.iter().filter(|other| file_of(other) == file).count() == 1;
        format!("line {line} of {}", if alone { file } else { &name })
    }

    /// The place of an event, told of `process`.
    pub fn place(&self, event: usize, process: ProcessId) -> PlaceReport {
        let Some(placed) = self.launches.events.get(event) else {
            return PlaceReport::default();
        };
        let place = &placed.event.place;
        let who = self.launches.processes.get(process);
        let own = place.own_stamp();
        let above = place.time.as_ref().filter(|_| !place.own_time);
        PlaceReport {
            input: self.input(place.input),
            line: place.line,
            byte: place.byte,
            time: own.and_then(Stamp::rfc3339),
            time_local: own.map(Stamp::printed),
            time_after: above.map(Stamp::printed),
            process: Some(who.id.clone()),
            attribution: self.attribution(placed.process, process).to_owned(),
            rank: who.rank,
            coords: coords(&who.coords),
            node: self.launches.node(event, process).map(ToString::to_string),
            text: place.text.to_string(),
        }
    }

    fn attribution(&self, teller: ProcessId, process: ProcessId) -> &'static str {
        let who = self.launches.processes.get(teller);
        let others = self.launches.processes.all().iter().any(|p| p.explicit);
        if teller != process || who.explicit {
            "prefix"
        } else if who.by_file || !others {
            "file"
        } else {
            "none"
        }
    }

    /// The phase in which a process was last. What one of its group says of the phase they are in together counts for the
    /// root too.
    pub fn last_phase(&self, verdict: &Verdict, process: ProcessId) -> Option<String> {
        let root = verdict.root.and_then(|root| verdict.failures.get(root));
        let died = root
            .filter(|root| root.process == process)
            .and(verdict.phase.as_deref());
        let engine = self.launches.engine(verdict.attempt);
        let own = || self.launches.machine(verdict.attempt, process)?.last();
        // What it was at when it raised something shows how far it had come, too.
        let raised = verdict.failures.iter().filter(|f| f.process == process && !f.survived);
        let raised = raised.filter(|f| f.phase_basis == PhaseBasis::Frame);
        let raised = raised.filter_map(|f| f.phase.as_deref());
        let furthest = || own().into_iter().chain(raised).max_by_key(|phase| engine.tier(phase));
        died.or_else(furthest).map(ToOwned::to_owned)
    }

    /// The processes of the report: all that did anything, at most a thousand.
    pub fn processes(&self, verdict: &Verdict) -> Vec<Process> {
        let active = self.launches.active(verdict.attempt);
        let all = self
            .launches
            .processes
            .all()
            .iter()
            .enumerate()
            .filter(|(i, p)| !p.absorbed && active.contains(i))
            .take(MAX_PROCESSES);
        all.map(|(i, p)| {
            let told = verdict
                .failures
                .iter()
                .filter(|f| f.process.0 == i)
                .find_map(Failure::end);
            Process {
                id: p.id.clone(),
                role: p.role.id().to_owned(),
                rank: p.rank,
                coords: coords(&p.coords),
                node: self.launches.processes.node(ProcessId(i)).map(ToString::to_string),
                pid: p.pid,
                last_phase: self.last_phase(verdict, ProcessId(i)),
                exit: told.and_then(exit_text),
            }
        })
        .collect()
    }

    /// The path through the phases: the root's process and, where it has none, those of the others.
    pub fn timeline(&self, verdict: &Verdict) -> Vec<TimelineEntry> {
        let mut entries: Vec<(usize, &Proc, &str)> = Vec::new();
        for (machine, process) in self
            .launches
            .machines(verdict.attempt)
            .iter()
            .zip(self.launches.processes.all())
        {
            entries.extend(
                machine
                    .entries()
                    .iter()
                    .map(|e| (e.at.index, process, e.phase.as_str())),
            );
        }
        entries.sort_by_key(|(event, _, _)| *event);
        let place = |event: usize| self.launches.events.get(event).map(|p| &p.event.place);
        // What stood before the launch was there at its start.
        let start = self.launches.start(verdict.attempt);
        let since = |event: usize| self.launches.seconds_between(start?, event).map(|s| s.max(0.0));
        entries
            .into_iter()
            .take(MAX_TIMELINE)
            .filter_map(|(event, process, phase)| {
                let place = place(event)?;
                Some(TimelineEntry {
                    process: process.id.clone(),
                    phase: phase.to_owned(),
                    input: self.input(place.input),
                    line: place.line,
                    time: place.own_stamp().and_then(Stamp::rfc3339),
                    seconds: since(event),
                })
            })
            .collect()
    }
}

/// Coordinates for the report.
pub fn coords(coords: &Coords) -> CoordsReport {
    CoordsReport {
        dp: coords.dp,
        pp: coords.pp,
        tp: coords.tp,
        ep: coords.ep,
        local: coords.local,
    }
}

/// An exit status in words.
pub fn exit_text(status: ExitStatus) -> Option<String> {
    match status {
        ExitStatus::Code(code) => Some(format!("exit {code}")),
        ExitStatus::Signal(signal) => Some(format!("signal {signal}")),
        ExitStatus::Gone => None,
    }
}
