//! The choice among the remedies of the catalog, their order and their final text.
//!
//! Order: what fits the evidence, then the least invasive, then the cheapest – the place that the data gives within
//! the cause – with remedies for exactly this sub-reason before general ones.

use super::conditions;
use super::evidence::Evidence;
use super::formulas::{self, Computed, Sum};
use super::{patch, template, versions};
use crate::catalog::schema::{CauseDef, ChangeDef, EvidenceDef, NoHelpDef, RemedyDef};
use crate::report::model::{Change, NextEvidence, NoHelp, Remedy, Retry};

/// Most remedies of one report; what comes after is for nobody at three in the morning.
const MOST: usize = 8;
/// Longest stated value that is shown beside the new one.
const LONGEST_VALUE: usize = 60;
/// How a value begins that says to take a setting out.
const TAKE_OUT: &[&str] = &["left out", "unset", "nothing"];

/// What to do about a cause.
#[derive(Debug, Clone)]
pub struct Advice {
    /// Changes, best first.
    pub remedies: Vec<Remedy>,
    /// What does not help.
    pub will_not_help: Vec<NoHelp>,
    /// Would the same launch end the same way?
    pub retry: Retry,
    /// What to look at next.
    pub next_evidence: Vec<NextEvidence>,
    /// Who can act.
    pub owner: String,
}

/// The advice for a cause on this evidence; `remedies` holds at least those for the cause and its family.
pub fn advise<'r>(cause: Option<&CauseDef>, remedies: impl IntoIterator<Item = &'r RemedyDef>, e: &Evidence) -> Advice {
    Advice {
        remedies: ranked(remedies, e),
        will_not_help: cause.map(|cause| no_help(cause, e)).unwrap_or_default(),
        retry: cause.map_or_else(unknown_retry, |cause| Retry {
            verdict: cause.retry.verdict.clone(),
            why: cause.retry.why.clone(),
            same_node: cause.retry.same_node,
            after: cause.retry.after.clone(),
        }),
        next_evidence: cause
            .map(|cause| next_evidence(&cause.next_evidence, e))
            .unwrap_or_default(),
        owner: cause.map_or_else(|| "unknown".to_owned(), |cause| cause.owner.clone()),
    }
}

fn unknown_retry() -> Retry {
    Retry {
        verdict: "unknown".to_owned(),
        why: "Nothing is known of this cause.".to_owned(),
        same_node: None,
        after: None,
    }
}

fn no_help(cause: &CauseDef, e: &Evidence) -> Vec<NoHelp> {
    let fits = |engines: &[String]| engines.is_empty() || engines.iter().any(|engine| e.engine_is(engine));
    let contradicts = |entry: &&NoHelpDef| entry.unless.iter().any(|condition| conditions::holds(condition, e));
    let entries = cause
        .will_not_help
        .iter()
        .filter(|entry| fits(&entry.engines) && !contradicts(entry));
    entries
        .map(|entry| NoHelp {
            title: entry.title.clone(),
            why: entry.why.clone(),
        })
        .collect()
}

fn next_evidence(entries: &[EvidenceDef], e: &Evidence) -> Vec<NextEvidence> {
    let entries = entries
        .iter()
        .filter(|entry| entry.when.iter().all(|condition| conditions::holds(condition, e)));
    let told = |entry: &EvidenceDef| NextEvidence {
        what: entry.what.clone(),
        why: entry.why.clone(),
        command: template::fill(&entry.command, &[], e).unwrap_or_else(|| entry.command.clone()),
    };
    entries.map(told).collect()
}

/// A remedy that fits, with its place.
struct Candidate<'a> {
    def: &'a RemedyDef,
    /// It is for any reading of the cause, and one is in evidence.
    apart: bool,
    place: u32,
    sum: Sum,
    changes: Vec<(&'a ChangeDef, Change)>,
}

