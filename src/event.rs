//! The waist of the hour-glass: typed events and where they come from.
//!
//! Owns the vocabulary that dialects produce and the launch model consumes. Never reads a log and never
//! decides a cause: an event says *what a line states*, not what it means for the launch.

use std::sync::Arc;

use crate::time::Stamp;

/// Index of an input within one examination, in the order given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct InputId(pub u32);

/// Index of a signature in the loaded catalog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignatureId(pub u32);

/// The program that wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Program {
    /// vLLM, any process of it.
    Vllm,
    /// SGLang, any process of it.
    Sglang,
    /// Ray itself (raylet, GCS, driver library), not the program inside an actor.
    Ray,
    /// NCCL or RCCL.
    Nccl,
    /// PyTorch, torchrun, Gloo, c10d.
    Torch,
    /// The operating-system kernel and the NVIDIA driver.
    Kernel,
    /// A supervisor: systemd, Kubernetes, Slurm, Docker, a shell.
    Supervisor,
    /// Plain Python or anything without a grammar of its own.
    #[default]
    Unknown,
}

impl Program {
    /// The name used in reports and in the catalog.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::Ray => "ray",
            Self::Nccl => "nccl",
            Self::Torch => "torch",
            Self::Kernel => "kernel",
            Self::Supervisor => "supervisor",
            Self::Unknown => "unknown",
        }
    }
}

/// Parallel coordinates of a worker, as far as the log names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Coords {
    /// Data-parallel rank.
    pub dp: Option<u32>,
    /// Pipeline-parallel rank.
    pub pp: Option<u32>,
    /// Tensor-parallel rank.
    pub tp: Option<u32>,
    /// Expert-parallel rank.
    pub ep: Option<u32>,
    /// Rank within the node, which is usually the device index.
    pub local: Option<u32>,
}

impl Coords {
    /// Whether no coordinate is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes from `other` what is unknown here.
    pub fn fill_from(&mut self, other: &Self) {
        self.dp = self.dp.or(other.dp);
        self.pp = self.pp.or(other.pp);
        self.tp = self.tp.or(other.tp);
        self.ep = self.ep.or(other.ep);
        self.local = self.local.or(other.local);
    }
}

/// The number as a process id, if a system can have given it: Linux counts to 2^22, others to 2^31.
pub fn pid(number: i64) -> Option<i64> {
    (1..1 << 31).contains(&number).then_some(number)
}

/// The number as a rank, if a launch can have so many.
pub fn rank(number: u32) -> Option<u32> {
    (number < 1_000_000).then_some(number)
}

/// What a line says about the process it came from. Nothing here is guessed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Speaker {
    /// The program whose grammar the line has.
    pub program: Program,
    /// Host name, IP address or pod as the log prints it.
    pub node: Option<Arc<str>>,
    /// Container or compose service.
    pub container: Option<Arc<str>>,
    /// The name under which a service manager keeps the line: that of a unit, or of the program that is its process.
    pub unit: Option<Arc<str>>,
    /// Process label as printed: `EngineCore_DP0`, `Worker_TP1`, `RayWorkerWrapper`, `TP3`, `raylet`.
    pub label: Option<Arc<str>>,
    /// Operating-system process id.
    pub pid: Option<i64>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Number that a launcher such as `srun` or `mpirun` gave the task that wrote the line.
    pub task: Option<u32>,
    /// Parallel coordinates.
    pub coords: Coords,
    /// Whether the line carried the label, pid or rank itself (`true`) or merely follows one that did.
    pub explicit: bool,
}

/// A place in the input, with the text copied so that no renderer reads input again.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Which input.
    pub input: InputId,
    /// Line number from 1, a line ending at `\n`.
    pub line: u64,
    /// Byte offset of the line in the decompressed input.
    pub byte: u64,
    /// The line's own or its envelope's time; that of the last stamp above it where it has none.
    pub time: Option<Stamp>,
    /// Whether the stamp is that of the line, or of the record that it is a part of.
    pub own_time: bool,
    /// The line as it stands, control characters removed, cut to a display limit.
    pub text: Arc<str>,
    /// Where in `text` the program's own message begins, behind what transports and loggers put before it; and its length
    /// in bytes.
    pub message: (u16, u16),
}

impl Place {
    /// The program's own message, as far as `text` holds it.
    pub fn message(&self) -> &str {
        let (start, length) = (usize::from(self.message.0), usize::from(self.message.1));
        self.text.get(start..start + length).unwrap_or(&self.text)
    }

    /// The stamp of the line, if it has one of its own.
    pub fn own_stamp(&self) -> Option<&Stamp> {
        self.time.as_ref().filter(|_| self.own_time)
    }
}

/// One frame of a Python traceback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// File path as printed.
    pub file: Arc<str>,
    /// Line in that file.
    pub line: u32,
    /// Function name, `<module>` at top level.
    pub function: Arc<str>,
    /// The source line printed below the frame, trimmed; empty if the log has none.
    pub code: Arc<str>,
}

