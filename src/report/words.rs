//! Phrases that the views share: who, where, how far, how sure.
//!
//! Owns wording that is computed from several fields. Returns clean text and knows no format.

use std::collections::{BTreeSet, HashMap};

use super::model::{
    Attempt, Change, Outcome, Overruled, Patch, PlaceReport, Process, ProcessRow, Remedy, Report, SkippedReport,
    TimelineEntry,
};
use super::text::{self, safe};

/// Columns quoted of advice in the log.
const ADVICE_WIDTH: usize = 120;

/// Frames shown of an exception.
const FRAMES: usize = 3;

/// The phase of an orderly end.
const SHUTDOWN: &str = "shutdown";

/// The engine as people write it, `vLLM 0.25.1`.
pub fn engine(report: &Report) -> Option<String> {
    let name = match report.engine.name.as_deref()? {
        "vllm" => "vLLM",
        "sglang" => "SGLang",
        "ray" => "Ray",
        "torch" => "PyTorch",
        "nccl" => "NCCL",
        other => other,
    };
    let version = report
        .engine
        .version
        .as_deref()
        .map(|v| format!(" {v}"))
        .unwrap_or_default();
    Some(safe(&format!("{name}{version}")).into_owned())
}

/// Outcome and phase, `failed in graph-capture`.
pub fn outcome(report: &Report) -> String {
    let outcome = report.outcome.id();
    let phase = report.phase.as_deref().map(safe);
    match (report.outcome, phase) {
        (Outcome::Failed | Outcome::Running, Some(phase)) => format!("{outcome} in {phase}"),
        (_, Some(phase)) if phase != "serving" => format!("{outcome}, {phase}"),
        _ => outcome.to_owned(),
    }
}

/// Who stands behind a place: `rank 1 (Worker_TP1 pid=311) on node-b`, as much of it as is known.
pub fn who(place: &PlaceReport) -> Option<String> {
    compose(place.rank, place.process.as_deref(), place.node.as_deref())
}

/// The same of a process.
pub fn process(process: &Process) -> String {
    compose(process.rank, Some(&process.id), process.node.as_deref()).unwrap_or_default()
}

fn compose(rank: Option<u32>, id: Option<&str>, node: Option<&str>) -> Option<String> {
    let id = id.map(safe).filter(|id| !id.is_empty());
    let node = node
        .map(safe)
        .filter(|node| id.as_deref().is_none_or(|id| !id.contains(&**node)));
    let mut out = match (rank, id) {
        (Some(rank), Some(id)) if id.contains(&format!("rank {rank}")) => id.into_owned(),
        (Some(rank), Some(id)) => format!("rank {rank} ({id})"),
        (Some(rank), None) => format!("rank {rank}"),
        (None, Some(id)) => id.into_owned(),
        (None, None) => return node.map(|node| format!("a process on {node}")),
    };
    if let Some(node) = node {
        out.push_str(" on ");
        out.push_str(&node);
    }
    Some(out)
}

/// `very likely (87 %)`.
pub fn confidence(confidence: f64) -> String {
    format!("{} ({})", text::likelihood(confidence), text::percent(confidence))
}

/// `--gpu-memory-utilization 0.90 → 0.87`; a command stands by itself.
fn change(change: &Change) -> String {
    let name = safe(&change.name).into_owned();
    match (change.from.as_deref().map(safe), change.to.as_deref().map(safe)) {
        (Some(from), Some(to)) => format!("{name} {from} → {to}"),
        (None, Some(to)) => format!("{name} {to}"),
        (Some(from), None) => format!("{name}, now {from}"),
        (None, None) => name,
    }
}

/// An input without the folders that all inputs of the report share.
fn short_input(report: &Report, input: &str) -> String {
    let folder = |path: &str| path.rfind('/').map_or(0, |at| at + 1);
    let shared = report.evidence.iter().fold(folder(input), |len, e| {
        let same = e
            .place
            .input
            .bytes()
            .zip(input.bytes())
            .take(len)
            .take_while(|(a, b)| a == b)
            .count();
        folder(input.get(..same).unwrap_or_default())
    });
    safe(input.get(shared..).unwrap_or(input)).into_owned()
}

