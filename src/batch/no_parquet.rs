//! What stands for Parquet tables where the program is built without them.
//!
//! Owns the message that says so. Never holds anything.

use std::convert::Infallible;
use std::io;

use super::digest::Digest;

/// A table that there is none of.
pub struct Table(Infallible);

impl Table {
    /// Tells how to have them.
    ///
    /// # Errors
    /// Always.
    pub fn new() -> io::Result<Self> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this coroner is built without Parquet: build it with `cargo install --path . --features parquet`",
        ))
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn row(&mut self, _: &Digest, _: Option<&str>) -> io::Result<Vec<u8>> {
        match self.0 {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn end(self) -> io::Result<Vec<u8>> {
        match self.0 {}
    }
}
