//! The reader of one source: records in, events out.
//!
//! Owns the order of look-ups (header, traceback, catalog), the speaker of each line and the limits on what is
//! kept. Never opens a file and never knows what came before in another source.

mod context;
mod edge;
mod exceptions;
mod found;
mod keys;
mod known;
mod speakers;
mod subject;
mod tasks;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use self::context::Context;
use self::edge::Edge;
use self::found::Found;
use self::keys::key_of;
pub use self::known::{Quiet, Said};
use self::speakers::MAX_SPEAKERS;
use self::subject::Subject;
use super::header::{self, Header, Level};
use super::kept::{self, Kept};
use super::traceback::{Assembler, Block, Foretold, Known, Line, Printed, Taken, exception_line, looks_like_error};
use crate::catalog::Catalog;
use crate::catalog::captures::Identity;
use crate::catalog::schema::{self, Role};
use crate::event::{Event, Fact, InputId, Place, Program, SignatureId, Speaker, TracebackKind};
use crate::record::{RayTag, Record};
use crate::time::Stamp;

/// Bytes of a line kept as evidence.
const TEXT_LIMIT: usize = 2000;
/// Bytes of a message by which it is found in its line.
const BEGINNING: usize = 32;
/// Events kept of one signature, and tracebacks of one type and place, from one speaker; later ones only count.
const MAX_SAME: u32 = 40;
/// Lines at ERROR level without a signature kept of one speaker.
const MAX_UNKNOWN: u32 = 20;
/// Speakers found again without a look-up.
const RECENT: usize = 1024;
/// Launches under way at once that are told apart in one source.
const MAX_LAUNCHES: usize = 64;

/// Exceptions whose reason stands in the lines below their own.
const BELOW: &[&str] = &[
    "DistBackendError",
    "ValidationError",
    "OutOfMemoryError",
    "AcceleratorError",
    "PTXASError",
];

/// When a speaker was first and last heard.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The speaker.
    pub speaker: Arc<Speaker>,
    /// First line.
    pub first_line: u64,
    /// Last line.
    pub last_line: u64,
    /// First stamp.
    pub first: Option<Stamp>,
    /// Last stamp.
    pub last: Option<Stamp>,
    /// What its lines say of it.
    pub identity: Identity,
    /// Lines.
    pub lines: u64,
    /// Whether its lines are of several processes, as those are that name no speaker, or one whose pid is that of others
    /// on other nodes.
    mixed: bool,
    /// The ranks that they state under its name, where they are of several.
    pub ranks: BTreeSet<u32>,
}

/// All that one source yields.
#[derive(Debug, Clone, Default)]
pub struct Harvest {
    /// Events in the order in which their lines were written.
    pub events: Vec<Event>,
    /// Speakers.
    pub heard: Vec<Heard>,
    /// Lines read.
    pub lines: u64,
    /// Limits that were hit.
    pub capped: Vec<String>,
    /// What the events take in memory, bytes.
    pub bytes: usize,
}

/// The reader of one source.
#[derive(Clone)]
pub struct Reader<'c> {
    catalog: &'c Catalog,
    input: InputId,
    /// Whether the source is read last line first.
    newest_first: bool,
    events: Kept,
    heard: Vec<Heard>,
    speakers: HashMap<Arc<Speaker>, usize>,
    last_speaker: usize,
    recent: Vec<usize>,
    assembler: Assembler<Mark>,
    blocks: Vec<Block<Mark>>,
    /// What was found in long messages.
    long: HashMap<u64, Option<Found>>,
    seen: HashMap<(usize, SignatureId), u32>,
    unknown: HashMap<usize, u32>,
    raised: HashMap<(usize, u64), u32>,
    intro: Option<Intro>,
    /// Whose traceback the next line begins, as the line before it says.
    announced: Option<Announced>,
    context: Context,
    edge: Edge,
    last_stamp: Option<Stamp>,
    lines: u64,
    /// Events that were not worth keeping.
    repeated: u64,
    /// Parts of tracebacks that were more than is kept.
    cut: u64,
    root_seen: bool,
    end_seen: bool,
    /// Whether a failure was told of after the last request that the server answered.
    unanswered: bool,
    launching: Vec<Origin>,
    launches: u64,
    /// Lines that only count when they are said for the first time, each with its speaker.
    said: HashSet<u64>,
    /// Of which pod a listing tells.
    subject: Subject,
}

