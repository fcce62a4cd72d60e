//! Units of the sums: GiB, shares of a total, and tokens.
//!
//! Owns their arithmetic, rounding and how they are printed. A GiB added to a share does not compile.

use std::fmt;
use std::ops::{Add, Div, Mul, Sub};

/// Memory in GiB (2^30 bytes), which is what vLLM, SGLang, torch and Ray mean by "GB" as well.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Gib(pub f64);

/// A share of a total, 0.0–1.0.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Share(pub f64);

/// A length or a capacity in tokens.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Tokens(pub f64);

/// Slack for the error of binary fractions when rounding: 0.87 * 100 must stay 87.
const EPSILON: f64 = 1e-6;

impl Gib {
    /// The larger of two.
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// With its unit, below one GiB in MiB: `41.06 MiB`, `79.19 GiB`.
    pub fn in_words(self) -> String {
        if self.0 != 0.0 && self.0.abs() < 1.0 {
            format!("{:.2} MiB", self.0 * 1024.0)
        } else {
            format!("{:.2} GiB", self.0)
        }
    }
}

impl Share {
    /// Rounded down to 0.01.
    pub fn floor(self) -> Self {
        Self((self.0 * 100.0 + EPSILON).floor() / 100.0)
    }

    /// Rounded up to 0.01.
    pub fn ceil(self) -> Self {
        Self((self.0 * 100.0 - EPSILON).ceil() / 100.0)
    }
}

impl Add for Gib {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Gib {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Div for Gib {
    type Output = Share;
    fn div(self, total: Self) -> Share {
        Share(self.0 / total.0)
    }
}

impl Add for Share {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Share {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<Gib> for Share {
    type Output = Gib;
    fn mul(self, total: Gib) -> Gib {
        Gib(self.0 * total.0)
    }
}

impl Tokens {
    /// Rounded down to a multiple.
    pub fn floor_to(self, step: Self) -> Self {
        Self((self.0 / step.0).floor() * step.0)
    }
}

impl Mul<Share> for Tokens {
    type Output = Self;
    fn mul(self, share: Share) -> Self {
        Self(self.0 * share.0)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}", self.0)
    }
}

impl fmt::Display for Gib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Two decimals hide what decides at a threshold: 0.065 GiB over 0.95 of the pool.
        let digits = if self.0 != 0.0 && self.0.abs() < 0.1 { 3 } else { 2 };
        write!(f, "{:.digits$}", self.0)
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = self.0 * 100.0;
        let digits = if (hundredths - hundredths.round()).abs() < 1e-3 {
            2
        } else {
            4
        };
        write!(f, "{:.digits$}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_survives_binary_fractions() {
        assert_eq!(Share(0.87).floor(), Share(0.87));
        assert_eq!(Share(0.29).ceil(), Share(0.29));
        assert_eq!(Share(0.8745).floor().to_string(), "0.87");
        assert_eq!(Share(0.9231).ceil().to_string(), "0.93");
    }

    #[test]
    fn small_amounts_keep_a_third_digit() {
        assert_eq!(Gib(0.065).to_string(), "0.065");
        assert_eq!(Gib(113.78).to_string(), "113.78");
        assert_eq!(Gib(0.0).to_string(), "0.00");
    }
}
