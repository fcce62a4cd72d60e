//! The walk over blocks against the rule line by line, and its bounds.

use std::io::{self, Read};

use proptest::prelude::*;

use super::{EDGE, Gates, Heard, Listener, REACH, Voice, Walk, repeats::Repeats};
use crate::intake::{Limits, Line, LineReader};

const BEGIN: &str = "INFO non-default args: {}";
const READY: &str = "INFO Application startup complete.";

/// Gives at most `most` bytes a read.
struct Drip<'a>(&'a [u8], usize);

impl Read for Drip<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.1.min(buf.len()).min(self.0.len());
        buf[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

/// A stand-in for the reader: a launch is under way from its first line to its ready marker.
fn launching(now: &mut bool, line: &[u8]) -> bool {
    let holds = |text: &str| memchr::memmem::find(line, text.as_bytes()).is_some();
    *now = (*now || holds(BEGIN)) && !holds(READY);
    *now
}

/// What stands behind the last carriage return of a line.
fn shown(line: &[u8]) -> &[u8] {
    line.rsplit(|&b| b == b'\r').next().unwrap_or_default()
}

/// Notes which lines it is given.
pub(super) struct Reading<'t> {
    text: &'t [u8],
    pub(super) read: Vec<u64>,
    echoes: Vec<(u64, usize)>,
    pub(super) counted: u64,
    now: bool,
    launches: u64,
    /// Bytes that are shown of the last line.
    shown: usize,
}

impl<'t> Reading<'t> {
    pub(super) fn of(text: &'t [u8]) -> Self {
        Self {
            text,
            read: Vec::new(),
            echoes: Vec::new(),
            counted: 0,
            now: false,
            launches: 0,
            shown: 0,
        }
    }
}

impl Listener for Reading<'_> {
    fn line(&mut self, line: &Line<'_>) -> Heard {
        let start = usize::try_from(line.byte).unwrap();
        let within = start > 0 && self.text[start - 1] != b'\n';
        assert!(!within, "line {} begins within one", line.no);
        self.read.push(line.no);
        self.shown = shown(line.bytes).len();
        let launching = launching(&mut self.now, line.bytes);
        self.launches += u64::from(line.bytes.starts_with(BEGIN.as_bytes()));
        Heard {
            launching,
            launches: self.launches,
            idle: !line.bytes.ends_with(b"open"),
        }
    }

    fn quiet(&self) -> Option<Voice> {
        Some(Voice {
            speaker: 3,
            shown: self.shown,
            counted: false,
        })
    }

    fn always_quiet(&self, line: &Line<'_>) -> bool {
        line.bytes.ends_with(b"via P2P") || line.bytes.ends_with(b"it/s]")
    }

    fn echo(&mut self, line: u64, shown: &[u8], Voice { speaker, .. }: Voice) {
        assert!(!shown.contains(&b'\r'), "line {line}");
        self.echoes.push((line, speaker));
    }

    fn echoed(&mut self, last: &[(u64, &[u8])]) {
        let noted = self.echoes.iter().map(|(line, _)| *line);
        let last: Vec<u64> = last.iter().map(|(line, _)| *line).collect();
        assert!(!last.is_empty() && noted.rev().zip(last.iter().rev()).all(|(a, b)| a == *b));
    }

    fn pass(&mut self, lines: u64) {
        self.counted += lines;
    }
}

fn reading(text: &[u8], drip: usize) -> (Reading<'_>, u64) {
    let mut lines = LineReader::new(Drip(text, drip), &Limits::default());
    let mut reading = Reading::of(text);
    let mut walk = Walk::new(Gates::standard());
    while walk.step(&mut lines, &mut reading).unwrap() {}
    assert_eq!(lines.bytes(), text.len() as u64);
    let counted = reading.counted;
    (reading, counted)
}

fn walked(text: &[u8], drip: usize) -> (Vec<u64>, u64) {
    let (reading, counted) = reading(text, drip);
    (reading.read, counted)
}

