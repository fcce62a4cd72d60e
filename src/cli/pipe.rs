//! Standard input as it arrives: settling, interruption, passing through.
//!
//! Owns when to stop reading a pipe that may never end; `feed` reads it. Never judges what it reads: it asks the examination whether a
//! failure stands.

use std::io::{self, Read, Write};
#[cfg(unix)]
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::feed::Feed;
use super::output::remark;
use crate::intake::{Limits, LineReader};

/// What takes the lines.
pub trait Listener {
    /// Takes the next line, or passes over such as it need not see. `false` at the end of the input.
    fn step<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<bool>;
    /// Whether a root failure stands, and an exit or a last wrapper was seen, in all that has come.
    fn failure_stands<R: Read>(&mut self, lines: &mut LineReader<R>) -> bool;
}

/// Why reading ended, or paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The input ended.
    End,
    /// A failure stands and nothing more comes, though the pipe is open.
    Settled,
    /// Signals asked for the report.
    Interrupted,
}

/// How long to wait.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For more, once a failure stands.
    pub settle: Duration,
    /// For the end of the input, after the first signal.
    pub grace: Duration,
}

/// What the first signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// The end of a pipe, which its writer is about to reach too.
    End,
    /// A report on what was read so far.
    Report,
}

/// Counts the signals that ask for an end.
#[derive(Debug, Clone, Default)]
pub struct Signals {
    count: Arc<AtomicUsize>,
    /// Reading is to stop at once.
    stop: Arc<AtomicBool>,
}

