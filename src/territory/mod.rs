//! Territory: which lines of a source are read at all.
//!
//! Owns the rule that lets a log of gigabytes be searched rather than read. A *tier-1* line holds a gate: it may tell
//! of a failure, of the end of a process or of where a launch begins. A line is read if it stands
//!
//! - in the first or the last 256 KiB of its source,
//! - between the beginning of a launch and the ready marker,
//! - less than 200 lines behind a tier-1 line, or at most 200 lines and 256 KiB before one,
//!
//! and is only counted otherwise. A tier-1 line that repeats one heard many times since the launch began is none. While
//! a launch is under way, a line that only repeats what its process said (`echoes`, `bars`) is noted as heard.
//! Never interprets a line: whether a launch is under way, and what a line said, is what the reader answers.

mod bars;
mod echoes;
mod forms;
mod gates;
mod repeats;
mod scout;

use std::io::{self, Read};
use std::sync::Arc;

use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};

use crate::intake::{Ahead, Line, LineReader};
use bars::Bars;
use echoes::Echoes;
pub use gates::Gates;
use repeats::Repeats;
use scout::Scouts;

/// Bytes at both ends of a source, and at most before a tier-1 line, that are read.
const EDGE: usize = 256 << 10;
/// Lines that are looked up together at most, to see whether they only repeat what was said. While the processor fetches
/// what is known of one from a large table, it goes on with the next.
const TOGETHER: usize = 16;
/// Lines before and behind a tier-1 line that are read.
const REACH: u32 = 200;

/// Whose a line is that says nothing but that its speaker is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Voice {
    /// The number of the speaker.
    pub speaker: usize,
    /// How many bytes at the end of the line a person is shown.
    pub shown: usize,
    /// Whether the line is one event more of a kind that is only counted.
    pub counted: bool,
}

impl Voice {
    /// What a person is shown of a line.
    fn shown<'t>(&self, line: &'t [u8]) -> &'t [u8] {
        line.split_at(line.len().saturating_sub(self.shown)).1
    }
}

/// What takes the lines that count.
pub trait Listener {
    /// Reads a line.
    fn line(&mut self, line: &Line<'_>) -> Heard;
    /// Whose the line is that was read last, if it says nothing but that its speaker is there: no event, no stamp, no
    /// transport.
    fn quiet(&self) -> Option<Voice>;
    /// Whether that line, which was quiet, would be so whatever its digits were.
    fn always_quiet(&self, line: &Line<'_>) -> bool;
    /// Notes a line of a speaker that says what lines before it did.
    fn echo(&mut self, line: u64, shown: &[u8], voice: Voice);
    /// Ends a stretch of such lines: these are the last of them, with their numbers.
    fn echoed(&mut self, last: &[(u64, &[u8])]);
    /// Counts lines that are not read.
    fn pass(&mut self, lines: u64);
}

/// What a listener answers after a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Heard {
    /// Whether a launch is under way.
    pub launching: bool,
    /// Beginnings of launches so far: with each, what was said before is new again.
    pub launches: u64,
    /// Whether nothing waits for lines to come.
    pub idle: bool,
}

/// A walk through one source.
///
/// An error of the reader leaves everything as it was, so a reader that answers `WouldBlock` can be walked on.
#[derive(Debug)]
pub struct Walk {
    gates: Arc<Gates>,
    repeats: Repeats,
    echoes: Echoes,
    bars: Bars,
    /// What was answered after the last line.
    heard: Heard,
    /// Lines still to be read.
    left: u32,
    /// Where the search in the window goes on.
    from: usize,
    /// Who looks ahead in a file.
    scouts: Option<Scouts>,
}

/// What a look at the window showed.
enum Found {
    /// A tier-1 line begins here.
    Line(usize),
    /// None up to here, where the next look begins.
    Nothing(usize),
}

impl Walk {
    /// A walk that finds tier-1 lines by these gates.
    pub fn new(gates: Arc<Gates>) -> Self {
        Self {
            gates,
            repeats: Repeats::default(),
            echoes: Echoes::default(),
            bars: Bars::default(),
            heard: Heard::default(),
            left: 0,
            from: 0,
            scouts: None,
        }
    }

    /// Lets the walk look for tier-1 lines with several threads, where there are any.
    pub fn look_ahead(&mut self, ahead: &Ahead) {
        self.scouts = Scouts::are_worth_it(ahead).then(|| Scouts::of(ahead.clone()));
    }

    /// Gives `listener` the next line that is to be read, or looks through a window for one. `false` at the end.
    ///
    /// # Errors
    /// What the reader below answers.
    pub fn step<R: Read>(&mut self, lines: &mut LineReader<R>, listener: &mut dyn Listener) -> io::Result<bool> {
        if self.left > 0 || self.heard.launching || is_edge(lines) {
            return self.read(lines, listener);
        }
        self.seek(lines, listener)?;
        Ok(true)
    }

