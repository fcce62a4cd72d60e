//! Which failure explains which, and so which one is the root.
//!
//! Owns the comparison of candidates: worth, declared explanations, order, depth of the process. Sees no text.

use crate::catalog::matcher::Signature;
use crate::catalog::{self, Catalog};
use crate::event::{ExitStatus, TracebackKind};
use crate::launch::Launches;
use crate::launch::processes::ProcessRole;

use super::failure::{Failure, Worth};

/// Why one failure is put under another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The same exception, printed again.
    Copy,
    /// The root's signature says that it explains such failures.
    Declared,
    /// It only reports a failure elsewhere.
    Carrier,
    /// It says only that something died; the root says why.
    Weaker,
    /// It came after the root.
    Later,
    /// It is as good a root, and neither its place nor its time tells which of the two came first.
    Undecided,
}

impl Reason {
    /// A sentence for the report.
    pub fn text(self) -> &'static str {
        match self {
            Self::Copy => "the same failure, printed again",
            Self::Declared => "a known effect of the root cause",
            Self::Carrier => "only reports a failure elsewhere",
            Self::Weaker => "says only that something died; the root says why",
            Self::Later => "came after the root",
            Self::Undecided => "whether it or the root came first is not known",
        }
    }
}

/// The root among the candidates, by index into `failures`.
pub fn root(catalog: &Catalog, launches: &Launches, failures: &[Failure]) -> Option<usize> {
    let open: Vec<usize> = (0..failures.len())
        .filter(|&i| failures.get(i).is_some_and(|f| !f.survived))
        .collect();
    let best = open.iter().copied().min_by(|&a, &b| {
        let (Some(fa), Some(fb)) = (failures.get(a), failures.get(b)) else {
            return std::cmp::Ordering::Equal;
        };
        let declared = |x: &Failure, y: &Failure| declares(catalog, launches, x, y);
        declared(fb, fa)
            .cmp(&declared(fa, fb))
            .then_with(|| rank(failures, b).cmp(&rank(failures, a)))
            .then(fa.retried.cmp(&fb.retried))
            .then_with(|| weak_rank(failures, b).cmp(&weak_rank(failures, a)))
            .then(a.cmp(&b))
    })?;
    let best = first_printing(launches, failures, best);
    let best = hit_at_work(launches, failures, best);
    let best = first_stated(catalog, launches, failures, best);
    let best = not_retold(launches, failures, best);
    let best = died_first(catalog, launches, failures, best);
    let best = kept_out(launches, failures, best);
    let best = broke_first(launches, failures, best);
    let best = lost_its_head(launches, failures, best);
    let first = left_first(launches, failures, best).or_else(|| cut_first(launches, failures, best));
    Some(first.unwrap_or(best))
}

/// The traceback of another process that its log cuts off, where the best root only says that a peer is gone, or that a
/// wait ran out which had begun before: code that talks to the peers may fail of the same, other code does not.
fn cut_first(launches: &Launches, failures: &[Failure], best: usize) -> Option<usize> {
    let chosen = failures.get(best).filter(|f| f.worth == Worth::Weak && !f.cut)?;
    let lost = weak_rank(failures, best) == LOST_A_PEER;
    let known = |i: usize, f: &Failure| launches.in_known_order(f.event, chosen.event).then_some(i < best);
    (0..failures.len()).find(|&i| {
        failures.get(i).is_some_and(|f| {
            let own = f.cut && !f.survived && f.process != chosen.process && f.site.phase.as_deref() != Some(MEETING);
            own && known(i, f).unwrap_or(lost)
        })
    })
}

/// Whether it is told by a process that only hands on what another one, which it may not name, has raised. A worker that
/// quotes an exception quotes one of its own threads.
pub(super) fn is_retold(launches: &Launches, failure: &Failure) -> bool {
    let quoted = failure.traceback == Some(TracebackKind::Quoted) || failure.observed;
    let worker = launches.processes.get(failure.teller).role.is_worker_like();
    quoted && !worker && failure.process == failure.teller
}