/// `line 12`; where the report is on several files, of which one.
pub fn line_of(report: &Report, input: &str, line: u64) -> String {
    match report.examined.files {
        0 | 1 => format!("line {line}"),
        _ => format!("line {line} of {}", short_input(report, input)),
    }
}

/// A source file without the folder that Python packages are installed in.
fn short_file(path: &str) -> &str {
    ["site-packages/", "dist-packages/"]
        .iter()
        .find_map(|folder| path.split_once(folder).map(|(_, rest)| rest))
        .unwrap_or(path)
}

/// The remedy that belongs together with this one, by its number.
pub fn pair(report: &Report, remedy: &Remedy) -> Option<String> {
    let other = remedy.pair_with.as_deref()?;
    let found = report.remedies.iter().find(|remedy| remedy.id == other)?;
    Some(format!("remedy {}", found.rank))
}

/// The root's exception: its text, then where it was raised, innermost first, then what was raised from it.
pub fn exception(report: &Report) -> Option<(String, Vec<String>)> {
    let exception = report.exception.as_ref().filter(|e| !e.kind.is_empty())?;
    let first = exception.message.lines().next().unwrap_or_default();
    let mut told: Vec<String> = exception
        .frames
        .iter()
        .rev()
        .take(FRAMES)
        .map(|frame| {
            safe(&format!(
                "in {}, {}:{}",
                frame.function,
                short_file(&frame.file),
                frame.line
            ))
            .into_owned()
        })
        .collect();
    let outer: Vec<&str> = exception
        .chain
        .iter()
        .map(String::as_str)
        .filter(|kind| *kind != exception.kind)
        .collect();
    if !outer.is_empty() {
        told.push(format!("raised again as {}", safe(&outer.join(", then "))));
    }
    Some((safe(&format!("{}: {first}", exception.kind)).into_owned(), told))
}

/// Rows of figures and of the memory account, name and value. A quantity told in several units is one row.
pub fn figures(report: &Report) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let has = |name: &str| report.figures.contains_key(name);
    for (name, value) in &report.figures {
        let told_better = name
            .strip_suffix("_bytes")
            .is_some_and(|stem| has(&format!("{stem}_gib")))
            || name
                .strip_suffix("_percent")
                .is_some_and(|stem| has(&format!("{stem}_fraction")));
        if told_better {
            continue;
        }
        let (name, value) = text::figure(name, *value);
        match rows.last_mut() {
            // The share of a whole comes behind the amount.
            Some((last, told)) if *last == name && told.ends_with('%') => *told = format!("{value}, {told}"),
            Some((last, told)) if *last == name => told.push_str(&format!(", {value}")),
            _ => rows.push((name, value)),
        }
    }
    let Some(memory) = &report.memory else { return rows };
    let pool = [
        ("total", memory.total_gib),
        ("free at start", memory.free_at_start_gib),
        ("requested", memory.requested_gib),
    ];
    let holders = memory
        .holders
        .iter()
        .map(|holder| (holder.what.as_str(), Some(holder.gib)));
    for (what, gib) in pool
        .into_iter()
        .chain(holders)
        .chain([("short by", memory.short_by_gib)])
    {
        if let Some(gib) = gib {
            let pool = if memory.pool == "gpu" {
                "GPU"
            } else {
                memory.pool.as_str()
            };
            let name = safe(&format!("{pool} memory: {what}")).into_owned();
            rows.push((name, text::figure("_gib", gib).1));
        }
    }
    rows
}

/// Advice of the log that is wrong, cut to what can be read at a glance.
pub fn overruled(wrong: &Overruled) -> String {
    text::clip(&safe(&wrong.text), ADVICE_WIDTH).into_owned()
}

/// What a remedy sets, and what it runs.
pub fn changes(remedy: &Remedy) -> (Vec<String>, Vec<String>) {
    let told = |commands: bool| {
        let chosen = remedy
            .change
            .iter()
            .filter(|change| (change.kind == "command") == commands);
        chosen.map(change).collect()
    };
    (told(false), told(true))
}