fn ranked<'r>(defs: impl IntoIterator<Item = &'r RemedyDef>, e: &Evidence) -> Vec<Remedy> {
    let mut candidates: Vec<Candidate> = defs.into_iter().filter_map(|def| candidate(def, e)).collect();
    candidates.sort_by_key(|c| (c.apart, c.place, risk_order(&c.def.risk)));
    candidates.truncate(MOST);
    let advised: Vec<&str> = candidates.iter().map(|c| c.def.id.as_str()).collect();
    let remedies = candidates.iter().enumerate().map(|(i, c)| told(c, i + 1, &advised, e));
    let mut remedies: Vec<Remedy> = remedies.collect();
    for (remedy, candidate) in remedies.iter_mut().zip(&candidates) {
        let defs: Vec<&ChangeDef> = candidate.changes.iter().map(|(def, _)| *def).collect();
        remedy.patch = patch::patches(&defs, &remedy.change, e);
        if !remedy.patch.is_empty() {
            break;
        }
    }
    remedies
}

fn candidate<'a>(def: &'a RemedyDef, e: &Evidence) -> Option<Candidate<'a>> {
    let place = place(def, e)?;
    let engine_fits = def.engines.is_empty() || def.engines.iter().any(|engine| e.engine_is(engine));
    let reason = e.reason.unwrap_or("unknown");
    let reason_fits = def.reasons.is_empty() || def.reasons.iter().any(|of| of == reason);
    let fits = engine_fits
        && reason_fits
        && versions::admits(&def.versions, e.version_of_flags())
        && def.when.iter().all(|condition| conditions::holds(condition, e))
        && !def.unless.iter().any(|condition| conditions::holds(condition, e));
    if !fits {
        return None;
    }
    let sum = def
        .formula
        .as_deref()
        .and_then(formulas::named)
        .map_or(Sum::Nothing, |formula| formula(e));
    if sum == Sum::Unfit {
        return None;
    }
    Some(Candidate {
        def,
        apart: e.reason.is_some() && def.reasons.is_empty(),
        place,
        changes: changes(def, &sum, e)?,
        sum,
    })
}

/// The place for this very cause, or for its family.
fn place(def: &RemedyDef, e: &Evidence) -> Option<u32> {
    let family = || def.applies.get(&format!("{}.*", e.family()));
    def.applies.get(e.cause).or_else(family).copied()
}

fn risk_order(risk: &str) -> u8 {
    match risk {
        "low" => 0,
        "medium" => 1,
        _ => 2,
    }
}

fn told(candidate: &Candidate, rank: usize, advised: &[&str], e: &Evidence) -> Remedy {
    let def = candidate.def;
    let nothing = Computed::default();
    let computed = match &candidate.sum {
        Sum::Value(computed) => computed,
        _ => &nothing,
    };
    let text = |template: &str| template::fill(template, &computed.vars, e);
    let plain = || def.plain_title.clone().unwrap_or_else(|| def.title.clone());
    let mut why = def.why.clone();
    if let Sum::Missing(figure) = candidate.sum {
        why.push_str(&format!(" No value is computed: the log does not state {figure}."));
    }
    // The tool of the same use, by the name that it has on this machine.
    let of_machine = |text: String| {
        if e.is_amd() {
            text.replace("nvidia-smi", "rocm-smi")
        } else {
            text
        }
    };
    Remedy {
        rank,
        id: def.id.clone(),
        title: of_machine(text(&def.title).unwrap_or_else(plain)),
        why: of_machine(why),
        change: candidate.changes.iter().map(|(_, change)| change.clone()).collect(),
        patch: Vec::new(),
        cost: if def.unblocks_only {
            format!("Only unblocks, no cure: {}", def.cost)
        } else {
            def.cost.clone()
        },
        risk: def.risk.clone(),
        verify: of_machine(def.verify.clone()),
        arithmetic: computed.arithmetic.clone(),
        evidence: Vec::new(),
        pair_with: def.pair_with.clone().filter(|id| advised.contains(&id.as_str())),
    }
}