/// What the process that raised the failure says of it, where the best root only hands it on: whichever of the two
/// stands first, or was written first, the one arose before the other could be told.
fn not_retold(launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let Some(told) = failures
        .get(best)
        .filter(|f| f.cause.is_some() && is_retold(launches, f))
    else {
        return best;
    };
    let raised =
        |f: &Failure| f.teller != told.teller && f.traceback.is_some() && !is_retold(launches, f) && !f.survived;
    let first = |same: &dyn Fn(&Failure) -> bool| failures.iter().position(|f| raised(f) && same(f));
    first(&|f| f.cause == told.cause)
        .or_else(|| first(&|f| f.worth >= told.worth && family(f) == family(told)))
        .unwrap_or(best)
}

/// Whether `index` is as good a root as the one chosen, of another process, and nothing tells which came first.
pub(super) fn is_undecided(launches: &Launches, failures: &[Failure], root: usize, index: usize) -> bool {
    let (Some(r), Some(f)) = (failures.get(root), failures.get(index)) else {
        return false;
    };
    let equal =
        || rank(failures, root) == rank(failures, index) && weak_rank(failures, root) == weak_rank(failures, index);
    let states =
        |f: &Failure| f.worth >= Worth::Weak && !f.survived && !is_retold(launches, f) && f.process == f.teller;
    let apart = f.process != r.process && f.teller != r.teller && !is_told_twice(launches, r, f);
    // What is told by comparing with all others comes last: most failures stand in one file.
    apart && states(r) && states(f) && !launches.in_known_order(r.event, f.event) && equal()
}

/// Whether two observers tell of one end: a listing of the pods and a description of one.
fn is_told_twice(launches: &Launches, a: &Failure, b: &Failure) -> bool {
    let observer = |f: &Failure| launches.processes.get(f.teller).role == ProcessRole::Observer;
    let node = |f: &Failure| launches.node(f.event, f.process);
    observer(a) && observer(b) && a.cause == b.cause && node(a).zip(node(b)).is_none_or(|(a, b)| a == b)
}

/// The kill that hit a process at work, where the best root is one of the same cause that hit a process which had not
/// begun: Ray's memory monitor ends idle workers first, and the launch goes on without them.
fn hit_at_work(launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let Some(chosen) = failures.get(best).filter(|f| f.process != f.teller) else {
        return best;
    };
    let at_work = |f: &Failure| {
        let attempt = launches.events.get(f.event).map_or(0, |p| p.attempt);
        let last = launches.machine(attempt, f.process).and_then(|m| m.last());
        last.is_some_and(|phase| {
            let engine = launches.engine(attempt);
            engine.tier(phase) > engine.tier("cluster-join")
        })
    };
    let same = |f: &Failure| {
        (&f.cause, f.worth) == (&chosen.cause, chosen.worth) && f.process != f.teller && !f.survived && at_work(f)
    };
    let other = || failures.iter().position(same);
    if at_work(chosen) { best } else { other().unwrap_or(best) }
}

/// What ended another process, where the best root is an error of the transport to the peers: one that is gone answers
/// no more. A death that is only told must be known to come first; a failure that says why, not to come later.
fn died_first(catalog: &Catalog, launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let of_peer = |f: &Failure| launches.signature(catalog, f.event).is_some_and(|s| s.def.of_peer);
    let of_transport = |f: &&Failure| f.worth == Worth::Strong && (f.cause.as_deref() == Some("nccl.ib") || of_peer(f));
    let Some(chosen) = failures.get(best).filter(of_transport) else {
        return best;
    };
    let died = |i: usize, f: &Failure| {
        let ordered = launches.in_known_order(f.event, chosen.event);
        let before = ordered && i < best;
        let of_its_own = !matches!(family(f), Some("nccl" | "dist" | "ray"));
        // What a process that is gone said of its end, or another one of it.
        let ended = tells_of_a_death(f) || f.traceback.is_some() && of_its_own;
        let told = before
            && (f.worth == Worth::Weak && tells_of_a_death(f) || f.worth > Worth::Weak && ended && of_peer(chosen));
        let told = told || f.worth >= Worth::Generic && of_its_own && !ordered;
        told && f.process != chosen.process && !f.survived
    };
    (0..failures.len())
        .find(|&i| failures.get(i).is_some_and(|f| died(i, f)))
        .unwrap_or(best)
}

