//! Standard input as it arrives: settling, interruption, passing through.
//!
//! Owns when to stop reading a pipe that may never end. Never judges what it reads: it asks the examination whether a
//! failure stands.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::output::remark;
use crate::intake::{Limits, LineReader, Source};

/// How often signals and times are looked at while nothing comes.
const TICK: Duration = Duration::from_millis(50);

/// Blocks that wait between the reading thread and the examination: with their size 2 MiB, which a processor's cache
/// holds.
const QUEUE: usize = 8;

/// Bytes that a pipe may hold; the system's own limit for most users. The more it holds, the less often its two ends
/// wait for each other.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;

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

/// An input that is read by a thread of its own.
pub struct Pipe {
    lines: LineReader<Blocks>,
    signals: Signals,
    patience: Patience,
    sample_bytes: usize,
    /// When the first signal was seen.
    signalled: Option<Instant>,
    /// When that came which the listener was asked about last; its answer on this cannot have changed.
    asked: Option<Instant>,
}

impl Pipe {
    /// Starts to read `input`, which is copied to `copy` unchanged and before anything else is done with it.
    pub fn start<R, W>(input: R, copy: Option<W>, patience: Patience, signals: Signals, limits: &Limits) -> Self
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        let (sender, receiver) = sync_channel(QUEUE);
        let (back, empty) = channel();
        let own = *limits;
        thread::spawn(move || pump(Copying { input, copy }, &sender, &empty, &own));
        Self {
            lines: LineReader::new(Blocks::new(receiver, back), limits),
            signals,
            patience,
            sample_bytes: limits.sample_bytes,
            signalled: None,
            asked: None,
        }
    }

    /// Starts to read standard input.
    pub fn stdin<W: Write + Send + 'static>(
        copy: Option<W>,
        patience: Patience,
        signals: Signals,
        limits: &Limits,
    ) -> Self {
        let stdin = io::stdin();
        // What is no pipe, or may not grow, is read as it is.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&stdin, PIPE_BYTES);
        Self::start(stdin, copy, patience, signals, limits)
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
                    let last = Some(self.lines.get_ref().last);
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
        self.lines.get_ref().notes.clone()
    }

    /// Bytes of the lines given out so far.
    pub fn bytes(&self) -> u64 {
        self.lines.bytes()
    }

    fn silent(&self) -> bool {
        self.lines.get_ref().last.elapsed() >= self.patience.settle
    }

    fn interrupted(&mut self) -> bool {
        match self.signals.count() {
            0 => false,
            1 => self.signalled.get_or_insert_with(Instant::now).elapsed() >= self.patience.grace,
            _ => true,
        }
    }
}

/// A message of the reading thread.
enum Message {
    /// A block, and how many of its bytes were read.
    Block(Vec<u8>, usize),
    Notes(Vec<String>),
}

/// The blocks as a reader, which answers `WouldBlock` when none comes within a tick.
struct Blocks {
    receiver: Receiver<Message>,
    /// Blocks that were given out go back to be filled again.
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    given: usize,
    filled: usize,
    last: Instant,
    notes: Vec<String>,
}

impl Blocks {
    fn new(receiver: Receiver<Message>, empty: Sender<Vec<u8>>) -> Self {
        Self {
            receiver,
            empty,
            block: Vec::new(),
            given: 0,
            filled: 0,
            last: Instant::now(),
            notes: Vec::new(),
        }
    }
}

impl Read for Blocks {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.given == self.filled {
            match self.receiver.recv_timeout(TICK) {
                Ok(Message::Block(block, filled)) => {
                    // Nobody fills it any more when this fails.
                    let _ = self.empty.send(std::mem::replace(&mut self.block, block));
                    (self.given, self.filled, self.last) = (0, filled, Instant::now());
                }
                Ok(Message::Notes(notes)) => self.notes = notes,
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::WouldBlock.into()),
                Err(RecvTimeoutError::Disconnected) => {}
            }
        }
        let n = self.block.get(self.given..self.filled).unwrap_or_default().read(buf)?;
        self.given += n;
        Ok(n)
    }
}

