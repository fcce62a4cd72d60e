//! Puts the report together: launches, verdict and advice in, the one serialisable model out.
//!
//! Owns which evidence is shown and how a verdict is told. Never judges anew and never reads input.

mod absent;
mod agents;
mod before;
mod behind;
mod beside;
mod blank;
mod dating;
mod evidence;
mod facts;
mod first;
mod followers;
mod ids;
mod leftover;
mod misfit;
mod missing;
mod next;
mod overruled;
mod parts;
mod peer;
mod places;
mod story;
mod stuck;
mod table;
mod waits;

use std::collections::BTreeSet;

use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::InputId;
use crate::launch::{Launches, Placed};
use crate::ledger::{account, tight_rank};
use crate::remedy::{Evidence, advise};
use crate::report::model::{
    Alternative, Attempt, Cause, Engine, Examined, ExceptionReport, Finding, FrameReport, Launch, LogState, Memory,
    Outcome, ProgramInfo, Remedy, Report, Root, SCHEMA,
};
use crate::report::text::plural;
use crate::time::Stamp;
use crate::verdict::causality::is_request_to_end;
use crate::verdict::fingerprint::fingerprint;
use crate::verdict::outcome::sockets_despite_ib;
use crate::verdict::replicas::Beside;
use crate::verdict::{Verdict, exception_of};

use places::Names;

/// Alternatives named in a report.
const MOST_ALTERNATIVES: usize = 5;

/// What the examination knows beside the launches.
pub struct Input<'a> {
    /// Source as given.
    pub source: String,
    /// Names of the inputs.
    pub names: &'a [String],
    /// Counts and skipped inputs.
    pub examined: Examined,
    /// Sentences of the intake and the envelope about the input.
    pub notes: &'a [String],
    /// When the logs were collected, if that is known.
    pub now: Option<Stamp>,
    /// The inputs whose last line has no end.
    pub cut: &'a BTreeSet<InputId>,
    /// Whether nothing but blank lines was read.
    pub blank: bool,
    /// The servers beside the one that the report is on.
    pub beside: &'a [Beside],
}