impl Signals {
    /// Counts SIGINT and SIGTERM from now on. The first no longer ends the program; where it asks for a report, the
    /// second does.
    pub fn watch(wanted: Wanted) -> io::Result<Self> {
        let signals = Self::default();
        let counted = signals.clone();
        let kinds = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];
        let mut arrivals = signal_hook::iterator::Signals::new(kinds)?;
        thread::spawn(move || {
            for signal in arrivals.forever() {
                match (wanted, counted.count()) {
                    (Wanted::End, 0) => {
                        remark("waiting for the input to end, 10 s at most; a second signal ends it now");
                    }
                    (Wanted::End, _) => {}
                    (Wanted::Report, 0) => {
                        counted.stop.store(true, Ordering::Relaxed);
                        remark("interrupted: the report is on what was read so far; a second signal ends it now");
                    }
                    (Wanted::Report, _) => {
                        // It fails for unknown signals only.
                        let _ = signal_hook::low_level::emulate_default_handler(signal);
                    }
                }
                counted.raise();
            }
        });
        Ok(signals)
    }

    /// Counts one.
    pub fn raise(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Becomes true when reading is to stop at once.
    pub fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether reading was to stop at once.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// An input that comes as it is written.
pub struct Pipe {
    lines: LineReader<Feed>,
    signals: Signals,
    patience: Patience,
    sample_bytes: usize,
    /// When the first signal was seen.
    signalled: Option<Instant>,
    /// When that came which the listener was asked about last; its answer on this cannot have changed.
    asked: Option<Instant>,
}

impl Pipe {
    /// Starts to read standard input, which is copied to `copy` unchanged and before anything else is done with it.
    pub fn stdin<W: Write + Send + 'static>(
        copy: Option<W>,
        patience: Patience,
        signals: Signals,
        limits: &Limits,
    ) -> Self {
        let stdin = io::stdin();
        // Past the buffer of the standard library, of which nobody can ask whether something is in it.
        #[cfg(unix)]
        if let (None, Ok(own)) = (&copy, stdin.as_fd().try_clone_to_owned()) {
            return Self::new(Feed::direct(own.into(), limits), patience, signals, limits);
        }
        Self::new(Feed::threaded(stdin, copy, limits), patience, signals, limits)
    }

    fn new(feed: Feed, patience: Patience, signals: Signals, limits: &Limits) -> Self {
        Self {
            lines: LineReader::new(feed, limits),
            signals,
            patience,
            sample_bytes: limits.sample_bytes,
            signalled: None,
            asked: None,
        }
    }

    /// The beginning of the input, for detection: as much as a file would show, unless the pipe falls silent first.
    pub fn sample(&mut self) -> &[u8] {
        while !self.lines.at_end()
            && self.lines.sample().len() < self.sample_bytes
            && !self.interrupted()
            && !self.silent()
        {}
        self.lines.sample()
    }

    /// Reads until there is a reason to report. After [`Pause::Settled`] it may be called again, to read on.
    pub fn read(&mut self, listener: &mut impl Listener) -> Pause {
        while !self.interrupted() {
            match listener.step(&mut self.lines) {
                Ok(true) => {}
                Ok(false) => return Pause::End,
                Err(_) => {
                    let last = Some(self.lines.get_ref().last());
                    if self.silent() && self.asked != last {
                        self.asked = last;
                        if listener.failure_stands(&mut self.lines) {
                            return Pause::Settled;
                        }
                    }
                }
            }
        }
        Pause::Interrupted
    }

    /// Ends the reading: what came of an unfinished line is given out, and the notes of the input are returned.
    pub fn finish(&mut self, listener: &mut impl Listener) -> Vec<String> {
        self.lines.stop();
        while let Ok(true) = listener.step(&mut self.lines) {}
        self.lines.get_ref().notes().to_vec()
    }

    /// Bytes of the lines given out so far.
    pub fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn silent(&self) -> bool {
        self.lines.get_ref().last().elapsed() >= self.patience.settle
    }

    fn interrupted(&mut self) -> bool {
        match self.signals.count() {
            0 => false,
            1 => self.signalled.get_or_insert_with(Instant::now).elapsed() >= self.patience.grace,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Heard(Vec<String>);

    impl Listener for Heard {
        fn step<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<bool> {
            let line = lines.next()?;
            self.0
                .extend(line.map(|line| String::from_utf8_lossy(line.bytes).into_owned()));
            Ok(line.is_some())
        }

        fn failure_stands<R: Read>(&mut self, _: &mut LineReader<R>) -> bool {
            self.0.iter().any(|l| l == "dead")
        }
    }

    const NO_COPY: Option<io::Sink> = None;

    fn patience(settle: u64, grace: u64) -> Patience {
        Patience {
            settle: Duration::from_millis(settle),
            grace: Duration::from_millis(grace),
        }
    }

    /// How a pipe is read.
    type Way = fn(io::PipeReader, &Limits) -> Feed;

    const WAYS: &[Way] = &[
        |reader, limits| Feed::threaded(reader, NO_COPY, limits),
        #[cfg(unix)]
        |reader, limits| Feed::direct(std::os::fd::OwnedFd::from(reader).into(), limits),
    ];

    fn start(way: Way, patience: Patience, signals: &Signals) -> (Pipe, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        let limits = Limits::default();
        let pipe = Pipe::new(way(reader, &limits), patience, signals.clone(), &limits);
        (pipe, writer)
    }

    fn threaded<R, W>(input: R, copy: Option<W>, patience: Patience, signals: Signals) -> Pipe
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let limits = Limits::default();
        Pipe::new(Feed::threaded(input, copy, &limits), patience, signals, &limits)
    }

    #[test]
    fn an_open_pipe_settles_once_a_failure_stands_and_is_read_on() {
        for way in WAYS {
            let (mut pipe, mut writer) = start(*way, patience(100, 0), &Signals::default());
            let mut heard = Heard::default();
            writer.write_all(b"alive\ndead\nhal").unwrap();
            assert_eq!(pipe.read(&mut heard), Pause::Settled);
            assert_eq!(heard.0, ["alive", "dead"]);
            writer.write_all(b"f\n").unwrap();
            assert_eq!(pipe.read(&mut heard), Pause::Settled);
            writer.write_all(b"rest").unwrap();
            drop(writer);
            assert_eq!(pipe.read(&mut heard), Pause::End);
            assert_eq!(heard.0, ["alive", "dead", "half", "rest"]);
        }
    }

    #[test]
    fn what_comes_packed_or_byte_by_byte_is_read_too() {
        let packed = zstd::stream::encode_all(&b"one\ntwo\n"[..], 1).unwrap();
        for (way, bytes) in WAYS
            .iter()
            .flat_map(|way| [(way, b"one\ntwo\n".to_vec()), (way, packed.clone())])
        {
            let (mut pipe, mut writer) = start(*way, patience(1000, 0), &Signals::default());
            let writing = thread::spawn(move || {
                for byte in bytes {
                    writer.write_all(&[byte]).unwrap();
                    thread::sleep(Duration::from_millis(1));
                }
            });
            assert_eq!(pipe.sample(), b"one\ntwo\n");
            let mut heard = Heard::default();
            assert_eq!(pipe.read(&mut heard), Pause::End);
            assert_eq!(heard.0, ["one", "two"]);
            assert!(pipe.finish(&mut heard).is_empty());
            writing.join().unwrap();
        }
    }

    #[test]
    fn a_quiet_pipe_without_a_failure_waits_for_its_end() {
        for way in WAYS {
            let (mut pipe, mut writer) = start(*way, patience(0, 0), &Signals::default());
            writer.write_all(b"alive\n").unwrap();
            let closing = thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                drop(writer);
            });
            assert_eq!(pipe.read(&mut Heard::default()), Pause::End);
            closing.join().unwrap();
        }
    }

    #[test]
    fn the_first_signal_waits_for_the_end_and_the_second_does_not() {
        for (way, first) in WAYS.iter().flat_map(|way| [(way, &b"alive\nhalf"[..]), (way, b"")]) {
            let signals = Signals::default();
            let (mut pipe, mut writer) = start(*way, patience(1000, 60_000), &signals);
            let mut heard = Heard::default();
            writer.write_all(first).unwrap();
            signals.raise();
            let second = signals.clone();
            let raising = thread::spawn(move || {
                thread::sleep(Duration::from_millis(300));
                second.raise();
            });
            assert_eq!(pipe.read(&mut heard), Pause::Interrupted);
            raising.join().unwrap();
            pipe.finish(&mut heard);
            assert_eq!(heard.0.join("\n").as_bytes(), first);
            drop(writer);
        }
    }

    #[test]
    fn the_first_signal_waits_no_longer_than_its_grace_even_if_lines_keep_coming() {
        let signals = Signals::default();
        let mut pipe = threaded(io::repeat(b'\n'), NO_COPY, patience(1000, 200), signals.clone());
        signals.raise();
        struct Deaf;
        impl Listener for Deaf {
            fn step<R: Read>(&mut self, lines: &mut LineReader<R>) -> io::Result<bool> {
                lines.next().map(|line| line.is_some())
            }
            fn failure_stands<R: Read>(&mut self, _: &mut LineReader<R>) -> bool {
                true
            }
        }
        assert_eq!(pipe.read(&mut Deaf), Pause::Interrupted);
    }

    #[test]
    fn the_copy_is_unchanged_and_its_end_ends_nothing() {
        let (copy_reader, copy) = io::pipe().unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        let mut pipe = threaded(reader, Some(copy), patience(1000, 0), Signals::default());
        writer.write_all(b"\xff\r\x00no line end").unwrap();
        let mut copied = [0; 14];
        (&copy_reader).read_exact(&mut copied).unwrap();
        assert_eq!(&copied, b"\xff\r\x00no line end");
        drop(copy_reader);
        writer.write_all(b"\nmore\ndead\n").unwrap();
        drop(writer);
        let mut heard = Heard::default();
        assert_eq!(pipe.read(&mut heard), Pause::End);
        assert_eq!(heard.0[1..], ["more", "dead"]);
    }

    #[test]
    fn a_copy_that_fails_ends_nothing() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let input = io::Cursor::new(b"one\ntwo\n");
        let mut pipe = threaded(input, Some(Full), patience(1000, 0), Signals::default());
        let mut heard = Heard::default();
        assert_eq!(pipe.read(&mut heard), Pause::End);
        assert_eq!(heard.0, ["one", "two"]);
    }

    #[test]
    fn a_damaged_input_leaves_its_note() {
        let mut packed = zstd::stream::encode_all(&b"one\ntwo\n"[..], 1).unwrap();
        packed.truncate(packed.len() - 2);
        let input = io::Cursor::new(packed);
        let mut pipe = threaded(input, NO_COPY, patience(1000, 0), Signals::default());
        let mut heard = Heard::default();
        assert_eq!(pipe.read(&mut heard), Pause::End);
        assert!(pipe.finish(&mut heard)[0].contains("zstd data is cut off"));
    }
}
