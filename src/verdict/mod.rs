//! The verdict: outcome, root, phase, cause and how sure.
//!
//! Owns the judgement of one attempt. Knows events and processes and no text: words are the catalog's and the
//! report's. Never reads input.

pub mod attribution;
pub mod causality;
pub mod confidence;
pub mod failure;
pub mod fingerprint;
pub mod outcome;
pub mod own_names;
pub mod phase;
pub mod preamble;
pub mod ready;
pub mod replicas;
pub mod shutdown;
pub mod strangers;

use crate::catalog::Catalog;
use crate::catalog::schema::Role;
use crate::event::{Exception, Fact, TracebackKind};
use crate::launch::Launches;
use crate::report::model::Outcome;

use causality::Reason;
use failure::{Failure, Worth};
use phase::PhaseBasis;

/// The confidence of causes that no line states: below that of every failure that the log does state and that was fatal.
const SUSPECTS: [f64; 3] = [0.09, 0.08, 0.07];

/// The judgement of one attempt.
pub struct Verdict {
    /// Attempt, from 0.
    pub attempt: usize,
    /// Outcome.
    pub outcome: Outcome,
    /// All candidates, in order.
    pub failures: Vec<Failure>,
    /// The root, as an index into `failures`; only when failed.
    pub root: Option<usize>,
    /// Cause id; only when failed.
    pub cause: Option<String>,
    /// Phase of death, or where a running launch stands.
    pub phase: Option<String>,
    /// Confidence terms.
    pub terms: Vec<(String, f64)>,
    /// Confidence.
    pub confidence: f64,
    /// Rival causes: index into `failures`, why it is not the root.
    pub rivals: Vec<(usize, f64)>,
    /// Causes that no line states, but that a weak or generic cause often turns out to be.
    pub suspects: Vec<(String, f64)>,
    /// What is under the root, in order.
    pub explained: Vec<(usize, Reason)>,
    /// Failures of other processes that may have come before the root as well as after it.
    pub undecided: Vec<usize>,
}

impl Verdict {
    /// Why a failure is under the root, if it is.
    pub fn reason(&self, failure: usize) -> Option<Reason> {
        let at = self.explained.binary_search_by_key(&failure, |(i, _)| *i).ok()?;
        self.explained.get(at).map(|(_, reason)| *reason)
    }
}

/// Judges one attempt.
pub fn judge(catalog: &Catalog, launches: &mut Launches, attempt: usize) -> Verdict {
    let failures = failure::collect(catalog, launches, attempt);
    let outcome = outcome::outcome(catalog, launches, attempt, &failures);
    let mut verdict = Verdict {
        attempt,
        outcome,
        failures,
        root: None,
        cause: None,
        phase: None,
        terms: Vec::new(),
        confidence: 0.0,
        rivals: Vec::new(),
        suspects: Vec::new(),
        explained: Vec::new(),
        undecided: Vec::new(),
    };
    match outcome {
        Outcome::Failed => convict(catalog, launches, &mut verdict),
        Outcome::Running => verdict.phase = standing(launches, attempt),
        Outcome::Healthy | Outcome::Degraded => verdict.phase = Some("serving".to_owned()),
        Outcome::Stopped => verdict.phase = Some("shutdown".to_owned()),
        Outcome::NoLaunch => {}
    }
    verdict
}