/// The changes that this engine and version have (of an engine that is not known, all), less those that are made
/// already; `None` if that leaves nothing to set.
fn changes<'a>(def: &'a RemedyDef, sum: &Sum, e: &Evidence) -> Option<Vec<(&'a ChangeDef, Change)>> {
    let nothing = Vec::new();
    let vars = match sum {
        Sum::Value(computed) => &computed.vars,
        _ => &nothing,
    };
    let has = |change: &&ChangeDef| {
        let engine =
            change.engines.is_empty() || e.engine.is_none() || change.engines.iter().any(|name| e.engine_is(name));
        engine
            && versions::admits(&change.versions, e.version_of_flags())
            && change.when.iter().all(|condition| conditions::holds(condition, e))
    };
    let offered: Vec<_> = def.change.iter().filter(has).collect();
    let filled = offered.iter().map(|change| (*change, changed(change, vars, e)));
    let mut left: Vec<(&ChangeDef, Change)> = filled.collect();
    left.retain(|(change, filled)| !is_made(change, filled, e));
    let sets = |change: &Change| change.kind != "command";
    let useless = left.len() < offered.len() && !left.iter().any(|(_, change)| sets(change));
    (!useless).then_some(left)
}

fn changed(change: &ChangeDef, vars: &[(&'static str, String)], e: &Evidence) -> Change {
    let text = |template: &str| template::fill(template, vars, e);
    let name = text(&change.name).unwrap_or_else(|| change.name.clone());
    let from = change.from.as_deref();
    // What the log states goes before a default; what a formula gives comes from the log.
    let is_literal = from.is_none_or(|from| !from.starts_with('{'));
    let stated = in_force(&change.kind, &name, e).filter(|_| is_literal && (from.is_some() || change.to.is_some()));
    // A whole configuration is no value of one setting in it.
    let stated = stated.filter(|value| !is_nothing(value) && !value.contains('{') && value.len() <= LONGEST_VALUE);
    Change {
        kind: change.kind.clone(),
        from: stated.map(str::to_owned).or_else(|| from.and_then(text)),
        to: change.to.as_deref().and_then(text),
        name,
    }
}

/// What the log states of the flag or variable.
fn in_force<'e>(kind: &str, name: &str, e: &'e Evidence) -> Option<&'e str> {
    match kind {
        "env" => e.stated(name),
        "flag" => {
            let name = name.strip_prefix("--").filter(|name| !name.contains(' '))?;
            e.stated(&name.replace('-', "_"))
        }
        _ => None,
    }
}

fn is_nothing(value: &str) -> bool {
    matches!(value, "" | "None" | "null" | "none")
}

/// Whether the log shows that the launch has the value already, or not what is to be left out.
fn is_made(def: &ChangeDef, change: &Change, e: &Evidence) -> bool {
    let is_on = |value: &str| value.eq_ignore_ascii_case("true");
    let stated = in_force(&change.kind, &change.name, e);
    let Some(to) = change.to.as_deref() else {
        // A switch.
        let switch = change.kind == "flag" && def.from.is_none() && def.to.is_none();
        return switch && stated.is_some_and(is_on);
    };
    if TAKE_OUT.iter().any(|words| to.starts_with(words)) {
        return stated.is_some_and(is_nothing);
    }
    stated.or(change.from.as_deref()).is_some_and(|own| same_value(to, own))
}

/// Whether what is to be set is what is set, but for the words that explain it and the way to write it.
fn same_value(to: &str, own: &str) -> bool {
    let value = [" (", ", or ", ", the ", " or "].iter().fold(to, |value, words| {
        value.split_once(words).map_or(value, |(value, _)| value)
    });
    let numbers = value.parse::<f64>().ok().zip(own.parse::<f64>().ok());
    let plain = |text: &str| text.replace('\'', "\"").replace(' ', "").to_ascii_lowercase();
    numbers.is_some_and(|(a, b)| a == b) || plain(value) == plain(own)
}