#[test]
fn while_a_launch_is_under_way_echoes_are_noted_only() {
    let head = "INFO serving\n".repeat(EDGE / 13 + 1);
    let quiet = |n: usize| format!("node-a:1:2 [0] NCCL INFO Channel {n} via P2P\n");
    let many: String = (10..99).map(quiet).collect();
    let text = |between: &str| format!("{head}{BEGIN}\n{many}{between}{many}{READY}\n");
    let first = (EDGE / 13 + 2) as u64;
    let log = text("");
    let (plain, counted) = reading(log.as_bytes(), 1000);
    assert_eq!((plain.echoes.len(), counted), (2 * 89 - 2, 0));
    assert_eq!(plain.echoes[0], (first + 3, 3));
    // What is unfinished may go on in the next line.
    let log = text("a traceback is open\n");
    let (open, _) = reading(log.as_bytes(), 1000);
    assert_eq!(open.echoes.len(), 2 * 89 - 2 - 1);
    // A new launch forgets what was heard in the one before.
    let log = text(&format!("{READY}\n{BEGIN}\n"));
    let (again, _) = reading(log.as_bytes(), 1000);
    assert_eq!(again.echoes.len(), 2 * (89 - 2));
}

#[test]
fn while_a_launch_is_under_way_bars_that_are_shown_again_are_noted_only() {
    let head = "INFO serving\n".repeat(EDGE / 13 + 1);
    let state = |n: usize| format!("\rCapturing:  {n}%|##  | {n}/99 [00:00<00:09,  2.1it/s]");
    let bar = |from: usize| (from..from + 30).map(state).collect::<String>() + "\n";
    let bars: String = (0..50).map(|_| bar(10)).collect();
    let log = format!("{head}{BEGIN}\n{bars}{}Error\n{READY}\n", bar(20).trim_end());
    let (reading, counted) = reading(log.as_bytes(), 1000);
    let first = (EDGE / 13 + 2) as u64;
    let noted: Vec<u64> = reading.echoes.iter().map(|(line, _)| *line).collect();
    assert_eq!((noted, counted), ((first + 3..=first + 50).collect(), 0));
}

/// The rule, with all lines at hand.
fn by_rule(text: &[u8]) -> Vec<u64> {
    let lines: Vec<&[u8]> = text.split_inclusive(|&b| b == b'\n').collect();
    let starts: Vec<usize> = lines
        .iter()
        .scan(0, |at, line| Some(std::mem::replace(at, *at + line.len())))
        .collect();
    let bare = |i: usize| lines[i].strip_suffix(b"\n").unwrap_or(lines[i]);
    let last = text.len().saturating_sub(EDGE);
    let gates = Gates::standard();
    let (mut repeats, mut now, mut left) = (Repeats::default(), false, 0);
    let (mut read, mut next) = (Vec::new(), 0);
    let mut until = 0;
    while next < lines.len() {
        let edge = starts[next] < EDGE;
        let tail = starts[next] + lines[next].len() > last;
        if !edge && !now && left == 0 && next >= until && !tail {
            let gate =
                (next..lines.len()).find(|&i| gates.find(bare(i)).is_some_and(|gate| !repeats.known(bare(i), gate)));
            let Some(hit) = gate else {
                next = (next..lines.len())
                    .find(|&i| starts[i] + lines[i].len() > last)
                    .unwrap_or(lines.len());
                until = lines.len();
                continue;
            };
            let from = (next..=hit)
                .find(|&i| hit - i <= REACH as usize && starts[hit] - starts[i] <= EDGE)
                .unwrap();
            let tail = (next..lines.len()).find(|&i| starts[i] + lines[i].len() > last);
            next = from.min(tail.unwrap_or(from));
            until = hit + 1;
        }
        read.push(next as u64 + 1);
        let before = std::mem::replace(&mut now, false);
        let mut state = before;
        now = launching(&mut state, bare(next));
        if now && !before {
            repeats.clear();
        }
        let new = edge
            || now
            || gates
                .find(bare(next))
                .is_some_and(|gate| !repeats.count(bare(next), gate));
        left = if new { REACH } else { left.saturating_sub(1) };
        next += 1;
    }
    read
}

/// A stretch of a log.
#[derive(Debug, Clone, Copy)]
enum Stretch {
    Serving(usize),
    Long(usize),
    Failure,
    Repeated(usize),
    Begin,
    Ready,
    Empty,
}

