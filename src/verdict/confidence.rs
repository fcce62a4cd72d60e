//! How sure a verdict is, as a sum of named terms.
//!
//! Owns the terms and their weights. The weights were set by hand from what each kind of evidence proves and checked
//! against the reliability table of the labelled logs; they are not fitted to single cases.

use crate::event::TracebackKind;

use super::failure::{Failure, Worth};
use super::phase::PhaseBasis;

/// What the terms are computed from.
pub struct Basis<'a> {
    /// The root.
    pub root: &'a Failure,
    /// Whether a signature, not structure alone, recognised it.
    pub by_signature: bool,
    /// Whether the phase is among those in which the signature can occur; `None` if it names none.
    pub phase_agrees: Option<bool>,
    /// Failures that the root explains, copies not counted.
    pub explained: usize,
    /// How a process other than the root's teller printed the same cause, best first.
    pub witness: Option<Option<TracebackKind>>,
    /// Strong failures of other causes that nothing explains.
    pub rivals: usize,
    /// Whether anything shows that the launch ended: a carrier, an exit, an uncaught exception.
    pub end_shown: bool,
    /// Whether the launch's own beginning is in the log.
    pub head_shown: bool,
}

/// The terms; their sum, held between 0.05 and 0.99, is the confidence.
pub fn terms(basis: &Basis<'_>) -> Vec<(String, f64)> {
    let root = basis.root;
    let mut terms: Vec<(String, f64)> = Vec::new();
    let mut add = |name: &str, value: f64| terms.push((name.to_owned(), value));
    match root.worth {
        Worth::Strong => add("the text names the mechanism", 0.62),
        Worth::Generic => add("the text names the family, not the mechanism", 0.5),
        Worth::Unknown => add("an exception no rule knows", 0.3),
        Worth::Weak => add("says only that something died", 0.38),
        Worth::Downstream | Worth::Carrier | Worth::Line => add("only reports of a failure elsewhere", 0.2),
    }
    if root.worth == Worth::Strong && basis.by_signature {
        add("recognised by a signature", 0.1);
    }
    let printed = |kind| {
        matches!(
            kind,
            Some(TracebackKind::Logged | TracebackKind::Raw | TracebackKind::Native)
        )
    };
    match root.traceback {
        kind if printed(kind) => add("stands in a traceback", 0.08),
        _ if basis.witness.is_some_and(printed) => add("stands in a traceback of another process", 0.08),
        Some(TracebackKind::Quoted) => add("only quoted by another process", -0.15),
        _ => {}
    }
    if basis.witness.is_some() {
        add("another process says the same", 0.04);
    }
    match root.phase_basis {
        PhaseBasis::Frame => add("a known frame fixes the phase", 0.06),
        PhaseBasis::Text => add("the text fixes the phase", 0.05),
        PhaseBasis::Marker => add("the process's own markers tell the phase", 0.03),
        PhaseBasis::Others | PhaseBasis::Cause => {}
        PhaseBasis::None => add("no phase is known", -0.05),
    }
    match basis.phase_agrees {
        Some(true) => add("the phase fits the cause", 0.04),
        Some(false) => add("the phase does not fit the cause", -0.15),
        None => {}
    }
    if basis.explained > 0 {
        add("explains what followed", 0.06);
    }
    if basis.end_shown {
        add("the log shows the end", 0.04);
    }
    if !basis.head_shown {
        add("the log does not show the beginning", -0.03);
    }
    if basis.rivals > 0 {
        add("other failures stay unexplained", -0.12 * basis.rivals.min(3) as f64);
    }
    if root.after_ready && root.traceback.is_none() && root.exit.is_none() {
        add("the launch had been serving", -0.05);
    }
    terms
}

/// The confidence of the terms for a root of this worth. Weak causes never reach 0.7.
pub fn total(terms: &[(String, f64)], worth: Worth) -> f64 {
    let cap = match worth {
        Worth::Strong => 0.99,
        Worth::Generic => 0.85,
        Worth::Unknown | Worth::Weak => 0.65,
        _ => 0.4,
    };
    let sum: f64 = terms.iter().map(|(_, v)| v).sum();
    (sum.clamp(0.05, cap) * 100.0).round() / 100.0
}
