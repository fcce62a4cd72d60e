//! Rule packs: what can be said of rules that users write, before they are relied upon.
//!
//! Owns the check of a pack (`check`), which words its entries may use (`words`), and the skeleton of a rule for a
//! failure that none knows (`draft`). What a pack does to the built-in rules is `catalog::pack`. Never opens a file.

pub mod check;
pub mod draft;
mod mask;
mod words;