/// The node and container that a launch was announced from.
type Origin = (Option<Arc<str>>, Option<Arc<str>>);

/// A message to which a traceback right below it belongs: one that is harmless, or one that says that it was caught.
#[derive(Debug, Clone, Copy)]
struct Intro {
    key: u64,
    bare_key: Option<u64>,
    line: u64,
    harmless: bool,
}

/// A line that says whose traceback follows.
#[derive(Debug, Clone, Copy)]
struct Announced {
    speaker: usize,
    key: u64,
    line: u64,
}

/// What the assembler carries along for each line it keeps.
#[derive(Debug, Clone)]
struct Mark {
    place: Place,
    speaker: usize,
    /// Whether its logger, if it has one, calls it an error.
    grave: bool,
    printed: Printed,
}

impl<'c> Reader<'c> {
    /// The same reader for a source that runs from the newest line to the oldest, which it is given last line first.
    #[must_use]
    pub fn newest_first(self, newest_first: bool) -> Self {
        Self { newest_first, ..self }
    }

    /// A reader with nothing read, whose events may take `budget` bytes of memory.
    pub fn new(catalog: &'c Catalog, input: InputId, budget: usize) -> Self {
        Self {
            catalog,
            input,
            events: Kept::new(budget),
            heard: Vec::new(),
            speakers: HashMap::new(),
            last_speaker: usize::MAX,
            recent: vec![usize::MAX; RECENT],
            assembler: Assembler::default(),
            blocks: Vec::new(),
            long: HashMap::new(),
            seen: HashMap::new(),
            unknown: HashMap::new(),
            raised: HashMap::new(),
            intro: None,
            announced: None,
            context: Context::default(),
            edge: Edge::default(),
            last_stamp: None,
            lines: 0,
            repeated: 0,
            cut: 0,
            newest_first: false,
            root_seen: false,
            end_seen: false,
            unanswered: false,
            launching: Vec::new(),
            launches: 0,
            said: HashSet::new(),
            subject: Subject::default(),
        }
    }

    /// Reads one record. Answers with whose it is if it says nothing but that its speaker is there.
    pub fn record(&mut self, record: &Record<'_>) -> Option<Quiet> {
        self.lines = self.lines.max(record.line);
        self.context
            .give(&mut self.events, record.line, record.shown.as_bytes());
        self.edge.note(&record.shown);
        let head = header::parse(&record.text);
        let speaker = self.speaker(record, &head);
        let stamp = record.stamp.clone().or_else(|| head.stamp.clone());
        if let Some(stamp) = &stamp {
            self.last_stamp = Some(stamp.clone());
        }
        let stamped = stamp.is_some();
        if !head.logged && head.label.is_none() {
            self.subject.read(head.message);
        }
        self.note_heard(speaker, record.line, stamp);
        let said = self.message(record, &head, speaker);
        self.take_blocks();
        self.context.remember(record.line, record.shown.as_bytes());
        (said != Said::New && !stamped && record.repeated == 0).then_some(Quiet { speaker, said })
    }

    /// Notes a line that says no more than one that was [`Quiet`], while the reader [is idle](Self::is_idle).
    pub fn echo(&mut self, line: u64, text: &[u8], speaker: usize, counted: bool) {
        self.lines = self.lines.max(line);
        self.repeated += u64::from(counted);
        self.last_speaker = speaker;
        self.note_heard(speaker, line, None);
        if self.context.is_wanted() {
            self.context.give(&mut self.events, line, text);
        }
    }

    /// Keeps a line that was noted so for the context of those to come.
    pub fn remember(&mut self, line: u64, text: &[u8]) {
        self.context.remember(line, text);
    }

    /// Whether no traceback waits for lines to come.
    pub fn is_idle(&self) -> bool {
        !self.assembler.is_open() && self.intro.is_none()
    }

    /// Whether a launch has begun and its ready marker has not been read.
    pub fn launching(&self) -> bool {
        !self.launching.is_empty()
    }

    /// Beginnings of launches so far.
    pub fn launches(&self) -> u64 {
        self.launches
    }

    /// Lines follow that are not given: what is unfinished stays so.
    pub fn pass_over(&mut self) {
        self.assembler.close_all(&mut self.blocks);
        self.take_blocks();
        self.context.clear();
    }