/// What one of Ray's daemons said of itself before it died, where the best root only tells that it, or its node, is gone.
fn broke_first(launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let gone = |f: &&Failure| matches!(f.cause.as_deref(), Some("ray.raylet-died" | "ray.node-died"));
    let Some(chosen) = failures.get(best).filter(gone) else {
        return best;
    };
    let broke = |f: &Failure| {
        let own = f.process == f.teller && launches.processes.get(f.teller).role == ProcessRole::RayDaemon;
        let states = f.cause.as_deref() == Some("unknown.exception") && f.worth >= Worth::Weak && !f.survived;
        own && states && launches.in_known_order(f.event, chosen.event)
    };
    failures.iter().take(best).position(broke).unwrap_or(best)
}

/// The end of the cluster's head, where the best root is a raylet that left with a code of its own, as one that loses
/// its head does, or that says that the head is gone. The head was killed, and is not known to have been so later; or
/// the raylet itself says it.
fn lost_its_head(launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let of_head = |f: &Failure| f.cause.as_deref() == Some("ray.gcs-unreachable");
    let killed = |f: &Failure| of_head(f) && matches!(f.exit, Some(ExitStatus::Signal(_)));
    let own_code = |f: &Failure| matches!(f.exit, Some(ExitStatus::Code(code)) if code > 0);
    let left = |f: &Failure| f.cause.as_deref() == Some("ray.raylet-died") && own_code(f);
    let Some(chosen) = failures.get(best).filter(|f| left(f) || of_head(f) && !killed(f)) else {
        return best;
    };
    // One list that names both tells no order.
    let later =
        |i: usize, f: &Failure| i > best && f.teller != chosen.teller && launches.in_known_order(chosen.event, f.event);
    let says = |f: &Failure| of_head(f) && f.process == chosen.process && f.process == f.teller;
    let find = |gone: &dyn Fn(usize, &Failure) -> bool| {
        (0..failures.len()).find(|&i| failures.get(i).is_some_and(|f| !f.survived && gone(i, f)))
    };
    find(&|i, f| killed(f) && !later(i, f))
        .or_else(|| find(&|_, f| left(chosen) && says(f)))
        .unwrap_or(best)
}

/// The failure of a node to join the cluster before what the cluster then lacked: with its devices the launch would have
/// found its place.
fn kept_out(launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let short = |f: &&Failure| f.cause.as_deref() == Some("ray.insufficient-resources");
    let Some(chosen) = failures.get(best).filter(short) else {
        return best;
    };
    let node = |f: &Failure| launches.processes.node(f.process);
    let elsewhere = |f: &Failure| node(f).zip(node(chosen)).is_some_and(|(a, b)| a != b);
    let kept_out = |f: &Failure| {
        let joining = matches!(f.cause.as_deref(), Some("ray.gcs-unreachable" | "ray.version-mismatch"));
        joining && !f.survived && elsewhere(f) && launches.in_known_order(f.event, chosen.event)
    };
    failures.iter().take(best).position(kept_out).unwrap_or(best)
}

/// The end of the rank that left, where the best root only says that a peer is gone: a rank that is told to have ended
/// with a code of its own and said nothing is what the others missed.
fn left_first(launches: &Launches, failures: &[Failure], best: usize) -> Option<usize> {
    let chosen = failures
        .get(best)
        .filter(|_| weak_rank(failures, best) == LOST_A_PEER)?;
    let rank = |f: &Failure| launches.processes.get(f.process).rank;
    let told = rank(chosen)?;
    let left = |f: &Failure| {
        !f.survived
            && f.traceback.is_none()
            && matches!(f.exit, Some(ExitStatus::Code(code)) if code != 0)
            && rank(f).is_some_and(|r| r != told)
    };
    let spoke = |of: &Failure| {
        let of = rank(of);
        failures.iter().any(|f| {
            rank(f) == of && !f.survived && (f.traceback.is_some() || f.exit.is_none() && f.worth >= Worth::Weak)
        })
    };
    (0..failures.len()).find(|&i| failures.get(i).is_some_and(|f| left(f) && !spoke(f)))
}