/// Body of the reading thread.
fn pump(input: impl Read + Send + 'static, sender: &SyncSender<Message>, empty: &Receiver<Vec<u8>>, limits: &Limits) {
    let notes = match Source::new(input, limits) {
        Err(e) => vec![format!("it cannot be read: {e}")],
        Ok(mut source) => {
            let fresh = || vec![0; limits.block_bytes.max(1)];
            let mut block = fresh();
            loop {
                match source.read(&mut block) {
                    Ok(0) => break source.notes().to_vec(),
                    Ok(n) => {
                        if sender.send(Message::Block(block, n)).is_err() {
                            return;
                        }
                        let emptied = empty.try_recv().ok().filter(|block| !block.is_empty());
                        block = emptied.unwrap_or_else(fresh);
                    }
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => break vec![format!("reading ended with an error: {e}")],
                }
            }
        }
    };
    // Nobody listens any more when this fails.
    let _ = sender.send(Message::Notes(notes));
}

/// Copies what is read, as long as the copy can be written. The examination does not depend on it: a launch has a
/// verdict also where nobody reads its output any more, or the disk that takes it is full.
struct Copying<R, W> {
    input: R,
    copy: Option<W>,
}

impl<R: Read, W: Write> Read for Copying<R, W> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.input.read(buf)?;
        if let Some(copy) = &mut self.copy
            && let Some(read) = buf.get(..n)
            && let Err(e) = copy.write_all(read).and_then(|()| copy.flush())
        {
            self.copy = None;
            if e.kind() != ErrorKind::BrokenPipe {
                remark(&format!("standard output cannot be written: {e}; the input is read on"));
            }
        }
        Ok(n)
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

    fn start(patience: Patience, signals: &Signals) -> (Pipe, io::PipeWriter) {
        let (reader, writer) = io::pipe().unwrap();
        let pipe = Pipe::start(reader, NO_COPY, patience, signals.clone(), &Limits::default());
        (pipe, writer)
    }

    #[test]
    fn an_open_pipe_settles_once_a_failure_stands_and_is_read_on() {
        let (mut pipe, mut writer) = start(patience(100, 0), &Signals::default());
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

    #[test]
    fn a_quiet_pipe_without_a_failure_waits_for_its_end() {
        let (mut pipe, mut writer) = start(patience(0, 0), &Signals::default());
        writer.write_all(b"alive\n").unwrap();
        let closing = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            drop(writer);
        });
        assert_eq!(pipe.read(&mut Heard::default()), Pause::End);
        closing.join().unwrap();
    }

    #[test]
    fn the_first_signal_waits_for_the_end_and_the_second_does_not() {
        let signals = Signals::default();
        let (mut pipe, mut writer) = start(patience(1000, 60_000), &signals);
        let mut heard = Heard::default();
        writer.write_all(b"alive\nhalf").unwrap();
        signals.raise();
        let second = signals.clone();
        let raising = thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            second.raise();
        });
        assert_eq!(pipe.read(&mut heard), Pause::Interrupted);
        raising.join().unwrap();
        pipe.finish(&mut heard);
        assert_eq!(heard.0, ["alive", "half"]);
        drop(writer);
    }

    #[test]
    fn the_first_signal_waits_no_longer_than_its_grace_even_if_lines_keep_coming() {
        let signals = Signals::default();
        let mut pipe = Pipe::start(
            io::repeat(b'\n'),
            NO_COPY,
            patience(1000, 200),
            signals.clone(),
            &Limits::default(),
        );
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
        let limits = Limits::default();
        let mut pipe = Pipe::start(reader, Some(copy), patience(1000, 0), Signals::default(), &limits);
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
                Err(ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let input = io::Cursor::new(b"one\ntwo\n");
        let limits = Limits::default();
        let mut pipe = Pipe::start(input, Some(Full), patience(1000, 0), Signals::default(), &limits);
        let mut heard = Heard::default();
        assert_eq!(pipe.read(&mut heard), Pause::End);
        assert_eq!(heard.0, ["one", "two"]);
    }

    #[test]
    fn a_damaged_input_leaves_its_note() {
        let mut packed = zstd::stream::encode_all(&b"one\ntwo\n"[..], 1).unwrap();
        packed.truncate(packed.len() - 2);
        let input = io::Cursor::new(packed);
        let mut pipe = Pipe::start(
            input,
            NO_COPY,
            patience(1000, 0),
            Signals::default(),
            &Limits::default(),
        );
        let mut heard = Heard::default();
        assert_eq!(pipe.read(&mut heard), Pause::End);
        assert!(pipe.finish(&mut heard)[0].contains("zstd data is cut off"));
    }
}
