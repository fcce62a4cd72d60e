//! What the attempt died of whose leftover this one met: it is not mended by removing the leftover.
//!
//! Owns the choice of that attempt and what is said of it. Never decides that there is a leftover.

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::remedy::{Advice, advise};
use crate::report::model::{Outcome, Remedy};
use crate::verdict::Verdict;

use super::facts::{self, GONE_BEFORE};

/// The attempt that failed by itself, and its first remedy.
pub struct Before {
    /// Its number, from 1.
    pub attempt: usize,
    /// Its cause.
    pub cause: String,
    /// The weights of a rank, as it had them.
    pub weights_gib: Option<f64>,
    remedy: Option<Remedy>,
}

/// The last attempt before this one that did not itself die of memory that was gone before it began.
pub fn before(catalog: &Catalog, launches: &Launches, verdict: &Verdict, all: &[Verdict]) -> Option<Before> {
    verdict.cause.as_deref().filter(|cause| GONE_BEFORE.contains(cause))?;
    let failed = |v: &&Verdict| v.attempt < verdict.attempt && v.outcome == Outcome::Failed;
    let own = |v: &&Verdict| v.cause.as_deref().is_some_and(|cause| !GONE_BEFORE.contains(&cause));
    let earlier = all.iter().rev().filter(failed).find(own)?;
    let cause = earlier.cause.clone()?;
    // Of what says only that something died, the next start need not die again.
    catalog.cause(&cause).filter(|def| def.strength == "strong")?;
    let root = earlier.failures.get(earlier.root?)?;
    let facts = facts::gather(catalog, launches, earlier);
    let reason = launches
        .signature(catalog, root.event)
        .and_then(|s| s.def.reason.as_deref());
    let known = facts.advice_evidence(&cause, reason, earlier, launches, root);
    let advice = advise(catalog.cause(&cause), catalog.remedies_of(&cause), &known);
    Some(Before {
        attempt: earlier.attempt + 1,
        weights_gib: facts.figures.get("weights_gib").copied(),
        remedy: advice.remedies.into_iter().next(),
        cause,
    })
}

impl Before {
    /// What the story adds.
    pub fn sentence(&self) -> String {
        format!(
            "Attempt {} died of {}: with the memory free again, the same command meets that next.",
            self.attempt, self.cause
        )
    }

    /// Puts its remedy behind the one that frees the memory.
    pub fn add_to(&self, advice: &mut Advice) {
        let Some(remedy) = self
            .remedy
            .as_ref()
            .filter(|r| advice.remedies.iter().all(|own| own.id != r.id))
        else {
            return;
        };
        let why = format!("Attempt {} died of {}. {}", self.attempt, self.cause, remedy.why);
        let remedy = Remedy {
            why,
            patch: Vec::new(),
            ..remedy.clone()
        };
        advice.remedies.insert(advice.remedies.len().min(1), remedy);
        for (i, remedy) in advice.remedies.iter_mut().enumerate() {
            remedy.rank = i + 1;
        }
        advice.retry.after = Some(format!(
            "the memory is free, and what attempt {} died of is changed",
            self.attempt
        ));
    }
}
