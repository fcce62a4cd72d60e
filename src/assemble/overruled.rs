//! Advice printed in the log that is wrong for this cause on this evidence.
//!
//! Owns the choice of the lines that are quoted. What is wrong about which advice is data of the signature that
//! recognises it. Never searches a line.

use crate::catalog::Catalog;
use crate::launch::Launches;
use crate::remedy::{Evidence, conditions, template};
use crate::report::model::Overruled;
use crate::verdict::Verdict;

use super::places::Names;

/// Pieces of wrong advice that are quoted.
const MOST: usize = 5;

/// The advice to warn of, in order of the log; what is repeated counts once.
pub fn find(
    catalog: &Catalog,
    launches: &Launches,
    verdict: &Verdict,
    known: &Evidence<'_>,
    names: &Names<'_>,
) -> Vec<Overruled> {
    let family = format!("{}.*", known.family());
    let mut found: Vec<Overruled> = Vec::new();
    // Advice of an earlier attempt counts too: the change it led to may be what fails now.
    for index in (0..=verdict.attempt).flat_map(|attempt| launches.of_attempt(attempt)) {
        let Some(placed) = launches.events.get(index) else {
            continue;
        };
        let Some(signature) = catalog.signature(placed.event.signature) else {
            continue;
        };
        let wrong = &signature.def.wrong_advice;
        let Some(wrong) = wrong.get(known.cause).or_else(|| wrong.get(&family)) else {
            continue;
        };
        if !wrong.when.iter().all(|condition| conditions::holds(condition, known)) {
            continue;
        }
        let place = &placed.event.place;
        let text = match &wrong.advice {
            Some(advice) => template::fill(advice, &[], known),
            None => Some(place.text.to_string()),
        };
        let Some((text, why)) = text.zip(template::fill(&wrong.why, &[], known)) else {
            continue;
        };
        if found.len() < MOST && found.iter().all(|other| other.why != why) {
            let (input, line) = (names.input(place.input), place.line);
            found.push(Overruled { input, line, text, why });
        }
    }
    found
}
