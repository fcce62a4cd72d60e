//! Turns records into events: one grammar per program, message look-up in the catalog, tracebacks put together.
//!
//! Owns the reader of one source. Knows text and nothing of launches: it gives no cause, compares no two
//! processes and keeps no phase. One record yields at most one event.

pub mod header;
mod kept;
mod ray_carrier;
pub mod reader;
pub mod settings;
pub mod traceback;

pub use traceback::exception_line;