/// Builds the report on `verdict`; `all` are the verdicts of all attempts, oldest first.
pub fn assemble(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    all: &[Verdict],
    input: Input<'_>,
) -> Report {
    let names = Names {
        inputs: input.names,
        launches,
    };
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let exception = root.and_then(|f| exception_of(launches, f));
    let misfit = misfit::misfit(launches, verdict);
    let mut facts = facts::gather(catalog, launches, verdict);
    let before = before::before(catalog, launches, verdict, all);
    facts.weights_before = before.as_ref().and_then(|before| before.weights_gib);
    facts.settings.extend(misfit.iter().flat_map(|m| m.settings.clone()));
    let known = root.zip(verdict.cause.as_deref()).map(|(failure, cause)| {
        let reason = launches
            .signature(catalog, failure.event)
            .and_then(|s| s.def.reason.as_deref());
        facts.advice_evidence(cause, reason, verdict, launches, failure)
    });
    let mut advice = known.as_ref().map_or_else(
        || next::without_a_failure(verdict.outcome),
        |known| advise(catalog.cause(known.cause), catalog.remedies_of(known.cause), known),
    );
    let log = log_state(catalog, launches, verdict, input.cut);
    let shown = evidence::choose(catalog, launches, verdict, &names);
    let cause = verdict.cause.as_deref().map(|id| Cause {
        id: id.to_owned(),
        title: title(catalog, launches, verdict, id),
        confidence: verdict.confidence,
        tags: facts.tags.clone(),
    });
    let root_report = root.map(|failure| {
        let mut also: Vec<String> = verdict
            .failures
            .iter()
            .filter(|f| f.key == failure.key && f.cause == failure.cause && f.process != failure.process)
            .map(|f| launches.processes.get(f.process).id.clone())
            .collect();
        also.sort();
        also.dedup();
        Root {
            place: names.place(failure.event, failure.process),
            also_in: also,
        }
    });
    let print = verdict.cause.as_deref().zip(root).map(|(cause, failure)| {
        let text = launches
            .events
            .get(failure.event)
            .map_or("", |p| p.event.place.message());
        fingerprint(cause, verdict.phase.as_deref(), exception, text)
    });
    let mut waits = waits::waits(catalog, launches, verdict, &facts, &names, input.now.as_ref());
    let mut findings = findings(catalog, launches, verdict, all, &names);
    findings.splice(0..0, waits.findings);
    if let Some(misfit) = &misfit {
        // Where two nodes have one rank, the log of the rank that nobody has is not missing; and where they disagree about
        // how many they are, who is to come is not known.
        if misfit.settings.contains_key("same_rank") {
            waits.missing.clear();
        }
        if misfit.settings.contains_key(misfit::ODD_SETTING) {
            waits.missing.clear();
            findings.retain(|f| f.id != absent::ABSENT);
        }
        advice.retry = misfit.retry.clone();
        findings.insert(0, misfit.finding.clone());
    }
    let part = launches.part_in_service(verdict.attempt);
    let beside = beside::tell(input.beside, verdict.outcome == Outcome::Failed, part.as_deref());
    findings.extend(beside.clone());
    let undecided = first::tell(launches, verdict, &names);
    findings.splice(0..0, undecided.findings);
    let leftovers = leftover::tell(launches, verdict, &facts);
    let before = before.filter(|_| !leftovers.is_empty());
    findings.extend(leftovers);
    if let Some(before) = &before {
        before.add_to(&mut advice);
    }
    findings.extend(input.notes.iter().map(|note| Finding {
        id: "input.note".to_owned(),
        title: note.clone(),
        severity: "info".to_owned(),
        evidence: Vec::new(),
    }));
    let mut story = story::tell(catalog, launches, verdict, &facts, cause.as_ref(), &names);
    if waits.settled {
        story.text.clear();
    }
    story.add(None, undecided.sentence);
    story.add(waits.headline, waits.sentence);
    story.add(
        misfit.as_ref().map(|m| m.headline.clone()),
        misfit.as_ref().map(|m| format!("{}.", m.finding.title)),
    );
    story.add(None, before.map(|before| before.sentence()));
    story.add(None, beside.map(|finding| format!("{}.", finding.title)));
    let mut alternatives = alternatives(catalog, launches, verdict, &names);
    alternatives.extend(waits.alternatives);
    alternatives.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    let blank = input.blank;
    let mut report = Report {
        schema: SCHEMA,
        program: ProgramInfo {
            version: env!("CARGO_PKG_VERSION"),
            catalog: catalog.hash().to_owned(),
        },
        redaction: None,
        source: input.source,
        outcome: verdict.outcome,
        headline: story.headline,
        story: story.text,
        engine: Engine {
            name: facts.engine.map(ToOwned::to_owned),
            version: facts.version.clone(),
        },
        phase: verdict.phase.clone(),
        alternatives,
        root: root_report,
        exception: exception.map(|e| exception_report(launches, verdict, e)),
        snippet: evidence::snippet(launches, verdict, &names, &shown),
        evidence: shown,
        findings,
        figures: facts.figures.clone(),
        measurements: facts.measurements.clone(),
        memory: known.as_ref().and_then(|known| memory(known, &facts)),
        remedies: with_evidence(advice.remedies),
        will_not_help: advice.will_not_help,
        overruled_advice: known
            .as_ref()
            .map(|known| overruled::find(catalog, launches, verdict, known, &names))
            .unwrap_or_default(),
        retry: advice.retry,
        next_evidence: [
            waits.next,
            next::wanted(catalog, advice.next_evidence, known.as_ref(), &log, input.names),
        ]
        .concat(),
        owner: advice.owner,
        launch: Launch {
            ids: ids::ids(catalog, &names, verdict, root),
            ..facts.launch(catalog, launches, verdict, root.map(|f| f.event))
        },
        processes: names.processes(verdict),
        timeline: names.timeline(verdict),
        attempt: verdict.attempt + 1,
        attempts: all.iter().map(|v| attempt(catalog, launches, v, &names)).collect(),
        fingerprint: print,
        log: LogState {
            missing: waits.missing,
            ..log
        },
        rows: table::rows(&names, verdict),
        examined: input.examined,
        confidence_terms: verdict.terms.clone(),
        cause,
    };
    if blank {
        blank::tell(&mut report);
    }
    report
}

/// The account of the root's process, and the rank that decides for all.
fn memory(known: &Evidence<'_>, facts: &facts::Facts) -> Option<Memory> {
    let mut memory = account(known)?;
    memory.notes.extend(tight_rank(&facts.measurements));
    Some(memory)
}

