//! What an earlier attempt left behind on the device.
//!
//! Owns the link from a launch that finds too little free memory to the attempt before it. A process is named only where
//! a line gives its pid; without one the attempt is told of, and that nothing proves it.

use crate::launch::Launches;
use crate::launch::processes::ProcessId;
use crate::report::model::Finding;
use crate::report::text;
use crate::time::Stamp;
use crate::verdict::Verdict;

use super::facts::{Facts, GONE_BEFORE};

/// Seconds after the end of an attempt within which its processes may still be ending, or be forgotten.
const SOON: f64 = 1800.0;

/// A process of an earlier attempt that still holds memory.
pub struct Leftover {
    attempt: usize,
    pid: i64,
    label: Option<String>,
    gib: f64,
}

/// Which of the holders that the log names, by pid and GiB, are of earlier attempts.
pub fn among(launches: &Launches, verdict: &Verdict, holders: &[(i64, f64)]) -> Vec<Leftover> {
    let earlier = |&(pid, gib): &(i64, f64)| {
        let mut attempts = (0..verdict.attempt).rev();
        attempts.find_map(|attempt| {
            let active = launches.active(attempt);
            let mut own = active.iter().map(|&i| launches.processes.get(ProcessId(i)));
            let process = own.find(|p| p.pid == Some(pid))?;
            let label = process.label.as_ref().map(ToString::to_string);
            Some(Leftover {
                attempt,
                pid,
                label,
                gib,
            })
        })
    };
    holders.iter().filter_map(earlier).collect()
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
        let (n, pid, gib) = (left.attempt + 1, left.pid, left.gib);
        finding(
            "leftover.process",
            format!("A leftover process of attempt {n}, pid {pid}{label}, holds {gib:.1} GiB"),
        )
    });
    let suspected = suspected(launches, verdict).filter(|_| facts.other_holders.is_empty());
    told.chain(suspected.map(|title| finding("leftover.suspected", title)))
        .collect()
}

/// The attempt before this one, where it died shortly before on the same node with weights on the device.
fn suspected(launches: &Launches, verdict: &Verdict) -> Option<String> {
    let cause = verdict.cause.as_deref()?;
    let before = verdict
        .attempt
        .checked_sub(1)
        .filter(|_| GONE_BEFORE.contains(&cause))?;
    let root = verdict.failures.get(verdict.root?)?;
    let node = &launches.processes.get(root.process).node;
    let here = |&i: &usize| {
        let process = launches.events.get(i).map(|p| launches.processes.get(p.process));
        process.is_some_and(|p| node.is_none() || p.node.is_none() || p.node == *node)
    };
    let engine = launches.engine(before);
    let holds = |phase: &str| engine.tier(phase) >= engine.tier("weight-load");
    let machines = launches.machines(before).iter().zip(launches.processes.all());
    let mut loaded = machines.filter(|(_, p)| p.node == *node || node.is_none() || p.node.is_none());
    if !loaded.any(|(machine, _)| machine.last().is_some_and(holds)) {
        return None;
    }
    let stamp = |i: usize| launches.events.get(i)?.event.place.time.as_ref();
    let ended: Option<&Stamp> = launches.of_attempt(before).filter(here).filter_map(stamp).last();
    let begun: Option<&Stamp> = launches.of_attempt(verdict.attempt).filter(here).find_map(stamp);
    let between = ended.zip(begun).and_then(|(a, b)| b.seconds_since(a));
    if between.is_some_and(|s| !(0.0..SOON).contains(&s)) {
        return None;
    }
    let when = between.map_or_else(String::new, |s| format!(" {} before this one began", text::seconds(s)));
    let place = node.as_ref().map_or_else(String::new, |n| format!(" on {n}"));
    Some(format!(
        "Attempt {} died{place}{when}, with weights on the GPU: a process of it that lives on would hold what is missing \
         now; no line proves it",
        before + 1
    ))
}
