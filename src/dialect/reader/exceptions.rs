//! From a finished traceback, or a quoted exception, to an event.
//!
//! Owns the look-up of each exception of a chain, which of them states the cause, and the line that says so. Never puts
//! lines together: that is the assembler's work.

use std::hash::{Hash, Hasher};

use super::{MAX_SAME, Mark, Reader, TEXT_LIMIT, cut};
use crate::catalog::captures::Captured;
use crate::catalog::matcher::{Hit, Signature, Text};
use crate::catalog::schema::Role;
use crate::catalog::{self, Catalog, Strength};
use crate::dialect::ray_carrier;
use crate::dialect::traceback::{
    Block, Printed, RawException, RawFrame, Shape, certain, exception_line, looks_like_error,
};
use crate::event::{Event, Exception, Fact, Frame, Place, Traceback, TracebackKind, Victim};

/// Look-ups of quoted texts within quoted texts.
const MAX_QUOTES: usize = 4;

/// Lines of other speakers, which end in the same way, below the last one of a traceback that the end of a source cuts.
const NEAR_END: u64 = 64;

/// Lines of a wrapping exception's message among which the one that it carries begins.
const WRAPPED_LINES: usize = 4;

/// Lines from the status of a rank in torchrun's table to its traceback.
const ROW_LINES: u64 = 2;

/// Python's own process that keeps count of shared memory prints what it catches, and goes on.
const TRACKER: &str = "multiprocessing/resource_tracker.py";

fn is_trackers(block: &Block<Mark>) -> bool {
    let mut frames = block.chain.iter().flat_map(|e| &e.frames).peekable();
    frames.peek().is_some() && frames.all(|f| f.function == "main" && f.file.ends_with(TRACKER))
}