/// Every remedy rests on the root, which is evidence 0.
fn with_evidence(mut remedies: Vec<Remedy>) -> Vec<Remedy> {
    remedies.iter_mut().for_each(|r| r.evidence = vec![0]);
    remedies
}

/// The title of the cause: the signature's own where the general one is too vague.
fn title(catalog: &Catalog, launches: &Launches, verdict: &Verdict, id: &str) -> String {
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let own = root
        .and_then(|f| launches.signature(catalog, f.event))
        .and_then(|s| s.def.title.clone());
    own.unwrap_or_else(|| catalog.title(id))
}

fn alternatives(catalog: &Catalog, launches: &Launches, verdict: &Verdict, names: &Names<'_>) -> Vec<Alternative> {
    let root_at = verdict
        .root
        .and_then(|i| verdict.failures.get(i))
        .filter(|f| launches.events.get(f.event).is_some())
        .map(|f| names.stands_at(f.event));
    let suspected = verdict.suspects.iter().map(|(id, confidence)| Alternative {
        title: catalog.title(id),
        confidence: *confidence,
        why: "such an end often turns out to be this".to_owned(),
        why_not: "no line of the log says so".to_owned(),
        id: id.clone(),
    });
    let mut all: Vec<Alternative> = verdict
        .rivals
        .iter()
        .filter_map(|(index, confidence)| {
            let failure = verdict.failures.get(*index)?;
            let id = failure.cause.clone()?;
            let why_not = if failure.stranger {
                "it tells of another unit, pod, container or device than the launch's".to_owned()
            } else if failure.survived {
                "the launch went on after it".to_owned()
            } else {
                let reason = verdict.reason(*index).map(|reason| reason.text());
                match (reason, &root_at) {
                    (Some(reason), Some(root)) => format!("{reason} (root at {root})"),
                    (_, Some(root)) => format!("{root} states a cause that says more"),
                    _ => "it says less than the root".to_owned(),
                }
            };
            Some(Alternative {
                title: catalog.title(&id),
                confidence: *confidence,
                why: format!("{} says so", names.stands_at(failure.event)),
                why_not,
                id,
            })
        })
        .chain(suspected)
        .collect();
    all.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    all.truncate(MOST_ALTERNATIVES);
    all
}

fn exception_report(launches: &Launches, verdict: &Verdict, exception: &crate::event::Exception) -> ExceptionReport {
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    let chain = root
        .and_then(|f| launches.events.get(f.event))
        .map(|p| match &p.event.fact {
            crate::event::Fact::Traceback(t) => t.chain.iter().map(|e| e.kind.to_string()).collect(),
            _ => Vec::new(),
        });
    ExceptionReport {
        kind: exception.kind.to_string(),
        message: exception.message.to_string(),
        frames: exception
            .frames
            .iter()
            .map(|f| FrameReport {
                file: f.file.to_string(),
                line: f.line,
                function: f.function.to_string(),
            })
            .collect(),
        chain: chain.unwrap_or_default(),
        origin: root.and_then(|f| f.origin).map(|o| o.id().to_owned()),
    }
}

fn attempt(catalog: &Catalog, launches: &Launches, verdict: &Verdict, names: &Names<'_>) -> Attempt {
    let events = || launches.events_of(verdict.attempt);
    // Lines of several inputs have no order: those of the one that shows the launch are told.
    let launch = |p: &&Placed| Launches::role(catalog, &p.event) == Some(Role::Launch);
    let input = events().find(launch).or_else(|| events().next());
    let input = input.map(|p| p.event.place.input);
    let lines = || {
        events()
            .filter(|p| Some(p.event.place.input) == input)
            .map(|p| p.event.place.line)
    };
    let root = verdict.root.and_then(|i| verdict.failures.get(i));
    Attempt {
        n: verdict.attempt + 1,
        input: input.map(|input| names.input(input)),
        first_line: lines().min().unwrap_or(0),
        last_line: lines().max().unwrap_or(0),
        outcome: verdict.outcome,
        phase: verdict.phase.clone(),
        cause: verdict.cause.clone(),
        fingerprint: verdict.cause.as_deref().zip(root).map(|(cause, f)| {
            let text = launches.events.get(f.event).map_or("", |p| p.event.place.message());
            fingerprint(cause, verdict.phase.as_deref(), exception_of(launches, f), text)
        }),
    }
}