    /// Gives `listener` what has been looked through and would be read if the source ended here: more may never come.
    ///
    /// # Errors
    /// What the reader below answers.
    pub fn catch_up<R: Read>(&mut self, lines: &mut LineReader<R>, listener: &mut dyn Listener) -> io::Result<()> {
        if self.left == 0 {
            let window = lines.window();
            let tail = line_start(window, window.len().saturating_sub(EDGE));
            listener.pass(lines.skip(tail));
        }
        self.from = 0;
        let whole = memchr_iter(b'\n', lines.window()).count();
        for _ in 0..whole {
            self.read(lines, listener)?;
        }
        Ok(())
    }

    /// Reads one line. Whether there was one.
    fn read<R: Read>(&mut self, lines: &mut LineReader<R>, listener: &mut dyn Listener) -> io::Result<bool> {
        let edge = is_edge(lines);
        let before = self.heard;
        let may_echo = !edge && before.launching && before.idle;
        let skimmed = may_echo.then(|| self.skim(lines, listener)).flatten();
        if skimmed == Some(true) {
            return Ok(true);
        }
        let Some(line) = lines.next()? else {
            return Ok(false);
        };
        // The window may have ended within it.
        if may_echo
            && skimmed.is_none()
            && line.ended
            && let key = self.echoes.key(line.bytes)
            && let Some(voice) = self.echo(line.bytes, key)
        {
            let shown = voice.shown(line.bytes);
            listener.echo(line.no, shown, voice);
            listener.echoed(&[(line.no, shown)]);
            return Ok(true);
        }
        self.take(&line, edge, listener);
        Ok(true)
    }

    /// Gives a line to the listener, and learns of it.
    fn take(&mut self, line: &Line<'_>, edge: bool, listener: &mut dyn Listener) {
        let before = self.heard;
        self.heard = listener.line(line);
        let launching = self.heard.launching;
        if launching && !before.launching {
            self.repeats.clear();
        }
        if self.heard.launches > before.launches {
            self.echoes.clear();
            self.bars.clear();
        }
        if launching {
            let listener = &*listener;
            let always = || listener.always_quiet(line);
            let voice = listener.quiet().filter(|_| line.skipped == 0);
            let whole = voice.filter(|voice| voice.shown == line.bytes.len() && !voice.counted);
            self.echoes
                .learn(line.bytes, || whole.map(|voice| voice.speaker), always);
            self.bars.learn(line.bytes, voice, always);
        }
        self.left = if edge || launching || self.is_new(line) {
            REACH
        } else {
            self.left.saturating_sub(1)
        };
    }

    /// Whose a line is that only repeats what was read of it; `key` is what it is known by as an echo.
    fn echo(&self, line: &[u8], key: Option<u64>) -> Option<Voice> {
        let whole = |speaker| Voice {
            speaker,
            shown: line.len(),
            counted: false,
        };
        let echo = key.and_then(|key| self.echoes.speaker(key, line)).map(whole);
        echo.or_else(|| self.bars.voice(line))
    }

    /// Notes the echoes at the front of the window. Whether there were any; none if the window ends within a line.
    fn skim<R: Read>(&mut self, lines: &mut LineReader<R>, listener: &mut dyn Listener) -> Option<bool> {
        let window = lines.window();
        let mut ends = memchr_iter(b'\n', window);
        let (mut count, mut start, mut behind) = (0, 0, 0);
        let mut last: [(u64, &[u8]); 2] = [(0, &[]); 2];
        let (mut together, mut whole) = (1, false);
        'all: loop {
            let mut next: [(&[u8], Option<u64>); TOGETHER] = [(&[], None); TOGETHER];
            let mut filled = 0;
            for (end, place) in ends.by_ref().take(together).zip(&mut next) {
                let line = window.get(behind..end).unwrap_or_default();
                *place = (line, self.echoes.key(line));
                behind = end + 1;
                filled += 1;
            }
            whole |= filled > 0;
            // All are looked up before the first is noted, so that no look waits for the table but the first.
            let mut voices = [None; TOGETHER];
            for ((line, key), voice) in next.iter().zip(&mut voices).take(filled) {
                *voice = self.echo(line, *key);
            }
            for ((line, _), voice) in next.iter().zip(&voices).take(filled) {
                let Some(voice) = *voice else {
                    break 'all;
                };
                let shown = voice.shown(line);
                count += 1;
                let no = lines.lines() + count;
                listener.echo(no, shown, voice);
                last = [last[1], (no, shown)];
                start += line.len() + 1;
            }
            if filled < together {
                break;
            }
            together = TOGETHER.min(2 * together);
        }
        if count > 0 {
            listener.echoed(last.get(2usize.saturating_sub(count as usize)..).unwrap_or_default());
            lines.pass(start, count);
        }
        whole.then_some(count > 0)
    }