fn convict(catalog: &Catalog, launches: &mut Launches, verdict: &mut Verdict) {
    let Some(root_index) = causality::root(catalog, launches, &verdict.failures) else {
        return;
    };
    attribution::attribute(catalog, launches, &mut verdict.failures, root_index);
    let failures = &verdict.failures;
    let Some(root) = failures.get(root_index) else { return };
    verdict.root = Some(root_index);
    // A report of a failure elsewhere that is all there is says of that one nothing but that it was.
    let reports = launches
        .signature(catalog, root.event)
        .is_some_and(|s| s.def.role == Role::Wrapper);
    let unnamed = if root.worth <= Worth::Downstream && (root.traceback.is_none() || reports) {
        "unknown.silent"
    } else {
        "unknown.exception"
    };
    let told = told_of(catalog, launches, root);
    let cause = root.cause.clone().or(told).unwrap_or_else(|| unnamed.to_owned());
    // An observer's line names no phase: what its victim printed on its way down does.
    let aftermath = || failures.iter().skip(root_index + 1).filter(|f| f.traceback.is_some());
    // Where the process's own traceback says the same as a line about it, that knows the phase best.
    let observed = root.process != root.teller;
    let same = |f: &&Failure| match observed {
        true => causality::family(f) == causality::family(root),
        false => f.cause == root.cause,
    };
    let own = aftermath()
        .filter(|_| matches!(root.traceback, None | Some(TracebackKind::Quoted)))
        .filter(same)
        .find(|f| f.process == root.process && f.phase_basis == PhaseBasis::Frame && f.phase_basis > root.phase_basis);
    let own = own.and_then(|f| f.phase.clone());
    let own = own.or_else(|| root.phase.clone());
    verdict.phase = own.or_else(|| aftermath().find_map(|f| f.phase.clone()));
    verdict.explained = (0..failures.len())
        .filter_map(|i| causality::explained(catalog, launches, failures, root_index, i).map(|r| (i, r)))
        .collect();
    verdict.undecided = (0..failures.len())
        .filter(|&i| causality::is_undecided(launches, failures, root_index, i))
        .collect();
    // A daemon that fails has no phase of the launch; what the launch was doing when it died of that has one.
    if verdict.phase.is_none() {
        verdict.phase = phase_of_consequence(failures, &verdict.explained);
    }
    // What a supervisor says without a time may have been pasted above the log of what it tells of.
    let outside = launches
        .signature(catalog, root.event)
        .is_some_and(|s| s.def.tells_of_others());
    let undated = launches
        .events
        .get(root.event)
        .is_some_and(|p| p.event.place.time.is_none());
    if verdict.phase.is_none() && outside && undated {
        verdict.phase = standing(launches, verdict.attempt);
    }
    let open: Vec<usize> = (0..failures.len())
        .filter(|&i| i != root_index && verdict.reason(i).is_none())
        .filter(|&i| {
            failures
                .get(i)
                .is_some_and(|f| !f.survived && f.worth >= Worth::Generic && f.cause != root.cause)
        })
        .collect();
    // What another process had raised before is not known.
    let before = |i: usize, f: &Failure| i < root_index && launches.in_known_order(f.event, root.event);
    let unread = failures
        .iter()
        .enumerate()
        .filter(|(i, f)| f.cut && !f.survived && f.process != root.process && before(*i, f))
        .count();
    let signature = launches.signature(catalog, root.event);
    // Where the place tells the cause, what the text says is not all that is known.
    let by_place = signature
        .and_then(|s| s.def.cause.as_deref())
        .is_some_and(|own| !own.ends_with(".*") && root.cause.as_deref() != Some(own));
    let agrees = signature
        .filter(|s| !s.def.phases.is_empty())
        .zip(root.phase.as_deref());
    let later = |f: &Failure| !f.survived && f.worth == Worth::Strong && f.cause != root.cause;
    let others = |i: &usize| failures.get(*i).is_some_and(|f| f.cause != root.cause);
    let undecided = verdict.undecided.iter().any(others);
    let contested = verdict
        .explained
        .iter()
        .filter(|(_, reason)| *reason == Reason::Later)
        .filter_map(|(i, _)| failures.get(*i))
        .any(|f| later(f) && f.process != root.process);
    let basis = confidence::Basis {
        root,
        preceded: preceded(launches, verdict, root),
        by_signature: signature.is_some() && !by_place,
        named_by_phase: signature.is_some_and(|s| s.def.cause.as_deref().is_some_and(|c| c.ends_with(".*"))),
        phase_agrees: agrees.map(|(s, phase)| s.def.phases.iter().any(|p| p == phase)),
        explained: verdict.explained.iter().filter(|(_, r)| *r != Reason::Copy).count(),
        witness: witness(failures, root),
        rivals: open.len() + unread,
        contested,
        undecided,
        code_only: signature.is_some_and(|s| s.def.code_only) && !by_place,
        retried: root.retried,
        end_shown: failures
            .iter()
            .any(|f| !f.survived && (f.fatal || f.worth == Worth::Carrier)),
        head_shown: launches
            .of_attempt(verdict.attempt)
            .any(|i| launches.events.get(i).and_then(|p| Launches::role(catalog, &p.event)) == Some(Role::Launch)),
    };
    let weighed = confidence::weigh(&basis);
    (verdict.confidence, verdict.terms) = (weighed.value, weighed.terms);
    verdict.rivals = rivals(verdict, root_index, &cause);
    verdict.suspects = suspects(catalog, verdict, &cause, basis.names_by_guess());
    verdict.cause = Some(cause);
}

/// The cause that what fails for lack of something tells of, in a log that holds nothing else of it.
fn told_of(catalog: &Catalog, launches: &Launches, failure: &Failure) -> Option<String> {
    let signature = launches.signature(catalog, failure.event)?;
    let downstream = failure.worth == Worth::Downstream && signature.def.role == Role::Consequence;
    signature.def.cause.clone().filter(|_| downstream)
}

/// Seconds by which a report is older than its root: more than clocks of nodes differ, less than launches lie apart.
const OLDER: std::ops::Range<f64> = 30.0..1800.0;