/// The lines of a patch.
pub fn paste(patch: &Patch) -> Vec<String> {
    patch.text.lines().map(|line| safe(line).into_owned()).collect()
}

/// Step on the way of the launch.
pub struct Step {
    /// The phase entered.
    pub phase: String,
    /// Seconds since the start.
    pub seconds: Option<f64>,
}

/// The way of the launch as the process of the root went it. What came before that process was born is told by
/// the processes that were there; what an engine prints on one rank only is told by its peers. A failed launch
/// ends in the phase of its death.
pub fn path(report: &Report) -> Vec<Step> {
    let root = report.root.as_ref().and_then(|root| root.place.process.as_deref());
    let furthest = || report.timeline.last().map(|entry| entry.process.as_str());
    let of_root = |id: &&str| report.timeline.iter().any(|entry| entry.process == *id);
    let Some(main) = root.filter(of_root).or_else(furthest) else {
        return Vec::new();
    };
    let role = |id: &str| report.processes.iter().find(|p| p.id == id).map(|p| p.role.as_str());
    let peer = |id: &str| id == main || (role(main).is_some() && role(id) == role(main));
    let born = report
        .timeline
        .iter()
        .position(|entry| entry.process == main)
        .unwrap_or(0);
    // A launch that failed got no further by what its survivors still did, nor by the orderly end of all.
    let death = report
        .launch
        .seconds_to_death
        .filter(|_| report.outcome == Outcome::Failed);
    let outlives = |entry: &TimelineEntry| {
        let ended = report.outcome == Outcome::Failed && entry.phase == SHUTDOWN;
        let after = entry.seconds.zip(death).is_some_and(|(at, death)| at > death);
        ended && report.phase.as_deref() != Some(SHUTDOWN) || after && root != Some(entry.process.as_str())
    };
    let mut steps: Vec<Step> = Vec::new();
    for (n, entry) in report.timeline.iter().enumerate().filter(|(_, entry)| !outlives(entry)) {
        if (n < born || peer(&entry.process)) && steps.iter().all(|step| step.phase != entry.phase) {
            steps.push(Step {
                phase: safe(&entry.phase).into_owned(),
                seconds: entry.seconds,
            });
        }
    }
    if let Some(death) = report.phase.as_deref().filter(|_| report.outcome == Outcome::Failed) {
        match steps.iter().position(|step| step.phase == death) {
            Some(at) => steps.truncate(at + 1),
            None => steps.push(Step {
                phase: safe(death).into_owned(),
                seconds: None,
            }),
        }
    }
    steps
}

/// The path in one line; the last step of a failed launch is marked.
pub fn path_line(report: &Report) -> String {
    let steps = path(report);
    let told: Vec<String> = steps
        .iter()
        .map(|step| {
            let at = step.seconds.map(|s| format!(" {}", text::seconds(s)));
            step.phase.clone() + &at.unwrap_or_default()
        })
        .collect();
    let dead = if steps.is_empty() || report.outcome != Outcome::Failed {
        ""
    } else {
        " ✗"
    };
    told.join(" → ") + dead
}

/// What became of each process, symmetric ones together: who, the last phase, the first failure with its place, the
/// end. What is not known is empty.
pub fn processes(report: &Report) -> Vec<[String; 4]> {
    let row = |row: &ProcessRow| {
        let node = row.nodes.as_deref().filter(|n| !row.who.contains(*n));
        let who = format!("{}{}", row.who, node.map_or_else(String::new, |n| format!(" on {n}")));
        let what = if row.victim {
            Some("root cause")
        } else if row.same {
            Some("the same failure")
        } else {
            row.said.as_deref()
        };
        let place = row
            .line
            .zip(row.input.as_deref())
            .map(|(line, input)| match report.examined.files {
                0 | 1 => format!("line {}", text::count(line)),
                _ => format!("{}:{line}", short_input(report, input)),
            });
        let when = row.when.as_deref().map(|when| format!(" {when}"));
        let first = what.map_or_else(String::new, |what| {
            let place = place.map_or_else(String::new, |p| format!(" ({p}{})", when.unwrap_or_default()));
            format!("{what}{place}")
        });
        let clean = |text: &str| safe(text).into_owned();
        [
            clean(&who),
            clean(row.last_phase.as_deref().unwrap_or_default()),
            clean(&first),
            clean(row.exit.as_deref().unwrap_or_default()),
        ]
    };
    report.rows.iter().map(row).collect()
}

