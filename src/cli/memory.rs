//! `--max-memory`, which examinations and scans share.
//!
//! Owns its parser and what it means for the limits. Never measures memory.

use clap::Args;

use crate::intake::Limits;

/// How much memory is taken.
#[derive(Debug, Clone, Copy, Args)]
pub struct Memory {
    /// Memory that one examination may take, such as 256MiB or 4GiB; without it 1GiB. What does not fit is left out
    /// and named in the report
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<u64>,
}

impl Memory {
    /// The limits of an examination.
    pub fn limits(self) -> Limits {
        Limits::within(self.max_memory.unwrap_or(Limits::MEMORY))
    }
}

/// `512MiB`, `2GiB`, `4G`, `1000MB`: bytes. A unit is needed, and 64 MiB are the least.
fn size(text: &str) -> Result<u64, String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale: u64 = match unit.to_ascii_lowercase().as_str() {
        "k" | "kib" => 1 << 10,
        "kb" => 1000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        _ => return Err("give a size with its unit, such as 256MiB or 4GiB".to_owned()),
    };
    let bytes = number.trim_end().parse::<u64>().ok().and_then(|n| n.checked_mul(scale));
    match bytes {
        None => Err("give a whole number with its unit, such as 256MiB or 4GiB".to_owned()),
        Some(bytes) if bytes < Limits::LEAST_MEMORY => Err("the program and its rules need 64MiB".to_owned()),
        Some(bytes) => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("2g"), Ok(2 << 30));
        assert_eq!(size("1000 MB"), Ok(1_000_000_000));
        for bad in [
            "",
            "1",
            "MiB",
            "-1GiB",
            "1.5GiB",
            "1e309GiB",
            "1TiB",
            "63MiB",
            "99999999999999999999GiB",
        ] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
