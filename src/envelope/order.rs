//! Which way the time runs in a source.
//!
//! Owns the recognition of newest-first exports. Compares stamps of any kind by their look; it reads no zone.

use memchr::memchr_iter;

use crate::time::Stamp;

/// How far into a line a stamp is looked for.
const REACH: usize = 200;

/// Falls it takes at least, when no stamp rises at all.
const FEW: usize = 3;

/// Whether the stamps of these lines fall throughout.
pub(super) fn is_newest_first<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    falls(lines.filter_map(key))
}

/// Whether these stamps fall throughout.
pub(super) fn are_newest_first<'a>(stamps: impl Iterator<Item = &'a Stamp>) -> bool {
    falls(stamps.map(|stamp| {
        let nanos = stamp.local.and_utc().timestamp_nanos_opt().unwrap_or_default();
        Key {
            form: u8::from(stamp.year_known),
            value: u128::try_from(nanos).unwrap_or_default(),
        }
    }))
}

fn falls(keys: impl Iterator<Item = Key>) -> bool {
    let (mut falls, mut rises) = (0usize, 0usize);
    let mut last: Option<Key> = None;
    for key in keys {
        // Stamps of different forms (one with a year, one without) cannot be compared.
        if let Some(last) = last.filter(|last| last.form == key.form) {
            match key.value.cmp(&last.value) {
                std::cmp::Ordering::Less => falls += 1,
                std::cmp::Ordering::Greater => rises += 1,
                std::cmp::Ordering::Equal => {}
            }
        }
        last = Some(key);
    }
    falls >= FEW && falls > rises * 9
}

/// A stamp as a number that grows with time.
#[derive(Clone, Copy)]
struct Key {
    form: u8,
    value: u128,
}

/// The first stamp of a line: `HH:MM:SS` with the date before it, if there is one.
fn key(line: &str) -> Option<Key> {
    let b = line.as_bytes();
    let b = b.get(..REACH).unwrap_or(b);
    // Colons are few.
    let clock = |colon: usize| {
        let at = colon.checked_sub(2)?;
        let clock = b.get(at..at + "HH:MM:SS".len())?;
        let is_one = matches!(clock, [h1 @ b'0'..=b'2', h2, b':', m1, m2, b':', s1, s2]
            if [h1, h2, m1, m2, s1, s2].iter().all(|c| c.is_ascii_digit()));
        is_one.then_some(at)
    };
    let at = memchr_iter(b':', b).find_map(clock)?;
    let digits = |range: &[u8]| {
        range
            .iter()
            .filter(|c| c.is_ascii_digit())
            .fold(0u128, |n, c| n * 10 + u128::from(c - b'0'))
    };
    let (before, rest) = b.split_at(at);
    let (clock, rest) = rest.split_at_checked("HH:MM:SS".len())?;
    let nanos = match rest {
        [b'.' | b',', fraction @ ..] => fraction
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .chain(std::iter::repeat(&b'0'))
            .take(9)
            .fold(0, |n, c| n * 10 + u128::from(c - b'0')),
        _ => 0,
    };
    let value = digits(clock) * 1_000_000_000 + nanos;
    let (form, date) = match before {
        [
            ..,
            y1,
            y2,
            y3,
            y4,
            b'-' | b'/',
            m1,
            m2,
            b'-' | b'/',
            d1,
            d2,
            b' ' | b'T',
        ] => (2, digits(&[*y1, *y2, *y3, *y4, *m1, *m2, *d1, *d2])),
        [.., m1, m2, b'-', d1, d2, b' '] => (1, digits(&[*m1, *m2, *d1, *d2])),
        [.., day1, day2, b' '] if day2.is_ascii_digit() => (0, digits(&[*day1, *day2])),
        _ => (0, 0),
    };
    Some(Key {
        form,
        value: date * 1_000_000_000_000_000 + value,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn falling_stamps() {
        let falling = [
            "2026-11-25T13:00:09Z c",
            "2026-11-25T13:00:08Z b",
            "  no stamp",
            "2026-11-25T13:00:08Z a",
            "2026-11-25T12:59:59Z x",
            "2026-11-24T23:00:00Z y",
        ];
        assert!(is_newest_first(falling.into_iter()));
        assert!(!is_newest_first(falling.into_iter().rev()));
        assert!(is_newest_first(
            [
                "INFO 11-25 13:00:09 x",
                "INFO 11-25 13:00:07 x",
                "INFO 11-25 13:00:06 x",
                "INFO 11-25 13:00:01 x"
            ]
            .into_iter()
        ));
    }

    #[test]
    fn interleaved_clocks_are_no_reverse() {
        let lines = (0..40).map(|i| format!("INFO 11-25 {:02}:00:{:02} x", if i % 2 == 0 { 13 } else { 12 }, i));
        let lines: Vec<String> = lines.collect();
        assert!(!is_newest_first(lines.iter().map(String::as_str)));
        assert!(!is_newest_first(["13:00:09", "13:00:08"].into_iter()));
    }
}
