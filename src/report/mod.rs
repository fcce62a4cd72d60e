//! The report model and its views.

pub mod model;