/// Whether a failure of another process that the root would explain is stamped before it, in the same way.
fn preceded(launches: &Launches, verdict: &Verdict, root: &Failure) -> bool {
    let stamp = |f: &Failure| launches.events.get(f.event)?.event.place.time.as_ref();
    let Some(stated) = stamp(root) else { return false };
    let older = |f: &Failure| {
        stamp(f)
            .filter(|told| told.offset.is_some() == stated.offset.is_some())
            .and_then(|told| stated.seconds_since(told))
            .is_some_and(|seconds| OLDER.contains(&seconds))
    };
    let explains = |i: usize| verdict.reason(i).is_some_and(|reason| reason != Reason::Copy);
    let mut all = verdict.failures.iter().enumerate();
    all.any(|(i, f)| f.teller != root.teller && (explains(i) || f.worth == Worth::Carrier) && older(f))
}

/// How another process than the root's teller printed the same cause; a traceback goes before a mere line.
fn witness(failures: &[Failure], root: &Failure) -> Option<Option<TracebackKind>> {
    let same = |f: &&Failure| f.cause.is_some() && f.cause == root.cause && f.teller != root.teller && !f.survived;
    let tracebacks = |f: &&Failure| f.traceback.is_some_and(|t| t != TracebackKind::Quoted);
    let all = || failures.iter().filter(same);
    all().find(tracebacks).or_else(|| all().next()).map(|f| f.traceback)
}

/// The phase of a process that died of the root, where that process's own frames or text fix it.
fn phase_of_consequence(failures: &[Failure], explained: &[(usize, Reason)]) -> Option<String> {
    let all = explained
        .iter()
        .filter(|(_, r)| *r != Reason::Copy)
        .filter_map(|(i, _)| failures.get(*i));
    let fixed = |f: &&Failure| f.phase_basis >= PhaseBasis::Text && !f.survived;
    all.into_iter().find(fixed).and_then(|f| f.phase.clone())
}

/// Rival causes, best first: other named causes among the failures, each once.
fn rivals(verdict: &Verdict, root: usize, cause: &str) -> Vec<(usize, f64)> {
    let (failures, most) = (&verdict.failures, verdict.confidence);
    let mut out: Vec<(usize, f64)> = Vec::new();
    let mut order: Vec<usize> = (0..failures.len())
        .filter(|&i| i != root && verdict.reason(i) != Some(Reason::Copy))
        .collect();
    order.sort_by_key(|&i| failures.get(i).map(|f| (f.survived, std::cmp::Reverse(f.worth), i)));
    for index in order {
        let Some(failure) = failures.get(index) else { continue };
        let Some(id) = failure.cause.as_deref() else { continue };
        let known = id == cause
            || out
                .iter()
                .any(|(o, _)| failures.get(*o).and_then(|f| f.cause.as_deref()) == Some(id));
        if known || out.len() >= 5 {
            continue;
        }
        let base: f64 = match failure.worth {
            Worth::Strong => 0.3,
            Worth::Generic => 0.2,
            Worth::Unknown | Worth::Weak => 0.12,
            _ => 0.1,
        };
        let share = match verdict.reason(index) {
            // One of several that may all have been first.
            Some(Reason::Undecided) => 0.9 - most,
            _ if failure.survived => base / 3.0,
            _ => base,
        };
        out.push((index, share.min(most)));
    }
    out.sort_by(|a, b| b.1.total_cmp(&a.1));
    out
}

/// What the cause often turns out to be, as far as no line says so; of an out-of-memory whose phase is a guess, what it
/// would be in another phase.
fn suspects(catalog: &Catalog, verdict: &Verdict, cause: &str, guessed: bool) -> Vec<(String, f64)> {
    let often = catalog.cause(if guessed { "gpu-oom.other" } else { cause });
    let said = |id: &str| {
        let named = |(i, _): &(usize, f64)| verdict.failures.get(*i).and_then(|f| f.cause.as_deref()) == Some(id);
        id == cause || verdict.rivals.iter().any(named)
    };
    let ids = often.into_iter().flat_map(|c| &c.often).filter(|id| !said(id));
    ids.zip(SUSPECTS)
        .map(|(id, share)| (id.clone(), share.min(verdict.confidence)))
        .collect()
}

/// Where an unfinished launch stands: the furthest phase of any process. Daemons may have ended round it.
fn standing(launches: &Launches, attempt: usize) -> Option<String> {
    let last = launches.machines(attempt).iter().filter_map(|m| m.last());
    let last = last.filter(|phase| *phase != "shutdown");
    last.max_by_key(|p| launches.engine(attempt).tier(p))
        .map(ToOwned::to_owned)
}

/// The chosen exception of a failure, if it is one.
pub fn exception_of<'l>(launches: &'l Launches, failure: &Failure) -> Option<&'l Exception> {
    match launches.events.get(failure.event).map(|p| &p.event.fact) {
        Some(Fact::Traceback(traceback)) => traceback.chain.get(traceback.chosen),
        _ => None,
    }
}
