//! Looking for the next tier-1 line of a large file with several threads.
//!
//! Owns how the rest of a file is cut into units that are looked through at once, and how far may be passed over then.
//! What a walk finds there it finds without this too, only later. Never reads a line for its listener.

use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memchr_iter};
use rayon::prelude::*;

use super::{EDGE, Found, Walk};
use crate::intake::Ahead;

/// Bytes that one thread looks through at a time. Four times what territory reaches back.
const UNIT: usize = 4 * EDGE;
/// Bytes behind a unit in which its last line has to end.
const OVERLAP: usize = EDGE / 4;
/// Units looked through together: few where a hit may be near, more as long as there is none.
const FEWEST: usize = 4;
const MOST: usize = 64;
/// Bytes that are looked through in turn after nothing could be passed over.
const PATIENCE: u64 = 8 * UNIT as u64;

/// The scouts of one file.
#[derive(Debug)]
pub(super) struct Scouts {
    ahead: Ahead,
    /// Units of the next look.
    units: usize,
    /// Where the next look is worth its while.
    not_before: u64,
    /// What each thread reads into.
    rooms: Vec<Vec<u8>>,
}

/// How far a walk may go on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Leap {
    /// The start of a line, in bytes from the start of the file.
    pub(super) to: u64,
    /// Lines passed over.
    pub(super) lines: u64,
}

/// A stretch of a file.
struct Unit {
    /// Where its first line begins.
    begin: u64,
    /// Lines that begin in it.
    lines: u64,
}

impl Scouts {
    /// Scouts of a file.
    pub(super) fn of(ahead: Ahead) -> Self {
        Self {
            ahead,
            units: FEWEST,
            not_before: 0,
            rooms: vec![Vec::new(); rayon::current_num_threads()],
        }
    }

    /// Whether a file is large enough for scouts and there are threads for them: one that examines one file of many is
    /// not to wait for others. The size is asked first, because the threads start when they are counted.
    pub(super) fn are_worth_it(ahead: &Ahead) -> bool {
        units(ahead.size()) >= FEWEST && rayon::current_thread_index().is_none() && rayon::current_num_threads() > 1
    }

    /// How far behind the line at byte `from` a walk may go on, if that is further than `reached`.
    pub(super) fn look(&mut self, walk: &Walk, from: u64, reached: u64) -> Option<Leap> {
        let units = units(self.ahead.size().saturating_sub(from)).min(self.units);
        if from < self.not_before || units < FEWEST {
            return None;
        }
        let (ahead, next) = (&self.ahead, AtomicUsize::new(0));
        // Each thread takes the next unit when it is done with one: a thread that is held up holds up no other.
        let take = |room: &mut Vec<u8>| -> Vec<(usize, Option<Unit>)> {
            let own = iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|n| *n < units);
            own.map(|n| (n, look_through(ahead, room, from + (n * UNIT) as u64, n == 0, walk)))
                .collect()
        };
        let mut looked: Vec<_> = self.rooms.par_iter_mut().flat_map_iter(take).collect();
        looked.sort_unstable_by_key(|(n, _)| *n);
        let clean: Vec<Unit> = looked.into_iter().map_while(|(_, unit)| unit).collect();
        self.units = match clean.len() == units {
            true => MOST.min(2 * units),
            false => FEWEST,
        };
        // The last one is what a tier-1 line behind it may reach back into.
        let leap = clean.split_last().map(|(last, before)| Leap {
            to: last.begin,
            lines: before.iter().map(|unit| unit.lines).sum(),
        });
        let leap = leap.filter(|leap| leap.to > reached);
        if leap.is_none() {
            self.not_before = from + PATIENCE;
        }
        leap
    }

    /// Lets the reader of the file go on behind `reached`.
    pub(super) fn leap(&self, leap: &Leap, reached: u64) {
        self.ahead.pass(leap.to - reached);
    }
}

/// The units of so many bytes at the end of a file; the last two are read in any case.
fn units(bytes: u64) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    bytes.saturating_sub(2 * UNIT) / UNIT
}

