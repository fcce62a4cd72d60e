//! The bytes of standard input, as a reader that waits a tick at most.
//!
//! Owns the way from the pipe to the lines: text is read where it is examined, which spares a copy and a thread's wake
//! for every block; what has to be unpacked, or copied to somebody who may be slow, is read by a thread of its own.
//! Never decides when to stop.

use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::output::remark;
use crate::intake::{Limits, Sniffed, Source, coding};

/// How often signals and times are looked at while nothing comes.
const TICK: Duration = Duration::from_millis(50);

/// Blocks that wait between the reading thread and the examination: with their size 2 MiB, which a processor's cache
/// holds.
const QUEUE: usize = 8;

/// Bytes that a pipe may hold; the system's own limit for most users. The more it holds, the less often its two ends
/// wait for each other.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1 << 20;

/// An input, which answers `WouldBlock` when nothing comes within a tick.
pub struct Feed {
    state: State,
    limits: Limits,
    /// When something came last.
    last: Instant,
    notes: Vec<String>,
}

enum State {
    /// Too little has come to tell whether it is text.
    #[cfg(unix)]
    Fresh { input: Ready, head: Vec<u8> },
    /// Text, read where it is examined.
    #[cfg(unix)]
    Text(Source),
    /// Read by a thread.
    Blocks(Blocks),
    /// Nothing more comes.
    Ended,
}

impl Feed {
    /// What a thread reads of `input`, which it copies to `copy` unchanged and before anything else is done with it.
    pub fn threaded<R, W>(input: R, copy: Option<W>, limits: &Limits) -> Self
    where
        R: Read + Send + 'static,
        W: Write + Send + 'static,
    {
        Self::new(State::Blocks(Blocks::start(Copying { input, copy }, limits)), limits)
    }

    /// What comes through `input`, an open file or pipe.
    #[cfg(unix)]
    pub fn direct(input: std::fs::File, limits: &Limits) -> Self {
        // What is no pipe, or may not grow, is read as it is.
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&input, PIPE_BYTES);
        let head = Vec::new();
        Self::new(
            State::Fresh {
                input: Ready(input),
                head,
            },
            limits,
        )
    }

    fn new(state: State, limits: &Limits) -> Self {
        Self {
            state,
            limits: *limits,
            last: Instant::now(),
            notes: Vec::new(),
        }
    }

    /// When something came last.
    pub fn last(&self) -> Instant {
        self.last
    }

    /// What could not be read, in sentences; complete once the end has been read.
    pub fn notes(&self) -> &[String] {
        match &self.state {
            #[cfg(unix)]
            State::Text(source) => source.notes(),
            State::Blocks(blocks) => &blocks.notes,
            _ => &self.notes,
        }
    }

    /// Reads what tells whether `input` is text, and how to read it from then on.
    #[cfg(unix)]
    fn begin(&mut self, mut input: Ready, mut head: Vec<u8>) -> io::Result<()> {
        let mut block = [0; 16];
        let state = loop {
            match input.read(&mut block) {
                Ok(n) => {
                    head.extend(block.iter().take(n));
                    match coding(&head) {
                        Sniffed::NeedsMore if n > 0 => {}
                        Sniffed::Settled(Some(_)) => {
                            let input = Cursor::new(head).chain(input.0);
                            break State::Blocks(Blocks::start(input, &self.limits));
                        }
                        _ => break State::Text(Source::new(Cursor::new(head).chain(input), &self.limits)?),
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    self.state = State::Fresh { input, head };
                    return Err(e);
                }
                Err(e) => {
                    self.notes.push(format!("it cannot be read: {e}"));
                    break State::Ended;
                }
            }
        };
        self.state = state;
        Ok(())
    }
}

impl Read for Feed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        if matches!(self.state, State::Fresh { .. })
            && let State::Fresh { input, head } = std::mem::replace(&mut self.state, State::Ended)
        {
            self.begin(input, head)?;
        }
        // More would have left the processor's cache before it is searched.
        let most = buf.len().min(self.limits.block_bytes);
        let n = match &mut self.state {
            #[cfg(unix)]
            State::Text(source) => source.read(buf.get_mut(..most).unwrap_or_default()),
            State::Blocks(blocks) => blocks.read(buf),
            _ => Ok(0),
        }?;
        self.last = Instant::now();
        Ok(n)
    }
}

/// An open file or pipe that is asked before it is read.
#[cfg(unix)]
struct Ready(std::fs::File);

#[cfg(unix)]
impl Read for Ready {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(TICK.subsec_nanos()),
        };
        match poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&tick))? {
            0 => Err(ErrorKind::WouldBlock.into()),
            _ => self.0.read(buf),
        }
    }
}

/// A message of the reading thread.
enum Message {
    /// A block, and how many of its bytes were read.
    Block(Vec<u8>, usize),
    Notes(Vec<String>),
}

/// What a thread of its own reads, block by block.
struct Blocks {
    receiver: Receiver<Message>,
    /// Blocks that were given out go back to be filled again.
    empty: Sender<Vec<u8>>,
    block: Vec<u8>,
    given: usize,
    filled: usize,
    notes: Vec<String>,
}

impl Blocks {
    /// Starts the thread.
    fn start(input: impl Read + Send + 'static, limits: &Limits) -> Self {
        let (sender, receiver) = sync_channel(QUEUE);
        let (back, empty) = channel();
        let own = *limits;
        thread::spawn(move || pump(input, &sender, &empty, &own));
        Self {
            receiver,
            empty: back,
            block: Vec::new(),
            given: 0,
            filled: 0,
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
                    (self.given, self.filled) = (0, filled);
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