fn findings(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    all: &[Verdict],
    names: &Names<'_>,
) -> Vec<Finding> {
    let mut out = Vec::new();
    let earlier: Vec<&Verdict> = all
        .iter()
        .filter(|v| v.attempt < verdict.attempt && v.outcome == Outcome::Failed)
        .collect();
    if let Some(last) = earlier.last() {
        let phases: std::collections::BTreeSet<&str> = earlier.iter().filter_map(|v| v.phase.as_deref()).collect();
        let place = phases.into_iter().collect::<Vec<_>>().join(", ");
        let cause = last.cause.as_deref().unwrap_or("unknown");
        out.push(Finding {
            id: "attempts.earlier".to_owned(),
            title: format!(
                "{} failed{}{} {cause}",
                plural(earlier.len() as u64, "earlier attempt"),
                if place.is_empty() {
                    String::new()
                } else {
                    format!(" in {place}")
                },
                if earlier.len() == 1 {
                    " with"
                } else {
                    "; the last of them with"
                }
            ),
            severity: "warning".to_owned(),
            evidence: Vec::new(),
        });
    }
    if matches!(
        verdict.outcome,
        Outcome::Healthy | Outcome::Degraded | Outcome::Stopped | Outcome::Running
    ) {
        // That an end was asked for does not even read like a failure.
        let looked_bad = verdict.failures.iter().filter(|f| f.cause.is_some());
        for failure in looked_bad.filter(|f| !is_request_to_end(f)).take(3) {
            let place = names.place(failure.event, failure.process);
            let why = match failure.stranger {
                true => "tells of another unit, pod, container or device than the launch's",
                false => "reads like a failure, and the launch went on",
            };
            out.push(Finding {
                id: "look-alike".to_owned(),
                title: format!("{} {why}: {}", names.stands_at(failure.event), cut(&place.text, 120)),
                severity: "info".to_owned(),
                evidence: Vec::new(),
            });
        }
    }
    if let Some(index) = sockets_despite_ib(launches, verdict.attempt) {
        out.push(Finding {
            id: "nccl.sockets-despite-ib".to_owned(),
            title: format!(
                "NCCL moves the data between nodes over sockets although it found InfiniBand/RoCE devices ({})",
                names.stands_at(index)
            ),
            severity: "warning".to_owned(),
            evidence: Vec::new(),
        });
    }
    for index in launches.of_attempt(verdict.attempt) {
        let Some(placed) = launches.events.get(index) else {
            continue;
        };
        let Some(signature) = catalog.signature(placed.event.signature) else {
            continue;
        };
        if signature.def.role == crate::catalog::schema::Role::Degraded && out.len() < 12 {
            let title = signature
                .def
                .title
                .clone()
                .unwrap_or_else(|| placed.event.place.text.to_string());
            if out.iter().all(|f: &Finding| f.id != signature.def.id) {
                out.push(Finding {
                    id: signature.def.id.clone(),
                    title: format!("{} ({})", cut(&title, 160), names.stands_at(index)),
                    severity: "warning".to_owned(),
                    evidence: Vec::new(),
                });
            }
        }
    }
    out
}

fn log_state(catalog: &Catalog, launches: &Launches, verdict: &Verdict, cut: &BTreeSet<InputId>) -> LogState {
    // Of several inputs the one that tells the last of the launch shows how it ends; an earlier attempt was followed.
    let last = launches
        .of_attempt(verdict.attempt)
        .last()
        .and_then(|i| launches.events.get(i));
    let in_last = last.map_or(!cut.is_empty(), |p| cut.contains(&p.event.place.input));
    let mid_line = in_last && verdict.attempt + 1 == launches.attempts;
    // A later attempt begins where the one before it was given up.
    let first = verdict.attempt > 0
        || launches
            .of_attempt(verdict.attempt)
            .take(40)
            .any(|i| launches.events.get(i).and_then(|p| Launches::role(catalog, &p.event)) == Some(Role::Launch));
    let ended = verdict.failures.iter().any(|f| f.fatal || f.exit.is_some()) || verdict.outcome == Outcome::Stopped;
    let tail = if mid_line {
        "mid-line"
    } else if ended {
        "exit"
    } else {
        "cut"
    };
    LogState {
        head: Some(if first { "launch" } else { "cut" }.to_owned()),
        tail: Some(tail.to_owned()),
        missing: Vec::new(),
    }
}

/// Cuts a text at a character boundary.
fn cut(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let head: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}