    /// Ends the source and gives what was found.
    pub fn finish(mut self) -> Harvest {
        self.end();
        let mut capped = Vec::new();
        if self.repeated > 0 {
            capped.push(format!(
                "{} further events of the same kind were counted but not kept",
                self.repeated
            ));
        }
        if self.events.dropped > 0 {
            capped.push(format!(
                "{} events between the first and the last ones were counted but not kept: they would take too much \
                 memory",
                self.events.dropped
            ));
        }
        if self.cut > 0 {
            capped.push(format!(
                "{} frames, lines of messages and chained exceptions of overlong tracebacks were not kept",
                self.cut
            ));
        }
        if self.heard.len() >= MAX_SPEAKERS {
            capped.push(format!(
                "{MAX_SPEAKERS} processes are told apart in one input: what further ones say counts for the first"
            ));
        }
        let mut events = self.events.into_sorted(self.newest_first);
        tasks::settle(&mut self.heard, &mut events);
        Harvest {
            bytes: events.iter().map(kept::weight).sum(),
            events,
            heard: self.heard,
            lines: self.lines,
            capped,
        }
    }

    /// Ends what is still open: nothing more is to come.
    fn end(&mut self) {
        self.assembler.finish(&mut self.blocks);
        self.take_blocks();
    }

    /// Whether a root cause was stated and an end was reported after it.
    /// Takes the reader, because it ends what is still open.
    pub fn root_stands(mut self) -> bool {
        self.end();
        self.root_seen && self.end_seen
    }

    /// Looks a message up.
    fn message(&mut self, record: &Record<'_>, head: &Header<'_>, speaker: usize) -> Said {
        let message = head.message;
        let bare = !head.logged && head.label.is_none();
        let key = key_of(record, head);
        let headed = head.logged && head.program != Program::Unknown;
        let found = self.find(message.trim_start(), headed, head.file);
        let known = found.as_ref().map_or(Known::No, |found| self.known_as(found));
        if head.logged && self.assembler.is_open() {
            let bare_key = key_of(record, &Header::default());
            if head.label.is_none() {
                self.assembler.interrupt_bare(bare_key, key, &mut self.blocks);
            }
            let raw_key = key_of(
                record,
                &Header {
                    logged: false,
                    level: None,
                    file: None,
                    ..head.clone()
                },
            );
            if raw_key != key {
                self.assembler.interrupt(raw_key, &mut self.blocks);
            }
        }
        if record.line.is_multiple_of(1024) {
            self.assembler.expire(record.line, &mut self.blocks);
        }
        let line = Line {
            no: record.line,
            message,
            logged: head.logged,
        };
        let (input, time) = (self.input, self.last_stamp.clone());
        let printed = Printed {
            logged: head.logged,
            full: self.edge.reached(),
        };
        let is_head = message.trim_end().ends_with("Traceback (most recent call last):");
        let speaker = self
            .announced_speaker(record.line, key, is_head && bare)
            .unwrap_or(speaker);
        if bare {
            self.announce(record.line, key, message);
        }
        let mark = || Mark {
            place: place(input, record, head, time.clone()),
            speaker,
            grave: head.is_grave(),
            printed,
        };
        // A head behind a message of its own, `Scheduler hit an exception: Traceback …`, needs no other announcement.
        let announced = is_head && message.trim_start().starts_with("Traceback");
        if let Some(intro) = self.intro.take_if(|_| announced)
            && (intro.key == key || bare && intro.bare_key == Some(key) && record.line == intro.line + 1)
        {
            self.assembler.foretell(match intro.harmless {
                true => Foretold::Ignored,
                false => Foretold::Logged,
            });
        }
        // What a daemon says between the lines of a worker continues none of them.
        let daemon = record.tag.ray.as_ref().is_some_and(RayTag::is_daemon);
        let bare = bare && (is_head || !daemon);
        let taken = self.assembler.offer(key, bare, line, &mark, known, &mut self.blocks);
        self.take_blocks();
        if taken != Taken::No && !is_head {
            return Said::New;
        }
        if let Some(found) = found {
            return self.known(record, head, speaker, message, found);
        }
        self.intro = None;
        if is_head || taken != Taken::No {
            return Said::New;
        }
        if let Some((kind, text)) = exception_line(message)
            && looks_like_error(kind)
        {
            if BELOW.iter().any(|b| kind.ends_with(b)) || text.trim_end().ends_with(':') {
                self.assembler.begin_bare(key, line, &mark, kind, text);
            } else {
                self.bare_exception(mark(), kind, text, head.logged);
            }
        } else if head.level.is_some_and(|l| l >= Level::Error) && !message.trim().is_empty() {
            let count = self.unknown.entry(speaker).or_default();
            *count += 1;
            if *count <= MAX_UNKNOWN {
                let event = self.event(mark().place, speaker, Fact::UnknownError);
                self.push(event);
            }
        } else {
            return Said::Nothing;
        }
        Said::New
    }