impl Reader<'_> {
    /// A quoted exception or message inside another one, as a traceback without frames.
    pub(super) fn quoted(&self, inner: &str, place: &Place) -> Option<(Traceback, Captured)> {
        let mut text = inner;
        let mut buffer;
        for _ in 0..MAX_QUOTES {
            let (kind, message) = exception_line(text).or_else(|| repr_call(text)).unwrap_or(("", text));
            let hit = self.catalog.find(Text::Exception { kind, text: message })?;
            // What says only that a step failed has its reason in lines that a quote leaves out.
            let signature = self.catalog.signature(hit.id).filter(|s| !s.def.vague)?;
            let mut captured = self.captured(&hit);
            if let Some(deeper) = captured.inner.take().filter(|_| signature.def.quotes) {
                buffer = deeper;
                text = &buffer;
                continue;
            }
            let exception = Exception {
                kind: kind.into(),
                message: cut(message, TEXT_LIMIT).into(),
                frames: Vec::new(),
                place: place.clone(),
                stated_at: place.clone(),
                signature: Some(hit.id),
                told_phase: None,
                forwarded: true,
            };
            let (first_line, last_line) = (place.line, place.line);
            let (chain, kind) = (vec![exception], TracebackKind::Quoted);
            return Some((
                Traceback {
                    chain,
                    kind,
                    first_line,
                    last_line,
                    torn: false,
                    cut: false,
                    chosen: 0,
                },
                captured,
            ));
        }
        None
    }

    pub(super) fn bare_exception(&mut self, mark: Mark, kind: &str, message: &str, logged: bool) {
        let raw = RawException {
            kind: kind.to_owned(),
            lines: vec![(message.to_owned(), mark.clone())],
            frames: Vec::new(),
        };
        let block = Block {
            chain: vec![raw],
            shape: Shape::Python,
            logged,
            first_line: mark.place.line,
            last_line: mark.place.line,
            torn: false,
            at_end: false,
            cut: 0,
            bare: true,
            key: 0,
            opener: mark,
        };
        self.block(block);
    }

    pub(super) fn take_blocks(&mut self) {
        if self.blocks.is_empty() {
            return;
        }
        for block in std::mem::take(&mut self.blocks) {
            self.block(block);
        }
    }

    pub(super) fn block(&mut self, block: Block<Mark>) {
        self.cut += block.cut;
        let kind = match block.shape {
            Shape::Ignored => TracebackKind::Ignored,
            Shape::Native => TracebackKind::Native,
            Shape::Python if is_trackers(&block) => TracebackKind::Ignored,
            Shape::Python if block.bare => TracebackKind::Bare,
            Shape::Python if block.logged => TracebackKind::Logged,
            Shape::Python => TracebackKind::Raw,
        };
        let mut chain = Vec::with_capacity(block.chain.len());
        let mut captured: Vec<Captured> = Vec::with_capacity(block.chain.len());
        let Mark {
            place: opened_at,
            speaker,
            grave,
            ..
        } = block.opener;
        let left = match self.newest_first {
            true => block.last_line.saturating_sub(1),
            false => self.lines.saturating_sub(block.last_line),
        };
        let opened_in_table = opened_at.text.contains("traceback : Traceback");
        let near_end = left <= NEAR_END;
        let unfinished = block.at_end && near_end && grave && kind != TracebackKind::Ignored && !block.bare;
        let mut frames = Vec::new();
        let logged = block.logged && !block.bare;
        for raw in block.chain {
            if raw.lines.is_empty() {
                frames = shared(raw.frames);
                continue;
            }
            let Some((exception, found)) = self.exception(raw, logged) else {
                continue;
            };
            chain.push(exception);
            captured.push(found);
        }
        // An exception of the chain that stands whole tells more than the one that it led to.
        let cut = unfinished && chain.is_empty();
        if cut {
            chain.push(cut_off(opened_at.clone(), frames));
            captured.push(Captured::default());
        }
        let chosen = choose(self.catalog, &chain);
        let Some(exception) = chain.get(chosen) else {
            return;
        };
        let count = self.raised.entry((speaker, raised(exception))).or_default();
        *count += 1;
        if *count > MAX_SAME {
            self.repeated += 1;
            return;
        }
        let mut at = exception.stated_at.clone();
        if opened_at.own_time && !at.own_time {
            // What stands below a stamp in one record was written with it.
            (at.time, at.own_time) = (opened_at.time, true);
        }
        let mut event = self.event(at, speaker, Fact::Seen);
        event.signature = exception.signature;
        for (i, found) in captured.into_iter().enumerate() {
            let own = chain.get(i).is_some_and(|e| !e.forwarded) && kind != TracebackKind::Ignored;
            if i == chosen && own {
                self.learn(speaker, &found);
            }
            event.figures.extend(found.figures);
            event.settings.extend(found.settings);
            if i == chosen || event.victim.is_empty() {
                event.victim = found.victim;
            }
            event.exit = event.exit.or(found.exit);
            event.method = event.method.take().or(found.method);
        }
        // Ray's header above a remote traceback names the process in which it arose.
        for exception in &chain {
            let Some(carrier) = ray_carrier::find(&exception.message) else {
                continue;
            };
            if event.victim.is_empty() {
                event.victim = carrier.victim();
            }
            event.method = event.method.take().or_else(|| carrier.method.map(Into::into));
        }
        if event.victim.is_empty() && opened_in_table {
            event.victim = self.row_above(block.first_line);
        }
        let forwarded = chain.get(chosen).is_some_and(|e| e.forwarded);
        let kind = if forwarded && kind != TracebackKind::Ignored {
            TracebackKind::Quoted
        } else {
            kind
        };
        let (first_line, last_line, torn) = (block.first_line, block.last_line, block.torn);
        event.fact = Fact::Traceback(Box::new(Traceback {
            chain,
            kind,
            first_line,
            last_line,
            torn,
            cut,
            chosen,
        }));
        self.push(event);
    }

    /// Of whom the row of torchrun's table is that holds a traceback: its status stands just above.
    fn row_above(&self, line: u64) -> Victim {
        let near = |e: &&Event| line.saturating_sub(e.place.line) <= ROW_LINES && e.exit.is_some();
        let mut rows = self.events.iter().rev().take(2);
        rows.find(near).map_or_else(Victim::default, |e| e.victim.clone())
    }

    pub(super) fn exception(&self, raw: RawException<Mark>, logged: bool) -> Option<(Exception, Captured)> {
        let place = raw.lines.first().map(|(_, mark)| mark.place.clone())?;
        let mut message = String::new();
        let mut starts = Vec::with_capacity(raw.lines.len());
        let mut printed: Vec<Printed> = raw.lines.iter().map(|(_, mark)| mark.printed).collect();
        for (i, (line, mark)) in raw.lines.iter().enumerate() {
            if i > 0 {
                message.push('\n');
            }
            starts.push((message.len(), &mark.place));
            message.push_str(line.strip_prefix("  Value error, ").unwrap_or(line));
        }
        let mut kind = raw.kind;
        if let Some((line, inner, at)) = self.wrapped(&kind, &message) {
            // The type only wraps: what it carries is the exception.
            let text = message.get(at..).unwrap_or_default().to_owned();
            message.truncate(at);
            starts.drain(..line.min(starts.len()));
            printed.drain(..line.min(printed.len()));
            let taken = message.len();
            for (start, _) in &mut starts {
                *start = start.saturating_sub(taken);
            }
            (kind, message) = (inner, text);
        }
        let place = starts.first().map_or(place, |(_, p)| (*p).clone());
        let joined = [message.replace('\n', ""), message.replace('\n', " ")];
        // Above it there are lines of the record, too: where both have a header, each line has.
        let headed = logged && printed.first().is_some_and(|line| line.logged);
        let sure = certain(&message, &printed, headed);
        let hit = self.find_exception(&kind, &message, &joined, sure);
        let mut stated_at = place.clone();
        let (mut signature, mut captured, mut forwarded, mut told_phase) = (None, Captured::default(), false, None);
        if let Some(hit) = hit {
            // Where the exception line itself says as much as a later line, it is the one to quote.
            let first = message.split('\n').next().unwrap_or("");
            let again = self.catalog.find(Text::Exception {
                kind: &kind,
                text: first,
            });
            let stated = if again.is_some_and(|a| a.id == hit.id) {
                0
            } else {
                hit.at
            };
            let at = starts
                .iter()
                .rev()
                .find(|(start, _)| *start <= stated)
                .map(|(_, p)| (*p).clone());
            stated_at = at.unwrap_or(stated_at);
            captured = self.captured(&hit);
            signature = Some(hit.id);
            let def = self.catalog.signature(hit.id).map(|s| &s.def);
            forwarded = def.is_some_and(|d| d.forwards);
            told_phase = def
                .filter(|d| d.quotes)
                .and_then(|d| d.phase.as_deref())
                .map(Into::into);
        }
        let says_why = signature
            .and_then(|id| self.catalog.signature(id))
            .is_some_and(|s| !s.def.vague);
        if !says_why
            && is_validation(&kind, &message)
            && let Some((_, place)) = starts.get(reason_line(&message))
        {
            stated_at = (*place).clone();
        }
        // A carrier that quotes an inner text is answered by what it quotes.
        if let Some(inner) = captured.inner.take()
            && let Some((quoted, inner)) = self.quoted(&inner, &stated_at)
            && let Some(first) = quoted.chain.first()
        {
            captured.figures.extend(inner.figures);
            signature = first.signature.or(signature);
        } else {
            forwarded = false;
        }
        let frames = shared(raw.frames);
        let message = cut(&message, 8 * TEXT_LIMIT).into();
        Some((
            Exception {
                kind: kind.into(),
                message,
                frames,
                place,
                stated_at,
                signature,
                told_phase,
                forwarded,
            },
            captured,
        ))
    }

    /// The signature of an exception's message. A paste may have broken a long line at a fixed width: where the lines as
    /// they stand tell no cause, they are looked up joined. The first `sure` bytes are known to be of the message.
    pub(super) fn find_exception<'t>(
        &self,
        kind: &'t str,
        message: &'t str,
        joined: &'t [String; 2],
        sure: usize,
    ) -> Option<Hit<'t>> {
        let look = |text| self.catalog.find(Text::Exception { kind, text });
        let strong = |hit: &Hit<'_>| {
            let signature = self.catalog.signature(hit.id);
            signature.is_some_and(|s| s.def.role != Role::Root || s.strength == Strength::Strong)
        };
        let first = message.get(..sure).filter(|_| sure < message.len()).and_then(look);
        let counts = |hit: &Hit<'_>| {
            hit.at < sure || self.may_stand_below(hit) || first.as_ref().is_some_and(|f| self.refines(hit, f))
        };
        let hit = look(message).filter(counts).or(first);
        if !message.contains('\n') || hit.as_ref().is_some_and(strong) {
            return hit;
        }
        // Joined, a harmless sentence further down would seem to be all that it says.
        let harmless = |hit: &Hit<'_>| {
            self.catalog
                .signature(hit.id)
                .is_some_and(|s| s.def.role == Role::Benign)
        };
        // Joined without a blank, what is sure is shorter by its ends of lines.
        let ends = message.bytes().take(sure).filter(|b| *b == b'\n').count();
        let again = joined
            .iter()
            .zip([sure - ends, sure])
            .find_map(|(text, sure)| look(text).filter(|hit| hit.at < sure && strong(hit) && !harmless(hit)));
        again.map(|found| Hit { at: 0, ..found }).or(hit)
    }

    /// Whether a signature's text may stand in a line of which it is not sure that it is of the message: only where it is
    /// one of this very type, or a user's.
    fn may_stand_below(&self, hit: &Hit<'_>) -> bool {
        self.catalog
            .signature(hit.id)
            .is_some_and(|s| s.added || s.def.exception.is_some() && s.def.role != Role::Benign)
    }

    /// Whether a signature names the cause of which another one tells only the family.
    fn refines(&self, hit: &Hit<'_>, other: &Hit<'_>) -> bool {
        let cause = |hit: &Hit<'_>| self.catalog.signature(hit.id).and_then(|s| s.def.cause.as_deref());
        let family = cause(other).and_then(|cause| cause.strip_suffix(".*"));
        family.is_some_and(|family| cause(hit).is_some_and(|cause| catalog::family(cause) == family))
    }

    /// The exception that one of a type which only wraps carries in its message: line of the message, type, and the byte at
    /// which its own message begins. Only where no signature knows the message as it stands.
    pub(super) fn wrapped(&self, kind: &str, message: &str) -> Option<(usize, String, usize)> {
        let wraps = self.catalog.structure().exception(kind).is_some_and(|row| row.wrapper);
        if !wraps || self.catalog.find(Text::Exception { kind, text: message }).is_some() {
            return None;
        }
        let mut start = 0;
        for (i, line) in message.split('\n').take(WRAPPED_LINES).enumerate() {
            if let Some((inner, text)) = exception_line(line).filter(|(inner, _)| looks_like_error(inner)) {
                return Some((i, inner.to_owned(), start + line.len() - text.len()));
            }
            start += line.len() + 1;
        }
        None
    }
}

