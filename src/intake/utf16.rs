//! UTF-16 with a byte-order mark, as Windows shells redirect it, read as UTF-8.
//!
//! Owns the conversion. Never fails on bad units: each becomes U+FFFD.

use std::io::{self, Read};

/// The order of the two bytes of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Low byte first.
    Little,
    /// High byte first.
    Big,
}

impl Order {
    fn unit(self, pair: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(pair),
            Self::Big => u16::from_be_bytes(pair),
        }
    }
}

/// Reads UTF-16 and gives UTF-8; the mark itself is expected at the start and left out.
pub struct Utf16<R> {
    inner: R,
    order: Order,
    /// Bytes read, not yet converted: at most three between calls.
    raw: Vec<u8>,
    /// Converted text not yet given out.
    text: Vec<u8>,
    given: usize,
    at_start: bool,
    eof: bool,
}

const BLOCK: usize = 64 << 10;

impl<R: Read> Utf16<R> {
    /// A reader of the units of `inner`.
    pub fn new(inner: R, order: Order) -> Self {
        Self {
            inner,
            order,
            raw: Vec::new(),
            text: Vec::new(),
            given: 0,
            at_start: true,
            eof: false,
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        let held = self.raw.len();
        self.raw.resize(held + BLOCK, 0);
        let read = self.inner.read(self.raw.get_mut(held..).unwrap_or_default());
        self.raw.truncate(held + *read.as_ref().unwrap_or(&0));
        self.eof = read? == 0;

        self.text.clear();
        self.given = 0;
        let (mut units, odd) = self.raw.as_chunks::<2>();
        // The first half of a pair waits for the second.
        if !self.eof
            && let Some((last, before)) = units.split_last()
            && (0xd800..0xdc00).contains(&self.order.unit(*last))
        {
            units = before;
        }
        let mut whole = units.len() * 2;
        let mut text = String::with_capacity(whole);
        let units = units.iter().map(|pair| self.order.unit(*pair));
        text.extend(char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)));
        if self.eof && !odd.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            whole = self.raw.len();
        }
        self.raw.drain(..whole);
        if self.at_start && !text.is_empty() {
            self.at_start = false;
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
        }
        self.text = text.into_bytes();
        Ok(())
    }
}

impl<R: Read> Read for Utf16<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        while self.given == self.text.len() && !self.eof {
            self.refill()?;
        }
        let n = self.text.get(self.given..).unwrap_or_default().read(buf)?;
        self.given += n;
        Ok(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Drop1<'a>(&'a [u8], usize);
    impl Read for Drop1<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(self.0.len());
            buf[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    #[test]
    fn both_orders_and_every_cut_between_blocks() {
        let text = "\u{feff}ERROR ä 😀 done\r\n";
        for order in [Order::Little, Order::Big] {
            let bytes: Vec<u8> = text
                .encode_utf16()
                .flat_map(|u| {
                    if order == Order::Little {
                        u.to_le_bytes()
                    } else {
                        u.to_be_bytes()
                    }
                })
                .collect();
            for step in 1..9 {
                let mut out = String::new();
                Utf16::new(Drop1(&bytes, step), order).read_to_string(&mut out).unwrap();
                assert_eq!(out, "ERROR ä 😀 done\r\n", "{order:?} in steps of {step}");
            }
        }
    }

    #[test]
    fn bad_units_and_an_odd_end_are_replaced() {
        let mut out = String::new();
        let bytes = b"\xff\xfea\x00\x00\xd8b\x00\x00\xd8c";
        Utf16::new(&bytes[..], Order::Little).read_to_string(&mut out).unwrap();
        assert_eq!(out, "a\u{fffd}b\u{fffd}\u{fffd}");
    }
}
