//! The catalog: what messages mean, as data.

pub mod schema;
