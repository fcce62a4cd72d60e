//! Messages that a signature knows: which of them say anything new, and what is kept of those.
//!
//! Owns the counts by which a repetition is told, and where a launch begins and ends. Never looks a message up.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::found::Found;
use super::keys::key_of;
use super::{Intro, MAX_LAUNCHES, MAX_SAME, Reader, place};
use crate::catalog::captures::Identity;
use crate::catalog::schema::{Role, SignatureDef};
use crate::dialect::header::{Header, Level};
use crate::dialect::settings;
use crate::event::{Event, Fact, Program, SignatureId};
use crate::record::Record;

/// Lines remembered to the letter: a thousand processes have a few dozen each.
const MAX_SAID: usize = 1 << 16;
/// The captured id of a group of processes that meet: a process does so in several.
const GROUP: &str = "nccl_comm_id";
/// Lines of the longest record that is not joined otherwise (Ray's kill report has about 45).
const RECORD_LINES: u64 = 120;

/// A record that says nothing but that its speaker is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    /// The number of its speaker.
    pub speaker: usize,
    /// What it says.
    pub said: Said,
}

/// What a message says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// Something new.
    New,
    /// Nothing that any signature knows.
    Nothing,
    /// That its speaker is where a marker put it before.
    Marker(SignatureId),
    /// What its speaker said before, to the letter.
    Again,
    /// One event more of a kind that is only counted.
    Counted(SignatureId),
}

impl Reader<'_> {
    /// Takes a message that a signature knows.
    pub(super) fn known(
        &mut self,
        record: &Record<'_>,
        head: &Header<'_>,
        speaker: usize,
        message: &str,
        Found { id, captured }: Found,
    ) -> Said {
        let Some(signature) = self.catalog.signature(id) else {
            return Said::New;
        };
        let role = signature.def.role;
        let heads = signature.def.heads_traceback;
        self.intro = (heads || role == Role::Benign && head.logged).then(|| Intro {
            key: key_of(record, head),
            // `logger.exception` prints the traceback raw below its ERROR line; a warning above one is a coincidence.
            bare_key: (heads || head.level.is_some_and(|l| l >= Level::Error))
                .then(|| key_of(record, &Header::default())),
            line: record.line,
            harmless: !heads,
        });
        let of_group = captured.settings.iter().any(|(name, _)| &**name == GROUP);
        let carries = !captured.figures.is_empty() || captured.exit.is_some() || of_group;
        let answers = signature.def.answers && std::mem::take(&mut self.unanswered);
        // A progress bar's later states say nothing new; figures and ends always may, and so does a step of another group,
        // and a request that is answered although something had failed.
        let only_marks = role == Role::Phase && !carries && !answers && self.seen.contains_key(&(speaker, id));
        if only_marks && captured.identity == Identity::default() {
            return Said::Marker(id);
        }
        if self.repeats(role, head, speaker, message) {
            return Said::Again;
        }
        self.learn(speaker, &captured);
        self.boundary(role, speaker);
        if only_marks {
            return Said::New;
        }
        let count = self.seen.entry((speaker, id)).or_default();
        *count += 1;
        let count = *count;
        // So do processes that follow those which their agent saw fail.
        let begins = role == Role::Launch || matches!(signature.def.step.as_deref(), Some("restart" | "group-failed"));
        if begins && count <= MAX_SAME {
            // What the launch before it said does not make this one's lines repetitions.
            self.launches += 1;
            self.seen.retain(|(_, other), _| *other == id);
            self.said.clear();
            self.unknown.clear();
            self.raised.clear();
        }
        if count > MAX_SAME {
            self.repeated += 1;
            let says_who = captured.identity != Identity::default();
            return match role {
                Role::Phase | Role::Note if !says_who => Said::Counted(id),
                _ => Said::New,
            };
        }
        if let Some(earlier) = self.completed_by(&signature.def, record.line) {
            earlier.figures.extend(captured.figures);
            let victim = &mut earlier.victim;
            if captured.victim.pid.is_some() {
                victim.pid = captured.victim.pid;
                victim.label = victim.label.take().or(captured.victim.label);
            }
            victim.node = victim.node.take().or(captured.victim.node);
            victim.rank = victim.rank.or(captured.victim.rank);
            // What comes later is nearer: a signal that stands below the code it was turned into.
            earlier.exit = captured.exit.or(earlier.exit);
            earlier.settings.extend(captured.settings);
            return Said::New;
        }
        let place = place(self.input, record, head, self.last_stamp.clone());
        let mut event = self.event(place.clone(), speaker, Fact::Known);
        event.signature = Some(id);
        event.settings = captured.settings;
        event.settings.extend(settings::parse(message));
        event
            .settings
            .extend(settings::argv(message).map(|argv| ("argv".into(), argv.into())));
        let said = [
            ("engine_version", &captured.identity.version),
            ("model", &captured.identity.model),
        ];
        event
            .settings
            .extend(said.into_iter().filter_map(|(n, v)| Some((n.into(), v.clone()?))));
        event.figures = captured.figures;
        event.method = captured.method;
        event.victim = captured.victim;
        event.exit = captured.exit;
        event.grave = head.is_grave();
        event.repeated = record.repeated;
        if let Some(inner) = captured.inner
            && signature.def.quotes
            && let Some((quoted, inner)) = self.quoted(&inner, &place)
        {
            event.figures.extend(inner.figures);
            event.fact = Fact::Traceback(Box::new(quoted));
            event.signature = Some(id);
        }
        self.push(event);
        Said::New
    }

    /// Whether a step or a setting of NCCL's is what its process said before, to the letter: ranks say the same of every
    /// communicator, and only a pointer or an id that differs makes it another one.
    fn repeats(&mut self, role: Role, head: &Header<'_>, speaker: usize, message: &str) -> bool {
        let may = head.program == Program::Nccl && head.level == Some(Level::Info) && head.stamp.is_none();
        if !may || !matches!(role, Role::Phase | Role::Note) {
            return false;
        }
        let line = xxh3_64_with_seed(message.as_bytes(), speaker as u64);
        self.said.contains(&line) || self.said.len() < MAX_SAID && !self.said.insert(line)
    }

    /// Notes where a launch begins and where it is ready.
    fn boundary(&mut self, role: Role, speaker: usize) {
        let Some(heard) = self.heard.get(speaker) else { return };
        let origin = || (heard.speaker.node.clone(), heard.speaker.container.clone());
        match role {
            Role::Launch if self.launching.len() < MAX_LAUNCHES && !self.launching.contains(&origin()) => {
                self.launching.push(origin());
            }
            // One that is ready elsewhere than it was announced is the only one.
            Role::Ready if !self.launching.contains(&origin()) => self.launching.clear(),
            Role::Ready => self.launching.retain(|o| *o != origin()),
            _ => {}
        }
    }

    /// The record that this line goes on with: the last event of such a signature, a report's length above. A line that
    /// states the cause itself goes on only with one that does not say whom it hit.
    fn completed_by(&mut self, def: &SignatureDef, line: u64) -> Option<&mut Event> {
        if def.completes.is_empty() {
            return None;
        }
        let catalog = self.catalog;
        let fits = |e: &&mut Event| {
            let id = catalog.signature(e.signature).map(|s| &s.def.id);
            line.saturating_sub(e.place.line) <= RECORD_LINES && id.is_some_and(|id| def.completes.contains(id))
        };
        let last = self.events.iter_mut().rev().take(64).find(fits);
        last.filter(|e| def.role != Role::Root || e.victim.pid.is_none())
    }
}