/// The same, one phrase for each row.
pub fn process_lines(report: &Report) -> Vec<String> {
    let told = |[who, phase, first, exit]: &[String; 4]| {
        let parts = [(phase, "last in "), (first, ""), (exit, "ended with ")];
        let told: Vec<String> = parts
            .iter()
            .filter(|(part, _)| !part.is_empty())
            .map(|(part, lead)| format!("{lead}{part}"))
            .collect();
        format!("{who} – {}", told.join(", "))
    };
    processes(report).iter().map(told).collect()
}

/// The attempts in a few words, where there was more than one: `attempt 3 of 3, all failed in weight-load`.
pub fn attempts(report: &Report) -> Option<String> {
    let all = report.attempts.as_slice();
    if all.len() < 2 {
        return None;
    }
    let failed: Vec<&Attempt> = all.iter().filter(|a| a.outcome == Outcome::Failed).collect();
    let phases: BTreeSet<Option<&str>> = failed.iter().map(|a| a.phase.as_deref()).collect();
    let place = match phases.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(phase)] => format!(" in {}", safe(phase)),
        _ => String::new(),
    };
    let told = match (failed.len(), all.len()) {
        (0, _) => "none failed".to_owned(),
        (2, 2) => format!("both failed{place}"),
        (n, all) if n == all => format!("all failed{place}"),
        (n, _) => format!("{n} failed{place}"),
    };
    Some(format!("attempt {} of {}, {told}", report.attempt, all.len()))
}

/// One attempt, `#1 lines 1–400: failed in graph-capture, gpu-oom.graph-capture`; with its input where there are several.
pub fn attempt(report: &Report, attempt: &Attempt) -> String {
    let input = attempt.input.as_deref().filter(|_| report.examined.files > 1);
    let input = input.map_or_else(String::new, |input| format!("{} ", safe(&short_input(report, input))));
    let phase = attempt
        .phase
        .as_deref()
        .map(|p| format!(" in {}", safe(p)))
        .unwrap_or_default();
    let cause = attempt
        .cause
        .as_deref()
        .map(|c| format!(", {}", safe(c)))
        .unwrap_or_default();
    format!(
        "#{} {input}lines {}–{}: {}{phase}{cause}",
        attempt.n,
        text::count(attempt.first_line),
        text::count(attempt.last_line),
        attempt.outcome.id(),
    )
}

/// What the log itself lacks, one phrase each.
pub fn gaps(report: &Report) -> Vec<String> {
    let mut out = Vec::new();
    if report.log.head.as_deref() == Some("cut") {
        out.push("The log begins in the middle of the launch.".to_owned());
    }
    match report.log.tail.as_deref() {
        Some("cut") => out.push("The log stops before the launch ends.".to_owned()),
        Some("mid-line") => out.push("The log stops in the middle of a line.".to_owned()),
        _ => {}
    }
    if !report.log.missing.is_empty() {
        let missing: Vec<_> = report.log.missing.iter().map(|who| safe(who)).collect();
        out.push(format!("Nothing was heard from: {}.", missing.join(", ")));
    }
    out
}

/// The verdict on starting the same launch again.
pub fn retry(report: &Report) -> Option<String> {
    let verdict = match report.retry.verdict.as_str() {
        "pointless" => "Started again unchanged, it ends the same way.",
        "after-change" => "Starting it again helps only after a change.",
        "may-help" => "Starting it again unchanged may help.",
        _ => return None,
    };
    let mut out = verdict.to_owned();
    let after = report
        .retry
        .after
        .as_deref()
        .map(|after| format!("First: {}.", after.trim_end_matches('.')));
    let node = match report.retry.same_node {
        Some(false) => Some("Not on the same node.".to_owned()),
        _ => None,
    };
    for part in [Some(report.retry.why.clone()), after, node].into_iter().flatten() {
        if !part.is_empty() {
            out.push(' ');
            out.push_str(&safe(&part));
        }
    }
    Some(out)
}

