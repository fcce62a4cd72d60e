//! How sure a verdict is, as a sum of named pieces of evidence.
//!
//! Owns the pieces, their weights and the ceilings. Each piece is weighed as a logarithm of odds: what speaks for the
//! verdict and what speaks against it add up, and a further witness counts for less the surer the verdict already is.
//! A ceiling holds what no corroboration can prove: that a line which says only that something died names why.
//! The weights come from what each kind of evidence proves and from the reliability table of the labelled logs, halves
//! of it set against each other; none stands for a single signature, cause or log.

use crate::event::TracebackKind;

use super::failure::{Failure, Worth};
use super::phase::PhaseBasis;

/// Unexplained rivals beyond this number add nothing.
const MOST_RIVALS: usize = 3;
/// The most that one of two causes can claim of which nobody knows which came first.
const EVEN: f64 = 0.55;
/// The least confidence of a verdict.
const FLOOR: f64 = 0.05;

/// What the confidence is computed from.
pub struct Basis<'a> {
    /// The root.
    pub root: &'a Failure,
    /// Whether a signature, not structure alone, recognised it.
    pub by_signature: bool,
    /// Whether the phase decides which cause it is, as with a device that is out of memory.
    pub named_by_phase: bool,
    /// Whether the phase is among those in which the signature can occur; `None` if it names none.
    pub phase_agrees: Option<bool>,
    /// Failures that the root explains, copies not counted.
    pub explained: usize,
    /// Whether another process reported a failure that the root would explain long before the root was stated.
    pub preceded: bool,
    /// How a process other than the root's teller printed the same cause, best first.
    pub witness: Option<Option<TracebackKind>>,
    /// Failures of other causes, earlier than the root, that nothing explains.
    pub rivals: usize,
    /// Whether another process states another cause by itself, put after the root by its place alone.
    pub contested: bool,
    /// Whether another process states another cause that is as good, and nothing tells which of the two came first.
    pub undecided: bool,
    /// Whether the root's line tells of one try of several.
    pub retried: bool,
    /// Whether the root's line is only the code that a library returned.
    pub code_only: bool,
    /// Whether anything shows that the launch ended: a carrier, an exit, an uncaught exception.
    pub end_shown: bool,
    /// Whether the launch's own beginning is in the log.
    pub head_shown: bool,
}

impl Basis<'_> {
    /// Whether the cause goes by a phase that nothing of the root itself tells.
    pub fn names_by_guess(&self) -> bool {
        self.named_by_phase && self.root.phase_basis <= PhaseBasis::Others
    }
}

/// How sure, with what each piece of evidence contributes; the contributions sum up to the confidence.
pub struct Confidence {
    /// From 0.05 to 0.99; below 0.7 for causes that say only that something died.
    pub value: f64,
    /// Each piece of evidence with what it adds to, or takes from, the pieces above it.
    pub terms: Vec<(String, f64)>,
}

/// Weighs the evidence.
pub fn weigh(basis: &Basis<'_>) -> Confidence {
    let (ceiling, pieces) = (ceiling(basis), evidence(basis));
    let (mut odds, mut before) = (0.0_f64, 0.0);
    let mut terms = Vec::with_capacity(pieces.len());
    for (name, weight) in pieces {
        odds += weight;
        let after = ceiling / (1.0 + (-odds).exp());
        terms.push((name.to_owned(), after - before));
        before = after;
    }
    Confidence {
        value: (before.max(FLOOR) * 100.0).round() / 100.0,
        terms,
    }
}

/// What such a root is right about at best.
fn ceiling(basis: &Basis<'_>) -> f64 {
    match basis.root.worth {
        // One of two: which of them is the root is a guess.
        Worth::Strong | Worth::Generic | Worth::Unknown | Worth::Weak if basis.undecided => EVEN,
        Worth::Strong | Worth::Generic if basis.code_only => 0.69,
        Worth::Strong => 0.99,
        Worth::Generic => 0.89,
        Worth::Unknown | Worth::Weak => 0.69,
        Worth::Downstream | Worth::Carrier | Worth::Line => 0.4,
    }
}

/// The pieces of evidence, each with its weight in log-odds; the first is the root's own text.
fn evidence(basis: &Basis<'_>) -> Vec<(&'static str, f64)> {
    let root = basis.root;
    let printed = |kind: Option<TracebackKind>| {
        matches!(
            kind,
            Some(TracebackKind::Logged | TracebackKind::Raw | TracebackKind::Native)
        )
    };
    let mut pieces = vec![match root.worth {
        Worth::Strong if basis.by_signature => ("the text names the mechanism", 2.4),
        Worth::Strong => ("type and place of the exception name the mechanism", 1.2),
        Worth::Generic => ("the text names the family, not the mechanism", 1.4),
        Worth::Unknown => ("an exception no rule knows", 0.6),
        Worth::Weak => ("says only that something died", 2.1),
        Worth::Downstream | Worth::Carrier | Worth::Line => ("only reports of a failure elsewhere", -0.6),
    }];
    let mut add = |name, weight| pieces.push((name, weight));
    if printed(root.traceback) {
        add("stands in a traceback", 0.6);
    } else if basis.witness.is_some_and(printed) {
        add("stands in a traceback of another process", 0.6);
    } else if root.traceback == Some(TracebackKind::Quoted) {
        add("only quoted by another process", -1.5);
    }
    if basis.witness.is_some() {
        add("another process says the same", 0.3);
    }
    match root.phase_basis {
        PhaseBasis::Frame => add("a known frame fixes the phase", 0.3),
        PhaseBasis::Text => add("the text fixes the phase", 0.3),
        PhaseBasis::Marker => add("the process's own markers tell the phase", 0.2),
        PhaseBasis::Others | PhaseBasis::Cause => {}
        PhaseBasis::None => add("no phase is known", -0.4),
    }
    if basis.names_by_guess() && root.worth == Worth::Strong {
        add("the phase, by which the cause is named, is that of others", -1.8);
    }
    match basis.phase_agrees {
        Some(true) => add("the phase fits the cause", 0.3),
        Some(false) => add("the phase does not fit the cause", -1.2),
        None => {}
    }
    if basis.explained > 0 {
        add("explains what followed", 0.5);
    }
    if basis.preceded {
        add("a report of the failure is older than the root", -0.9);
    }
    if basis.end_shown {
        add("the log shows the end", 0.3);
    } else {
        add("nothing in the log shows an end", -0.6);
    }
    if basis.retried && !basis.end_shown {
        add("tells of one try, not of the last", -1.5);
    }
    if !basis.head_shown {
        add("the log does not show the beginning", -0.1);
    }
    if basis.rivals > 0 {
        let counted = basis.rivals.min(MOST_RIVALS) as f64;
        add("earlier failures stay unexplained", -0.9 * counted);
    }
    if basis.undecided {
        add("whether it or another process's failure came first is not known", -0.3);
    }
    if basis.contested {
        add("another process states another cause", -0.5);
    }
    if root.after_ready && root.traceback.is_none() && root.exit.is_none() {
        add("the launch had been serving", -0.3);
    }
    pieces
}
