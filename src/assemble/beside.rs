//! The other servers of an incident: replicas of the one that the report is on, or those that share its work.
//!
//! Owns the wording. Never judges: the verdicts stand already.

use crate::report::model::{Finding, Outcome};
use crate::report::text::capital;
use crate::verdict::replicas::Beside;

use super::waits::finding;

/// Servers named of one kind.
const MOST_NAMES: usize = 4;

/// What became of the servers beside the one that the report is on, or of all where it is on all; with the part that
/// this one has in the service.
pub(super) fn tell(beside: &[Beside], failed: bool, part: Option<&str>) -> Option<Finding> {
    let first = beside.first()?;
    let told = match (beside, part, &first.part) {
        ([other], Some(own), Some(part)) if failed => {
            format!(
                "the {own} server failed; the {part} server, {}, {}",
                other.name,
                state(other, false)
            )
        }
        ([other], ..) => format!("another server in these logs, {}, {}", other.name, state(other, false)),
        _ => all(beside, failed),
    };
    let severity = if failed { "warning" } else { "info" };
    Some(finding("servers.beside", severity, &capital(&told)))
}

/// What became of several, those with the same fate together.
fn all(beside: &[Beside], failed: bool) -> String {
    let mut fates: Vec<(String, Vec<&Beside>)> = Vec::new();
    for one in beside {
        let fate = state(one, true);
        match fates.iter_mut().find(|(known, _)| *known == fate) {
            Some((_, of)) => of.push(one),
            None => fates.push((fate, vec![one])),
        }
    }
    let other = if failed { "other " } else { "" };
    let named = |of: &[&Beside]| {
        let names: Vec<&str> = of.iter().take(MOST_NAMES).map(|one| &*one.name).collect();
        match of.len().saturating_sub(MOST_NAMES) {
            0 => format!(" ({})", names.join(", ")),
            more => format!(" ({} and {more} more)", names.join(", ")),
        }
    };
    if let [(fate, of)] = fates.as_slice() {
        return format!("{} {other}servers in these logs {fate}{}", of.len(), named(of));
    }
    let parts = fates.iter().map(|(fate, of)| match of.as_slice() {
        [one] => format!("one {}{}", state(one, false), named(of)),
        _ => format!("{} {fate}{}", of.len(), named(of)),
    });
    let parts: Vec<String> = parts.collect();
    format!("of {} {other}servers in these logs {}", beside.len(), parts.join(", "))
}

/// What became of a server, or of several.
fn state(one: &Beside, many: bool) -> String {
    let (is, has) = if many { ("are", "have") } else { ("is", "has") };
    let phase = one.phase.as_deref();
    match one.outcome {
        Outcome::Healthy | Outcome::Degraded => if many { "serve" } else { "serves" }.to_owned(),
        Outcome::Stopped => "ended in good order".to_owned(),
        Outcome::Failed => format!("failed too, of {}", one.cause.as_deref().unwrap_or("an unknown cause")),
        Outcome::Running => phase.map_or_else(
            || format!("{has} not come up"),
            |phase| format!("{is} still in {phase}"),
        ),
        Outcome::NoLaunch => format!("{has} not been started"),
    }
}
