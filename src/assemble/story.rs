//! Headline and story: the verdict in sentences.
//!
//! Owns the wording. Every clause rests on a fact of the launch; what is unknown is left out.

use std::collections::HashMap;

use crate::catalog::Catalog;
use crate::event::InputId;
use crate::launch::Launches;
use crate::launch::processes::ProcessId;
use crate::report::model::{Cause, Outcome};
use crate::report::text::{capital, plural};
use crate::verdict::Verdict;
use crate::verdict::causality::Reason;
use crate::verdict::failure::Failure;

use super::cut;
use super::facts::Facts;
use super::places::Names;

/// Characters of a headline.
const HEADLINE: usize = 120;

/// Headline and story.
pub struct Story {
    /// One line.
    pub headline: String,
    /// Two to four sentences.
    pub text: String,
}

impl Story {
    /// Takes what is known of many processes together: it says more than what one of them noticed.
    pub fn add(&mut self, headline: Option<String>, sentence: Option<String>) {
        if let Some(headline) = headline {
            self.headline = cut(&headline, HEADLINE);
        }
        if let Some(sentence) = sentence {
            self.text = format!("{} {sentence}", self.text).trim_start().to_owned();
        }
    }
}

/// Tells the verdict.
pub fn tell(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    facts: &Facts,
    cause: Option<&Cause>,
    names: &Names<'_>,
) -> Story {
    let program = program(facts);
    let phase = verdict.phase.as_deref();
    match (verdict.outcome, cause) {
        (Outcome::Failed, Some(cause)) => failed(catalog, launches, verdict, facts, cause, names),
        (Outcome::Failed, None) => plain(format!("{program} failed; the log does not say why"), String::new()),
        (Outcome::Healthy, _) => plain(
            format!("{program} is up and serving"),
            "The launch reached serving, and nothing in the log shows that it died.".to_owned(),
        ),
        (Outcome::Degraded, _) => plain(
            format!("{program} is serving, with a problem"),
            "The launch reached serving. The findings list what does not work as it should.".to_owned(),
        ),
        (Outcome::Stopped, _) => plain(
            format!("{program} ended in good order"),
            "The launch did its work or was asked to stop, and shut down. Errors printed during a shutdown are part of it.".to_owned(),
        ),
        (Outcome::Running, _) => {
            let place = phase.map_or_else(String::new, |p| format!(" in {p}"));
            plain(
                format!("The log of {} ends{place} without a failure", within(&program)),
                format!(
                    "Nothing in the log is fatal: the launch is still under way{place}, hangs there, or the log is cut. \
                     A later part of the log, or the logs of the other processes, would tell."
                ),
            )
        }
        (Outcome::NoLaunch, _) => plain(
            "This log shows no launch of an inference server".to_owned(),
            "Neither vLLM, SGLang, Ray, torchrun nor NCCL starts in it.".to_owned(),
        ),
    }
}

fn plain(headline: String, text: String) -> Story {
    Story {
        headline: cut(&headline, HEADLINE),
        text,
    }
}

fn failed(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    facts: &Facts,
    cause: &Cause,
    names: &Names<'_>,
) -> Story {
    let def = catalog.cause(&cause.id);
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let node = root.and_then(|f| {
        let told = launches.events.get(f.event)?.event.victim.node.as_ref();
        told.or_else(|| launches.processes.node(f.process))
    });
    let node = node.map_or_else(String::new, |node| format!(" ({node})"));
    let subject = def.and_then(|d| Some(d.subject.as_ref()?.replace("{node}", &node)));
    let who = subject.or_else(|| root.map(|f| who(f, launches)));
    let who = who.unwrap_or_else(|| "The launch".to_owned());
    let form = root.and_then(|f| launches.signature(catalog, f.event)).map(|s| &s.def);
    let what = match (form.and_then(|f| f.headline.as_ref()), def) {
        (Some(own), _) => own.replace("{peer}", root.and_then(|f| peer(launches, f)).unwrap_or("a peer")),
        (None, Some(def)) => def.headline.clone(),
        (None, None) => format!("failed: {}", cause.title),
    };
    let place = root.and_then(|f| crash_library(launches, verdict, f));
    let place = place.map_or_else(String::new, |library| format!(" in {library}"));
    let mut headline = format!("{who} {what}{place}");
    if cause.id == "unknown.exception"
        && form.is_none_or(|f| f.headline.is_none())
        && let Some(exception) = root.and_then(|f| crate::verdict::exception_of(launches, f))
    {
        let last = exception.kind.rsplit('.').next().unwrap_or("");
        let first = exception.message.split('\n').next().unwrap_or("");
        headline = match root.is_some_and(|f| f.cut) {
            true => {
                let place = exception.frames.last();
                let file = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
                let place = place.map_or_else(String::new, |f| {
                    format!(" in {} ({}:{})", f.function, file(&f.file), f.line)
                });
                format!("{who} raised an exception{place}; its log ends before it says which")
            }
            false => format!("{who} died of {last}: {first}"),
        };
    }
    let mut sentences = Vec::new();
    let place = verdict
        .phase
        .as_deref()
        .map_or_else(String::new, |p| format!(" in phase {p}"));
    sentences.push(format!("{} died{place}.", program(facts)));
    if let Some(meaning) = form.and_then(|f| f.meaning.as_ref()).or(def.map(|d| &d.meaning)) {
        sentences.push(first_sentences(meaning, 1));
    }
    sentences.extend(figures(facts, &cause.id, verdict.phase.as_deref()));
    let carriers = reports(launches, verdict);
    if carriers > 0 {
        let line = root.map_or_else(String::new, |f| names.stands_at(f.event));
        sentences.push(format!(
            "{} states it; {} of failure in the log {} from it.",
            capital(&line),
            plural(carriers as u64, "other report"),
            if carriers == 1 { "follows" } else { "follow" }
        ));
    }
    Story {
        headline: cut(&headline, HEADLINE),
        text: sentences.join(" "),
    }
}