/// Looks through the lines that begin in one unit. `None` if one of them is tier 1, or if that cannot be told.
fn look_through(ahead: &Ahead, room: &mut Vec<u8>, at: u64, line_begins: bool, walk: &Walk) -> Option<Unit> {
    // With the byte before it, which tells whether a line begins with the first one.
    let margin = usize::from(!line_begins);
    room.resize(margin + UNIT + OVERLAP, 0);
    let read = ahead.read(room, at - margin as u64).ok()?;
    let text = room.get(..read)?;
    let behind_end = |from: usize| Some(from + memchr(b'\n', text.get(from..)?)? + 1);
    let begin = match line_begins {
        true => 0,
        false => behind_end(0)?,
    };
    let end = behind_end(margin + UNIT - 1)?;
    let lines = text.get(begin..end)?;
    match walk.look(lines, 0, true) {
        Found::Line(_) => None,
        Found::Nothing(_) => Some(Unit {
            begin: at - margin as u64 + begin as u64,
            lines: memchr_iter(b'\n', lines).count() as u64,
        }),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::intake::{InputSpec, Limits, LineReader, Source};
    use crate::territory::Gates;
    use crate::territory::tests::Reading;

    const SERVING: &str = "INFO 10.0.0.1 - GET /v1/completions 200 OK, 12 ms\n";

    /// A file of this text, open; its name is gone.
    fn source(text: &[u8]) -> Source {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        InputSpec::file(file.path()).open(&Limits::default()).unwrap()
    }

    /// What a walk reads and counts, with or without scouts.
    fn walked(text: &[u8], with_scouts: bool) -> (Vec<u64>, u64) {
        let source = source(text);
        let mut walk = Walk::new(Gates::standard());
        walk.scouts = with_scouts.then(|| Scouts::of(source.ahead().unwrap().clone()));
        let mut lines = LineReader::new(source, &Limits::default());
        let mut reading = Reading::of(text);
        while walk.step(&mut lines, &mut reading).unwrap() {}
        assert_eq!(lines.bytes(), text.len() as u64);
        (reading.read, reading.counted)
    }

    fn serving(bytes: usize) -> Vec<u8> {
        SERVING.repeat(bytes / SERVING.len()).into_bytes()
    }

    /// A log with something in it after so many bytes.
    fn with(parts: &[(usize, &str)]) -> Vec<u8> {
        let mut text = Vec::new();
        for (bytes, line) in parts {
            text.extend(serving(*bytes));
            text.extend_from_slice(line.as_bytes());
        }
        text.extend(serving(7 * UNIT));
        text
    }

    fn look(text: &[u8], from: usize) -> Option<(usize, u64)> {
        let mut scouts = Scouts::of(source(text).ahead().unwrap().clone());
        let leap = scouts.look(&Walk::new(Gates::standard()), from as u64, from as u64 + 10)?;
        Some((usize::try_from(leap.to).unwrap(), leap.lines))
    }

    #[test]
    fn a_leap_ends_with_a_line_a_unit_before_what_was_found() {
        let text = with(&[(3 * UNIT, "ValueError: it is over\n")]);
        let from = 2 * SERVING.len();
        let (to, lines) = look(&text, from).unwrap();
        assert!((from + UNIT..from + UNIT + SERVING.len()).contains(&to), "{to}");
        assert_eq!(text[to - 1], b'\n');
        assert_eq!(lines, memchr_iter(b'\n', &text[from..to]).count() as u64);
        // Nothing within the first unit.
        assert_eq!(look(&with(&[(UNIT / 2, "ValueError: it is over\n")]), from), None);
        // The end of a source is no one's to pass over.
        assert_eq!(look(&serving(5 * UNIT), from), None);
        // A line without an end in reach is none to leap behind.
        assert_eq!(look(&[serving(UNIT / 2), vec![b'x'; 20 * UNIT]].concat(), from), None);
    }

    #[test]
    fn a_walk_with_scouts_reads_what_one_without_reads() {
        let long = format!("INFO {}\n", "x".repeat(3 * UNIT));
        let late = format!("INFO {}ValueError: late\n", "x".repeat(2 * UNIT));
        let failure = "ValueError: it is over\n";
        let logs = [
            with(&[]),
            with(&[(7 * UNIT, failure)]),
            with(&[(9 * UNIT - 5, failure), (UNIT, failure), (6 * UNIT, failure)]),
            with(&[(6 * UNIT, &long), (10, failure)]),
            with(&[(6 * UNIT, &late), (5 * UNIT, failure)]),
            // As long as a unit, and about as long as what fills the window.
            with(&[
                (6 * UNIT, &long[long.len() - UNIT..]),
                (UNIT / 2, &long[long.len() - UNIT - 40_000..]),
            ]),
            with(&[
                (8 * UNIT, "INFO non-default args: {}\n"),
                (UNIT, "INFO Application startup complete.\n"),
            ]),
            with(&[(UNIT / 100, failure); 400]),
        ];
        // Wherever in the window a leap lets the failure come to stand.
        let shifted = (0..4).map(|n| with(&[(4 * UNIT + n * EDGE, failure)]));
        for (n, text) in logs.into_iter().chain(shifted).enumerate() {
            let (plain, scouted) = (walked(&text, false), walked(&text, true));
            assert!(plain == scouted, "log {n}");
        }
    }
}