    fn is_new(&mut self, line: &Line<'_>) -> bool {
        self.gates
            .find(line.bytes)
            .is_some_and(|gate| !self.repeats.count(line.bytes, gate))
    }

    /// Counts lines up to the next territory and stands before it.
    fn seek<R: Read>(&mut self, lines: &mut LineReader<R>, listener: &mut dyn Listener) -> io::Result<()> {
        let mut full = false;
        loop {
            let window = lines.window();
            let (length, at_end) = (window.len(), lines.at_end());
            let tail = line_start(window, length.saturating_sub(EDGE));
            let (next, hit) = match self.look(window, self.from, at_end) {
                Found::Line(at) => (at, Some((look_behind(window, at), at))),
                Found::Nothing(next) => (next, None),
            };
            match hit {
                // Whether the end of the source begins before this must be known.
                Some((start, at)) if at_end || full || start + EDGE <= length => {
                    let start = if at_end { start.min(tail) } else { start };
                    // All of these are read; the tier-1 line itself is met there again.
                    let ends = memchr_iter(b'\n', window.get(start..at).unwrap_or_default()).count();
                    self.stand(u32::try_from(ends + 1).unwrap_or(u32::MAX));
                    listener.pass(lines.skip(start));
                    return Ok(());
                }
                None if at_end => {
                    self.stand(u32::MAX);
                    listener.pass(lines.skip(tail));
                    return Ok(());
                }
                None if full => {
                    // A single line fills the window. It counts like a shorter one, unless its end is tier 1.
                    self.stand(0);
                    if let Some(line) = lines.next()? {
                        let gate = self.gates.find(line.bytes);
                        match gate.is_some_and(|gate| !self.repeats.known(line.bytes, gate)) {
                            true => self.take(&line, false, listener),
                            false => listener.pass(1),
                        }
                    }
                    return Ok(());
                }
                _ => {
                    let last = memrchr(b'\n', window).map_or(0, |end| end + 1).min(next);
                    let past = line_start(window, last.saturating_sub(EDGE));
                    listener.pass(lines.skip(past));
                    self.from = next - past;
                    // A tier-1 line that waits for its reach to be known is not leapt over.
                    if hit.is_some() || !self.leap(lines, listener) {
                        full = !lines.more()?;
                    }
                }
            }
        }
    }

    /// Passes over what the scouts have looked through. Whether there was anything.
    fn leap<R: Read>(&mut self, lines: &mut LineReader<R>, listener: &mut dyn Listener) -> bool {
        let Some(mut scouts) = self.scouts.take() else {
            return false;
        };
        let leap = lines.unread().and_then(|(line, reached)| {
            let leap = scouts.look(self, line, reached)?;
            scouts.leap(&leap, reached);
            Some(leap)
        });
        self.scouts = Some(scouts);
        let Some(leap) = leap else { return false };
        listener.pass(lines.go_on(leap.to, leap.lines));
        self.from = 0;
        true
    }

    /// The next lines, so many, are to be read.
    fn stand(&mut self, left: u32) {
        (self.left, self.from) = (left, 0);
    }

    /// The first tier-1 line that begins at `from` or later.
    fn look(&self, window: &[u8], mut from: usize, at_end: bool) -> Found {
        loop {
            let Some(found) = window.get(from..).and_then(|text| self.gates.find(text)) else {
                return Found::Nothing(from.max((window.len() + 1).saturating_sub(self.gates.longest())));
            };
            let gate = from + found;
            let start = line_start(window, gate);
            let end = memchr(b'\n', window.split_at(gate).1).map(|at| gate + at);
            // What the shape of a line is made of has to be there.
            if end.is_none() && !at_end && window.len() < gate + repeats::reach() {
                return Found::Nothing(gate);
            }
            let line = window.get(start..end.unwrap_or(window.len())).unwrap_or_default();
            if !self.repeats.known(line, gate - start) {
                return Found::Line(start);
            }
            from = end.unwrap_or(window.len());
        }
    }
}

/// Whether the next line is within the first bytes of its source, which are all read.
fn is_edge<R: Read>(lines: &LineReader<R>) -> bool {
    lines.bytes() < EDGE as u64
}

/// Where territory before the line at `at` begins.
fn look_behind(window: &[u8], at: usize) -> usize {
    let least = at.saturating_sub(EDGE);
    let before = window.get(least.saturating_sub(1)..at).unwrap_or_default();
    // The first line end met is the one before the line itself.
    let mut ends = memrchr_iter(b'\n', before).map(|end| least.saturating_sub(1) + end + 1);
    match ends.by_ref().take(REACH as usize + 1).enumerate().last() {
        Some((n, start)) if n == REACH as usize || at > EDGE => start,
        _ => 0,
    }
}

/// The start of the line that the byte at `at` is part of.
fn line_start(window: &[u8], at: usize) -> usize {
    memrchr(b'\n', window.get(..at).unwrap_or(window)).map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests;
