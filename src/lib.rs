//! coroner reads the logs of a failed LLM inference launch and says why it died, in which phase, in which
//! process, on which evidence, and what to change first.
// Logs are hostile text, and nothing in them may end the program. Tests may panic; that is how they fail.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::string_slice
    )
)]

pub mod assemble;
pub mod batch;
pub mod catalog;
pub mod cli;
pub mod dialect;
pub mod envelope;
pub mod event;
pub mod examine;
pub mod explain;
pub mod intake;
pub mod launch;
pub mod ledger;
pub mod pack;
pub mod record;
pub mod redact;
pub mod remedy;
pub mod report;
pub mod store;
pub mod territory;
pub mod time;
pub mod verdict;

pub use examine::{AttemptChoice, Examiner, Options, examine};