/// The exception of the same cause that came before a line about it, as a worker's own does before Ray notes that the
/// worker did not come up; not one that the line explains, as a driver's does what its library then says.
fn first_stated(catalog: &Catalog, launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let Some(line) = failures.get(best).filter(|f| f.traceback.is_none()) else {
        return best;
    };
    let states = |f: &Failure| {
        let own = matches!(f.traceback, Some(kind) if kind != TracebackKind::Quoted);
        own && f.cause == line.cause && !f.survived && !declares(catalog, launches, line, f)
    };
    let before = failures.iter().take(best).position(states);
    before.unwrap_or(best)
}

/// The printing of the same failure to quote: where it arose rather than where it was forwarded to.
fn first_printing(launches: &Launches, failures: &[Failure], best: usize) -> usize {
    let Some(chosen) = failures.get(best) else { return best };
    let same = |f: &Failure| f.cause == chosen.cause && f.key == chosen.key && !f.survived;
    let order = |&i: &usize| {
        let Some(f) = failures.get(i) else {
            return (true, 0_u8, true, i);
        };
        let quoted = f.traceback == Some(TracebackKind::Quoted);
        // Of a supervisor's lines the one that says whom it hit, or where.
        let told = launches.events.get(f.event).is_some_and(|p| !p.event.victim.is_empty());
        (quoted, depth(launches, f), f.traceback.is_none() && !told, i)
    };
    (0..failures.len())
        .filter(|&i| failures.get(i).is_some_and(same))
        .min_by_key(order)
        .unwrap_or(best)
}

/// 0 for the processes that hold a device, more for those that only hear of it.
fn depth(launches: &Launches, failure: &Failure) -> u8 {
    let teller = launches.processes.get(failure.teller);
    match teller.role {
        // `[rank0]: ` is how torch prints the end of any process that joined a group, engine core or worker.
        ProcessRole::Worker if teller.label.is_none() => 1,
        ProcessRole::Worker => 0,
        ProcessRole::EngineCore => 1,
        ProcessRole::ApiServer => 2,
        ProcessRole::Driver | ProcessRole::Main | ProcessRole::RayDaemon | ProcessRole::Observer => 1,
    }
}

/// How good a root a candidate is; higher is better.
fn rank(failures: &[Failure], index: usize) -> u8 {
    let Some(failure) = failures.get(index) else { return 0 };
    if is_request_to_end(failure) {
        // Somebody asked the launch to end. That is the cause only where nothing had failed before, nor anything is
        // told afterwards that an end cannot bring about.
        let other = |f: &Failure| !f.survived && f.worth >= Worth::Weak && !is_request_to_end(f);
        let before = failures.iter().take(index).any(other);
        let own = failures
            .iter()
            .skip(index)
            .any(|f| other(f) && f.worth == Worth::Strong && f.traceback.is_some() && never_of_an_end(f));
        return if before || own { 1 } else { 8 };
    }
    match failure.worth {
        Worth::Strong => 7,
        Worth::Generic | Worth::Unknown => 6,
        // That something was raised says less than what was, and a kill of another program less than how the launch ended.
        Worth::Weak if failure.cut || failure.foreign => 4,
        Worth::Weak => 5,
        // Who tells which process is dead knows more than who lost a peer.
        Worth::Carrier if tells_of_a_death(failure) => 3,
        Worth::Downstream => 2,
        Worth::Carrier => 1,
        Worth::Line => 0,
    }
}

/// Whether a parent or an agent tells of the end of another process, and no more than that.
fn tells_of_a_death(failure: &Failure) -> bool {
    failure.fatal && failure.traceback.is_none() && failure.process != failure.teller
}

/// Whether a process that is being ended never fails in this way: settings, weights and memory are refused by checks
/// and allocators that an end does not reach.
fn never_of_an_end(failure: &Failure) -> bool {
    matches!(
        family(failure),
        Some("config" | "model" | "gpu-mem" | "gpu-oom" | "host-mem")
    )
}