    /// What a line is that stands where a traceback's message could go on.
    fn known_as(&self, found: &Found) -> Known {
        let Some(def) = self.catalog.signature(found.id).map(|s| &s.def) else {
            return Known::No;
        };
        let own = match def.role {
            // A kernel or a supervisor writes between the lines of the programs that it watches, never into them.
            _ if def.tells_of_others() => true,
            Role::Exit | Role::Launch | Role::Ready | Role::Stop | Role::Phase | Role::NoLaunch | Role::Wrapper => true,
            // What only ever stands at the start of a line, such as the banner of a signal, is no part of a message.
            Role::Root => def.at == schema::Site::Message,
            // A table of who failed, as torchrun's, stands below the exception that it belongs to.
            Role::Note => def.at == schema::Site::Message && !found.captured.victim.is_empty(),
            Role::Benign => return Known::Noise,
            Role::Consequence | Role::Degraded => false,
        };
        if own { Known::Own } else { Known::No }
    }

    fn event(&self, place: Place, speaker: usize, fact: Fact) -> Event {
        let speaker = self
            .heard
            .get(speaker)
            .map_or_else(|| Arc::new(Speaker::default()), |h| h.speaker.clone());
        Event {
            context: self.context.above(place.line),
            ..Event::new(place, speaker, fact)
        }
    }

    fn push(&mut self, mut event: Event) {
        let signature = self.catalog.signature(event.signature);
        if signature.is_some_and(|s| s.def.program == "k8s") && event.victim.is_empty() {
            event.victim.node = self.subject.name().cloned();
        }
        let role = signature.map(|s| s.def.role);
        self.unanswered |= role.is_some_and(Role::is_bad) || matches!(event.fact, Fact::Traceback(_));
        match (role, &event.fact) {
            (Some(Role::Wrapper | Role::Exit), _) => self.end_seen |= self.root_seen,
            (Some(Role::Root), _) => self.root_seen = true,
            (None, Fact::Traceback(t)) if t.kind != TracebackKind::Ignored && !t.cut => self.root_seen = true,
            // A new launch in the same stream: what stood before is over.
            (Some(Role::Launch | Role::Ready), _) => (self.root_seen, self.end_seen) = (false, false),
            _ => {}
        }
        if self.events.push(event) {
            // The places of the events have changed; a few lines of context are lost.
            self.context.want_nothing();
        } else if let Some(last) = self.events.len().checked_sub(1) {
            self.context.want(last);
        }
    }
}

/// Where a record stands.
fn place(input: InputId, record: &Record<'_>, head: &Header<'_>, time: Option<Stamp>) -> Place {
    Place {
        input,
        line: record.line,
        byte: record.byte,
        time,
        own_time: record.stamp.is_some() || head.stamp.is_some(),
        message: within(cut(&record.shown, TEXT_LIMIT), head.message.trim()),
        text: cut(&record.shown, TEXT_LIMIT).into(),
    }
}

/// Where a message stands in its line, as far as it can be found: a transport may have written it in another form.
fn within(line: &str, message: &str) -> (u16, u16) {
    let begins = cut(message, BEGINNING);
    let end = line
        .len()
        .checked_sub(message.len())
        .filter(|_| line.ends_with(message));
    let start = end.or_else(|| line.find(begins)).filter(|_| !begins.is_empty());
    let Some(start) = start else {
        return (0, u16::try_from(line.len()).unwrap_or(0));
    };
    let length = message.len().min(line.len() - start);
    (u16::try_from(start).unwrap_or(0), u16::try_from(length).unwrap_or(0))
}

fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}