/// Who can act, in words.
pub fn actor(report: &Report) -> String {
    let who = match report.owner.as_str() {
        "launch-config" => "whoever sets the launch's options",
        "node" => "whoever runs the node",
        "cluster" => "whoever runs the cluster",
        "network" => "whoever runs the network",
        "image" => "whoever builds the image",
        "model" => "whoever provides the model",
        "engine-bug" => "the engine's developers",
        "external" => "whoever runs the outside service that the launch needs",
        other => other,
    };
    safe(who).into_owned()
}

/// The same as a sentence, where it is known.
pub fn owner(report: &Report) -> Option<String> {
    let known = !matches!(report.owner.as_str(), "" | "unknown");
    known.then(|| format!("Who can act: {}.", actor(report)))
}

/// The level of redaction, for the first lines of a view.
pub fn redaction(report: &Report) -> Option<String> {
    let redaction = report.redaction.as_ref()?;
    Some(format!("redacted: {}", safe(&redaction.level)))
}

/// What redaction replaced, in a sentence.
pub fn replaced(report: &Report) -> Option<String> {
    let redaction = report.redaction.as_ref()?;
    let replaced: Vec<String> = redaction
        .replaced
        .iter()
        .map(|r| {
            let one = match r.kind.as_str() {
                "node" => "host name",
                "ip" => "IP address",
                "mac" => "MAC address",
                "user" => "user name",
                "email" => "e-mail address",
                "bucket" => "bucket name",
                "path" => "home path",
                "model" => "model name",
                "custom" => "custom match",
                other => other,
            };
            text::plural(r.values, one)
        })
        .collect();
    let told = match replaced.as_slice() {
        [] => "nothing was found to replace".to_owned(),
        told => format!("{} replaced", told.join(", ")),
    };
    Some(safe(&format!("Redacted ({}): {told}.", redaction.level)).into_owned())
}

/// Inputs left out for one reason that are named each with its own words.
const FEW_SKIPPED: usize = 3;

/// The inputs that were left out. Many of one kind are told as one: a folder may hold thousands.
fn not_read(skipped: &[SkippedReport]) -> String {
    // What stands behind a colon is of the single input.
    let kind = |s: &'_ SkippedReport| s.why.split(": ").next().unwrap_or_default().to_owned();
    let mut kinds: Vec<(String, Vec<&SkippedReport>)> = Vec::new();
    let mut of: HashMap<String, usize> = HashMap::new();
    for one in skipped {
        let at = *of.entry(kind(one)).or_insert(kinds.len());
        match kinds.get_mut(at) {
            Some((_, all)) => all.push(one),
            None => kinds.push((kind(one), vec![one])),
        }
    }
    let mut out = String::new();
    for (kind, all) in kinds {
        if all.len() <= FEW_SKIPPED {
            for one in all {
                out.push_str(&format!(" Not read: {} ({}).", safe(&one.input), safe(&one.why)));
            }
            continue;
        }
        let named: Vec<_> = all.iter().take(FEW_SKIPPED).map(|s| safe(&s.input)).collect();
        out.push_str(&format!(
            " Not read: {} and {} more ({}; the JSON report names each).",
            named.join(", "),
            text::count((all.len() - FEW_SKIPPED) as u64),
            safe(&kind),
        ));
    }
    out
}

/// What was read, and by what.
pub fn colophon(report: &Report) -> String {
    let examined = &report.examined;
    let mut out = format!(
        "Read {} in {}.",
        text::plural(examined.lines, "line"),
        text::plural(examined.files, "file")
    );
    if let Some(replaced) = replaced(report) {
        out.push(' ');
        out.push_str(&replaced);
    }
    out.push_str(&not_read(&examined.skipped));
    for limit in &examined.capped {
        out.push_str(&format!(" Limit reached: {}.", safe(limit)));
    }
    out.push_str(&format!(
        " coroner {}, catalog {}",
        safe(report.program.version),
        safe(&report.program.catalog)
    ));
    if let Some(print) = &report.fingerprint {
        out.push_str(&format!(", fingerprint {}", safe(print)));
    }
    out.push('.');
    out
}