/// SIGTERM and Ctrl-C: an end asked for.
pub fn is_request_to_end(failure: &Failure) -> bool {
    matches!(
        failure.cause.as_deref(),
        Some("process.sigterm" | "process.interrupted")
    )
}

/// The phase whose code talks to the peers.
const MEETING: &str = "distributed-init";

/// The place among weak ids of those that say only that a peer is gone.
const LOST_A_PEER: u8 = 1;

/// Among weak ids, who names the dead goes before who lost a peer.
fn weak_rank(failures: &[Failure], index: usize) -> u8 {
    let Some(failure) = failures.get(index).filter(|f| f.worth == Worth::Weak) else {
        return 0;
    };
    // A shell's `Killed` names nobody: where a wait had run out before, or a system call had failed, what came of that
    // was cleared away.
    let unnamed = failure.cause.as_deref() == Some("process.sigkill") && failure.process == failure.teller;
    let raised = |f: &&Failure| f.worth == Worth::Weak && !f.survived && f.traceback.is_some();
    let of_its_own = |f: &&Failure| base_rank(f) == 2 || f.cause.as_deref() == Some("nccl.system-error");
    let mut before = failures.iter().take(index).filter(raised).filter(of_its_own);
    match before.next() {
        Some(first) if unnamed => base_rank(first),
        _ => base_rank(failure),
    }
}

fn base_rank(failure: &Failure) -> u8 {
    match failure.cause.as_deref() {
        Some("process.sigkill" | "process.abort" | "ray.node-died" | "ray.raylet-died") => 3,
        Some("nccl.system-error" | "nccl.peer-died" | "dist.store-unreachable" | "dist.gloo") => LOST_A_PEER,
        _ => 2,
    }
}

/// Whether the signature of `a` declares that it explains `b`.
pub(super) fn declares(catalog: &Catalog, launches: &Launches, a: &Failure, b: &Failure) -> bool {
    // What ended another program ended none of the launch's.
    let signature = launches.signature(catalog, a.event).filter(|_| !a.foreign);
    signature.is_some_and(|s| names(s, a.cause.as_deref(), catalog, launches, b))
}

/// Whether a signature, which states `cause`, names `other` among what it explains.
pub(super) fn names(
    signature: &Signature,
    cause: Option<&str>,
    catalog: &Catalog,
    launches: &Launches,
    other: &Failure,
) -> bool {
    let id = launches
        .signature(catalog, other.event)
        .map_or("", |s| s.def.id.as_str());
    let other_cause = cause != other.cause.as_deref();
    let own = other.cause.as_deref().unwrap_or("");
    let explains = &signature.def.explains;
    explains.iter().any(|pattern| match pattern.strip_suffix(".*") {
        Some(family) => other_cause && catalog::family(own) == family,
        None => pattern == id || other_cause && pattern == own,
    })
}

pub(super) fn family(failure: &Failure) -> Option<&str> {
    failure.cause.as_deref().map(catalog::family)
}

/// Why `failure` is under `root`, if it is.
pub fn explained(
    catalog: &Catalog,
    launches: &Launches,
    failures: &[Failure],
    root: usize,
    index: usize,
) -> Option<Reason> {
    let (r, f) = (failures.get(root)?, failures.get(index)?);
    if index == root || f.survived {
        return None;
    }
    // A quoted failure has no phase of its own: the family tells that it is the same.
    let quoted = f.traceback == Some(TracebackKind::Quoted) && family(f) == family(r);
    if f.key == r.key && f.cause == r.cause || quoted {
        return Some(Reason::Copy);
    }
    if declares(catalog, launches, r, f) {
        return Some(Reason::Declared);
    }
    match f.worth {
        Worth::Carrier | Worth::Downstream => Some(Reason::Carrier),
        Worth::Weak if r.worth > Worth::Weak => Some(Reason::Weaker),
        Worth::Line => None,
        _ if is_undecided(launches, failures, root, index) => Some(Reason::Undecided),
        _ if f.cut && !launches.in_known_order(r.event, f.event) => Some(Reason::Undecided),
        _ if index > root => Some(Reason::Later),
        _ => None,
    }
}