impl Stretch {
    fn text(self) -> String {
        match self {
            Self::Serving(n) => "INFO 10.0.0.1 - GET /v1/completions 200 OK, 12 ms\n".repeat(n),
            Self::Long(n) => format!("INFO {}\n", "prompt ".repeat(n)),
            Self::Failure => "ValueError: a request is bad\n".to_owned(),
            Self::Repeated(n) => "INFO 10.0.0.1 GET 200\nKeyError: 4711\n".repeat(n),
            Self::Begin => format!("{BEGIN}\nINFO loading\n"),
            Self::Ready => format!("{READY}\n"),
            Self::Empty => "\n\n".to_owned(),
        }
    }
}

fn stretch() -> impl Strategy<Value = Stretch> {
    prop_oneof![
        8 => (1..8000usize).prop_map(Stretch::Serving),
        1 => (1..60_000usize).prop_map(Stretch::Long),
        2 => Just(Stretch::Failure),
        1 => (1..60usize).prop_map(Stretch::Repeated),
        1 => Just(Stretch::Begin),
        1 => Just(Stretch::Ready),
        1 => Just(Stretch::Empty),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn blocks_and_their_borders_do_not_show(
        parts in prop::collection::vec(stretch(), 1..16),
        drip in prop_oneof![Just(usize::MAX), 1000..300_000usize],
        cut in 0..60usize,
    ) {
        let mut text: Vec<u8> = parts.iter().flat_map(|part| part.text().into_bytes()).collect();
        text.truncate(text.len() - cut.min(text.len()));
        let (read, counted) = walked(&text, drip);
        let lines = text.split_inclusive(|&b| b == b'\n').count() as u64;
        prop_assert_eq!(read.len() as u64 + counted, lines);
        let rule = by_rule(&text);
        let first = read.iter().zip(&rule).find(|(a, b)| a != b);
        prop_assert_eq!(first, None);
        prop_assert_eq!(read.len(), rule.len());
    }
}

fn serving(bytes: usize) -> String {
    let line = "INFO 10.0.0.1 - GET /v1/completions 200 OK, 12 ms\n";
    line.repeat(bytes / line.len())
}

#[test]
fn a_serving_stretch_is_counted_and_both_ends_are_read() {
    let (read, counted) = walked(serving(4 << 20).as_bytes(), usize::MAX);
    assert!(counted > 60_000, "{counted}");
    assert_eq!(read.first(), Some(&1));
    assert_eq!(read.last(), Some(&(read.len() as u64 + counted)));
}

#[test]
fn a_launch_is_read_from_its_beginning_until_it_is_ready() {
    let text = [
        &serving(1 << 20),
        BEGIN,
        "\n",
        &serving(1 << 20),
        READY,
        "\n",
        &serving(1 << 20),
    ]
    .concat();
    let (read, _) = walked(text.as_bytes(), usize::MAX);
    let begin = text[..text.find(BEGIN).unwrap()].lines().count() as u64 + 1;
    let ready = text[..text.find(READY).unwrap()].lines().count() as u64 + 1;
    let inside = read.iter().filter(|&&n| (begin..=ready).contains(&n)).count() as u64;
    assert_eq!(inside, ready - begin + 1);
    assert!(read.contains(&(begin - 200)) && !read.contains(&(begin - 201)));
    assert!(read.contains(&(ready + 200)) && !read.contains(&(ready + 201)));
}

#[test]
fn a_traceback_in_every_fiftieth_request_does_not_make_everything_territory() {
    let request = format!(
        "{}Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 1\n",
        serving(2500)
    );
    let (read, counted) = walked(request.repeat(2000).as_bytes(), usize::MAX);
    assert!(
        counted > 3 * read.len() as u64,
        "{} read, {counted} counted",
        read.len()
    );
}

#[test]
fn a_line_longer_than_the_window_is_one_line_and_counts_like_a_shorter_one() {
    let text = [
        &serving(1 << 20),
        "INFO ",
        &"x".repeat(5 << 20),
        "\n",
        &serving(1 << 20),
    ]
    .concat();
    let (read, counted) = walked(text.as_bytes(), usize::MAX);
    assert_eq!(read.len() as u64 + counted, text.lines().count() as u64);
    let long = serving(1 << 20).lines().count() as u64 + 1;
    assert!(!read.contains(&long));
    let failed = text.replace("INFO xxx", "ValueError: xxx");
    let (read, _) = walked(failed.as_bytes(), usize::MAX);
    assert!(read.contains(&long) && read.contains(&(long - 200)));
}
