//! Remedies: which changes fit this cause on this evidence, in which order, with which values.
//!
//! Owns the choice, the ranking and the sums. The remedies themselves are data of the catalog. Never reads a log and
//! never changes the verdict.

pub mod conditions;
pub mod evidence;
pub mod formulas;
pub mod patch;
pub mod select;
pub mod template;
pub mod units;
pub mod versions;

#[cfg(test)]
mod data_tests;
#[cfg(test)]
mod version_tests;

pub use evidence::Evidence;
pub use select::{Advice, advise};