/// One exception: an exception line with the frames above it.
#[derive(Debug, Clone, PartialEq)]
pub struct Exception {
    /// Full type as printed, `torch.OutOfMemoryError`.
    pub kind: Arc<str>,
    /// Message, further lines joined by `\n`, capped.
    pub message: Arc<str>,
    /// Frames, outermost first; empty when the log shows the exception line alone.
    pub frames: Vec<Frame>,
    /// Where the `Type: message` line stands.
    pub place: Place,
    /// The place of the very line that states the cause: a later line of the message (a pydantic reason, the text
    /// under `Last error:`), else the exception line itself.
    pub stated_at: Place,
    /// The signature that recognised it.
    pub signature: Option<SignatureId>,
    /// The phase that the text around a quoted cause fixes.
    pub told_phase: Option<Arc<str>>,
    /// Whether what it states was quoted from another process.
    pub forwarded: bool,
}

impl Exception {
    /// Whether its frames begin at a script or module that was being run.
    pub fn is_from_script(&self) -> bool {
        self.frames.first().is_some_and(|f| &*f.function == "<module>")
    }

    /// Whether it left the installed script that was started, which handles none: it ended that process.
    pub fn left_the_program(&self) -> bool {
        let installed = |file: &str| file.contains("/bin/") && !file.ends_with(".py");
        self.is_from_script() && self.frames.first().is_some_and(|f| installed(&f.file))
    }
}

/// How a traceback block came into the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TracebackKind {
    /// Printed raw, so it was not caught by the engine (or the interpreter printed it at exit).
    #[default]
    Raw,
    /// Written by a logger, line by line behind a log prefix.
    Logged,
    /// `Exception ignored in`, never-retrieved tasks, threads that only print: never fatal.
    Ignored,
    /// A faulthandler dump or native signal banner.
    Native,
    /// A bare `Type: message` line without any traceback.
    Bare,
    /// Quoted inside another message: the process that died may be another one.
    Quoted,
}

/// A whole traceback: the chain, oldest exception first.
#[derive(Debug, Clone, PartialEq)]
pub struct Traceback {
    /// Chain of exceptions, oldest (the original) first. Never empty.
    pub chain: Vec<Exception>,
    /// How it was printed.
    pub kind: TracebackKind,
    /// First line of the block.
    pub first_line: u64,
    /// Last line of the block.
    pub last_line: u64,
    /// Whether its end is missing: no exception line was found before something else began.
    pub torn: bool,
    /// Whether it is the end of its source that is missing it, so that which exception it was is not known.
    pub cut: bool,
    /// Which exception of the chain states the cause, as far as the block alone can tell.
    pub chosen: usize,
}

/// A process that a line tells of, which need not be the one that wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Victim {
    /// Process id, in the teller's namespace.
    pub pid: Option<i64>,
    /// Global rank.
    pub rank: Option<u32>,
    /// Label or process name, possibly truncated by the kernel.
    pub label: Option<Arc<str>>,
    /// Node.
    pub node: Option<Arc<str>>,
    /// Coordinates.
    pub coords: Coords,
}

impl Victim {
    /// Whether it names a process, not only where it ran.
    pub fn is_named(&self) -> bool {
        self.pid.is_some() || self.rank.is_some() || self.label.is_some()
    }

    /// Whether the line names no process at all.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A figure as printed and as a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Name from the figure list (`gpu_free_gib`), unit included.
    pub name: Arc<str>,
    /// Value in the unit that the name says.
    pub value: f64,
    /// The text the value was read from.
    pub printed: Arc<str>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// Exit code.
    Code(i32),
    /// Signal number.
    Signal(i32),
    /// It is gone, and the line does not say how.
    Gone,
}

/// What a line, or a block of lines, states.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A message that the catalog knows; its role (root, wrapper, phase marker, …) is the signature's.
    Known,
    /// A Python traceback or a bare exception line.
    Traceback(Box<Traceback>),
    /// A line at ERROR level or above that no signature knows.
    UnknownError,
    /// A record that belongs to a process and says nothing else (keeps "last seen" true).
    Seen,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// Where it stands. For a traceback, the line of the original exception.
    pub place: Place,
    /// Who wrote it.
    pub speaker: Arc<Speaker>,
    /// What it states.
    pub fact: Fact,
    /// The signature that recognised it.
    pub signature: Option<SignatureId>,
    /// Figures captured.
    pub figures: Vec<Figure>,
    /// Settings captured, name and value as printed.
    pub settings: Vec<(Arc<str>, Arc<str>)>,
    /// The worker's method that was running, if it names one.
    pub method: Option<Arc<str>>,
    /// The process it tells of, if it names one.
    pub victim: Victim,
    /// Exit status it tells of.
    pub exit: Option<ExitStatus>,
    /// Whether it may tell of an end: its logger, if it has one, put it at the level of errors.
    pub grave: bool,
    /// The next and previous lines, for a snippet: `(line number, text)`.
    pub context: Vec<(u64, Arc<str>)>,
    /// `[repeated N×]`: how many further copies this line stands for.
    pub repeated: u32,
}

impl Event {
    /// The value of a setting that it states, the first where it states several.
    pub fn setting(&self, name: &str) -> Option<&Arc<str>> {
        let mut named = self.settings.iter().filter(|(own, _)| &**own == name);
        named.next().map(|(_, value)| value)
    }

    /// What a line states, with nothing captured yet.
    pub fn new(place: Place, speaker: Arc<Speaker>, fact: Fact) -> Self {
        Self {
            place,
            speaker,
            fact,
            signature: None,
            figures: Vec::new(),
            settings: Vec::new(),
            method: None,
            victim: Victim::default(),
            exit: None,
            grave: true,
            context: Vec::new(),
            repeated: 0,
        }
    }
}