fn shared(frames: Vec<RawFrame>) -> Vec<Frame> {
    let share = |f: RawFrame| Frame {
        file: f.file.into(),
        line: f.line,
        function: f.function.into(),
        code: f.code.into(),
    };
    frames.into_iter().map(share).collect()
}

/// What stands for the exception of a traceback that the end of its source cuts off.
fn cut_off(place: Place, frames: Vec<Frame>) -> Exception {
    Exception {
        kind: "Traceback".into(),
        message: "cut off before its exception line".into(),
        frames,
        stated_at: place.clone(),
        place,
        signature: None,
        told_phase: None,
        forwarded: false,
    }
}

/// Which exception of a chain states the cause: the oldest one with a strong signature that says more than that a step
/// failed, else the oldest with a strong one, else the oldest that is more than a carrier, else the oldest with any
/// signature.
fn choose(catalog: &Catalog, chain: &[Exception]) -> usize {
    let rated = |e: &Exception| catalog.signature(e.signature);
    let strong = |with_reason: bool| {
        let states = |s: &Signature| {
            let strong = s.strength != Strength::Weak && s.strength != Strength::Generic;
            s.def.role == Role::Root && strong && !(with_reason && s.def.vague)
        };
        chain.iter().position(|e| rated(e).is_some_and(states))
    };
    let own = || {
        chain.iter().position(|e| {
            let carrier = catalog
                .structure()
                .exception(&e.kind)
                .is_some_and(|d| d.wrapper || d.consequence);
            let downstream =
                rated(e).is_some_and(|s| matches!(s.def.role, Role::Wrapper | Role::Consequence | Role::Benign));
            !carrier && !downstream && !e.kind.is_empty()
        })
    };
    let any = || chain.iter().position(|e| e.signature.is_some());
    let best = strong(true).or_else(|| strong(false));
    best.or_else(own).or_else(any).unwrap_or(0)
}

/// What tracebacks have in common that only repeat each other: the type, and the line of code where it was raised.
fn raised(exception: &Exception) -> u64 {
    let mut state = xxhash_rust::xxh3::Xxh3Default::new();
    exception.kind.hash(&mut state);
    exception.frames.last().map(|f| (&f.file, f.line)).hash(&mut state);
    state.finish()
}

/// `ValueError('text')`, as `repr` prints an exception.
fn repr_call(text: &str) -> Option<(&str, &str)> {
    let (kind, rest) = text.split_once('(')?;
    let inner = rest.trim_end().strip_suffix(')')?.trim_end_matches(',');
    looks_like_error(kind).then(|| (kind, inner.trim_matches(['\'', '"'])))
}

/// A pydantic error has its reason two lines below its head: field name, then reason.
fn is_validation(kind: &str, message: &str) -> bool {
    kind.ends_with("ValidationError") && message.contains("validation error")
}

fn reason_line(message: &str) -> usize {
    let lines: Vec<&str> = message.split('\n').collect();
    lines
        .iter()
        .skip(1)
        .position(|l| l.starts_with("  ") || l.contains("[type="))
        .map_or(1, |i| i + 1)
        .min(lines.len() - 1)
}