/// The other side of the connection that the line of the root tells of.
fn peer<'l>(launches: &'l Launches, root: &Failure) -> Option<&'l str> {
    let event = &launches.events.get(root.event)?.event;
    event
        .setting("peer")
        .map(|peer| &**peer)
        .or(event.victim.node.as_deref())
}

/// The library in which native code crashed, as the root or another report of the same crash names it.
fn crash_library<'l>(launches: &'l Launches, verdict: &Verdict, root: &Failure) -> Option<&'l str> {
    let named = |f: &Failure| {
        let library = launches.events.get(f.event)?.event.setting("crash_library");
        library.map(|library| &**library)
    };
    let same = verdict
        .failures
        .iter()
        .filter(|f| f.cause.is_some() && f.cause == root.cause);
    named(root).or_else(|| same.into_iter().find_map(named))
}

/// How many reports of the failure there are beside the root. What several inputs hold of one process, as a node's log
/// and one of all nodes do, counts once.
fn reports(launches: &Launches, verdict: &Verdict) -> usize {
    let mut counts: HashMap<(ProcessId, &str), HashMap<InputId, usize>> = HashMap::new();
    for (index, _) in verdict.explained.iter().filter(|(_, r)| *r != Reason::Copy) {
        let failure = verdict.failures.get(*index);
        if let Some((failure, placed)) = failure.and_then(|f| Some((f, launches.events.get(f.event)?))) {
            let of = counts.entry((failure.process, &failure.key)).or_default();
            *of.entry(placed.event.place.input).or_default() += 1;
        }
    }
    counts.values().filter_map(|of| of.values().max()).sum()
}

/// The figures that tell the failure, in a sentence; and that a peak of graph capture passes.
fn figures(facts: &Facts, cause: &str, phase: Option<&str>) -> Option<String> {
    let get = |name: &str| facts.figures.get(name).copied();
    if cause == "host-mem.ray-monitor" {
        let (used, limit) = (get("node_used_gib")?, get("node_limit_gib")?);
        let threshold =
            get("node_threshold_fraction").map_or_else(String::new, |t| format!(", over the threshold of {t:.2}"));
        let peak = if phase == Some("graph-capture") {
            " Weights and KV cache had fitted: the peak of graph capture is transient, so this is no lack of capacity."
        } else {
            ""
        };
        return Some(format!("The node used {used:.2} of {limit:.2} GiB{threshold}.{peak}"));
    }
    if cause.starts_with("gpu-oom.") {
        let (tried, free) = (get("tried_to_allocate_gib")?, get("gpu_free_gib")?);
        let total = get("gpu_total_gib").map_or_else(String::new, |t| format!(" of {t:.2} GiB"));
        return Some(format!("It asked for {} with {}{total} free.", size(tried), size(free)));
    }
    if cause == "ray.insufficient-resources" {
        return facts.request().map(|asked| format!("What finds no place: {asked}."));
    }
    None
}

/// A size in the unit a person would use.
fn size(gib: f64) -> String {
    if gib < 1.0 {
        format!("{:.0} MiB", gib * 1024.0)
    } else {
        format!("{gib:.2} GiB")
    }
}

/// The process as a subject: `Rank 1 (node-b)`, `Worker_TP1`, `The launch`.
fn who(root: &Failure, launches: &Launches) -> String {
    let node = launches.node(root.event, root.process);
    let node = node.map_or_else(String::new, |n| format!(" ({n})"));
    let process = launches.processes.get(root.process);
    if let Some(rank) = process.rank {
        return format!("Rank {rank}{node}");
    }
    match &process.label {
        Some(label) if process.explicit || process.by_file => {
            let pid = process.pid.map_or_else(String::new, |p| format!(" pid {p}"));
            format!("{label}{pid}{node}")
        }
        _ => {
            // Where nothing names a node, the container tells which of several it is.
            let container = process.container.as_ref().filter(|_| node.is_empty());
            let place = container.map_or(node, |name| format!(" ({name})"));
            match launches.engine_at(root.event).id() {
                Some("vllm") => format!("vLLM{place}"),
                Some("sglang") => format!("SGLang{place}"),
                _ => format!("The launch{place}"),
            }
        }
    }
}

fn program(facts: &Facts) -> String {
    let version = facts.version.as_ref().map_or_else(String::new, |v| format!(" {v}"));
    match facts.engine {
        Some("vllm") => format!("vLLM{version}"),
        Some("sglang") => format!("SGLang{version}"),
        Some("ray") => format!("The Ray{version} job"),
        Some("torch") if version.is_empty() => "The torch.distributed job".to_owned(),
        Some("torch") => format!("The PyTorch{version} job"),
        Some("nccl") => format!("The NCCL{version} job"),
        _ => format!("The launch{version}"),
    }
}

/// A program's name inside of a sentence: `the Ray 2.55.1 job`.
fn within(program: &str) -> String {
    match program.strip_prefix("The ") {
        Some(rest) => format!("the {rest}"),
        None => program.to_owned(),
    }
}

fn first_sentences(text: &str, count: usize) -> String {
    let mut end = 0;
    for _ in 0..count {
        match text.get(end..).and_then(|rest| rest.find(". ")) {
            Some(at) => end += at + 2,
            None => return text.to_owned(),
        }
    }
    text.get(..end).unwrap_or(text).trim_end().to_owned()
}
