//! What an earlier attempt left behind on the device.
//!
//! Owns the link from a launch that finds too little free memory to the attempts before it. A process is named only where
//! a line gives its pid, as a listing of the device or a supervisor's line does; without one the attempt is told of, and
//! that nothing proves it.

use crate::launch::Launches;
use crate::launch::processes::{ProcessId, ProcessRole};
use crate::report::model::Finding;
use crate::report::text;
use crate::time::Stamp;
use crate::verdict::Verdict;

use super::facts::{Facts, GONE_BEFORE};

/// Seconds after the end of an attempt within which its processes may still be ending, or be forgotten.
const SOON: f64 = 1800.0;

/// The setting by which a supervisor's line on a process that is left names its unit.
pub(super) const UNIT: &str = "leftover_unit";

/// A process of an earlier attempt that is still there.
pub struct Leftover {
    attempt: usize,
    /// Its pid.
    pub pid: i64,
    label: Option<String>,
    /// How much it holds, where a line says so.
    gib: Option<f64>,
}

/// Which of the holders that the log names, by pid and GiB, are of earlier attempts, and which processes of theirs a
/// supervisor found.
pub fn among(launches: &Launches, verdict: &Verdict, holders: &[(i64, f64)]) -> Vec<Leftover> {
    let held = holders.iter().map(|&(pid, gib)| (pid, Some(gib)));
    let gone_before = verdict
        .cause
        .as_deref()
        .is_some_and(|cause| GONE_BEFORE.contains(&cause));
    let found = found(launches, verdict).into_iter().filter(|_| gone_before);
    let found = found.filter(|pid| holders.iter().all(|(held, _)| held != pid));
    let earlier = |(pid, gib): (i64, Option<f64>)| {
        let mut attempts = (0..verdict.attempt).rev();
        attempts.find_map(|attempt| {
            let active = launches.active(attempt);
            let mut own = active.iter().map(|&i| launches.processes.get(ProcessId(i)));
            let process = own.find(|p| p.pid == Some(pid) && p.role != ProcessRole::Observer)?;
            let label = process.label.as_ref().map(ToString::to_string);
            Some(Leftover {
                attempt,
                pid,
                label,
                gib,
            })
        })
    };
    held.chain(found.map(|pid| (pid, None))).filter_map(earlier).collect()
}

/// The pids that a supervisor names as left when the attempt before ended, or when this one began.
fn found(launches: &Launches, verdict: &Verdict) -> Vec<i64> {
    let mut pids: Vec<i64> = Vec::new();
    for (_, pid) in told_by_supervisor(launches, verdict) {
        pids.extend(pid.filter(|pid| !pids.contains(pid)));
    }
    pids
}

/// The unit of which a supervisor names such processes.
pub fn unit(launches: &Launches, verdict: &Verdict) -> Option<String> {
    let unit = told_by_supervisor(launches, verdict).next()?.0;
    Some(unit.to_owned())
}

fn told_by_supervisor<'l>(launches: &'l Launches, verdict: &Verdict) -> impl Iterator<Item = (&'l str, Option<i64>)> {
    let attempts = verdict.attempt.saturating_sub(1)..=verdict.attempt;
    let events = attempts.flat_map(|attempt| launches.events_of(attempt));
    events.filter_map(|placed| Some((&**placed.event.setting(UNIT)?, placed.event.victim.pid)))
}

/// The findings.
pub fn tell(launches: &Launches, verdict: &Verdict, facts: &Facts) -> Vec<Finding> {
    let finding = |id: &str, title: String| Finding {
        id: id.to_owned(),
        title,
        severity: "warning".to_owned(),
        evidence: vec![0],
    };
    let known = among(launches, verdict, &facts.other_holders);
    let told = known.iter().map(|left| {
        let label = left.label.as_ref().map_or_else(String::new, |l| format!(" ({l})"));
        let (n, pid) = (left.attempt + 1, left.pid);
        let does = match left.gib {
            Some(gib) => format!("holds {gib:.1} GiB"),
            None => "still ran when this one was started, as its supervisor says".to_owned(),
        };
        finding(
            "leftover.process",
            format!("A leftover process of attempt {n}, pid {pid}{label}, {does}"),
        )
    });
    let suspected = suspected(launches, verdict).filter(|_| facts.other_holders.is_empty() && known.is_empty());
    told.chain(suspected.map(|title| finding("leftover.suspected", title)))
        .collect()
}

/// The last attempt before this one that had weights on the device, where it died on the same node shortly before the
/// next was started: those in between found the device as full.
fn suspected(launches: &Launches, verdict: &Verdict) -> Option<String> {
    let cause = verdict.cause.as_deref()?;
    let root = verdict
        .failures
        .get(verdict.root?)
        .filter(|_| GONE_BEFORE.contains(&cause))?;
    let node = &launches.processes.get(root.process).node;
    let here = |&i: &usize| {
        let process = launches.events.get(i).map(|p| launches.processes.get(p.process));
        // A supervisor's lines stand between two attempts.
        process
            .is_some_and(|p| p.role != ProcessRole::Observer && (node.is_none() || p.node.is_none() || p.node == *node))
    };
    let loaded = |attempt: &usize| {
        let engine = launches.engine(*attempt);
        let holds = |phase: &str| engine.tier(phase) >= engine.tier("weight-load");
        let machines = launches.machines(*attempt).iter().zip(launches.processes.all());
        let mut own = machines.filter(|(_, p)| p.node == *node || node.is_none() || p.node.is_none());
        own.any(|(machine, _)| machine.last().is_some_and(holds))
    };
    let before = (0..verdict.attempt).rev().find(loaded)?;
    let next = before + 1;
    let stamp = |i: usize| launches.events.get(i)?.event.place.time.as_ref();
    let ended: Option<&Stamp> = launches.of_attempt(before).filter(here).filter_map(stamp).last();
    let begun: Option<&Stamp> = launches.of_attempt(next).filter(here).find_map(stamp);
    let between = ended.zip(begun).and_then(|(a, b)| b.seconds_since(a));
    if between.is_some_and(|s| !(0.0..SOON).contains(&s)) {
        return None;
    }
    let one = match next == verdict.attempt {
        true => "this one".to_owned(),
        false => format!("attempt {}", next + 1),
    };
    let when = between.map_or_else(String::new, |s| format!(" {} before {one} began", text::seconds(s)));
    let place = node.as_ref().map_or_else(String::new, |n| format!(" on {n}"));
    Some(format!(
        "Attempt {} died{place}{when}, with weights on the GPU: a process of it that lives on would hold what is missing \
         now; no line proves it",
        before + 1
    ))
}
